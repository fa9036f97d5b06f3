//! Inputs of many events: checked together, and the part of them that a group of events needs.

use super::batch::{EncodeOptions, Group};
use super::graph::{Dimension, Graph, Port};
use super::ragged::{CheckedRagged, EncoderEvents, Gathered};
use super::run::{EncoderInput, InputValues, check};
use super::tensor::Kind;
use crate::error::{Error, InputProblem};

/// Inputs that fit the model and each other.
#[derive(Debug)]
pub(super) struct CheckedEvents<'a> {
    /// In the order of the model.
    pub(super) inputs: Vec<Input<'a>>,
    pub(super) n_events: usize,
    /// Particles of every event, if events are cut or ragged.
    pub(super) lengths: Option<Vec<usize>>,
    /// Particles of the longest event, or of padded inputs.
    pub(super) size: usize,
    /// Whether events of different lengths can be computed together.
    pub(super) has_mask: bool,
    /// The name of the axes of particles, if events are cut or ragged.
    particles: Option<String>,
}

/// An input of the model.
#[derive(Debug)]
pub(super) enum Input<'a> {
    Dense { input: EncoderInput<'a>, axis: Option<usize> },
    Ragged(CheckedRagged<'a>),
    Mask(Mask),
}

/// A mask that is not given: it is 1 for every particle of ragged inputs.
#[derive(Debug)]
pub(super) struct Mask {
    name: String,
    kind: Kind,
    /// The shape of one event; the last axis is that of particles.
    shape: Vec<usize>,
}

fn refuse(name: &str, problem: InputProblem) -> Error {
    Error::EncoderInput { name: name.to_owned(), problem }
}

impl<'a> CheckedEvents<'a> {
    /// Checks `events` for the model `graph`.
    pub(super) fn new(graph: &Graph, events: EncoderEvents<'a>, options: &EncodeOptions) -> Result<Self, Error> {
        check_names(graph, &events)?;
        let particles = particle_name(graph, &events, options.mask.as_deref())?;
        let mut checked = CheckedEvents {
            inputs: Vec::new(),
            n_events: 0,
            lengths: None,
            size: 0,
            has_mask: options.mask.is_some(),
            particles,
        };
        for port in &graph.inputs {
            let axis = checked.particle_axis(port);
            let input = Input::of(port, axis, &events, options.mask.as_deref())
                .map_err(|problem| refuse(&port.name, problem))?;
            checked.inputs.push(input);
        }
        checked.count_events()?;
        checked.find_lengths(options.mask.as_deref())?;
        Ok(checked)
    }

    /// Returns the axis of particles of an input or an output.
    pub(super) fn particle_axis(&self, port: &Port) -> Option<usize> {
        let name = self.particles.as_ref()?;
        let is_named = |dimension: &Dimension| matches!(dimension, Dimension::Named(other) if other == name);
        port.dimensions.as_ref()?.iter().skip(1).position(is_named).map(|axis| axis + 1)
    }

    /// Returns a group of the first event, or of one that is as long as one particle if there is
    /// none.
    pub(super) fn first_group(&self) -> Group {
        let length = self.lengths.as_ref().map(|lengths| lengths.first().map_or(1, |length| (*length).max(1)));
        Group { events: vec![0], length }
    }

    /// Refuses a mask that is inverted: in several events, all other inputs are 0 at every
    /// particle, and some are not elsewhere. Of one event that can be meant.
    pub(super) fn check_mask(&self, options: &EncodeOptions) -> Result<(), Error> {
        let Some(name) = options.mask.as_deref().filter(|_| self.n_events > 1) else { return Ok(()) };
        let of_particles = self.inputs.iter().filter_map(|input| match input {
            Input::Dense { input, axis: Some(axis) } => Some((input, *axis)),
            _ => None,
        });
        let is_mask = |(input, _): &(&EncoderInput<'_>, usize)| input.name == name;
        let (masks, others): (Vec<_>, Vec<_>) = of_particles.partition(is_mask);
        let Some((mask, _)) = masks.first() else { return Ok(()) };
        let size = self.size.max(1);
        let per_event = mask.values.len() / self.n_events.max(1);
        let is_particle = |event: usize, particle: usize| {
            let places = (event * per_event..(event + 1) * per_event).skip(particle).step_by(size);
            places.into_iter().any(|place| mask.values.is_set(place))
        };
        let mut has_hidden = false;
        for (input, axis) in others {
            let inner: usize = input.shape[axis + 1..].iter().product::<usize>().max(1);
            let per_event = input.values.len() / self.n_events.max(1);
            for place in (0..input.values.len()).filter(|&place| input.values.is_set(place)) {
                if is_particle(place / per_event, place / inner % size) {
                    return Ok(());
                }
                has_hidden = true;
            }
        }
        match has_hidden && (0..mask.values.len()).any(|place| mask.values.is_set(place)) {
            true => Err(refuse(mask.name, InputProblem::Inverted)),
            false => Ok(()),
        }
    }

    fn count_events(&mut self) -> Result<(), Error> {
        let mut known = None;
        for (name, found) in self.inputs.iter().filter_map(Input::n_events) {
            let expected = *known.get_or_insert(found);
            if found != expected {
                return Err(refuse(name, InputProblem::Events { found, expected }));
            }
        }
        self.n_events = known.unwrap_or(0);
        Ok(())
    }

    fn find_lengths(&mut self, mask: Option<&str>) -> Result<(), Error> {
        let mut ragged = self.inputs.iter().filter_map(|input| match input {
            Input::Ragged(checked) => Some(checked.input),
            _ => None,
        });
        if let Some(first) = ragged.next() {
            let lengths = first.offsets.lengths();
            for other in ragged {
                let both = || lengths.iter().copied().zip(other.offsets.lengths());
                if let Some(event) = both().position(|(expected, found)| expected != found)
                    && let Some((expected, found)) = both().nth(event)
                {
                    return Err(refuse(other.name, InputProblem::Particles { event, found, expected }));
                }
            }
            self.size = lengths.iter().copied().max().unwrap_or(0);
            self.lengths = Some(lengths);
            return Ok(());
        }
        let mut known = None;
        for input in &self.inputs {
            let Input::Dense { input, axis: Some(axis) } = input else { continue };
            let found = input.shape[*axis];
            self.size = *known.get_or_insert(found);
            if found != self.size {
                return Err(refuse(input.name, InputProblem::ParticleSize { found, expected: self.size }));
            }
            if Some(input.name) == mask {
                self.lengths = Some(lengths(input, self.n_events));
            }
        }
        Ok(())
    }
}

/// Refuses names that the model does not have, and those that are given twice.
fn check_names(graph: &Graph, events: &EncoderEvents<'_>) -> Result<(), Error> {
    let dense = events.dense.iter().map(|input| input.name);
    let names: Vec<&str> = dense.chain(events.ragged.iter().map(|input| input.name)).collect();
    for (index, name) in names.iter().enumerate() {
        if !graph.inputs.iter().any(|port| port.name == *name) {
            return Err(refuse(name, InputProblem::Unknown));
        }
        if names[..index].contains(name) {
            return Err(refuse(name, InputProblem::Twice));
        }
    }
    Ok(())
}

/// Returns the name of the axes of particles, if events are cut or ragged.
fn particle_name(graph: &Graph, events: &EncoderEvents<'_>, mask: Option<&str>) -> Result<Option<String>, Error> {
    let find = |name: &str| graph.inputs.iter().find(|port| port.name == name);
    if let Some(mask) = mask {
        let port = find(mask).ok_or_else(|| refuse(mask, InputProblem::Unknown))?;
        return match port.dimensions.as_deref() {
            Some([_, .., Dimension::Named(name)]) if !name.is_empty() => Ok(Some(name.clone())),
            _ => Err(refuse(mask, InputProblem::NoParticles)),
        };
    }
    let Some(ragged) = events.ragged.first() else { return Ok(None) };
    let dimensions = find(ragged.name).and_then(|port| port.dimensions.as_deref()).unwrap_or_default();
    let names = dimensions.iter().skip(1).filter_map(|dimension| match dimension {
        Dimension::Named(name) if !name.is_empty() => Some(name),
        _ => None,
    });
    match names.collect::<Vec<_>>()[..] {
        [name] => Ok(Some(name.clone())),
        _ => Err(refuse(ragged.name, InputProblem::NoParticleAxis)),
    }
}

impl<'a> Input<'a> {
    fn of(
        port: &Port,
        axis: Option<usize>,
        events: &EncoderEvents<'a>,
        mask: Option<&str>,
    ) -> Result<Self, InputProblem> {
        if let Some(input) = events.ragged.iter().find(|input| input.name == port.name) {
            let axis = axis.ok_or(InputProblem::NoParticleAxis)?;
            let dimensions = port.dimensions.as_deref().unwrap_or_default();
            if dimensions.iter().filter(|dimension| Some(*dimension) == dimensions.get(axis)).count() > 1 {
                return Err(InputProblem::NoParticleAxis);
            }
            return CheckedRagged::new(*input, port, axis).map(Input::Ragged);
        }
        if let Some(input) = events.dense.iter().find(|input| input.name == port.name) {
            check(port, input)?;
            let n_events = input.shape.first().copied().unwrap_or(0);
            if n_events > 0 && input.values.is_empty() {
                // Otherwise no memory of the caller's bounds the events, for each of which there
                // is some of ours.
                return Err(InputProblem::NoNumbers { n_events });
            }
            if axis.is_some() && !events.ragged.is_empty() {
                return Err(InputProblem::NotRagged);
            }
            return Ok(Input::Dense { input: *input, axis });
        }
        if mask != Some(port.name.as_str()) || events.ragged.is_empty() {
            return Err(InputProblem::Missing);
        }
        // Its first axis is that of events, and its last that of particles.
        let size = |dimension: &Dimension| if let Dimension::Fixed(size) = dimension { Some(*size) } else { None };
        let dimensions = port.dimensions.as_deref().unwrap_or_default();
        let between = dimensions.get(1..dimensions.len().saturating_sub(1)).unwrap_or_default();
        let mut shape = between.iter().map(size).collect::<Option<Vec<_>>>().ok_or(InputProblem::Missing)?;
        let repeat = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        if repeat.is_none_or(|repeat| repeat > MOST_MASK_ROWS) {
            return Err(InputProblem::Missing);
        }
        shape.insert(0, 1);
        shape.push(1);
        Ok(Input::Mask(Mask { name: port.name.clone(), kind: port.kind, shape }))
    }

    fn n_events(&self) -> Option<(&str, usize)> {
        match self {
            Input::Dense { input, .. } => Some((input.name, input.shape.first().copied().unwrap_or(0))),
            Input::Ragged(ragged) => Some((ragged.input.name, ragged.input.offsets.len() - 1)),
            Input::Mask(_) => None,
        }
    }

    /// Returns the shape of what a group needs of the input.
    pub(super) fn shape(&self, group: &Group) -> Vec<usize> {
        let (n_events, length) = (group.events.len(), group.length.unwrap_or(0));
        match self {
            Input::Dense { input, axis } => {
                let mut shape = input.shape.to_vec();
                shape.iter_mut().take(1).for_each(|size| *size = n_events);
                if let (Some(axis), Some(length)) = (axis, group.length) {
                    shape[*axis] = length;
                }
                shape
            }
            Input::Ragged(ragged) => ragged.shape(n_events, length),
            Input::Mask(mask) => {
                let mut shape = mask.shape.clone();
                shape[0] = n_events;
                shape.pop();
                shape.push(length);
                shape
            }
        }
    }

    /// Returns what a group needs of the input.
    pub(super) fn part<'b>(&'b self, events: &CheckedEvents<'_>, group: &'b Group) -> Part<'b> {
        let length = group.length.unwrap_or(0);
        match self {
            Input::Dense { input, axis } => cut(input, *axis, group),
            Input::Ragged(ragged) => Part {
                name: ragged.input.name,
                shape: self.shape(group),
                numbers: Numbers::Gathered(ragged.gather(&group.events, length)),
            },
            Input::Mask(mask) => {
                let repeat = mask.shape.iter().product();
                let lengths = group.events.iter().map(|&event| events.lengths.as_ref().map_or(0, |all| all[event]));
                let numbers = Numbers::Gathered(Gathered::mask(mask.kind, lengths, length, repeat));
                Part { name: &mask.name, shape: self.shape(group), numbers }
            }
        }
    }
}

