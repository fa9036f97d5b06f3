//! Poisson terms of eight points at once, without a branch: `ns_core::poisson`'s formulas, whose
//! functions are the reference implementation.

use super::lanes::{LANES, Lanes};
use crate::cpu::isa::Isa;

/// Coefficients of the series Σ zᵏ/(2k+1), k = 1 … 12, last one first; s² = z ≤ 0.0295 leaves less
/// than 1e-21.
const ARTANH: [f64; 12] = [
    1.0 / 25.0,
    1.0 / 23.0,
    1.0 / 21.0,
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    1.0 / 5.0,
    1.0 / 3.0,
];

const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Returns D(n, λ) of each lane; +∞ where λ is negative or not a number, or zero although events
/// were observed.
#[inline(always)]
pub(crate) fn half_deviance<I: Isa>(isa: I, n: Lanes, lambda: Lanes) -> Lanes {
    let mut out = Lanes::ZERO;
    for lane in 0..LANES {
        out.0[lane] = one_half_deviance(isa, n.0[lane], lambda.0[lane]);
    }
    out
}

/// Returns 1 - n/λ of each lane, the derivative of the term.
#[inline(always)]
pub(crate) fn derivative(n: Lanes, lambda: Lanes) -> Lanes {
    let mut out = Lanes::ZERO;
    for lane in 0..LANES {
        let derivative = 1.0 - n.0[lane] / lambda.0[lane];
        out.0[lane] = if n.0[lane] == 0.0 { 1.0 } else { derivative };
    }
    out
}

/// Returns D(n, λ) of one lane.
///
/// Both cases of `ns_core::poisson::half_deviance` share one series: near λ = n,
/// x - ln(1+x) = s (x - 2 Σ zᵏ/(2k+1)) with s = x/(2+x) and z = s²; elsewhere
/// ln(λ/n) = k ln 2 + 2s (1 + Σ zᵏ/(2k+1)) with λ/n = 2ᵏm, m in [√½, √2), and s = (m-1)/(m+1).
#[inline(always)]
fn one_half_deviance<I: Isa>(isa: I, n: f64, lambda: f64) -> f64 {
    let excess = lambda - n;
    let (x, ratio) = (excess / n, lambda / n);
    let near = x.abs() < 0.25;
    let (exponent, m) = split(ratio);
    let numerator = if near { x } else { m - 1.0 };
    let denominator = if near { 2.0 + x } else { m + 1.0 };
    let s = numerator / denominator;
    let z = s * s;
    let mut series = ARTANH[0];
    for &term in &ARTANH[1..] {
        series = isa.fma(series, z, term);
    }
    series *= z;
    let close = n * (s * (x - 2.0 * series));
    let low = isa.fma(exponent, LN2_LOW, 2.0 * s * series);
    let logarithm = isa.fma(exponent, LN2_HIGH, 2.0 * s + low);
    let far = excess - n * logarithm;
    let has_logarithm = (f64::MIN_POSITIVE..f64::INFINITY).contains(&ratio);
    let seen = if near { close } else { far };
    let seen = if has_logarithm { seen } else { f64::INFINITY };
    let value = if n == 0.0 { lambda } else { seen };
    if lambda >= 0.0 { value } else { f64::INFINITY }
}

/// Returns k and m of a positive normal number 2ᵏm with m in [√½, √2), by its bits.
#[inline(always)]
fn split(number: f64) -> (f64, f64) {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
    const TWO_52: u64 = 0x4330_0000_0000_0000; // 2^52: the low bits of what it is or-ed with are a whole number
    let bits = number.to_bits().wrapping_add(ONE - ROOT_HALF);
    let exponent = f64::from_bits((bits >> 52) | TWO_52) - (4_503_599_627_370_496.0 + 1023.0);
    (exponent, f64::from_bits((bits & MANTISSA) + ROOT_HALF))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::{FusedMultiplyAdd, SeparateMultiplyAdd};
    use ns_core::poisson;

    #[test]
    fn deviances_agree_with_the_reference() {
        for n in [1e-9, 0.3, 1.0, 7.0, 250.0, 1e6, 1.9e11] {
            for step in -4000..=4000 {
                let lambda = n * (f64::from(step) * 0.005).exp();
                let exact = poisson::half_deviance(n, lambda);
                for value in
                    [one_half_deviance(FusedMultiplyAdd, n, lambda), one_half_deviance(SeparateMultiplyAdd, n, lambda)]
                {
                    // A tenth of the terms is left after the subtraction where the logarithm takes
                    // over.
                    assert!((value - exact).abs() <= 4e-15 * exact, "D({n}, {lambda}) = {value}, not {exact}");
                }
            }
        }
    }

    #[test]
    fn edges_agree_with_the_reference() {
        let numbers = [0.0, -0.0, 1.0, 3.5, -0.1, -1e-300, 1e-60, 1e300, f64::INFINITY, f64::NAN];
        for n in [0.0, 1.0, 40.0] {
            for lambda in numbers {
                let (value, exact) =
                    (one_half_deviance(FusedMultiplyAdd, n, lambda), poisson::half_deviance(n, lambda));
                let same = value == exact || (value - exact).abs() <= 1e-15 * exact.abs();
                assert!(same || !value.is_finite() && !exact.is_finite(), "D({n}, {lambda}) = {value}, not {exact}");
            }
        }
    }
}
