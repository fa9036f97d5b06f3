//! Derivatives of steps: what an input of a step adds to the gradient, given the gradient with
//! respect to its output.
//!
//! A gradient has the memory of the value that it belongs to, so that the views of the forward pass
//! say where it goes: elements that a view repeats get one chain of sums, in the order of the view.
//! Zeros at the end of an axis change no bit, and a sum never crosses events.
//!
//! Where the gradient with respect to an output of a function of elements is exactly 0, nothing is
//! added, whatever the derivative is: the infinite derivative of √0 behind a mask does not turn
//! into NaN. Products of matrices do multiply 0 by an infinite factor. Steps (ceil, floor, sign)
//! have the derivative 0, as |x| and ReLU have at 0; a clipped number has 1 up to its limits, and
//! of equal numbers a maximum divides the gradient evenly.

mod derivatives;
mod elementwise;
mod movement;
mod products;
mod rows;

pub(in crate::encoder) use products::Transposes;

use super::elementwise::{Runs, at};
use super::movement::Running;
use super::rows::Reducible;
use super::{Arg, Kernel, KernelScratch, OutOfRange, Pair};
use crate::encoder::tensor::{Data, DataRef, View};
use crate::simd::InstructionSet;

/// A step that was computed, and the gradient with respect to its output.
pub(in crate::encoder) struct ComputedStep<'a> {
    pub(in crate::encoder) kernel: &'a Kernel,
    pub(in crate::encoder) args: &'a [Arg<'a>],
    pub(in crate::encoder) out: DataRef<'a>,
    pub(in crate::encoder) out_view: &'a View,
    /// The gradient, in the order of the output.
    pub(in crate::encoder) gradient: &'a Data,
}

/// What derivatives are computed with.
pub(in crate::encoder) struct Tools<'a> {
    pub(in crate::encoder) isa: InstructionSet,
    pub(in crate::encoder) scratch: &'a mut KernelScratch,
    pub(in crate::encoder) transposes: &'a Transposes,
}

/// Why an input has no gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::encoder) enum NoGradient {
    /// The derivative is not computed.
    Unknown,
    OutOfRange(OutOfRange),
}

impl From<OutOfRange> for NoGradient {
    fn from(found: OutOfRange) -> NoGradient {
        NoGradient::OutOfRange(found)
    }
}

/// Numbers of one precision.
pub(super) trait Real:
    Reducible
    + Default
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
{
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    fn pair<'a>(arg: &Arg<'a>) -> Pair<'a, Self>;
    fn numbers(data: DataRef<'_>) -> &[Self];
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn pair<'a>(arg: &Arg<'a>) -> Pair<'a, f32> {
        arg.f32()
    }
    fn numbers(data: DataRef<'_>) -> &[f32] {
        if let DataRef::F32(values) = data { values } else { &[] }
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
    fn pair<'a>(arg: &Arg<'a>) -> Pair<'a, f64> {
        arg.f64()
    }
    fn numbers(data: DataRef<'_>) -> &[f64] {
        if let DataRef::F64(values) = data { values } else { &[] }
    }
}

/// Adds to `to` the gradient with respect to input `index` of a step; `to` has the memory of that
/// input.
pub(in crate::encoder) fn add_gradient(
    step: &ComputedStep<'_>,
    index: usize,
    tools: &mut Tools<'_>,
    to: &mut Data,
) -> Result<(), NoGradient> {
    match (step.kernel, to) {
        (Kernel::Convert { .. }, to) => convert(step, to),
        (Kernel::Linear { .. } | Kernel::MatMul | Kernel::Pointwise { .. }, to) => {
            products::add(step, index, tools, to)?;
        }
        (Kernel::Unary(unary), Data::F32(to)) if derivatives::is_known(*unary) => {
            derivatives::add(tools.isa, *unary, step, to);
        }
        (_, Data::F32(to)) => add(step, index, to)?,
        (_, Data::F64(to)) => add(step, index, to)?,
        (_, Data::Int(_)) => {}
    }
    Ok(())
}

