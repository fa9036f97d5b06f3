//! How a normsys or histosys of a model follows its parameter: by the rule of its kind or by one of
//! its own, and with a factor on α.
//!
//! A model keeps the distinct ones of its modifiers in [`Responses`]; those at index 0 are the
//! model's rules. With p and q of [`HistoSysInterpolation::weights`], a factor that is lo at -1σ
//! and hi at +1σ is
//!
//! | rule | factor |
//! |---|---|
//! | [`FactorRule::Standard`] | [`NormSysFactor::at`] |
//! | [`FactorRule::Shift`] | 1 + p (hi - 1) + q (lo - 1) |
//! | [`FactorRule::SmoothLogarithm`] | exp(p ln hi + q ln lo), Combine's `shapeN` for a factor |
//! | [`FactorRule::CombineLogNormal`] | exp(α K(α)) with K = ½ [(a + b) + F(2α) (a - b)], a = ln hi, b = -ln lo, F(x) = x (x² (3x² - 10) + 15)/8 inside ±1 and ±1 outside, Combine's asymmetric `lnN` |
//!
//! The last two are exp(u ln hi + v ln lo) with weights u and v that are twice continuously
//! differentiable.

use crate::interpolate::{HistoSysInterpolation, Interpolation, Jet, NormSysFactor, NormSysInterpolation};

/// How a factor depends on α.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FactorRule {
    /// A rule of pyhf.
    Standard(NormSysInterpolation),
    /// 1 plus the shift of a histosys.
    Shift(HistoSysInterpolation),
    /// The exponential of the shift of logarithms.
    SmoothLogarithm,
    /// Combine's asymmetric `lnN`.
    CombineLogNormal,
}

/// How a normsys follows its parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormSysResponse {
    /// The rule.
    pub rule: FactorRule,
    /// The factor on the parameter that gives α.
    pub scale: f64,
}

/// How a histosys follows its parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoSysResponse {
    /// The rule.
    pub rule: HistoSysInterpolation,
    /// The factor on the parameter that gives α.
    pub scale: f64,
}

/// The distinct responses of a model's modifiers; the first of each kind is the model's rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Responses {
    /// Those of normsys.
    pub normsys: Vec<NormSysResponse>,
    /// Those of histosys.
    pub histosys: Vec<HistoSysResponse>,
}

impl Responses {
    /// Returns the responses of modifiers that follow the rules `interpolation`.
    #[must_use]
    pub fn new(interpolation: Interpolation) -> Self {
        Self {
            normsys: vec![NormSysResponse { rule: FactorRule::Standard(interpolation.normsys), scale: 1.0 }],
            histosys: vec![HistoSysResponse { rule: interpolation.histosys, scale: 1.0 }],
        }
    }

    /// Returns whether every modifier follows the model's rules.
    #[must_use]
    pub fn are_standard(&self) -> bool {
        self.normsys.len() == 1 && self.histosys.len() == 1
    }
}

/// A function of α with three derivatives.
#[derive(Debug, Clone, Copy)]
struct ThirdOrder {
    jet: Jet,
    third: f64,
}

impl ThirdOrder {
    fn constant(value: f64) -> Self {
        Self { jet: Jet { value, ..Jet::default() }, third: 0.0 }
    }

    fn times(self, factor: f64) -> Self {
        let Jet { value, first, second } = self.jet;
        let jet = Jet { value: value * factor, first: first * factor, second: second * factor };
        Self { jet, third: self.third * factor }
    }

    fn plus(self, other: Self) -> Self {
        let jet = Jet {
            value: self.jet.value + other.jet.value,
            first: self.jet.first + other.jet.first,
            second: self.jet.second + other.jet.second,
        };
        Self { jet, third: self.third + other.third }
    }

    fn exp(self) -> Self {
        let Jet { value, first, second } = self.jet;
        let value = value.exp();
        let jet = Jet { value, first: first * value, second: (second + first * first) * value };
        Self { jet, third: (self.third + first * (3.0 * second + first * first)) * value }
    }

    /// Returns it as a function of the parameter, of which α is `scale` times.
    fn of_parameter(self, scale: f64) -> Self {
        let Jet { value, first, second } = self.jet;
        let jet = Jet { value, first: first * scale, second: second * scale * scale };
        Self { jet, third: self.third * scale * scale * scale }
    }
}