/// Rows of a mask of one event, at most: those of heads are a few.
const MOST_MASK_ROWS: usize = 1 << 16;

/// Returns one more than the last place of each event whose mask is not 0.
fn lengths(mask: &EncoderInput<'_>, n_events: usize) -> Vec<usize> {
    let size = mask.shape.last().copied().unwrap_or(0).max(1);
    let per_event = mask.values.len() / n_events.max(1);
    let length = |event: usize| {
        let places = event * per_event..(event + 1) * per_event;
        places.filter(|&place| mask.values.is_set(place)).map(|place| place % size + 1).max().unwrap_or(0)
    };
    (0..n_events).map(length).collect()
}

/// The numbers of an input that a group needs.
#[derive(Debug)]
pub(super) struct Part<'a> {
    name: &'a str,
    shape: Vec<usize>,
    numbers: Numbers<'a>,
}

#[derive(Debug)]
enum Numbers<'a> {
    /// They lie in the caller's memory as they are needed.
    Borrowed(InputValues<'a>),
    Gathered(Gathered),
}

impl Part<'_> {
    pub(super) fn input(&self) -> EncoderInput<'_> {
        let values = match &self.numbers {
            Numbers::Borrowed(values) => *values,
            Numbers::Gathered(gathered) => gathered.values(),
        };
        EncoderInput { name: self.name, shape: &self.shape, values }
    }
}

