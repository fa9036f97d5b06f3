//! Functions of single precision, written for loops that the compiler makes vectors of:
//! exponential, error function and the activations made of them.
//!
//! Every number goes through the same operations, in a vector or alone, so a result does not depend
//! on its neighbours. The coefficients are minimax fits of these functions; the exponential and the
//! error function are within two units in the last place.

use crate::simd::{LANES, Simd};

/// A function of one number.
pub(super) trait Function {
    fn of<S: Simd>(simd: S, x: f32) -> f32;
}

pub(super) struct Exp;
pub(super) struct Erf;
/// x·Φ(x), with the error function.
pub(super) struct Gelu;
/// The approximation of x·Φ(x) with a hyperbolic tangent.
pub(super) struct GeluTanh;
/// 1/(1 + e⁻ˣ).
pub(super) struct Sigmoid;
/// x/(1 + e⁻ˣ).
pub(super) struct Silu;

/// Returns the polynomial with `coefficients`, highest power first.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for place in 1..N {
        sum = simd.fma1(sum, x, coefficients[place]);
    }
    sum
}

impl Function for Exp {
    /// Returns eˣ: 0 below -104, infinite above 89.
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        // Adding and subtracting this rounds to an integer, which is in the low bits of the sum.
        const ROUND: f32 = 12_582_912.0;
        let x = if x < -104.0 { -104.0 } else { x };
        let x = if x > 89.0 { 89.0 } else { x };
        let shifted = simd.fma1(x, std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        // ln 2 in two parts: the first has zeros at its end, so that its product with n is exact.
        let rest = simd.fma1(n, -0.693_359_4, x);
        let rest = simd.fma1(n, 2.121_944_4e-4, rest);
        let series = polynomial(simd, rest, [0.001_395_606_2, 0.008_375_135, 0.041_666_083, 0.166_664_15, 0.5]);
        let sum = simd.fma1(series, rest * rest, rest) + 1.0;
        let power = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
        // In two factors: the whole may be below the smallest normal number.
        let half = power >> 1;
        let other = power.wrapping_sub(half);
        let half = f32::from_bits((half.wrapping_add(127) as u32) << 23);
        let other = f32::from_bits((other.wrapping_add(127) as u32) << 23);
        sum * half * other
    }
}

impl Function for Erf {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        let size = if x.abs() > 4.0 { 4.0 } else { x.abs() };
        let near = polynomial(
            simd,
            x * x,
            [7.889_119e-5, -8.020_841e-4, 0.005_189_535, -0.026_854_444, 0.112_836, -0.376_126_26, 0.128_379_17],
        );
        let near = simd.fma1(near, x, x);
        // The logarithm of 1 - erf.
        let tail = polynomial(
            simd,
            size,
            [
                -2.149_611_6e-5,
                4.391_106_4e-4,
                -0.004_193_611,
                0.025_178_969,
                -0.108_372_48,
                -0.633_262_63,
                -1.129_556_8,
                1.834_441_8e-4,
            ],
        );
        let far = (1.0 - Exp::of(simd, tail)).copysign(x);
        if size < 1.0 { near } else { far }
    }
}

impl Function for Gelu {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        0.5 * x * (1.0 + Erf::of(simd, x * std::f32::consts::FRAC_1_SQRT_2))
    }
}

impl Function for GeluTanh {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        // x/2·(1 + tanh u) is x/(1 + exp(-2u)).
        const FACTOR: f32 = -1.595_769;
        x / (1.0 + Exp::of(simd, FACTOR * (x + 0.044_715 * x * x * x)))
    }
}

impl Function for Sigmoid {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        1.0 / (1.0 + Exp::of(simd, -x))
    }
}

impl Function for Silu {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        x / (1.0 + Exp::of(simd, -x))
    }
}

/// Applies a function to all of `values`.
#[inline(always)]
pub(super) fn apply<F: Function, S: Simd>(simd: S, values: &mut [f32]) {
    let (whole, rest) = values.as_chunks_mut::<LANES>();
    for value in whole.as_flattened_mut() {
        *value = F::of(simd, *value);
    }
    if !rest.is_empty() {
        // A vector of them, too.
        let mut numbers = [0.0; LANES];
        numbers[..rest.len()].copy_from_slice(rest);
        for value in &mut numbers {
            *value = F::of(simd, *value);
        }
        rest.copy_from_slice(&numbers[..rest.len()]);
    }
}

/// Returns the sum in an order that depends on nothing but the places: number i is added to lane
/// i mod 16, and halves of the lanes are added until one number is left. Zeros at the end change
/// no bit.
#[inline(always)]
pub(super) fn sum(values: impl Iterator<Item = f32>) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for (index, value) in values.enumerate() {
        lanes[index % LANES] += value;
    }
    sum_lanes(lanes)
}

/// Returns the sum of a row in the order of [`sum`].
#[inline(always)]
pub(super) fn sum_row(row: &[f32], value: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for numbers in whole {
        for lane in 0..LANES {
            lanes[lane] += value(numbers[lane]);
        }
    }
    // Another array: the first one stays in a register.
    let mut all = lanes;
    for (lane, number) in all.iter_mut().zip(rest) {
        *lane += value(*number);
    }
    sum_lanes(all)
}

#[inline(always)]
fn sum_lanes(mut lanes: [f32; LANES]) -> f32 {
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}