fn add<T: Real>(step: &ComputedStep<'_>, index: usize, to: &mut [T]) -> Result<(), NoGradient> {
    let length = step.out_view.len();
    let (gradient, out) = (&T::numbers(step.gradient.borrow())[..length], &T::numbers(step.out)[..length]);
    let view = step.args[index].view;
    match step.kernel {
        Kernel::Binary(binary) => elementwise::binary(*binary, step, index, to)?,
        Kernel::Unary(unary) => elementwise::unary(*unary, step, to),
        Kernel::Clip { .. } => elementwise::clip(step, index, to)?,
        Kernel::Where => elementwise::choose(step.args[0].int(), index == 1, (to, view), gradient),
        Kernel::CumSum { length, inner, running } => {
            let mut sums = gradient.to_vec();
            let running = Running { is_reversed: !running.is_reversed, ..*running };
            super::movement::running_sum(&mut sums, *length, *inner, running);
            add_each(to, view, |place| sums[place]);
        }
        Kernel::Place { parts, .. } => movement::place(&parts[index], (to, view), gradient),
        Kernel::Trilu { is_upper, diagonal } => {
            let mut kept = vec![T::default(); length];
            super::triangle((gradient, step.out_view), *is_upper, *diagonal, &mut kept);
            add_each(to, view, |place| kept[place]);
        }
        Kernel::Gather { axis } => movement::gather(step.args[1].int(), *axis, (to, view), gradient)?,
        Kernel::GatherElements { .. } | Kernel::GatherNd { .. } | Kernel::Scatter { .. } | Kernel::ScatterNd { .. } => {
            movement::points(step, index, to, gradient)?;
        }
        Kernel::Reduce { reduction, n_kept } => {
            rows::reduce(*reduction, *n_kept, T::pair(&step.args[index]), to, [gradient, out]);
        }
        Kernel::Softmax { length, is_logarithm, .. } => {
            rows::softmax(*length, *is_logarithm, (to, view), [gradient, out]);
        }
        Kernel::LayerNorm { epsilon, is_rms, length } => {
            let norm = rows::Norm { epsilon: T::of(f64::from(*epsilon)), is_rms: *is_rms, length: *length };
            norm.add(step, index, to, gradient)?;
        }
        Kernel::Convert { .. } | Kernel::Linear { .. } | Kernel::MatMul | Kernel::Pointwise { .. } => {}
        // Its only input are integers.
        Kernel::TableRows { .. } => {}
    }
    Ok(())
}

/// Adds the gradient in the class of the input.
fn convert(step: &ComputedStep<'_>, to: &mut Data) {
    let view = step.args[0].view;
    match (step.gradient, to) {
        (Data::F32(from), Data::F32(to)) => add_each(to, view, |place| from[place]),
        (Data::F32(from), Data::F64(to)) => add_each(to, view, |place| f64::from(from[place])),
        (Data::F64(from), Data::F32(to)) => add_each(to, view, |place| from[place] as f32),
        (Data::F64(from), Data::F64(to)) => add_each(to, view, |place| from[place]),
        _ => {}
    }
}

/// Adds `term(i)` to element i of a view.
#[inline(always)]
fn add_each<T: Real>(to: &mut [T], view: &View, term: impl Fn(usize) -> T) {
    let mut done = 0;
    Runs::of([view]).each(|[place], [spacing], length| {
        match spacing {
            1 => to[place..][..length].iter_mut().enumerate().for_each(|(index, to)| *to += term(done + index)),
            0 => to[place] = (0..length).fold(to[place], |sum, index| sum + term(done + index)),
            _ => (0..length).for_each(|index| to[at(place, spacing, index)] += term(done + index)),
        }
        done += length;
    });
}

/// Returns gradient times derivative: 0 where the gradient is.
#[inline(always)]
fn times<T: Real>(gradient: T, derivative: T) -> T {
    let product = gradient * derivative;
    if gradient == T::default() { T::default() } else { product }
}
