//! The normal distribution's tail and its inverse, accurate as far as double precision can say the
//! number at all.
//!
//! Significances of 30 and more occur (an obvious signal), and ratios of two such tails are what
//! CLs is, so the logarithm of the tail is here as well: it never underflows.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};

/// Beyond this z the logarithm of the tail comes from a continued fraction.
const FAR: f64 = 10.0;

/// Returns the density of the normal distribution at `z`.
pub(crate) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Returns Q(z) = 1 - Φ(z), the probability of more than `z` standard deviations: the p-value of a
/// significance.
///
/// Accurate to a few units in 1e15 up to z = 37, where it is 4.6e-300; beyond 38.5 it is zero.
///
/// ```
/// use ns_inference::normal::upper_tail;
/// assert_eq!(upper_tail(0.0), 0.5);
/// assert!((upper_tail(5.0) / 2.866515718791939e-7 - 1.0).abs() < 1e-14);
/// ```
#[must_use]
pub fn upper_tail(z: f64) -> f64 {
    let x = z * FRAC_1_SQRT_2;
    // What rounding took from x matters in the tail: erfc falls by exp(-2xδ) over δ.
    let lost = z.mul_add(FRAC_1_SQRT_2, -x) + z * SQRT_HALF_REST;
    let factor = if x > 1.0 && x.is_finite() { (-2.0 * x * lost).exp() } else { 1.0 };
    0.5 * libm::erfc(x) * factor
}

/// √½ minus its nearest double.
const SQRT_HALF_REST: f64 = -4.833_646_656_726_457e-17;

/// Returns ln Q(z), also where Q(z) itself underflows.
///
/// ```
/// use ns_inference::normal::ln_upper_tail;
/// assert!((ln_upper_tail(1e3) / -500_007.826_694_812_2 - 1.0).abs() < 1e-15);
/// ```
#[must_use]
pub fn ln_upper_tail(z: f64) -> f64 {
    if z < FAR {
        return upper_tail(z).ln();
    }
    // Laplace's continued fraction of Mills' ratio, Q(z)/φ(z) = 1/(z + 1/(z + 2/(z + 3/(z + …)))).
    let fraction = (1..=60).rev().fold(z, |sum, k| z + f64::from(k) / sum);
    -0.5 * z * z - 0.5 * TAU.ln() - fraction.ln()
}

/// Returns z such that Q(z) = `p`: the significance of a p-value; ∞ for 0, NaN outside [0, 1].
///
/// ```
/// use ns_inference::normal::significance;
/// assert!((significance(2.866515718791939e-7) - 5.0).abs() < 1e-14);
/// ```
#[must_use]
pub fn significance(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        // 1 - p is exact here.
        return -significance(1.0 - p);
    }
    if p == 0.0 {
        return f64::INFINITY;
    }
    significance_of_ln(p.ln())
}

/// Returns z such that ln Q(z) = `ln_p`, for p ≤ ½; works where p itself underflows.
#[must_use]
pub fn significance_of_ln(ln_p: f64) -> f64 {
    // Q(z) ≈ ½ exp(-z²/2) to start with; Newton steps on the nearly quadratic ln Q converge from
    // there.
    let mut z = (-2.0 * (ln_p + LN_2)).max(0.0).sqrt();
    for _ in 0..50 {
        let ln_tail = ln_upper_tail(z);
        // d ln Q/dz = -φ/Q
        let derivative = -(-0.5 * z * z - 0.5 * TAU.ln() - ln_tail).exp();
        let step = (ln_p - ln_tail) / derivative;
        z += step;
        if step.abs() <= 4.0 * f64::EPSILON * z.abs().max(1e-8) {
            break;
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// z, Q(z), ln Q(z) from 60-digit arithmetic (mpmath 1.3, `erfc(z/sqrt(2))/2`).
    const EXACT: [(f64, f64, f64); 12] = [
        (-8.0, 0.999_999_999_999_999_4, -6.220_960_574_271_786e-16),
        (-1.0, 0.841_344_746_068_542_9, -0.172_753_779_023_449_9),
        (0.5, 0.308_537_538_725_986_9, -1.175_911_761_593_618_6),
        (1.0, 0.158_655_253_931_457_05, -1.841_021_645_009_263_5),
        (2.0, 0.022_750_131_948_179_21, -3.783_184_333_682_032),
        (3.3, 0.000_483_424_142_383_777_5, -7.634_616_148_071_127),
        (5.0, 2.866_515_718_791_939e-7, -15.064_998_393_988_726),
        (12.7, 2.956_485_364_852_05e-37, -84.111_647_254_673_16),
        (20.0, 2.753_624_118_606_233_7e-89, -203.917_155_371_097_26),
        (30.0, 4.906_713_927_148_187e-198, -454.321_243_956_343_2),
        (37.0, 5.725_571_222_524_577e-300, -689.030_585_576_890_6),
        (37.5, 4.605_353_009_581_955e-308, -707.668_989_317_507_2),
    ];

    #[test]
    fn tails_are_right_to_the_last_digits_up_to_37_standard_deviations() {
        for (z, tail, ln_tail) in EXACT {
            assert!((upper_tail(z) / tail - 1.0).abs() < 4e-15, "Q({z}) = {:e}", upper_tail(z));
            assert!((ln_upper_tail(z) - ln_tail).abs() < 3e-15 * ln_tail.abs().max(1.0), "ln Q({z})");
        }
        assert_eq!(upper_tail(f64::INFINITY), 0.0);
        assert_eq!(ln_upper_tail(f64::INFINITY), f64::NEG_INFINITY);
    }

    #[test]
    fn significances_invert_tails() {
        for (z, tail, ln_tail) in EXACT.into_iter().skip(1) {
            assert!((significance(tail) - z).abs() < 4e-15 * z.abs().max(1.0), "{z}: {}", significance(tail));
            if z > 0.0 {
                assert!((significance_of_ln(ln_tail) - z).abs() < 4e-15 * z.max(1.0));
            }
        }
        assert_eq!(significance(0.5), 0.0);
        assert_eq!(significance(0.0), f64::INFINITY);
        assert_eq!(significance(1.0), f64::NEG_INFINITY);
        assert!(significance(-0.1).is_nan() && significance(f64::NAN).is_nan());
    }
}
