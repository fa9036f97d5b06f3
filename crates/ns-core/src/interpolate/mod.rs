//! Interpolates a yield between its -1σ, nominal and +1σ templates.
//!
//! A nuisance parameter α is 0 at nominal and ±1 at one standard deviation. This module turns α
//! into a factor ([`NormSysInterpolation`]) or into two weights of a shift
//! ([`HistoSysInterpolation`]), with first and second derivatives; `expected` applies them to bins.
//! Formulas: CERN-OPEN-2012-016, section 4.1; the codes are numbered as in pyhf and ROOT. Where a
//! rule is kinked at α = 0, +0 has the derivatives of the upper side and -0 those of the lower one.

mod rule;

pub use rule::InterpolationRule;

/// A function's value with its first and second derivative.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jet {
    /// f(α)
    pub value: f64,
    /// f'(α)
    pub first: f64,
    /// f''(α)
    pub second: f64,
}

/// How a normsys factor depends on α between and beyond its values at ±1σ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum NormSysInterpolation {
    /// Piecewise exponential, `code1`: hi^α for α ≥ 0, lo^(-α) below. Kinked at α = 0.
    Exponential,
    /// Polynomial of degree six inside ±1, exponential outside, `code4`. Twice continuously
    /// differentiable.
    #[default]
    SmoothExponential,
}

/// How a histosys shift depends on α between and beyond its templates at ±1σ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum HistoSysInterpolation {
    /// Piecewise linear, `code0`. Kinked at α = 0.
    Linear,
    /// Quadratic inside ±1, linear outside, `code2`, continuous as in ROOT (pyhf 0.7.6 jumps at
    /// ±1).
    Quadratic,
    /// Polynomial of degree six inside ±1, linear outside, `code4p`. Twice continuously
    /// differentiable.
    #[default]
    SmoothLinear,
}

/// The rule for each kind of interpolated modifier in one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Interpolation {
    /// The rule for normsys.
    pub normsys: NormSysInterpolation,
    /// The rule for histosys.
    pub histosys: HistoSysInterpolation,
}

impl Interpolation {
    /// The kinked rules that pyhf used before 0.6: code1 and code0.
    pub const KINKED: Self =
        Self { normsys: NormSysInterpolation::Exponential, histosys: HistoSysInterpolation::Linear };
}

impl NormSysInterpolation {
    /// Returns the rule with this code of pyhf or ROOT.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "code1" => Some(Self::Exponential),
            "code4" => Some(Self::SmoothExponential),
            _ => None,
        }
    }

    /// Returns its code in pyhf and ROOT.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Exponential => "code1",
            Self::SmoothExponential => "code4",
        }
    }
}

impl HistoSysInterpolation {
    /// Returns the rule with this code of pyhf or ROOT.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "code0" => Some(Self::Linear),
            "code2" => Some(Self::Quadratic),
            "code4p" => Some(Self::SmoothLinear),
            _ => None,
        }
    }

    /// Returns its code in pyhf and ROOT.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Linear => "code0",
            Self::Quadratic => "code2",
            Self::SmoothLinear => "code4p",
        }
    }

    /// Returns the weights (p, q) of the shift p·(hi - nominal) + q·(lo - nominal), the same for
    /// every bin.
    ///
    /// Every rule is linear in the two template differences, so one pair of numbers per parameter
    /// serves all bins: linear: (α, 0) for α ≥ 0, (0, -α) below; quadratic inside ±1: (α(α+1)/2,
    /// α(α-1)/2), outside its tangent; smooth inside ±1: (S + α/2, S - α/2) with S = α²(15 + α²(3α²
    /// - 10))/16, outside as linear.
    ///
    /// ```
    /// use ns_core::interpolate::HistoSysInterpolation::{Linear, Quadratic, SmoothLinear};
    /// let (p, q) = SmoothLinear.weights(0.5);
    /// assert!((p.value - 0.4482421875).abs() < 1e-15);
    /// assert!((q.value + 0.0517578125).abs() < 1e-15);
    /// assert_eq!(Linear.weights(-2.0).1.value, 2.0);
    /// assert_eq!(Quadratic.weights(2.0).0.value, 2.5);
    /// ```
    #[must_use]
    pub fn weights(self, alpha: f64) -> (Jet, Jet) {
        match self {
            Self::Linear => linear_weights(alpha),
            Self::Quadratic => quadratic_weights(alpha),
            Self::SmoothLinear if alpha.abs() < 1.0 => smooth_weights(alpha),
            Self::SmoothLinear => linear_weights(alpha),
        }
    }

    /// Returns the derivatives (p', q') of [`HistoSysInterpolation::weights`] with respect to α,
    /// with their own.
    ///
    /// The third derivatives of p and q jump at ±1; there the ones outside are given.
    #[must_use]
    pub fn derivatives(self, alpha: f64) -> (Jet, Jet) {
        let (p, q) = self.weights(alpha);
        let third = if self == Self::SmoothLinear && alpha.abs() < 1.0 {
            alpha * (360.0 * alpha * alpha - 240.0) / 16.0
        } else {
            0.0
        };
        let derivative = |weight: Jet| Jet { value: weight.first, first: weight.second, second: third };
        (derivative(p), derivative(q))
    }
}

