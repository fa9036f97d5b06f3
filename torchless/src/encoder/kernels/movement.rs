//! Elements that are moved and not changed: copies, gathers, scatters, running sums.

use super::OutOfRange;
use super::elementwise::{Runs, map1};
use super::rows::Reducible;
use crate::encoder::tensor::View;

/// Copies the elements of `from` to those of `to`.
pub(super) fn place<T: Copy>(values: &[T], from: &View, out: &mut [T], to: &View) {
    Runs::of([from, to]).each(|[source, target], [step, stride], length| {
        if (step, stride) == (1, 1) {
            out[target..][..length].copy_from_slice(&values[source..][..length]);
            return;
        }
        let (mut source, mut target) = (source as isize, target as isize);
        for _ in 0..length {
            out[target as usize] = values[source as usize];
            (source, target) = (source + step, target + stride);
        }
    });
}

/// Returns an index that may count from the end, if it is within `size`.
pub(in crate::encoder) fn index(index: i64, size: usize) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(size as i64)? } else { index };
    usize::try_from(from_start).ok().filter(|&index| index < size)
}

/// Returns the index that lies at `place`, which may count from the end.
pub(in crate::encoder) fn named_index(indices: &[i64], place: usize, size: usize) -> Result<usize, OutOfRange> {
    index(indices[place], size).ok_or(OutOfRange { place, index: indices[place], size })
}

/// Slices of a tensor along an axis, by their indices.
pub(in crate::encoder) struct GatheredSlices {
    /// Where each slice begins, from the beginning of its line.
    places: Vec<isize>,
    /// Where lines along the axis begin.
    lines: View,
    /// A slice, at the offset 0.
    slice: View,
}

impl GatheredSlices {
    /// Finds the slices of `view` along `axis` that `indices` name.
    pub(in crate::encoder) fn of(
        view: &View,
        axis: usize,
        indices: &[i64],
        indices_view: &View,
    ) -> Result<Self, OutOfRange> {
        let part = |range: std::ops::Range<usize>, offset| View {
            shape: view.shape[range.clone()].to_vec(),
            strides: view.strides[range].to_vec(),
            offset,
        };
        let (size, stride) = (view.shape[axis], view.strides[axis]);
        let place = |at: usize| named_index(indices, at, size).map(|index| index as isize * stride);
        let places = indices_view.places().map(place).collect::<Result<Vec<isize>, _>>()?;
        Ok(Self { places, lines: part(0..axis, view.offset), slice: part(axis + 1..view.shape.len(), 0) })
    }

    /// Returns how many elements a slice has.
    pub(in crate::encoder) fn slice_len(&self) -> usize {
        self.slice.len()
    }

    /// Iterates over where the slices begin, in the order of the result.
    pub(in crate::encoder) fn starts(&self) -> impl Iterator<Item = usize> {
        self.lines.places().flat_map(|line| self.places.iter().map(move |place| (line as isize + place) as usize))
    }

    /// Returns the slice that begins at `start`.
    pub(in crate::encoder) fn slice(&self, start: usize) -> View {
        View { offset: start, ..self.slice.clone() }
    }
}

/// Copies the slices along `axis` that `indices` name.
pub(super) fn gather<T: Copy>(
    (values, view): (&[T], &View),
    (indices, indices_view): (&[i64], &View),
    axis: usize,
    out: &mut [T],
) -> Result<(), OutOfRange> {
    let slices = GatheredSlices::of(view, axis, indices, indices_view)?;
    let length = slices.slice_len();
    for (start, to) in slices.starts().zip(out.chunks_exact_mut(length.max(1))) {
        match length {
            1 => to[0] = values[start],
            _ => map1(values, &slices.slice(start), to, |x| x),
        }
    }
    Ok(())
}

/// Returns where tuples of indices, at most as wide as `shape` has axes, point to in a tensor of
/// `shape`, in elements.
pub(in crate::encoder) fn points(indices: &[i64], view: &View, shape: &[usize]) -> Result<Vec<usize>, OutOfRange> {
    let width = view.shape.last().copied().unwrap_or(0).max(1);
    let strides = View::contiguous(shape).strides;
    let mut points = Vec::with_capacity(view.len() / width);
    let mut places = view.places();
    while let Some(first) = places.next() {
        let mut point = named_index(indices, first, shape[0])? * strides[0] as usize;
        for (axis, place) in (1..width).zip(places.by_ref()) {
            point += named_index(indices, place, shape[axis])? * strides[axis] as usize;
        }
        points.push(point);
    }
    Ok(points)
}

/// Returns where the elements that `indices` name along `axis` are, in elements of a tensor of
/// `shape`.
pub(super) fn element_points(
    indices: &[i64],
    view: &View,
    axis: usize,
    shape: &[usize],
) -> Result<Vec<usize>, OutOfRange> {
    let strides = View::contiguous(shape).strides;
    let mut at = vec![0_usize; shape.len()];
    let mut points = Vec::with_capacity(view.len());
    for place in view.places() {
        let named = named_index(indices, place, shape[axis])?;
        let along = |dimension: usize| if dimension == axis { named } else { at[dimension] };
        points.push((0..shape.len()).map(|dimension| along(dimension) * strides[dimension] as usize).sum());
        for dimension in (0..shape.len()).rev() {
            at[dimension] += 1;
            if at[dimension] < view.shape[dimension] {
                break;
            }
            at[dimension] = 0;
        }
    }
    Ok(points)
}

/// Writes running sums along the middle axis of (outer, length, inner).
pub(super) fn running_sum<T: Reducible>(values: &mut [T], length: usize, inner: usize, order: Running) {
    for block in values.chunks_exact_mut((length * inner).max(1)) {
        for column in 0..inner {
            let mut sum = T::of_count(0);
            for step in 0..length {
                let step = if order.is_reversed { length - 1 - step } else { step };
                let value = &mut block[step * inner + column];
                let next = sum.add(*value);
                *value = if order.is_exclusive { sum } else { next };
                sum = next;
            }
        }
    }
}

/// Which elements a running sum has.
#[derive(Debug, Clone, Copy)]
pub(in crate::encoder) struct Running {
    pub(in crate::encoder) is_exclusive: bool,
    pub(in crate::encoder) is_reversed: bool,
}
