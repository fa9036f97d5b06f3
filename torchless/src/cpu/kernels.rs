//! The kernels between the products: norms, activations, rotary positions and attention, on the
//! CPU.
//!
//! Kernels take slices and write into slices; comments give the shapes. Each is one body compiled
//! for several instruction sets (`simd`). No result depends on how many tokens are computed at
//! once. The caller guarantees the lengths here; [`backend`](../backend/index.html) checks them.

pub use crate::config::RopePairs;
use crate::simd::{Body, InstructionSet, LANES, Simd, dispatch};

/// Returns exp(x), about one unit in the last place; 0 below -104, at most exp(88.7).
///
/// x = n·ln 2 + r with |r| ≤ ½ ln 2, a Taylor series of degree 7 for exp(r), and two powers of two,
/// so that subnormal results are right.
#[inline(always)]
fn exp<S: Simd>(simd: S, x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5·2^23: adding it leaves the nearest integer in the low bits
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Comparisons, not `max`, so that NaN stays.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 88.72 { 88.72 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = simd.fma1(n, -LN_2_LOW, simd.fma1(n, -LN_2_HIGH, x));
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = simd.fma1(sum, r, coefficient);
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = exponent >> 1;
    let power = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) as u32) << 23);
    sum * power(half) * power(exponent - half)
}

struct RmsNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f64,
    out: &'a mut [f32],
}

impl Body for RmsNorm<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let width = self.weight.len();
        for (x, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let mut squares = [0.0_f64; LANES];
            let (vectors, rest) = x.as_chunks::<LANES>();
            for vector in vectors {
                for lane in 0..LANES {
                    squares[lane] += f64::from(vector[lane]) * f64::from(vector[lane]);
                }
            }
            for (lane, value) in rest.iter().enumerate() {
                squares[lane] += f64::from(*value) * f64::from(*value);
            }
            let mean = squares.iter().sum::<f64>() / width as f64;
            let factor = (1.0 / (mean + self.epsilon).sqrt()) as f32;
            for ((out, x), weight) in out.iter_mut().zip(x).zip(self.weight) {
                *out = x * factor * weight;
            }
        }
    }
}

/// Computes out = x / √(mean(x²) + ε) · weight, row by row: `x` and `out` are (T, width), `weight`
/// is (width).
///
/// The mean is taken in `f64`. ε is under the root: a row of zeros gives zeros. Source: Zhang and
/// Sennrich, arXiv:1910.07467, eq. 4.
///
/// ```
/// use torchless::kernels::rms_norm;
/// use torchless::InstructionSet;
/// let mut out = [0.0; 2];
/// rms_norm(InstructionSet::best(), &[3.0, 4.0], &[1.0, 2.0], 0.0, &mut out);
/// assert!((out[0] - 3.0 / 12.5_f32.sqrt()).abs() < 1e-6 && (out[1] - 8.0 / 12.5_f32.sqrt()).abs() < 1e-6);
/// ```
pub fn rms_norm(isa: InstructionSet, x: &[f32], weight: &[f32], epsilon: f64, out: &mut [f32]) {
    dispatch(isa, RmsNorm { x, weight, epsilon, out });
}

/// Returns the greatest number, NaN left out; −∞ if there is none.
#[inline(always)]
fn greatest(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (vectors, rest) = x.as_chunks::<LANES>();
    for vector in vectors {
        for lane in 0..LANES {
            lanes[lane] = if vector[lane] > lanes[lane] { vector[lane] } else { lanes[lane] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most })
}

struct Softmax<'a>(&'a mut [f32]);

impl Body for Softmax<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let greatest = greatest(self.0);
        if greatest == f32::NEG_INFINITY {
            // Nothing but -∞, or NaN, which has to be seen.
            let has_nan = self.0.iter().any(|x| x.is_nan());
            self.0.fill(if has_nan { f32::NAN } else { 0.0 });
            return;
        }
        let (vectors, rest) = self.0.as_chunks_mut::<LANES>();
        let mut sums = [0.0_f32; LANES];
        for vector in &mut *vectors {
            for lane in 0..LANES {
                vector[lane] = exp(simd, vector[lane] - greatest);
                sums[lane] += vector[lane];
            }
        }
        for (lane, value) in rest.iter_mut().enumerate() {
            *value = exp(simd, *value - greatest);
            sums[lane] += *value;
        }
        let sum = simd.sum(simd.load(&sums));
        for value in self.0.iter_mut() {
            *value /= sum;
        }
    }
}

