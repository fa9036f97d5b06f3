//! Sums along rows: normalisations, softmax, reductions. Their order depends on places only, and
//! zeros at the end of a row change no bit.

use super::functions;
use crate::encoder::graph::Reduction;
use crate::encoder::tensor::View;
use crate::simd::{Body, LANES, Simd};

/// Normalises rows: (x - mean)/√(variance + ε)·weight + bias.
pub(super) struct LayerNorm<'a> {
    pub(super) rows: &'a [f32],
    pub(super) weight: &'a [f32],
    pub(super) bias: Option<&'a [f32]>,
    pub(super) epsilon: f32,
    /// Divides by √(mean square) instead, and subtracts nothing.
    pub(super) is_rms: bool,
    pub(super) out: &'a mut [f32],
}

impl Body for LayerNorm<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let length = self.weight.len();
        for (row, out) in self.rows.chunks_exact(length).zip(self.out.chunks_exact_mut(length)) {
            let count = length as f32;
            let mean = if self.is_rms { 0.0 } else { functions::sum_row(row, |x| x) / count };
            let variance = functions::sum_row(row, |x| (x - mean) * (x - mean)) / count;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            match self.bias {
                Some(bias) => {
                    let terms = row.iter().zip(self.weight).zip(bias);
                    out.iter_mut().zip(terms).for_each(|(out, ((x, w), b))| *out = (x - mean) * scale * w + b);
                }
                None => {
                    let terms = row.iter().zip(self.weight);
                    out.iter_mut().zip(terms).for_each(|(out, (x, w))| *out = (x - mean) * scale * w);
                }
            }
        }
    }
}

/// Normalises rows in double precision.
pub(super) fn layer_norm_f64(rows: &[f64], [weight, bias]: [&[f64]; 2], epsilon: f64, is_rms: bool, out: &mut [f64]) {
    let length = weight.len();
    for (row, out) in rows.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
        let count = length as f64;
        let mean = if is_rms { 0.0 } else { row.iter().sum::<f64>() / count };
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let scale = 1.0 / (variance + epsilon).sqrt();
        for (index, (out, x)) in out.iter_mut().zip(row).enumerate() {
            *out = (x - mean) * scale * weight[index] + bias.get(index).copied().unwrap_or(0.0);
        }
    }
}

/// Exponentials of rows, divided by their sums; or their logarithms.
pub(super) struct Softmax<'a> {
    /// Rows that are replaced by the result.
    pub(super) rows: &'a mut [f32],
    pub(super) length: usize,
    pub(super) is_logarithm: bool,
}

impl Body for Softmax<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in self.rows.chunks_exact_mut(self.length) {
            let largest = largest(row);
            if self.is_logarithm {
                row.iter_mut().for_each(|x| *x -= largest);
                let sum = functions::sum(row.iter().map(|x| f64::from(*x).exp() as f32));
                let logarithm = f64::from(sum).ln() as f32;
                row.iter_mut().for_each(|x| *x -= logarithm);
                continue;
            }
            row.iter_mut().for_each(|x| *x -= largest);
            functions::apply::<functions::Exp, S>(simd, row);
            let scale = 1.0 / functions::sum_row(row, |x| x);
            row.iter_mut().for_each(|x| *x *= scale);
        }
    }
}

/// Returns the largest number of a row: the same in any order.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for numbers in whole {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], numbers[lane]);
        }
    }
    let all = lanes.iter().chain(rest);
    all.fold(f32::NEG_INFINITY, |a, b| larger(a, *b))
}

/// Computes softmax in double precision.
pub(super) fn softmax_f64(rows: &mut [f64], length: usize, is_logarithm: bool) {
    for row in rows.chunks_exact_mut(length) {
        let largest = row.iter().fold(f64::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        for x in row.iter_mut() {
            *x = if is_logarithm { *x - largest - sum.ln() } else { (*x - largest).exp() / sum };
        }
    }
}

/// Numbers that can be reduced.
pub(super) trait Reducible: Copy + PartialOrd {
    fn of_count(count: usize) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn root(self) -> Self;
    /// The smallest and the largest number.
    const LIMITS: [Self; 2];
}

macro_rules! reducible_float {
    ($float:ty) => {
        impl Reducible for $float {
            fn of_count(count: usize) -> $float {
                count as $float
            }
            fn add(self, other: $float) -> $float {
                self + other
            }
            fn mul(self, other: $float) -> $float {
                self * other
            }
            fn div(self, other: $float) -> $float {
                self / other
            }
            fn root(self) -> $float {
                self.sqrt()
            }
            const LIMITS: [$float; 2] = [<$float>::NEG_INFINITY, <$float>::INFINITY];
        }
    };
}
reducible_float!(f32);
reducible_float!(f64);

impl Reducible for i64 {
    fn of_count(count: usize) -> i64 {
        count as i64
    }
    fn add(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    fn mul(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn div(self, other: i64) -> i64 {
        self.checked_div(other).unwrap_or(0)
    }
    fn root(self) -> i64 {
        (self as f64).sqrt() as i64
    }
    const LIMITS: [i64; 2] = [i64::MIN, i64::MAX];
}

/// Reduces the axes of `view` from `n_kept` on.
pub(super) fn reduce<T: Reducible>(reduction: Reduction, values: &[T], view: &View, n_kept: usize, out: &mut [T]) {
    let axes = |range: std::ops::Range<usize>, offset| View {
        shape: view.shape[range.clone()].to_vec(),
        strides: view.strides[range].to_vec(),
        offset,
    };
    // Relative to an element of the kept axes: places may lie before it.
    let inner = axes(n_kept..view.shape.len(), 0);
    let inner: Vec<isize> = signed_places(&inner);
    let kept = axes(0..n_kept, view.offset);
    for (out, place) in out.iter_mut().zip(kept.places()) {
        let row = || inner.iter().map(|offset| values[(place as isize + offset) as usize]);
        *out = match reduction {
            Reduction::Sum => lane_sum(row()),
            Reduction::Mean => lane_sum(row()).div(T::of_count(inner.len())),
            Reduction::SumOfSquares => lane_sum(row().map(|x| x.mul(x))),
            Reduction::Norm => lane_sum(row().map(|x| x.mul(x))).root(),
            Reduction::Product => row().fold(T::of_count(1), T::mul),
            Reduction::Max => row().reduce(|a, b| if b > a { b } else { a }).unwrap_or(T::LIMITS[0]),
            Reduction::Min => row().reduce(|a, b| if b < a { b } else { a }).unwrap_or(T::LIMITS[1]),
        };
    }
}

/// Adds in the order of [`functions::sum`].
pub(super) fn lane_sum<T: Reducible>(values: impl Iterator<Item = T>) -> T {
    let mut lanes = [T::of_count(0); LANES];
    for (index, value) in values.enumerate() {
        lanes[index % LANES] = lanes[index % LANES].add(value);
    }
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] = lanes[lane].add(lanes[lane + width]);
        }
    }
    lanes[0]
}

pub(super) fn signed_places(view: &View) -> Vec<isize> {
    let mut places = vec![0];
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        places = places.iter().flat_map(|place| (0..size).map(move |i| place + i as isize * stride)).collect();
    }
    places
}