/// Returns the rows of a group's events, up to its length.
pub(super) fn cut<'a>(input: &EncoderInput<'a>, axis: Option<usize>, group: &Group) -> Part<'a> {
    let mut shape = input.shape.to_vec();
    let per_event: usize = shape[1..].iter().product();
    shape[0] = group.events.len();
    let [whole, kept] = match (axis, group.length) {
        (Some(axis), Some(length)) => {
            let size = std::mem::replace(&mut shape[axis], length);
            let inner: usize = shape[axis + 1..].iter().product();
            [size * inner, length * inner]
        }
        _ => [per_event, per_event],
    };
    let rows = Rows { events: &group.events, per_event, whole, kept };
    let numbers = match input.values {
        _ if rows.lie_together() => Numbers::Borrowed(rows.borrow(input.values)),
        InputValues::F32(values) => Numbers::Gathered(Gathered::F32(rows.of(values))),
        InputValues::F64(values) => Numbers::Gathered(Gathered::F64(rows.of(values))),
        InputValues::I64(values) => Numbers::Gathered(Gathered::I64(rows.of(values))),
        InputValues::Bool(values) => Numbers::Gathered(Gathered::Bool(rows.of(values))),
    };
    Part { name: input.name, shape, numbers }
}

/// The beginnings of rows of some events.
struct Rows<'a> {
    events: &'a [usize],
    per_event: usize,
    whole: usize,
    kept: usize,
}

impl Rows<'_> {
    /// Returns whether the rows are whole and one after another.
    fn lie_together(&self) -> bool {
        self.kept == self.whole && self.events.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }

    fn borrow<'a>(&self, values: InputValues<'a>) -> InputValues<'a> {
        let first = self.events.first().copied().unwrap_or(0) * self.per_event;
        values.part(first..first + self.events.len() * self.per_event)
    }

    fn of<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let mut kept = Vec::with_capacity(self.events.len() * self.per_event);
        for event in self.events {
            let event = &values[event * self.per_event..][..self.per_event];
            event.chunks_exact(self.whole.max(1)).for_each(|row| kept.extend_from_slice(&row[..self.kept]));
        }
        kept
    }
}