fn linear_weights(alpha: f64) -> (Jet, Jet) {
    let zero = Jet::default();
    if alpha.is_sign_positive() {
        (Jet { value: alpha, first: 1.0, second: 0.0 }, zero)
    } else {
        (zero, Jet { value: -alpha, first: -1.0, second: 0.0 })
    }
}

/// Returns the weights of up and down. Inside ±1 the change is aα² + bα with a = (up + down)/2 and
/// b = (up - down)/2; outside, it is the tangent at ±1.
fn quadratic_weights(alpha: f64) -> (Jet, Jet) {
    let side = |sign: f64| {
        // weight of `up` for sign = +1 and of `down` for sign = -1
        if alpha.abs() <= 1.0 {
            Jet { value: alpha * (alpha + sign) / 2.0, first: alpha + sign / 2.0, second: 1.0 }
        } else {
            let edge = alpha.signum();
            let derivative = edge + sign / 2.0;
            Jet { value: (1.0 + edge * sign) / 2.0 + derivative * (alpha - edge), first: derivative, second: 0.0 }
        }
    };
    (side(1.0), side(-1.0))
}

fn smooth_weights(alpha: f64) -> (Jet, Jet) {
    let x = alpha * alpha;
    let even = Jet {
        value: x * (15.0 + x * (3.0 * x - 10.0)) / 16.0,
        first: alpha * (30.0 + x * (18.0 * x - 40.0)) / 16.0,
        second: (30.0 + x * (90.0 * x - 120.0)) / 16.0,
    };
    let side = |sign: f64| Jet { value: even.value + sign * alpha / 2.0, first: even.first + sign / 2.0, ..even };
    (side(1.0), side(-1.0))
}

/// One normsys modifier, ready to be evaluated: logarithms of its factors and polynomial
/// coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormSysFactor {
    /// ln of the factor at +1σ.
    pub ln_hi: f64,
    /// ln of the factor at -1σ.
    pub ln_lo: f64,
    /// Coefficients of α¹ … α⁶ inside ±1.
    pub coefficients: [f64; 6],
}

impl NormSysFactor {
    /// Prepares the factor that is `lo` at -1σ, 1 at nominal and `hi` at +1σ; both must be
    /// positive.
    ///
    /// The polynomial is the one of degree six that is 1 at α = 0 and meets the exponentials at ±1
    /// with equal value, first and second derivative (CERN-OPEN-2012-016, section 4.1.2). With the
    /// even and odd parts of value, derivative and curvature at ±1 it is solved in closed form.
    #[must_use]
    pub fn new(lo: f64, hi: f64) -> Self {
        let (ln_lo, ln_hi) = (lo.ln(), hi.ln());
        let (derivative_hi, derivative_lo) = (hi * ln_hi, -lo * ln_lo);
        let (curve_hi, curve_lo) = (derivative_hi * ln_hi, -derivative_lo * ln_lo);
        let coefficients = coefficients(Ends {
            value: [(hi + lo) / 2.0 - 1.0, (hi - lo) / 2.0],
            derivative: [(derivative_hi - derivative_lo) / 2.0, (derivative_hi + derivative_lo) / 2.0],
            curve: [(curve_hi + curve_lo) / 2.0, (curve_hi - curve_lo) / 2.0],
        });
        Self { ln_hi, ln_lo, coefficients }
    }

