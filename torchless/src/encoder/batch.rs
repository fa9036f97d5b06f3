//! Many events at once: divided among threads, gathered by their lengths, and put back in order.
//!
//! Events that end in padding are cut to their length, and computed together with others of about
//! that length: an event's bits do not depend on its neighbours or its padding.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::device::require_range;
use super::events::{CheckedEvents, Part};
use super::graph::{Dimension, Graph, Port};
use super::ragged::EncoderEvents;
use super::run::{EncoderInput, EncoderOutput, EncoderScratch, OutputValues};
use super::tensor::Kind;
use super::{Encoder, EncoderPrecision};
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

/// Bytes of buffers that events of one length have together, at most, unless one has more.
const BUFFERS_AT_ONCE: usize = 4 << 20;

/// Scratches that calls take and give back, so that plans and buffers serve many calls.
///
/// Threads share it; it has as many scratches as were needed at once.
#[derive(Debug, Default)]
pub struct ScratchPool(Mutex<Vec<EncoderScratch>>);

impl ScratchPool {
    /// Returns an empty pool.
    pub fn new() -> ScratchPool {
        ScratchPool::default()
    }

    /// Returns the bytes that its scratches hold, about.
    pub fn n_bytes(&self) -> usize {
        self.lock().iter().map(EncoderScratch::n_bytes).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EncoderScratch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> EncoderScratch {
        self.lock().pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, scratch: EncoderScratch) {
        self.lock().push(scratch);
    }
}

/// Events that are computed together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) events: Vec<usize>,
    /// Particles that are computed of each, if they are cut or ragged.
    pub(super) length: Option<usize>,
}

impl Group {
    /// Returns an error of the group's events with the number that an event has among all.
    pub(super) fn place(&self, mut error: Error) -> Error {
        if let Error::EncoderInput { problem: InputProblem::Index { event: Some(event), .. }, .. } = &mut error
            && let Some(of_all) = self.events.get(*event)
        {
            *event = *of_all;
        }
        error
    }
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
        self.encode_events(threads, &ScratchPool::new(), EncoderEvents { dense: inputs, ragged: &[] }, options)
    }

    /// Computes the outputs of many events, some of whose inputs may be ragged.
    ///
    /// The mask of ragged inputs need not be given: it is 1 for every particle. The outputs are
    /// the same bits as those of padded inputs. An output with an axis of particles is as long as
    /// the longest event, with zeros behind shorter ones. A model without a mask is computed for
    /// events of one length at a time.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::encode`]; inputs that are given twice; ragged inputs whose offsets
    /// decrease or leave their particles, that have other columns than the model, or other
    /// particles than each other; a mask that is 1 only for padding, which is where all other
    /// inputs are 0.
    ///
    /// ```
    /// use torchless::encoder::{Column, EncodeOptions, Encoder, EncoderEvents, InputValues, Offsets, RaggedInput};
    /// use torchless::{Threads, encoder::ScratchPool};
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders"))?;
    /// let model = Encoder::open("text17.onnx")?; // ids and mask [batch, tokens] in, 2 logits out
    /// let offsets = Offsets::I64(&[0, 3, 4, 8]); // three events of 3, 1 and 4 tokens
    /// let ids = [Column::contiguous(InputValues::I64(&[5, 2, 9, 1, 7, 7, 0, 3]))];
    /// let events = EncoderEvents { dense: &[], ragged: &[RaggedInput { name: "ids", offsets, columns: &ids }] };
    /// let options = EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() };
    /// let outputs = model.encode_events(&Threads::new(1), &ScratchPool::new(), events, &options)?;
    /// assert_eq!(outputs[0].shape, [3, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode_events(
        &self,
        threads: &Threads,
        scratches: &ScratchPool,
        events: EncoderEvents<'_>,
        options: &EncodeOptions,
    ) -> Result<Vec<EncoderOutput>, Error> {
        if self.device.is_some() {
            // Of all events, so that places are those that the caller knows.
            events.dense.iter().try_for_each(|input| require_range(input.name, input.values))?;
        }
        let events = CheckedEvents::new(&self.graph, events, options)?;
        events.check_mask(options)?;
        let at_once = self.events_at_once(scratches, &events, options.events_at_once);
        let groups = groups(&events, (0..events.n_events).collect(), at_once);
        let encode = |scratch: &mut EncoderScratch, group: &Group| self.encode_group(scratch, &events, group);
        let results = each_group(threads, scratches, &groups, encode);
        let mut joined = Joined::new(&self.graph, &events);
        for (result, group) in results.into_iter().zip(&groups) {
            joined.add(result?, group)?;
        }
        Ok(if groups.is_empty() { self.outputs_of_no_events() } else { joined.outputs })
    }

    /// Returns how many events of one length are computed together: as many as keep their buffers
    /// in a cache. It is the caller's number where one event by itself cannot be planned, and on a
    /// device.
    fn events_at_once(&self, scratches: &ScratchPool, events: &CheckedEvents<'_>, most: usize) -> usize {
        if self.device.is_some() || events.lengths.is_some() || events.n_events.min(most) < 2 {
            return most;
        }
        let one = Group { events: vec![0], length: None };
        let parts: Vec<Part<'_>> = events.inputs.iter().map(|input| input.part(events, &one)).collect();
        let inputs: Vec<EncoderInput<'_>> = parts.iter().map(Part::input).collect();
        let mut scratch = scratches.take();
        let n_bytes = self.buffer_bytes(&mut scratch, &inputs);
        scratches.give_back(scratch);
        n_bytes.map_or(most, |n_bytes| most.min((BUFFERS_AT_ONCE / n_bytes.max(1)).max(1)))
    }

    /// Computes the outputs of a group.
    pub(super) fn encode_group(
        &self,
        scratch: &mut EncoderScratch,
        events: &CheckedEvents<'_>,
        group: &Group,
    ) -> Result<Vec<EncoderOutput>, Error> {
        let parts: Vec<Part<'_>> = events.inputs.iter().map(|input| input.part(events, group)).collect();
        let inputs: Vec<EncoderInput<'_>> = parts.iter().map(Part::input).collect();
        self.run(scratch, &inputs).map_err(|error| group.place(error))
    }

    /// Returns how many numbers of an event an output has, by the plan for a group; None if there
    /// is no plan.
    pub(super) fn n_columns(
        &self,
        scratches: &ScratchPool,
        events: &CheckedEvents<'_>,
        group: &Group,
        output: usize,
    ) -> Option<usize> {
        let shapes: Vec<Vec<usize>> = events.inputs.iter().map(|input| input.shape(group)).collect();
        let mut scratch = scratches.take();
        let plan = self.plan(&mut scratch, shapes.iter().map(Vec::as_slice));
        scratches.give_back(scratch);
        Some(plan.ok()?.outputs[output].shape().iter().skip(1).product())
    }

    /// Returns empty outputs; sizes that depend on the events are 0.
    pub(super) fn outputs_of_no_events(&self) -> Vec<EncoderOutput> {
        let one = |port: &Port| {
            let size = |dimension: &Dimension| if let Dimension::Fixed(size) = dimension { *size } else { 0 };
            let mut shape: Vec<usize> = port.dimensions.iter().flatten().map(size).collect();
            match shape.first_mut() {
                Some(n_events) => *n_events = 0,
                None => shape.push(0),
            }
            let values = match (port.kind, self.precision) {
                (Kind::Float, EncoderPrecision::Single) => OutputValues::F32(Vec::new()),
                (Kind::Float, EncoderPrecision::Double) => OutputValues::F64(Vec::new()),
                _ => OutputValues::I64(Vec::new()),
            };
            EncoderOutput { name: port.name.clone(), shape, values }
        };
        self.graph.outputs.iter().map(one).collect()
    }
}

