//! Gradients of elements that are moved: they go back to where the elements came from.

use std::sync::Arc;

use super::{ComputedStep, NoGradient, Real, add_each};
use crate::encoder::kernels::Kernel;
use crate::encoder::kernels::elementwise::{Runs, at};
use crate::encoder::kernels::movement::{GatheredSlices, element_points, points as named};
use crate::encoder::tensor::View;

/// Adds the gradient of one of several inputs side by side, which is at `part`.
pub(super) fn place<T: Real>(part: &View, (to, view): (&mut [T], &View), gradient: &[T]) {
    Runs::of([view, part]).each(|[place, from], [spacing, step], length| {
        (0..length).for_each(|index| to[at(place, spacing, index)] += gradient[at(from, step, index)]);
    });
}

/// Adds the gradient of slices along `axis`; one that is gathered several times has a sum.
pub(super) fn gather<T: Real>(
    (indices, indices_view): (&[i64], &View),
    axis: usize,
    (to, view): (&mut [T], &View),
    gradient: &[T],
) -> Result<(), NoGradient> {
    let slices = GatheredSlices::of(view, axis, indices, indices_view)?;
    let length = slices.slice_len();
    for (start, from) in slices.starts().zip(gradient.chunks_exact(length.max(1))) {
        match length {
            1 => to[start] += from[0],
            _ => add_each(to, &slices.slice(start), |place| from[place]),
        }
    }
    Ok(())
}

/// Adds the gradient of elements that tuples of indices name.
pub(super) fn points<T: Real>(
    step: &ComputedStep<'_>,
    input: usize,
    to: &mut [T],
    gradient: &[T],
) -> Result<(), NoGradient> {
    let (view, indices) = (step.args[input].view, step.args[1].int());
    let of_tuples = |shape: &[usize]| named(indices.0, indices.1, shape);
    let (points, inner): (Arc<[usize]>, usize) = match step.kernel {
        Kernel::GatherElements { axis } => (element_points(indices.0, indices.1, *axis, &view.shape)?.into(), 1),
        Kernel::GatherNd { shape, inner } => (of_tuples(shape)?.into(), *inner),
        Kernel::Scatter { points, inner } => (Arc::clone(points), *inner),
        Kernel::ScatterNd { inner } => (of_tuples(&step.out_view.shape)?.into(), *inner),
        _ => return Err(NoGradient::Unknown),
    };
    if matches!(step.kernel, Kernel::Scatter { .. } | Kernel::ScatterNd { .. }) {
        scatter(&points, inner, input == 0, (to, view), gradient);
        return Ok(());
    }
    let to = &mut to[view.offset..];
    for (from, &point) in gradient.chunks_exact(inner.max(1)).zip(&points[..]) {
        to[point..][..inner].iter_mut().zip(from).for_each(|(to, from)| *to += *from);
    }
    Ok(())
}

/// Adds the gradient of what blocks were written over, or of the blocks: of several at one place
/// the last one is there.
fn scatter<T: Real>(points: &[usize], inner: usize, is_below: bool, (to, view): (&mut [T], &View), gradient: &[T]) {
    let mut left = gradient.to_vec();
    if is_below {
        points.iter().for_each(|&point| left[point..][..inner].fill(T::default()));
        return add_each(to, view, |place| left[place]);
    }
    let mut blocks = vec![T::default(); view.len()];
    for (block, &point) in blocks.chunks_exact_mut(inner.max(1)).zip(points).rev() {
        block.copy_from_slice(&left[point..][..inner]);
        left[point..][..inner].fill(T::default());
    }
    add_each(to, view, |place| blocks[place]);
}