/// Computes x ← exp(x − max x) / Σ exp(x − max x). Entries of −∞ become 0; nothing but them, all 0.
pub fn softmax(isa: InstructionSet, x: &mut [f32]) {
    dispatch(isa, Softmax(x));
}

struct SiluMul<'a> {
    gate: &'a mut [f32],
    up: Option<&'a [f32]>,
}

impl Body for SiluMul<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.up {
            Some(up) => {
                for (gate, up) in self.gate.iter_mut().zip(up) {
                    *gate = *gate / (1.0 + exp(simd, -*gate)) * up;
                }
            }
            None => {
                for gate in self.gate.iter_mut() {
                    *gate /= 1.0 + exp(simd, -*gate);
                }
            }
        }
    }
}

/// Computes x ← x / (1 + exp(−x)).
pub fn silu(isa: InstructionSet, x: &mut [f32]) {
    dispatch(isa, SiluMul { gate: x, up: None });
}

/// Computes gate ← silu(gate)·up, elementwise. Source: Shazeer, arXiv:2002.05202, SwiGLU.
pub fn silu_mul(isa: InstructionSet, gate: &mut [f32], up: &[f32]) {
    dispatch(isa, SiluMul { gate, up: Some(up) });
}

/// Computes x ← x + y.
pub fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Turns every head of one token: `x` is (heads, D), `cosines` and `sines` are (D/2).
///
/// (a, b) ← (a·cos − b·sin, a·sin + b·cos). Source: Su et al., arXiv:2104.09864, eq. 34.
pub fn rope(x: &mut [f32], pairs: RopePairs, cosines: &[f32], sines: &[f32]) {
    let half = cosines.len();
    for head in x.chunks_exact_mut(2 * half) {
        match pairs {
            RopePairs::Halves => {
                let (first, second) = head.split_at_mut(half);
                for index in 0..half {
                    let (a, b) = (first[index], second[index]);
                    first[index] = a * cosines[index] - b * sines[index];
                    second[index] = a * sines[index] + b * cosines[index];
                }
            }
            RopePairs::Neighbours => {
                for (index, pair) in head.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                    let [a, b] = *pair;
                    *pair = [a * cosines[index] - b * sines[index], a * sines[index] + b * cosines[index]];
                }
            }
        }
    }
}

/// The keys or values of one head: rows of `values`, `stride` apart.
#[derive(Debug, Clone, Copy)]
pub struct HeadRows<'a> {
    /// From the first row on.
    pub values: &'a [f32],
    /// Numbers from one row to the next.
    pub stride: usize,
}

struct Scores<'a> {
    query: &'a [f32],
    keys: HeadRows<'a>,
    scale: f32,
    scores: &'a mut [f32],
}

impl Body for Scores<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Scores { query, keys, scale, scores } = self;
        let (query, query_rest) = query.as_chunks::<LANES>();
        let width = query.len() * LANES + query_rest.len();
        let last = |sum: f32, position: usize| {
            let rest = &keys.values[position * keys.stride + width - query_rest.len()..];
            query_rest.iter().zip(rest).fold(sum, |sum, (query, key)| simd.fma1(*query, *key, sum)) * scale
        };
        let (fours, rest) = scores.as_chunks_mut::<4>();
        for (four, scores) in fours.iter_mut().enumerate() {
            let mut sums = [simd.splat(0.0); 4];
            for position in 0..4 {
                let key = keys.values[(4 * four + position) * keys.stride..][..width].as_chunks::<LANES>().0;
                for (query, key) in query.iter().zip(key) {
                    sums[position] = simd.fma(simd.load(query), simd.load(key), sums[position]);
                }
            }
            let sums = simd.sum4(sums);
            for position in 0..4 {
                scores[position] = last(sums[position], 4 * four + position);
            }
        }
        let first = 4 * fours.len();
        for (position, score) in (first..).zip(rest) {
            let key = keys.values[position * keys.stride..][..width].as_chunks::<LANES>().0;
            let mut sums = simd.splat(0.0);
            for (query, key) in query.iter().zip(key) {
                sums = simd.fma(simd.load(query), simd.load(key), sums);
            }
            *score = last(simd.sum(sums), position);
        }
    }
}

