//! Events of different lengths without padding: their particles one after another, and where each
//! event begins.
//!
//! That is how awkward arrays and columns of ROOT files are stored. The numbers stay where they
//! are; those of a group of events are gathered, with zeros behind shorter ones, when the group is
//! computed.

use std::ops::Range;

use super::graph::{Dimension, Port};
use super::run::InputValues;
use super::tensor::Kind;
use crate::error::InputProblem;

/// An input whose events have different numbers of particles.
///
/// The model's shape of it has the axis of events first, one axis of particles, and C columns in
/// the others: `[batch, 5, particles]` and `[batch, particles, 5]` have five.
#[derive(Debug, Clone, Copy)]
pub struct RaggedInput<'a> {
    /// Its name in the model.
    pub name: &'a str,
    /// Where events begin.
    pub offsets: Offsets<'a>,
    /// The columns (C), in the order of the model's axes without those of events and particles.
    pub columns: &'a [Column<'a>],
}

/// One number of every particle: `values[first + step * particle]`.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// Numbers, among which those of the column are.
    pub values: InputValues<'a>,
    /// The place of the first particle's number.
    pub first: usize,
    /// The distance from one particle's number to that of the next; not 0.
    pub step: usize,
}

/// E + 1 offsets of E events: event e has the particles `offsets[e]..offsets[e + 1]`.
///
/// They do not decrease. The first need not be 0, nor the last the number of all particles: events
/// may be a part of what is stored.
#[derive(Debug, Clone, Copy)]
pub enum Offsets<'a> {
    /// 32 bits.
    I32(&'a [i32]),
    /// 32 bits without a sign.
    U32(&'a [u32]),
    /// 64 bits.
    I64(&'a [i64]),
}

/// Inputs of many events: each input of the model is in one of both.
#[derive(Debug, Clone, Copy)]
pub struct EncoderEvents<'a> {
    /// Inputs whose events have one shape.
    pub dense: &'a [super::EncoderInput<'a>],
    /// Inputs whose events have different numbers of particles, the same in all of these inputs.
    pub ragged: &'a [RaggedInput<'a>],
}

impl<'a> Column<'a> {
    /// Returns a column whose numbers lie one after another.
    pub fn contiguous(values: InputValues<'a>) -> Column<'a> {
        Column { values, first: 0, step: 1 }
    }

    /// Returns the columns of a matrix with a row of `n_columns` numbers for each particle.
    pub fn of_rows(values: InputValues<'a>, n_columns: usize) -> Vec<Column<'a>> {
        (0..n_columns).map(|first| Column { values, first, step: n_columns }).collect()
    }

    fn n_particles(&self) -> usize {
        self.values.len().saturating_sub(self.first).div_ceil(self.step.max(1))
    }
}

impl<'a> Offsets<'a> {
    /// Returns the offsets of some events.
    pub(super) fn part(self, events: Range<usize>) -> Offsets<'a> {
        let places = events.start..events.end + 1;
        match self {
            Offsets::I32(offsets) => Offsets::I32(&offsets[places]),
            Offsets::U32(offsets) => Offsets::U32(&offsets[places]),
            Offsets::I64(offsets) => Offsets::I64(&offsets[places]),
        }
    }

    /// Returns the number of offsets, one more than there are events.
    pub fn len(&self) -> usize {
        match self {
            Offsets::I32(offsets) => offsets.len(),
            Offsets::U32(offsets) => offsets.len(),
            Offsets::I64(offsets) => offsets.len(),
        }
    }

    /// Returns whether there are none, which is not even those of no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, place: usize) -> i64 {
        match self {
            Offsets::I32(offsets) => i64::from(offsets[place]),
            Offsets::U32(offsets) => i64::from(offsets[place]),
            Offsets::I64(offsets) => offsets[place],
        }
    }

    /// Returns the first particle of an event and the number of its particles, after `check`.
    fn event(&self, event: usize) -> [usize; 2] {
        let [first, next] = [self.get(event), self.get(event + 1)];
        [first as usize, (next - first) as usize]
    }

    pub(super) fn lengths(&self) -> Vec<usize> {
        (0..self.len().saturating_sub(1)).map(|event| self.event(event)[1]).collect()
    }

    /// Refuses offsets that decrease or leave the `n_particles` of a column.
    fn check(&self, n_particles: usize) -> Result<(), InputProblem> {
        if self.is_empty() {
            return Err(InputProblem::NoOffsets);
        }
        let mut least = 0;
        for place in 0..self.len() {
            let offset = self.get(place);
            if offset < least {
                return Err(InputProblem::Offset { place, offset, least });
            }
            least = offset;
        }
        if usize::try_from(least).is_ok_and(|last| last <= n_particles) {
            return Ok(());
        }
        Err(InputProblem::TooFewParticles { found: n_particles, expected: least })
    }
}

/// An input that was checked, and where its numbers go.
#[derive(Debug, Clone)]
pub(super) struct CheckedRagged<'a> {
    pub(super) input: RaggedInput<'a>,
    kind: Kind,
    /// The shape of one event, whose axis of particles is to be set.
    shape: Vec<usize>,
    axis: usize,
}

impl<'a> CheckedRagged<'a> {
    /// Checks an input with the axis of particles `axis`.
    pub(super) fn new(input: RaggedInput<'a>, port: &Port, axis: usize) -> Result<Self, InputProblem> {
        let kind = port.kind;
        if input.columns.iter().any(|column| !column.values.fits(kind)) {
            return Err(InputProblem::Kind { expected: kind.name() });
        }
        let dimensions = port.dimensions.as_deref().unwrap_or_default();
        let shape = event_shape(dimensions, axis, input.columns.len())?;
        let has_step = input.columns.iter().all(|column| column.step > 0);
        let n_particles = input.columns.iter().map(Column::n_particles).min().unwrap_or(0);
        input.offsets.check(if has_step { n_particles } else { 0 })?;
        Ok(CheckedRagged { input, kind, shape, axis })
    }