    /// Returns the factor at α with its derivatives.
    ///
    /// ```
    /// use ns_core::interpolate::{NormSysFactor, NormSysInterpolation::{Exponential, SmoothExponential}};
    /// let factor = NormSysFactor::new(0.9, 1.1);
    /// assert!((factor.at(1.0, SmoothExponential).value - 1.1).abs() < 1e-15);
    /// assert!((factor.at(-2.0, Exponential).value - 0.81).abs() < 1e-15);
    /// assert_eq!(factor.at(0.0, SmoothExponential).value, 1.0);
    /// ```
    #[must_use]
    pub fn at(&self, alpha: f64, rule: NormSysInterpolation) -> Jet {
        if rule == NormSysInterpolation::SmoothExponential && alpha.abs() < 1.0 {
            return self.polynomial(alpha);
        }
        let rate = if alpha.is_sign_positive() { self.ln_hi } else { -self.ln_lo };
        let value = (rate * alpha).exp();
        Jet { value, first: rate * value, second: rate * rate * value }
    }

    fn polynomial(&self, alpha: f64) -> Jet {
        let jet = without_constant(self.coefficients, alpha);
        Jet { value: 1.0 + jet.value, ..jet }
    }

    /// Returns the derivative f' of [`NormSysFactor::at`] with respect to α, with its own
    /// derivatives.
    #[must_use]
    pub fn derivative(&self, alpha: f64, rule: NormSysInterpolation) -> Jet {
        let f = self.at(alpha, rule);
        let third = if rule == NormSysInterpolation::SmoothExponential && alpha.abs() < 1.0 {
            let [.., a3, a4, a5, a6] = self.coefficients;
            6.0 * a3 + alpha * (24.0 * a4 + alpha * (60.0 * a5 + alpha * 120.0 * a6))
        } else {
            let rate = if alpha.is_sign_positive() { self.ln_hi } else { -self.ln_lo };
            rate * f.second
        };
        Jet { value: f.first, first: f.second, second: third }
    }

    /// Returns the derivatives ∂f/∂lo and ∂f/∂hi of [`NormSysFactor::at`], each with its
    /// derivatives with respect to α.
    ///
    /// ```
    /// use ns_core::interpolate::{NormSysFactor, NormSysInterpolation::{Exponential, SmoothExponential}};
    /// let [by_lo, by_hi] = NormSysFactor::new(0.9, 1.1).by_ends(1.0, SmoothExponential);
    /// assert_eq!((by_lo.value, by_hi.value), (0.0, 1.0));
    /// let [by_lo, by_hi] = NormSysFactor::new(0.9, 1.1).by_ends(-2.0, Exponential);
    /// assert!((by_lo.value - 1.8).abs() < 1e-15 && by_hi.value == 0.0);
    /// ```
    #[must_use]
    pub fn by_ends(&self, alpha: f64, rule: NormSysInterpolation) -> [Jet; 2] {
        if rule == NormSysInterpolation::SmoothExponential && alpha.abs() < 1.0 {
            // value, derivative and curvature at ±1 are x, x ln x and x ln² x of the end x, the
            // derivative at -1 with a minus sign
            let end = |ln: f64, odd: f64| {
                let [value, derivative, curve] = [0.5, 0.5 * (ln + 1.0), 0.5 * ln * (ln + 2.0)];
                let ends = Ends {
                    value: [value, odd * value],
                    derivative: [derivative, odd * derivative],
                    curve: [curve, odd * curve],
                };
                without_constant(coefficients(ends), alpha)
            };
            return [end(self.ln_lo, -1.0), end(self.ln_hi, 1.0)];
        }
        // hi^α by hi is α hi^(α-1), and lo^-α by lo the same with -α.
        let (x, ln) = if alpha.is_sign_positive() { (alpha, self.ln_hi) } else { (-alpha, self.ln_lo) };
        let (sign, power) = (1.0_f64.copysign(alpha), ((x - 1.0) * ln).exp());
        let jet = Jet { value: x * power, first: sign * power * (1.0 + x * ln), second: power * ln * (2.0 + x * ln) };
        if alpha.is_sign_positive() { [Jet::default(), jet] } else { [jet, Jet::default()] }
    }
}

impl NormSysFactor {
    /// Returns ∂²f/∂lo² and ∂²f/∂hi² of [`NormSysFactor::at`]; the mixed derivative is zero.
    #[must_use]
    pub fn by_ends_twice(&self, alpha: f64, rule: NormSysInterpolation) -> [f64; 2] {
        if rule == NormSysInterpolation::SmoothExponential && alpha.abs() < 1.0 {
            let end = |ln: f64, odd: f64| {
                let [derivative, curve] = [0.5, ln + 1.0].map(|x| x * (-ln).exp());
                let ends =
                    Ends { value: [0.0; 2], derivative: [derivative, odd * derivative], curve: [curve, odd * curve] };
                without_constant(coefficients(ends), alpha).value
            };
            return [end(self.ln_lo, -1.0), end(self.ln_hi, 1.0)];
        }
        let (x, ln) = if alpha.is_sign_positive() { (alpha, self.ln_hi) } else { (-alpha, self.ln_lo) };
        let second = x * (x - 1.0) * ((x - 2.0) * ln).exp();
        if alpha.is_sign_positive() { [0.0, second] } else { [second, 0.0] }
    }
}

