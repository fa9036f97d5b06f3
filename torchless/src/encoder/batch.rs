//! Many events at once: divided among threads, gathered by their lengths, and put back in order.
//!
//! Events that end in padding are cut to their length, and computed together with others of about
//! that length: an event's bits do not depend on its neighbours or its padding.

use std::sync::{Mutex, PoisonError};

use super::graph::Dimension;
use super::run::{EncoderInput, EncoderOutput, EncoderScratch, InputValues, OutputValues};
use super::{Encoder, EncoderPort};
use crate::cpu::Threads;
use crate::error::{Error, InputProblem};

/// How many events are computed at once, and how long they are.
#[derive(Debug, Clone)]
pub struct EncodeOptions {
    /// Events that are computed together, at most.
    pub events_at_once: usize,
    /// The input that is 1 for particles and 0 for padding, if events have padding. The axes that
    /// have the name of its last axis are those of particles.
    pub mask: Option<String>,
}

impl Default for EncodeOptions {
    fn default() -> EncodeOptions {
        EncodeOptions { events_at_once: 16, mask: None }
    }
}

/// Particles by which the lengths of events of one group may differ: few plans, little padding.
const LENGTH_STEP: usize = 8;

/// Numbers of particles that a group has, at most: its activations stay in a cache.
const PARTICLES_AT_ONCE: usize = 512;

/// The place of a group, and what came of it.
type GroupResult = (usize, Result<Vec<EncoderOutput>, Error>);

/// Events that are computed together.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    events: Vec<usize>,
    /// Particles that are computed of each, if they are cut.
    length: Option<usize>,
}

