//! The Poisson term of a likelihood, in a form that keeps its digits at any count.
//!
//! -ln Pois(n | λ) = D(n, λ) + C(n) with the half-deviance D = λ - n - n ln(λ/n) and C(n) = ln
//! Γ(n+1) - n ln n + n. The textbook form n ln λ - λ - ln Γ(n+1) subtracts numbers of size n ln n:
//! at the auxiliary count of 1.9e11 that one published model has, it loses 1e-3. Counts need not be
//! whole (continuous Poisson, as in pyhf); 0·ln 0 = 0.

use crate::double_double::DoubleDouble;
use crate::interpolate::Jet;

/// Returns D(n, λ) = λ - n - n ln(λ/n), half the deviance: 0 at λ = n, positive elsewhere.
///
/// Derivatives: D' = 1 - n/λ, D'' = n/λ². Edges: D(0, λ) = λ; D(n > 0, 0) = +∞; λ < 0 or NaN: +∞,
/// so that a minimiser that steps there can step back.
///
/// ```
/// assert_eq!(ns_core::poisson::half_deviance(3.0, 3.0), 0.0);
/// assert!((ns_core::poisson::half_deviance(3.0, 4.0) - (1.0 - 3.0 * (4.0_f64 / 3.0).ln())).abs() < 1e-15);
/// assert_eq!(ns_core::poisson::half_deviance(0.0, 2.5), 2.5);
/// assert_eq!(ns_core::poisson::half_deviance(1.0, -0.1), f64::INFINITY);
/// ```
#[must_use]
pub fn half_deviance(n: f64, lambda: f64) -> f64 {
    half_deviance_from(n, lambda, lambda - n, || (lambda / n).ln())
}

/// Returns [`half_deviance`] from the difference λ - n and the logarithm of λ/n, which may have
/// been computed for many bins at once.
#[must_use]
#[inline]
pub fn half_deviance_from(n: f64, lambda: f64, excess: f64, logarithm: impl FnOnce() -> f64) -> f64 {
    if lambda.is_nan() || lambda < 0.0 {
        return f64::INFINITY;
    }
    if n == 0.0 {
        return lambda;
    }
    let x = excess / n;
    if x.abs() < 0.25 { n * minus_ln_1p(x) } else { excess - n * logarithm() }
}

/// Returns D(n, τθ) with twice the digits, for counts from [`LARGE_COUNT`] on.
///
/// ```
/// // mpmath 1.3, 40 digits, at n = τ = 189281768783.48367 and θ = 0.5
/// let term = ns_core::poisson::half_deviance_double_double(189281768783.48367, 189281768783.48367, 0.5);
/// assert_eq!(term.round(), 36559239971.929340623);
/// ```
#[must_use]
pub fn half_deviance_double_double(n: f64, tau: f64, theta: f64) -> DoubleDouble {
    let lambda = DoubleDouble::product(tau, theta);
    if lambda.hi.is_nan() || lambda.hi <= 0.0 || lambda.hi.is_infinite() {
        return half_deviance(n, lambda.hi).into();
    }
    let count = DoubleDouble::from(n);
    lambda - count - count * lambda.over(count).ln()
}

/// The count from which the rounding error of one Poisson term can exceed that of all others
/// together.
pub const LARGE_COUNT: f64 = 1e6;

/// Returns the first and second derivative of -ln Pois(n | λ) with respect to λ: 1 - n/λ and n/λ².
#[must_use]
#[inline]
pub fn derivatives(n: f64, lambda: f64) -> (f64, f64) {
    if n == 0.0 {
        return (1.0, 0.0);
    }
    let ratio = n / lambda;
    (1.0 - ratio, ratio / lambda)
}

/// The fraction of the floor down to which the barrier of a bin without observed events extends.
const BARRIER: f64 = 1e-2;

/// Returns [`half_deviance`] continued below a floor by a parabola, with its first and second
/// derivative: finite for every λ.
///
/// Below φ = `floor`·max(n, 1) the term continues as D(φ) + D'(φ)(λ - φ) + ½κ(λ - φ)² with κ =
/// D''(φ) + 1000/φ, which pushes λ back up. A count below the floor is replaced by the floor, and φ
/// is a hundredth of it: the logarithm is then the barrier of an interior-point method (Nocedal and
/// Wright, Numerical Optimization, section 19.6), smooth where a minimum at the edge of the domain
/// lies. A minimiser that starts where some λ is negative uses it to find its way into the domain;
/// as the floor goes to 0 it becomes the domain's edge.
#[must_use]
pub fn floored(n: f64, lambda: f64, floor: f64) -> Jet {
    let (n, edge) = if n < floor { (floor, BARRIER * floor) } else { (n, floor * n.max(1.0)) };
    if lambda >= edge {
        let (first, second) = derivatives(n, lambda);
        return Jet { value: half_deviance(n, lambda), first, second };
    }
    let (first, second) = derivatives(n, edge);
    let (curve, below) = (second + 1000.0 / edge, lambda - edge);
    Jet {
        value: half_deviance(n, edge) + below * (first + 0.5 * curve * below),
        first: first + curve * below,
        second: curve,
    }
}