    /// Returns the shape of `n_events` of `length` particles.
    pub(super) fn shape(&self, n_events: usize, length: usize) -> Vec<usize> {
        let mut shape = self.shape.clone();
        (shape[0], shape[self.axis]) = (n_events, length);
        shape
    }

    /// Puts numbers of `events`, with others up to `length` particles, where the particles are:
    /// rows of all columns, from the first particle of the first event on.
    pub(super) fn scatter(&self, events: &[usize], length: usize, from: &[f64], rows: &mut [f64]) {
        let (n_columns, inner) = (self.input.columns.len(), self.shape[self.axis + 1..].iter().product::<usize>());
        let [start, _] = self.input.offsets.event(0);
        for (from, &event) in from.chunks_exact((n_columns * length).max(1)).zip(events) {
            let [first, n_particles] = self.input.offsets.event(event);
            for particle in 0..n_particles {
                let row = &mut rows[(first - start + particle) * n_columns..][..n_columns];
                for (column, to) in row.iter_mut().enumerate() {
                    *to = from[(column / inner * length + particle) * inner + column % inner];
                }
            }
        }
    }

    /// Returns the numbers of `events`, with zeros up to `length` particles.
    pub(super) fn gather(&self, events: &[usize], length: usize) -> Gathered {
        let inner = self.shape[self.axis + 1..].iter().product();
        let layout = Layout { offsets: self.input.offsets, columns: self.input.columns, events, length, inner };
        match self.kind {
            Kind::Float => Gathered::F64(layout.gather(|values, place| match values {
                // Exact: it is what a plan does with an input of single precision, too.
                InputValues::F32(values) => f64::from(values[place]),
                InputValues::F64(values) => values[place],
                _ => 0.0,
            })),
            Kind::Int => Gathered::I64(layout.gather(|values, place| match values {
                InputValues::I64(values) => values[place],
                _ => 0,
            })),
            Kind::Bool => Gathered::Bool(layout.gather(|values, place| match values {
                InputValues::Bool(values) => values[place],
                _ => false,
            })),
        }
    }
}

/// Numbers that were gathered.
#[derive(Debug, Clone)]
pub(super) enum Gathered {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl Gathered {
    pub(super) fn values(&self) -> InputValues<'_> {
        match self {
            Gathered::F32(values) => InputValues::F32(values),
            Gathered::F64(values) => InputValues::F64(values),
            Gathered::I64(values) => InputValues::I64(values),
            Gathered::Bool(values) => InputValues::Bool(values),
        }
    }

    /// Returns the mask of events: 1 for `lengths` particles, 0 up to `length`; `repeat` rows each.
    pub(super) fn mask(kind: Kind, lengths: impl Iterator<Item = usize>, length: usize, repeat: usize) -> Gathered {
        let rows = lengths.flat_map(|of_event| std::iter::repeat_n(of_event, repeat));
        let places = rows.flat_map(|of_event| (0..length).map(move |place| place < of_event));
        match kind {
            Kind::Float => Gathered::F64(places.map(|is_set| f64::from(u8::from(is_set))).collect()),
            Kind::Int => Gathered::I64(places.map(i64::from).collect()),
            Kind::Bool => Gathered::Bool(places.collect()),
        }
    }
}

/// Which numbers are gathered, and how they lie.
struct Layout<'a> {
    offsets: Offsets<'a>,
    columns: &'a [Column<'a>],
    events: &'a [usize],
    length: usize,
    /// Columns behind the axis of particles.
    inner: usize,
}

impl Layout<'_> {
    /// Returns numbers `[events, outer, length, inner]`; their column is `outer * I + inner` (I
    /// inner ones).
    fn gather<T: Copy + Default>(&self, number: impl Fn(InputValues<'_>, usize) -> T) -> Vec<T> {
        let per_event = self.columns.len() * self.length;
        let mut gathered = vec![T::default(); self.events.len() * per_event];
        for (to, &event) in gathered.chunks_exact_mut(per_event.max(1)).zip(self.events) {
            let [first, n_particles] = self.offsets.event(event);
            for (index, column) in self.columns.iter().enumerate() {
                let (outer, inner) = (index / self.inner, index % self.inner);
                let to = &mut to[outer * self.length * self.inner + inner..];
                for (particle, to) in to.iter_mut().step_by(self.inner).take(n_particles).enumerate() {
                    *to = number(column.values, column.first + column.step * (first + particle));
                }
            }
        }
        gathered
    }
}

/// Returns the shape of one event whose other axes have `n_columns`; one of them may be unknown.
fn event_shape(dimensions: &[Dimension], axis: usize, n_columns: usize) -> Result<Vec<usize>, InputProblem> {
    let mut shape = vec![1; dimensions.len()];
    let mut unknown = Vec::new();
    for (index, dimension) in dimensions.iter().enumerate().filter(|(index, _)| *index != 0 && *index != axis) {
        match dimension {
            Dimension::Fixed(size) => shape[index] = *size,
            Dimension::Named(_) => unknown.push(index),
        }
    }
    let product = |shape: &[usize]| shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    if let ([only], Some(known)) = (&unknown[..], product(&shape).filter(|&known| known > 0)) {
        shape[*only] = n_columns / known;
    }
    if unknown.len() <= 1 && n_columns > 0 && product(&shape) == Some(n_columns) {
        return Ok(shape);
    }
    let declared = dimensions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Err(InputProblem::Columns { found: n_columns, declared: format!("[{declared}]") })
}