impl Encoder {
    /// Computes the outputs of many events, which lie along the first axis of every input.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::run`], and inputs of different numbers of events.
    pub fn encode(
        &self,
        threads: &Threads,
        inputs: &[EncoderInput<'_>],
        options: &EncodeOptions,
    ) -> Result<Vec<EncoderOutput>, Error> {
        let inputs: Vec<EncoderInput<'_>> = self.check(inputs)?.into_iter().copied().collect();
        let n_events = n_events(&inputs)?;
        let name = self.particle_name(options)?;
        let axis = |port: &EncoderPort| name.as_ref().and_then(|name| particle_axis(port, name));
        let particles: Vec<Option<usize>> = self.inputs().iter().map(axis).collect();
        let lengths = match (&options.mask, inputs.iter().find(|input| Some(input.name) == options.mask.as_deref())) {
            (Some(_), Some(mask)) => Some(lengths(mask, n_events)),
            _ => None,
        };
        let at_once = options.events_at_once.max(1);
        let size = inputs.iter().zip(&particles).find_map(|(input, axis)| axis.map(|axis| input.shape[axis]));
        let groups = groups(n_events, at_once, lengths.as_deref(), size.unwrap_or(0));
        let scratches: Mutex<Vec<EncoderScratch>> = Mutex::new(Vec::new());
        let results: Mutex<Vec<GroupResult>> = Mutex::new(Vec::new());
        let cost = if groups.len() > 1 { usize::MAX } else { 0 };
        let lock = |scratches: &Mutex<Vec<EncoderScratch>>| {
            scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
        };
        threads.each(
            (0..groups.len()).collect(),
            cost,
            || (),
            |(), index| {
                let mut scratch = lock(&scratches);
                let result = self.encode_group(&mut scratch, &inputs, &particles, &groups[index]);
                scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
                results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            },
        );
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        // In one order, so that of several errors the same one is reported.
        results.sort_by_key(|(index, _)| *index);
        let mut joined =
            Joined { n_events, size, axes: self.outputs().iter().map(axis).collect(), outputs: Vec::new() };
        for ((_, result), group) in results.into_iter().zip(&groups) {
            joined.add(result?, group)?;
        }
        Ok(joined.outputs)
    }

    /// Returns the name of the axes of particles, if events are cut.
    fn particle_name(&self, options: &EncodeOptions) -> Result<Option<String>, Error> {
        let Some(mask) = &options.mask else { return Ok(None) };
        let refuse = |problem| Error::EncoderInput { name: mask.clone(), problem };
        let port = self.inputs().into_iter().find(|port| port.name == *mask);
        let dimensions = port.ok_or_else(|| refuse(InputProblem::Unknown))?.dimensions;
        match dimensions.and_then(|mut dimensions| dimensions.pop()) {
            Some(Dimension::Named(name)) if !name.is_empty() => Ok(Some(name)),
            _ => Err(refuse(InputProblem::NoParticles)),
        }
    }

    fn encode_group(
        &self,
        scratch: &mut EncoderScratch,
        inputs: &[EncoderInput<'_>],
        particles: &[Option<usize>],
        group: &Group,
    ) -> Result<Vec<EncoderOutput>, Error> {
        let cut: Vec<Cut> = inputs.iter().zip(particles).map(|(input, axis)| Cut::of(input, *axis, group)).collect();
        let inputs: Vec<EncoderInput<'_>> = inputs
            .iter()
            .zip(&cut)
            .map(|(input, cut)| EncoderInput { name: input.name, shape: &cut.shape, values: cut.numbers.values() })
            .collect();
        self.run(scratch, &inputs)
    }
}

fn particle_axis(port: &EncoderPort, name: &str) -> Option<usize> {
    let dimensions = port.dimensions.as_ref()?;
    let is_named = |dimension: &Dimension| matches!(dimension, Dimension::Named(other) if other == name);
    dimensions.iter().skip(1).position(is_named).map(|axis| axis + 1)
}

fn n_events(inputs: &[EncoderInput<'_>]) -> Result<usize, Error> {
    let mut known = None;
    for input in inputs {
        let found = input.shape.first().copied().unwrap_or(0);
        let expected = *known.get_or_insert(found);
        if found != expected {
            let problem = InputProblem::Events { found, expected };
            return Err(Error::EncoderInput { name: input.name.to_owned(), problem });
        }
    }
    Ok(known.unwrap_or(0))
}

/// Returns one more than the last place of each event whose mask is not 0.
fn lengths(mask: &EncoderInput<'_>, n_events: usize) -> Vec<usize> {
    let size = mask.shape.last().copied().unwrap_or(0).max(1);
    let is_set = |place: usize| match mask.values {
        InputValues::F32(values) => values[place] != 0.0,
        InputValues::F64(values) => values[place] != 0.0,
        InputValues::I64(values) => values[place] != 0,
        InputValues::Bool(values) => values[place],
    };
    let per_event = mask.values.len() / n_events.max(1);
    let length = |event: usize| {
        let places = event * per_event..(event + 1) * per_event;
        places.filter(|&place| is_set(place)).map(|place| place % size + 1).max().unwrap_or(0)
    };
    (0..n_events).map(length).collect()
}

/// Divides events into groups: those of about one length together, the longest first.
fn groups(n_events: usize, at_once: usize, lengths: Option<&[usize]>, size: usize) -> Vec<Group> {
    let Some(lengths) = lengths else {
        let events: Vec<usize> = (0..n_events).collect();
        return events.chunks(at_once).map(|events| Group { events: events.to_vec(), length: None }).collect();
    };
    let padded = |event: usize| lengths[event].max(1).next_multiple_of(LENGTH_STEP).min(size);
    let mut order: Vec<usize> = (0..n_events).collect();
    order.sort_by_key(|&event| (std::cmp::Reverse(padded(event)), event));
    let mut groups: Vec<Group> = Vec::new();
    for event in order {
        let length = padded(event);
        let most = (PARTICLES_AT_ONCE / length.max(1)).clamp(1, at_once);
        match groups.last_mut() {
            Some(group) if group.length == Some(length) && group.events.len() < most => group.events.push(event),
            _ => groups.push(Group { events: vec![event], length: Some(length) }),
        }
    }
    groups
}

/// The numbers of an input that a group needs.
struct Cut {
    shape: Vec<usize>,
    numbers: Numbers,
}

enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl Numbers {
    fn values(&self) -> InputValues<'_> {
        match self {
            Numbers::F32(values) => InputValues::F32(values),
            Numbers::F64(values) => InputValues::F64(values),
            Numbers::I64(values) => InputValues::I64(values),
            Numbers::Bool(values) => InputValues::Bool(values),
        }
    }
}

impl Cut {
    fn of(input: &EncoderInput<'_>, axis: Option<usize>, group: &Group) -> Cut {
        let mut shape = input.shape.to_vec();
        let per_event: usize = shape[1..].iter().product();
        shape[0] = group.events.len();
        let rows = match (axis, group.length) {
            (Some(axis), Some(length)) => {
                let size = std::mem::replace(&mut shape[axis], length);
                let inner: usize = shape[axis + 1..].iter().product();
                Rows { events: &group.events, per_event, whole: size * inner, kept: length * inner }
            }
            _ => Rows { events: &group.events, per_event, whole: per_event, kept: per_event },
        };
        let numbers = match input.values {
            InputValues::F32(values) => Numbers::F32(rows.of(values)),
            InputValues::F64(values) => Numbers::F64(rows.of(values)),
            InputValues::I64(values) => Numbers::I64(rows.of(values)),
            InputValues::Bool(values) => Numbers::Bool(rows.of(values)),
        };
        Cut { shape, numbers }
    }
}

/// The beginnings of rows of some events.
struct Rows<'a> {
    events: &'a [usize],
    per_event: usize,
    whole: usize,
    kept: usize,
}

impl Rows<'_> {
    fn of<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let mut kept = Vec::with_capacity(self.events.len() * self.per_event);
        for event in self.events {
            let event = &values[event * self.per_event..][..self.per_event];
            event.chunks_exact(self.whole.max(1)).for_each(|row| kept.extend_from_slice(&row[..self.kept]));
        }
        kept
    }
}