/// Returns p and q of `rule` at `alpha`.
fn shift_weights(rule: HistoSysInterpolation, alpha: f64) -> [ThirdOrder; 2] {
    let ((p, q), (dp, dq)) = (rule.weights(alpha), rule.derivatives(alpha));
    [ThirdOrder { jet: p, third: dp.second }, ThirdOrder { jet: q, third: dq.second }]
}

/// Returns the weights of ln hi and ln lo in Combine's asymmetric `lnN`: α (1 + F)/2 and
/// α (F - 1)/2 with F at 2α.
fn combine_weights(alpha: f64) -> [ThirdOrder; 2] {
    let x = 2.0 * alpha;
    let (f, f1, f2, f3) = if x.abs() < 1.0 {
        let z = x * x;
        let f = x * (z * (3.0 * z - 10.0) + 15.0) / 8.0;
        (f, 15.0 * (z * (z - 2.0) + 1.0) / 8.0, 60.0 * x * (z - 1.0) / 8.0, 60.0 * (3.0 * z - 1.0) / 8.0)
    } else {
        (x.signum(), 0.0, 0.0, 0.0)
    };
    // Half of α F(2α); the derivatives of F with respect to α are 2 F', 4 F'' and 8 F'''.
    let product = ThirdOrder {
        jet: Jet { value: 0.5 * alpha * f, first: 0.5 * f + alpha * f1, second: 2.0 * (f1 + alpha * f2) },
        third: 6.0 * f2 + 4.0 * alpha * f3,
    };
    let half =
        |sign: f64| ThirdOrder { jet: Jet { value: 0.5 * sign * alpha, first: 0.5 * sign, second: 0.0 }, third: 0.0 };
    [product.plus(half(1.0)), product.plus(half(-1.0))]
}

impl NormSysResponse {
    /// Returns the factor at `param` with its derivatives.
    ///
    /// ```
    /// use ns_core::interpolate::NormSysFactor;
    /// use ns_core::response::{FactorRule, NormSysResponse};
    /// let lnn = NormSysResponse { rule: FactorRule::CombineLogNormal, scale: 1.0 };
    /// let factor = NormSysFactor::new(0.95, 1.4);
    /// assert!((lnn.at(&factor, 1.0).value - 1.4).abs() < 1e-15);
    /// assert!((lnn.at(&factor, -1.0).value - 0.95).abs() < 1e-15);
    /// // Half of 2σ, with the scale of Combine's `shape` with the number 0.5.
    /// let half = NormSysResponse { scale: 0.5, ..lnn };
    /// assert_eq!(half.at(&factor, 2.0).value, lnn.at(&factor, 1.0).value);
    /// ```
    #[must_use]
    pub fn at(self, factor: &NormSysFactor, param: f64) -> Jet {
        match self {
            Self { rule: FactorRule::Standard(rule), scale: 1.0 } => factor.at(param, rule),
            _ => self.third_order(factor, param).jet,
        }
    }

    /// Returns the derivative of [`NormSysResponse::at`] with its own derivatives.
    #[must_use]
    pub fn derivative(self, factor: &NormSysFactor, param: f64) -> Jet {
        match self {
            Self { rule: FactorRule::Standard(rule), scale: 1.0 } => factor.derivative(param, rule),
            _ => {
                let ThirdOrder { jet, third } = self.third_order(factor, param);
                Jet { value: jet.first, first: jet.second, second: third }
            }
        }
    }

    /// Returns whether it is not differentiable at 0.
    #[must_use]
    pub fn is_kinked(self) -> bool {
        matches!(
            self.rule,
            FactorRule::Standard(NormSysInterpolation::Exponential) | FactorRule::Shift(HistoSysInterpolation::Linear)
        )
    }

    fn third_order(self, factor: &NormSysFactor, param: f64) -> ThirdOrder {
        let alpha = self.scale * param;
        let logarithms = |[up, down]: [ThirdOrder; 2]| up.times(factor.ln_hi).plus(down.times(factor.ln_lo)).exp();
        let of_alpha = match self.rule {
            FactorRule::Standard(rule) => {
                ThirdOrder { jet: factor.at(alpha, rule), third: factor.derivative(alpha, rule).second }
            }
            FactorRule::Shift(rule) => {
                let [p, q] = shift_weights(rule, alpha);
                let changes = p.times(factor.ln_hi.exp_m1()).plus(q.times(factor.ln_lo.exp_m1()));
                ThirdOrder::constant(1.0).plus(changes)
            }
            FactorRule::SmoothLogarithm => logarithms(shift_weights(HistoSysInterpolation::SmoothLinear, alpha)),
            FactorRule::CombineLogNormal => logarithms(combine_weights(alpha)),
        };
        of_alpha.of_parameter(self.scale)
    }
}