/// Does `work` for every group, on several threads, and returns what came of it in the order of the
/// groups: of several errors the same one is reported.
pub(super) fn each_group<R: Send>(
    threads: &Threads,
    scratches: &ScratchPool,
    groups: &[Group],
    work: impl Fn(&mut EncoderScratch, &Group) -> Result<R, Error> + Sync + Send,
) -> Vec<Result<R, Error>> {
    let results = Mutex::new(Vec::with_capacity(groups.len()));
    let cost = if groups.len() > 1 { usize::MAX } else { 0 };
    threads.each(
        (0..groups.len()).collect(),
        cost,
        || (),
        |(), index| {
            let mut scratch = scratches.take();
            let result = work(&mut scratch, &groups[index]);
            scratches.give_back(scratch);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        },
    );
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Divides the events of `order` into groups: those of about one length together, the longest
/// first.
pub(super) fn groups(events: &CheckedEvents<'_>, mut order: Vec<usize>, at_once: usize) -> Vec<Group> {
    let at_once = at_once.max(1);
    let Some(lengths) = &events.lengths else {
        return order.chunks(at_once).map(|events| Group { events: events.to_vec(), length: None }).collect();
    };
    let padded = |event: usize| match events.has_mask {
        true => lengths[event].max(1).next_multiple_of(LENGTH_STEP).min(events.size.max(1)),
        false => lengths[event],
    };
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

/// The outputs of all events.
pub(super) struct Joined<'a> {
    n_events: usize,
    lengths: Option<&'a [usize]>,
    /// Particles of the longest event, or of padded inputs.
    size: usize,
    /// The axis of particles of each output.
    axes: Vec<Option<usize>>,
    pub(super) outputs: Vec<EncoderOutput>,
}

impl<'a> Joined<'a> {
    pub(super) fn new(graph: &Graph, events: &'a CheckedEvents<'_>) -> Joined<'a> {
        let axes = graph.outputs.iter().map(|port| events.particle_axis(port)).collect();
        let lengths = events.lengths.as_deref();
        Joined { n_events: events.n_events, lengths, size: events.size, axes, outputs: Vec::new() }
    }

    /// Puts the outputs of a group where they belong; behind an event's length there are zeros.
    pub(super) fn add(&mut self, parts: Vec<EncoderOutput>, group: &Group) -> Result<(), Error> {
        for (index, part) in parts.into_iter().enumerate() {
            if part.shape.first() != Some(&group.events.len()) {
                let (found, expected) = (part.shape.first().copied().unwrap_or(0), group.events.len());
                return Err(Error::EncoderInput { name: part.name, problem: InputProblem::Events { found, expected } });
            }
            let is_cut = |axis: &usize| part.shape.get(*axis).copied() == group.length && group.length.is_some();
            let axis = self.axes[index].filter(is_cut);
            if self.outputs.len() <= index {
                self.outputs.push(self.empty(&part, axis)?);
            }
            let whole = &mut self.outputs[index];
            let place = Placement::new(group, self.lengths, axis, [&part.shape, &whole.shape]);
            let is_same = |(at, (from, to)): (usize, (&usize, &usize))| at == 0 || Some(at) == axis || from == to;
            if !part.shape.iter().zip(&whole.shape).enumerate().all(is_same) {
                let (found, expected) = (part.shape, whole.shape.clone());
                return Err(Error::EncoderInput { name: part.name, problem: InputProblem::Output { found, expected } });
            }
            match (&part.values, &mut whole.values) {
                (OutputValues::F32(from), OutputValues::F32(to)) => place.copy(from, to),
                (OutputValues::F64(from), OutputValues::F64(to)) => place.copy(from, to),
                (OutputValues::I64(from), OutputValues::I64(to)) => place.copy(from, to),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns an output of all events that looks like that of a group.
    fn empty(&self, part: &EncoderOutput, axis: Option<usize>) -> Result<EncoderOutput, Error> {
        let mut shape = part.shape.clone();
        shape[0] = self.n_events;
        if let Some(axis) = axis {
            shape[axis] = self.size;
        }
        let length = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        let values = length.and_then(|length| match &part.values {
            OutputValues::F32(_) => zeros(length).map(OutputValues::F32),
            OutputValues::F64(_) => zeros(length).map(OutputValues::F64),
            OutputValues::I64(_) => zeros(length).map(OutputValues::I64),
        });
        let name = part.name.clone();
        match values {
            Some(values) => Ok(EncoderOutput { name, shape, values }),
            None => Err(Error::EncoderInput { name, problem: InputProblem::OutputMemory { shape } }),
        }
    }
}

/// Returns `length` zeros, or None if there is no memory for them.
pub(super) fn zeros<T: Copy + Default>(length: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).ok()?;
    values.resize(length, T::default());
    Some(values)
}

/// Where the rows of a group's events go.
pub(super) struct Placement<'a> {
    events: &'a [usize],
    /// Particles of every event, if the output has an axis of them.
    lengths: Option<&'a [usize]>,
    /// Particles of the group's output, and of that of all events; 1 without an axis of them.
    sizes: [usize; 2],
    /// Numbers of a particle, or of an event.
    inner: usize,
    per_event: [usize; 2],
}

impl<'a> Placement<'a> {
    /// Returns where a group's rows go: `axis` is that of particles, and `shapes` are those of the
    /// group's numbers and of all events'.
    pub(super) fn new(
        group: &'a Group,
        lengths: Option<&'a [usize]>,
        axis: Option<usize>,
        [part, whole]: [&[usize]; 2],
    ) -> Placement<'a> {
        let sizes = |shape: &[usize]| axis.map_or(1, |axis| shape[axis]);
        Placement {
            events: &group.events,
            lengths: lengths.filter(|_| axis.is_some()),
            sizes: [sizes(part), sizes(whole)],
            inner: part[axis.map_or(1, |axis| axis + 1)..].iter().product(),
            per_event: [part[1..].iter().product(), whole[1..].iter().product()],
        }
    }

    pub(super) fn copy<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let Placement { events, inner, sizes: [short, long], per_event: [part, whole], .. } = *self;
        for (index, event) in events.iter().enumerate() {
            let kept = inner * self.lengths.map_or(short, |lengths| lengths[*event].min(short));
            let from = from[index * part..][..part].chunks_exact((short * inner).max(1));
            let to = to[event * whole..][..whole].chunks_exact_mut((long * inner).max(1));
            from.zip(to).for_each(|(from, to)| to[..kept].copy_from_slice(&from[..kept]));
        }
    }
}