/// The outputs of all events.
struct Joined {
    n_events: usize,
    /// Particles of an input.
    size: Option<usize>,
    /// The axis of particles of each output.
    axes: Vec<Option<usize>>,
    outputs: Vec<EncoderOutput>,
}

impl Joined {
    /// Puts the outputs of a group where they belong; behind an event's length there are zeros.
    fn add(&mut self, parts: Vec<EncoderOutput>, group: &Group) -> Result<(), Error> {
        for (index, part) in parts.into_iter().enumerate() {
            if part.shape.first() != Some(&group.events.len()) {
                let (found, expected) = (part.shape.first().copied().unwrap_or(0), group.events.len());
                return Err(Error::EncoderInput { name: part.name, problem: InputProblem::Events { found, expected } });
            }
            let axis = self.axes[index].filter(|&axis| group.length.is_some() && axis < part.shape.len());
            if self.outputs.len() <= index {
                let mut shape = part.shape.clone();
                shape[0] = self.n_events;
                if let (Some(axis), Some(size)) = (axis, self.size) {
                    shape[axis] = size;
                }
                let length = shape.iter().product();
                let values = match &part.values {
                    OutputValues::F32(_) => OutputValues::F32(vec![0.0; length]),
                    OutputValues::F64(_) => OutputValues::F64(vec![0.0; length]),
                    OutputValues::I64(_) => OutputValues::I64(vec![0; length]),
                };
                self.outputs.push(EncoderOutput { name: part.name.clone(), shape, values });
            }
            let whole = &mut self.outputs[index];
            let inner =
                |shape: &[usize]| axis.map_or(shape[1..].iter().product(), |axis| shape[axis..].iter().product());
            let place = Placement {
                events: &group.events,
                rows: [inner(&part.shape), inner(&whole.shape)],
                per_event: [part.shape[1..].iter().product(), whole.shape[1..].iter().product()],
            };
            match (&part.values, &mut whole.values) {
                (OutputValues::F32(from), OutputValues::F32(to)) => place.copy(from, to),
                (OutputValues::F64(from), OutputValues::F64(to)) => place.copy(from, to),
                (OutputValues::I64(from), OutputValues::I64(to)) => place.copy(from, to),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where the rows of a group's events go.
struct Placement<'a> {
    events: &'a [usize],
    rows: [usize; 2],
    per_event: [usize; 2],
}

impl Placement<'_> {
    fn copy<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let Placement { events, rows: [short, long], per_event: [part, whole] } = *self;
        for (index, event) in events.iter().enumerate() {
            let from = from[index * part..][..part].chunks_exact(short.max(1));
            let to = to[event * whole..][..whole].chunks_exact_mut(long.max(1));
            from.zip(to).for_each(|(from, to)| to[..short].copy_from_slice(from));
        }
    }
}