impl HistoSysResponse {
    /// Returns the weights (p, q) of the two template differences at `param`.
    #[must_use]
    pub fn weights(self, param: f64) -> (Jet, Jet) {
        if self.scale == 1.0 {
            return self.rule.weights(param);
        }
        let [p, q] = shift_weights(self.rule, self.scale * param).map(|weight| weight.of_parameter(self.scale).jet);
        (p, q)
    }

    /// Returns the derivatives of [`HistoSysResponse::weights`] with their own derivatives.
    #[must_use]
    pub fn derivatives(self, param: f64) -> (Jet, Jet) {
        if self.scale == 1.0 {
            return self.rule.derivatives(param);
        }
        let derivative = |weight: ThirdOrder| {
            let ThirdOrder { jet, third } = weight.of_parameter(self.scale);
            Jet { value: jet.first, first: jet.second, second: third }
        };
        let [p, q] = shift_weights(self.rule, self.scale * param).map(derivative);
        (p, q)
    }

    /// Returns whether it is not differentiable at 0.
    #[must_use]
    pub fn is_kinked(self) -> bool {
        self.rule == HistoSysInterpolation::Linear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [FactorRule; 7] = [
        FactorRule::Standard(NormSysInterpolation::Exponential),
        FactorRule::Standard(NormSysInterpolation::SmoothExponential),
        FactorRule::Shift(HistoSysInterpolation::Linear),
        FactorRule::Shift(HistoSysInterpolation::Quadratic),
        FactorRule::Shift(HistoSysInterpolation::SmoothLinear),
        FactorRule::SmoothLogarithm,
        FactorRule::CombineLogNormal,
    ];
    const POINTS: [f64; 8] = [-3.1, -1.2, -0.8, -0.3, 0.1, 0.7, 1.3, 2.5];

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!((found - expected).abs() < 1e-7 * expected.abs().max(1.0), "{what}: {found}, not {expected}");
    }

    #[test]
    fn derivatives_match_finite_differences() {
        let (factor, h) = (NormSysFactor::new(0.8, 1.3), 1e-5);
        for (rule, scale) in RULES.into_iter().flat_map(|rule| [(rule, 1.0), (rule, 0.6), (rule, -1.5)]) {
            let response = NormSysResponse { rule, scale };
            for x in POINTS {
                let [below, at, above] = [x - h, x, x + h].map(|x| response.at(&factor, x));
                let what = format!("{response:?} at {x}");
                assert_near(at.first, (above.value - below.value) / (2.0 * h), &what);
                assert_near(at.second, (above.first - below.first) / (2.0 * h), &what);
                let derivative = response.derivative(&factor, x);
                assert_eq!((derivative.value, derivative.first), (at.first, at.second), "{what}");
                assert_near(derivative.second, (above.second - below.second) / (2.0 * h), &what);
            }
        }
    }

    #[test]
    fn every_rule_is_1_at_nominal_and_the_ends_at_one_sigma() {
        let factor = NormSysFactor::new(0.8, 1.3);
        for rule in RULES {
            let at = |x: f64| NormSysResponse { rule, scale: 0.5 }.at(&factor, x).value;
            for (x, expected) in [(0.0, 1.0), (2.0, 1.3), (-2.0, 0.8)] {
                assert!((at(x) - expected).abs() < 1e-14, "{rule:?} at {x}: {}", at(x));
            }
        }
    }

    #[test]
    fn weights_of_a_scaled_shift_match_finite_differences() {
        let h = 1e-5;
        for rule in
            [HistoSysInterpolation::Linear, HistoSysInterpolation::Quadratic, HistoSysInterpolation::SmoothLinear]
        {
            let response = HistoSysResponse { rule, scale: 0.7 };
            for x in POINTS {
                let [below, at, above] = [x - h, x, x + h].map(|x| response.weights(x).0);
                assert_near(at.first, (above.value - below.value) / (2.0 * h), "first");
                assert_near(at.second, (above.first - below.first) / (2.0 * h), "second");
                assert_near(response.derivatives(x).0.second, (above.second - below.second) / (2.0 * h), "third");
            }
        }
    }
}