/// Returns x - ln(1 + x) without cancellation, for |x| ≤ ¼.
///
/// With s = x/(2+x): ln(1+x) = 2 artanh s, so x - ln(1+x) = x²/(2+x) - 2(s³/3 + s⁵/5 + …), and x =
/// s(2+x).
fn minus_ln_1p(x: f64) -> f64 {
    let s = x / (2.0 + x);
    let z = s * s;
    let mut series = 0.0;
    // s² ≤ 1/49 for |x| ≤ ¼: twelve terms leave less than 1e-20.
    for k in (1..=12).rev() {
        series = z * (1.0 / f64::from(2 * k + 1) + series);
    }
    s * (x - 2.0 * series)
}

/// Returns C(n) = ln Γ(n+1) - n ln n + n, the part of -ln Pois(n | λ) that does not depend on λ.
///
/// From 16 on by the Stirling series ½ ln 2πn + 1/(12n) - 1/(360n³) + 1/(1260n⁵) - 1/(1680n⁷) +
/// 1/(1188n⁹), whose next term is below 1e-16 there; below 16 directly. C(0) = 0.
///
/// ```
/// // -ln Pois(4 | 4) = 4 - 4 ln 4 + ln 24
/// let exact = 4.0 - 4.0 * 4.0_f64.ln() + 24.0_f64.ln();
/// assert!((ns_core::poisson::log_normaliser(4.0) - exact).abs() < 1e-15);
/// ```
#[must_use]
pub fn log_normaliser(n: f64) -> f64 {
    if n == 0.0 {
        return 0.0;
    }
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - n * n.ln() + n;
    }
    let inverse = 1.0 / n;
    let z = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0))));
    0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_and_logarithm_meet_at_the_border() {
        for n in [1e-3, 1.0, 40.0, 1e6] {
            for x in [-0.25_f64, 0.25] {
                let direct = x - x.ln_1p();
                assert!((n * minus_ln_1p(x) - n * direct).abs() < 1e-14 * n);
            }
        }
    }

    #[test]
    fn huge_counts_keep_their_digits() {
        // For small x the term is n x²/2 (1 - 2x/3 + …), whatever the size of n.
        let n = 189_281_768_783.483_67_f64;
        let lambda = n * (1.0 + 1e-6);
        let x = (lambda - n) / n;
        let expected = n * x * x * (0.5 - x / 3.0);
        assert!((half_deviance(n, lambda) / expected - 1.0).abs() < 1e-11);
    }

    #[test]
    fn normaliser_is_continuous_where_the_series_takes_over() {
        let (below, above) = (log_normaliser(16.0 - 1e-9), log_normaliser(16.0));
        assert!((below - above).abs() < 1e-10);
        let exact = libm::lgamma(17.0) - 16.0 * 16.0_f64.ln() + 16.0;
        assert!((above - exact).abs() < 1e-14);
    }

    #[test]
    fn floored_terms_are_smooth_and_push_back() {
        for n in [0.0_f64, 3.0, 1e6] {
            let edge = if n == 0.0 { BARRIER * 1e-3 } else { 1e-3 * n.max(1.0) };
            let (below, above) = (floored(n, edge * (1.0 - 1e-9), 1e-3), floored(n, edge, 1e-3));
            assert!((below.value - above.value).abs() <= 1e-6 * above.value.abs().max(1.0));
            assert!((below.first - above.first).abs() <= 1e-5 * above.first.abs().max(1.0));
            assert!(floored(n, -1.0, 1e-3).first < 0.0);
            assert_eq!(floored(n, 2.0 * edge, 1e-3).value, half_deviance(n.max(1e-3), 2.0 * edge));
        }
    }

    #[test]
    fn zero_and_negative_rates_are_infinite_unless_nothing_was_seen() {
        assert_eq!(half_deviance(0.0, 0.0), 0.0);
        assert_eq!(half_deviance(2.0, 0.0), f64::INFINITY);
        assert_eq!(half_deviance(0.0, -1e-300), f64::INFINITY);
        assert_eq!(half_deviance(2.0, f64::NAN), f64::INFINITY);
    }
}