/// The conditions on a polynomial at ±1: the even and the odd part of value, derivative (even: half
/// the difference of the two) and curvature.
#[derive(Clone, Copy)]
struct Ends {
    value: [f64; 2],
    derivative: [f64; 2],
    curve: [f64; 2],
}

/// Returns the coefficients of α¹ … α⁶ of the polynomial that is 0 at α = 0 and meets `ends`.
fn coefficients(ends: Ends) -> [f64; 6] {
    let Ends {
        value: [even_value, odd_value],
        derivative: [even_derivative, odd_derivative],
        curve: [even_curve, odd_curve],
    } = ends;
    [
        (15.0 * odd_value - 7.0 * odd_derivative + odd_curve) / 8.0,
        (24.0 * even_value - 9.0 * even_derivative + even_curve) / 8.0,
        (-5.0 * odd_value + 5.0 * odd_derivative - odd_curve) / 4.0,
        (-12.0 * even_value + 7.0 * even_derivative - even_curve) / 4.0,
        (3.0 * odd_value - 3.0 * odd_derivative + odd_curve) / 8.0,
        (8.0 * even_value - 5.0 * even_derivative + even_curve) / 8.0,
    ]
}

/// Returns Σ a_k αᵏ for k = 1 … 6.
fn without_constant([a1, a2, a3, a4, a5, a6]: [f64; 6], x: f64) -> Jet {
    Jet {
        value: x * (a1 + x * (a2 + x * (a3 + x * (a4 + x * (a5 + x * a6))))),
        first: a1 + x * (2.0 * a2 + x * (3.0 * a3 + x * (4.0 * a4 + x * (5.0 * a5 + x * 6.0 * a6)))),
        second: 2.0 * a2 + x * (6.0 * a3 + x * (12.0 * a4 + x * (20.0 * a5 + x * 30.0 * a6))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} is not {b} within {tolerance:e}");
    }

    #[test]
    fn normsys_derivatives_match_finite_differences() {
        let factor = NormSysFactor::new(0.7, 1.4);
        let h = 1e-5;
        for rule in [NormSysInterpolation::Exponential, NormSysInterpolation::SmoothExponential] {
            for alpha in [-3.1, -1.2, -0.8, -0.1, 0.3, 0.99, 1.01, 2.5] {
                let [below, at, above] = [alpha - h, alpha, alpha + h].map(|x| factor.at(x, rule));
                assert_close(at.first, (above.value - below.value) / (2.0 * h), 1e-9);
                assert_close(at.second, (above.first - below.first) / (2.0 * h), 1e-9);
            }
        }
    }

    #[test]
    fn third_derivatives_and_those_by_the_ends_match_finite_differences() {
        let (lo, hi, h) = (0.7, 1.4, 1e-5);
        let factor = NormSysFactor::new(lo, hi);
        let moved = |d_lo: f64, d_hi: f64, alpha: f64, rule| NormSysFactor::new(lo + d_lo, hi + d_hi).at(alpha, rule);
        for rule in [NormSysInterpolation::Exponential, NormSysInterpolation::SmoothExponential] {
            for alpha in [-3.1, -1.2, -0.8, -0.1, 0.3, 0.99, 1.01, 2.5] {
                let derivative = factor.derivative(alpha, rule);
                assert_eq!(
                    (derivative.value, derivative.first),
                    (factor.at(alpha, rule).first, factor.at(alpha, rule).second)
                );
                let [below, above] = [alpha - h, alpha + h].map(|x| factor.at(x, rule).second);
                assert_close(derivative.second, (above - below) / (2.0 * h), 1e-8);
                let [by_lo, by_hi] = factor.by_ends(alpha, rule);
                let ends = [
                    (moved(-h, 0.0, alpha, rule), moved(h, 0.0, alpha, rule)),
                    (moved(0.0, -h, alpha, rule), moved(0.0, h, alpha, rule)),
                ];
                let twice = factor.by_ends_twice(alpha, rule);
                let changed = |d_lo: f64, d_hi: f64| NormSysFactor::new(lo + d_lo, hi + d_hi).by_ends(alpha, rule);
                assert_close(twice[0], (changed(h, 0.0)[0].value - changed(-h, 0.0)[0].value) / (2.0 * h), 1e-7);
                assert_close(twice[1], (changed(0.0, h)[1].value - changed(0.0, -h)[1].value) / (2.0 * h), 1e-7);
                for (jet, (below, above)) in [by_lo, by_hi].into_iter().zip(ends) {
                    assert_close(jet.value, (above.value - below.value) / (2.0 * h), 1e-8);
                    assert_close(jet.first, (above.first - below.first) / (2.0 * h), 1e-8);
                    assert_close(jet.second, (above.second - below.second) / (2.0 * h), 1e-7);
                }
            }
        }
        for rule in
            [HistoSysInterpolation::Linear, HistoSysInterpolation::Quadratic, HistoSysInterpolation::SmoothLinear]
        {
            for alpha in [-3.1, -0.8, -0.1, 0.3, 0.99, 1.01] {
                let (p, q) = rule.derivatives(alpha);
                let [below, above] = [alpha - h, alpha + h].map(|x| rule.weights(x));
                assert_close(p.second, (above.0.second - below.0.second) / (2.0 * h), 1e-8);
                assert_close(q.second, (above.1.second - below.1.second) / (2.0 * h), 1e-8);
            }
        }
    }

    #[test]
    fn signed_zeros_choose_the_side_of_a_kink() {
        let factor = NormSysFactor::new(0.7, 1.4);
        assert_eq!(factor.at(0.0, NormSysInterpolation::Exponential).first, 1.4_f64.ln());
        assert_eq!(factor.at(-0.0, NormSysInterpolation::Exponential).first, -(0.7_f64.ln()));
        assert_eq!(HistoSysInterpolation::Linear.weights(0.0).0.first, 1.0);
        assert_eq!(HistoSysInterpolation::Linear.weights(-0.0).1.first, -1.0);
    }

    #[test]
    fn smooth_normsys_is_twice_continuous_at_one_sigma() {
        for (lo, hi) in [(0.7, 1.4), (1.2, 0.6), (0.01, 3.0)] {
            let factor = NormSysFactor::new(lo, hi);
            for alpha in [-1.0_f64, 1.0] {
                let inside = factor.polynomial(alpha);
                let outside = factor.at(alpha, NormSysInterpolation::SmoothExponential);
                assert_close(inside.value, outside.value, 1e-14);
                assert_close(inside.first, outside.first, 1e-13);
                assert_close(inside.second, outside.second, 1e-12);
            }
        }
    }

    #[test]
    fn histosys_derivatives_match_finite_differences() {
        use HistoSysInterpolation::{Linear, Quadratic, SmoothLinear};
        let h = 1e-5;
        for rule in [Linear, Quadratic, SmoothLinear] {
            for alpha in [-3.1, -1.2, -0.8, -0.1, 0.3, 0.99, 1.01, 2.5] {
                let [below, at, above] = [alpha - h, alpha, alpha + h].map(|x| rule.weights(x));
                for side in [|w: (Jet, Jet)| w.0, |w: (Jet, Jet)| w.1] {
                    assert_close(side(at).first, (side(above).value - side(below).value) / (2.0 * h), 1e-9);
                    assert_close(side(at).second, (side(above).first - side(below).first) / (2.0 * h), 1e-9);
                }
            }
        }
    }

    #[test]
    fn every_histosys_rule_meets_its_templates_and_is_continuous() {
        use HistoSysInterpolation::{Linear, Quadratic, SmoothLinear};
        for rule in [Linear, Quadratic, SmoothLinear] {
            assert_eq!((rule.weights(0.0).0.value, rule.weights(0.0).1.value), (0.0, 0.0));
            assert_eq!((rule.weights(1.0).0.value, rule.weights(1.0).1.value), (1.0, 0.0));
            assert_eq!((rule.weights(-1.0).0.value, rule.weights(-1.0).1.value), (0.0, 1.0));
            for edge in [-1.0, 0.0, 1.0] {
                let (below, above) = (rule.weights(edge - 1e-9), rule.weights(edge + 1e-9));
                assert!((below.0.value - above.0.value).abs() < 1e-8);
                assert!((below.1.value - above.1.value).abs() < 1e-8);
            }
        }
    }
}