/// Computes `scores[p] = query · keys[p] · scale`: `query` is (D), `keys` has a row for each of
/// `scores`.
pub fn attention_scores(isa: InstructionSet, query: &[f32], keys: HeadRows<'_>, scale: f32, scores: &mut [f32]) {
    dispatch(isa, Scores { query, keys, scale, scores });
}

struct WeightedSum<'a> {
    weights: &'a [f32],
    values: HeadRows<'a>,
    out: &'a mut [f32],
}

impl Body for WeightedSum<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let WeightedSum { weights, values, out } = self;
        let rows = HeadRows { values: values.values, stride: values.stride.max(1) };
        let n_whole = out.len() / LANES * LANES;
        let (fours, rest) = out.as_chunks_mut::<{ 4 * LANES }>();
        let first = fours.len() * 4 * LANES;
        for (index, out) in fours.iter_mut().enumerate() {
            weighted_vectors::<S, 4>(simd, weights, rows, index * 4 * LANES, out);
        }
        let (ones, rest) = rest.as_chunks_mut::<LANES>();
        for (index, out) in ones.iter_mut().enumerate() {
            weighted_vectors::<S, 1>(simd, weights, rows, first + index * LANES, out);
        }
        for (index, out) in rest.iter_mut().enumerate() {
            let mut sum = 0.0;
            for (weight, row) in weights.iter().zip(rows.values.chunks(rows.stride)) {
                sum = simd.fma1(*weight, row[n_whole + index], sum);
            }
            *out = sum;
        }
    }
}

/// Computes `N` vectors of a weighted sum, those from number `first` of every row on.
#[inline(always)]
fn weighted_vectors<S: Simd, const N: usize>(
    simd: S,
    weights: &[f32],
    rows: HeadRows<'_>,
    first: usize,
    out: &mut [f32],
) {
    let mut sums = [simd.splat(0.0); N];
    for (weight, row) in weights.iter().zip(rows.values.chunks(rows.stride)) {
        let (row, _) = row[first..].as_chunks::<LANES>();
        let (row, weight) = (row.first_chunk::<N>().expect("a row of the width of `out`"), simd.splat(*weight));
        for vector in 0..N {
            sums[vector] = simd.fma(weight, simd.load(&row[vector]), sums[vector]);
        }
    }
    for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
        simd.store(sum, out);
    }
}

/// Computes `out = Σ weights[p]·values[p]`: `out` is (D), `values` has a row for each of `weights`.
pub fn weighted_sum(isa: InstructionSet, weights: &[f32], values: HeadRows<'_>, out: &mut [f32]) {
    dispatch(isa, WeightedSum { weights, values, out });
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exp(f32);
    impl Body for Exp {
        type Output = f32;
        fn run<S: Simd>(self, simd: S) -> f32 {
            exp(simd, self.0)
        }
    }

    #[test]
    fn exponentials_are_right_to_the_last_place_or_two() {
        for isa in InstructionSet::available() {
            for step in -10_400..8_872 {
                let x = step as f32 * 0.01 + 0.0037;
                let (got, expected) = (f64::from(dispatch(isa, Exp(x))), f64::from(x).exp());
                let spacing = (expected * f64::from(f32::EPSILON)).max(2f64.powi(-149));
                assert!((got - expected).abs() <= 1.5 * spacing, "exp({x}) is {got}, not {expected}");
            }
            assert_eq!(dispatch(isa, Exp(f32::NEG_INFINITY)), 0.0);
            assert_eq!(dispatch(isa, Exp(0.0)), 1.0);
            assert!(dispatch(isa, Exp(f32::NAN)).is_nan());
        }
    }
}
