//! From test statistics to p-values when counts are large: the asymptotic distributions, and CLs
//! made of them.
//!
//! G. Cowan, K. Cranmer, E. Gross and O. Vitells, Eur. Phys. J. C 71 (2011) 1554, arXiv:1007.1727;
//! equation numbers are theirs. A statistic's distribution is known once the one of its Asimov data
//! set is: q_A = (μ - μ')²/σ². CLs = p_μ/(1 - p_b) follows A. L. Read, J. Phys. G 28 (2002) 2693.

use crate::normal::{ln_upper_tail, significance, upper_tail};
use crate::test_statistic::TestStatistic;
use serde::Serialize;

/// The five expected results, from what a downward fluctuation of the background by two standard
/// deviations gives to what an upward one gives.
pub const BAND: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];

/// p-values of one test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PValues {
    /// CL_s+b = p_μ: how often the tested hypothesis is less compatible with its data than this.
    pub clsb: f64,
    /// CL_b = 1 - p_b: the same for the background (for q₀, for the signal).
    pub clb: f64,
    /// CLs = CL_s+b/CL_b; for q₀ the p-value of the background, as pyhf returns it.
    pub cls: f64,
}

/// Returns the p-values of an observed `q` whose Asimov value is `q_asimov`.
///
/// q_μ and q₀: eqs. 59 and 52. q̃_μ: eq. 66, in two pieces; `q_asimov` is μ²/σ². t_μ: eq. 36; t̃_μ:
/// eq. 43.
///
/// ```
/// use ns_inference::asymptotic::p_values;
/// use ns_inference::test_statistic::TestStatistic;
/// // nothing seen where a signal was expected
/// let p = p_values(TestStatistic::QTilde, 4.0, 4.0);
/// assert!((p.clsb - 0.022750131948179).abs() < 1e-15 && (p.clb - 0.5).abs() < 1e-15);
/// ```
#[must_use]
pub fn p_values(statistic: TestStatistic, q: f64, q_asimov: f64) -> PValues {
    let (root, root_asimov) = (q.sqrt(), q_asimov.sqrt());
    match statistic {
        TestStatistic::Q | TestStatistic::QTilde | TestStatistic::Q0 => {
            one_sided(statistic, distance(statistic, root, root_asimov), root_asimov)
        }
        TestStatistic::T | TestStatistic::TTilde => two_sided(statistic, root, root_asimov),
    }
}

/// Returns the p-values expected where √q is `n` standard deviations above its median: for limits
/// the background fluctuates downwards then, for q₀ the signal upwards.
#[must_use]
pub fn expected_p_values(statistic: TestStatistic, n: f64, q_asimov: f64) -> PValues {
    one_sided(statistic, n, q_asimov.sqrt())
}

/// Returns the expected p-values in the order of [`BAND`]; for one-sided statistics.
#[must_use]
pub fn band(statistic: TestStatistic, q_asimov: f64) -> [PValues; 5] {
    BAND.map(|n| expected_p_values(statistic, -n, q_asimov))
}

/// Returns how many standard deviations the observation lies beyond the median of the background:
/// √q - √q_A, and for q̃ beyond q_A (q - q_A)/(2√q_A).
fn distance(statistic: TestStatistic, root: f64, root_asimov: f64) -> f64 {
    // Where the two hypotheses predict the same there is no second piece.
    if statistic == TestStatistic::QTilde && root > root_asimov && root_asimov > 0.0 {
        return (root - root_asimov) * (root + root_asimov) / (2.0 * root_asimov);
    }
    root - root_asimov
}

/// Returns the tails of two unit normals that are √q_A apart. The ratio is taken of logarithms, so
/// it is right where both tails underflow.
fn one_sided(statistic: TestStatistic, distance: f64, root_asimov: f64) -> PValues {
    let (clsb, clb) = (upper_tail(distance + root_asimov), upper_tail(distance));
    let cls = match statistic {
        TestStatistic::Q0 => clsb,
        // Where the two hypotheses predict the same, nothing is excluded.
        _ if root_asimov == 0.0 => 1.0,
        _ => (ln_upper_tail(distance + root_asimov) - ln_upper_tail(distance)).exp(),
    };
    PValues { clsb, clb, cls }
}

/// Returns ln CLs and its derivative along μ, where √q and √q_A change at the rates
/// `root_derivative` and `root_asimov_derivative`: what a limit's root finder needs.
#[must_use]
pub(crate) fn ln_cls(statistic: TestStatistic, root: [f64; 2], root_asimov: [f64; 2]) -> [f64; 2] {
    let [a, a_derivative] = root_asimov;
    let at = distance(statistic, root[0], a);
    let at_derivative = distance_derivative(statistic, Rate::of(root), Rate::of(root_asimov));
    let value = ln_upper_tail(at + a) - ln_upper_tail(at);
    [value, hazard(at) * at_derivative - hazard(at + a) * (at_derivative + a_derivative)]
}

/// Returns the p-values of an observed `q` whose Asimov value is `q_asimov`, and their derivatives
/// with respect to `q` and to `q_asimov`; for one-sided statistics.
///
/// Where a statistic is zero it is constant on one side: its derivatives are taken as 0, and so are
/// those of a test that cannot tell the hypotheses apart.
///
/// ```
/// use ns_inference::asymptotic::p_value_derivatives;
/// use ns_inference::test_statistic::TestStatistic;
/// let [p, by_q, _] = p_value_derivatives(TestStatistic::Q, 4.0, 4.0);
/// // -φ(2)/(2·2)
/// assert!((by_q.clsb + 0.013497741628297016).abs() < 1e-15 && (p.cls - 0.045500263896358).abs() < 1e-15);
/// ```
#[must_use]
pub fn p_value_derivatives(statistic: TestStatistic, q: f64, q_asimov: f64) -> [PValues; 3] {
    let values = p_values(statistic, q, q_asimov);
    let (r, a) = (q.sqrt(), q_asimov.sqrt());
    let half_inverse = |root: f64| if root > 0.0 { 0.5 / root } else { 0.0 };
    let along = |r_derivative: f64, a_derivative: f64| {
        if a == 0.0 && statistic != TestStatistic::Q0 {
            return PValues { clsb: 0.0, clb: 0.0, cls: 0.0 };
        }
        let at = distance(statistic, r, a);
        let root_asimov = Rate::of([a, a_derivative]);
        let derivative = distance_derivative(statistic, Rate::of([r, r_derivative]), root_asimov);
        one_sided_derivatives(statistic, &values, Rate { value: at, derivative }, root_asimov)
    };
    [values, along(half_inverse(r), 0.0), along(0.0, half_inverse(a))]
}

/// Returns the expected p-values as of [`expected_p_values`], and their derivatives with respect to
/// `q_asimov`.
#[must_use]
pub fn expected_p_value_derivatives(statistic: TestStatistic, n: f64, q_asimov: f64) -> [PValues; 2] {
    let (values, a) = (expected_p_values(statistic, n, q_asimov), q_asimov.sqrt());
    if a == 0.0 {
        return [values, PValues { clsb: 0.0, clb: 0.0, cls: 0.0 }];
    }
    [values, one_sided_derivatives(statistic, &values, Rate::of([n, 0.0]), Rate::of([a, 0.5 / a]))]
}

/// A number, and how fast it changes.
#[derive(Debug, Clone, Copy)]
struct Rate {
    value: f64,
    derivative: f64,
}

impl Rate {
    fn of([value, derivative]: [f64; 2]) -> Self {
        Self { value, derivative }
    }
}

fn one_sided_derivatives(statistic: TestStatistic, values: &PValues, at: Rate, root_asimov: Rate) -> PValues {
    let Rate { value: at, derivative: at_derivative } = at;
    let Rate { value: a, derivative: a_derivative } = root_asimov;
    let (tested, background) = (hazard(at + a) * (at_derivative + a_derivative), hazard(at) * at_derivative);
    let clsb = -values.clsb * tested;
    let cls = if statistic == TestStatistic::Q0 { clsb } else { values.cls * (background - tested) };
    PValues { clsb, clb: -values.clb * background, cls }
}

/// Returns the derivative of [`distance`] where √q and √q_A change at these rates.
fn distance_derivative(statistic: TestStatistic, root: Rate, root_asimov: Rate) -> f64 {
    let Rate { value: r, derivative: r_derivative } = root;
    let Rate { value: a, derivative: a_derivative } = root_asimov;
    if statistic == TestStatistic::QTilde && r > a {
        (r * r_derivative - a * a_derivative) / a - (r - a) * (r + a) * a_derivative / (2.0 * a * a)
    } else {
        r_derivative - a_derivative
    }
}

/// Returns φ(z)/Q(z), minus the derivative of ln Q.
fn hazard(z: f64) -> f64 {
    (-0.5 * z * z - 0.5 * std::f64::consts::TAU.ln() - ln_upper_tail(z)).exp()
}

/// Returns the √q_A at which the expected CLs, `n` standard deviations from the median, is `level`.
#[must_use]
pub(crate) fn root_asimov_at(level: f64, n: f64) -> f64 {
    significance(level * upper_tail(-n)) + n
}

/// Returns both tails. Under the background the statistic's distribution is shifted by √q_A (eq.
/// 35, and eq. 41 for t̃).
fn two_sided(statistic: TestStatistic, root: f64, root_asimov: f64) -> PValues {
    let is_beyond = statistic == TestStatistic::TTilde && root > root_asimov && root_asimov > 0.0;
    // Where t̃ exceeds μ²/σ² the lower side has another form: μ̂ < 0 there.
    let lower = if is_beyond { (root * root + root_asimov * root_asimov) / (2.0 * root_asimov) } else { root };
    let (tested, background) = ([root, lower], [root + root_asimov, lower - root_asimov]);
    let [clsb, clb] = [tested, background].map(|[a, b]| upper_tail(a) + upper_tail(b));
    let cls = if clb >= f64::MIN_POSITIVE { clsb / clb } else { (ln_tails(tested) - ln_tails(background)).exp() };
    PValues { clsb, clb, cls }
}

/// Returns ln(Q(a) + Q(b)), also where both underflow.
fn ln_tails([a, b]: [f64; 2]) -> f64 {
    let (larger, smaller) = (ln_upper_tail(a.min(b)), ln_upper_tail(a.max(b)));
    larger + (smaller - larger).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_pieces_of_q_tilde_meet() {
        let below = p_values(TestStatistic::QTilde, 4.0 - 1e-9, 4.0);
        let above = p_values(TestStatistic::QTilde, 4.0 + 1e-9, 4.0);
        assert!((below.cls - above.cls).abs() < 1e-9);
        let (below, above) =
            (p_values(TestStatistic::TTilde, 4.0 - 1e-9, 4.0), p_values(TestStatistic::TTilde, 4.0 + 1e-9, 4.0));
        assert!((below.cls - above.cls).abs() < 1e-9);
    }

    #[test]
    fn expected_values_are_the_observed_ones_of_shifted_data() {
        // √q = √q_A + n is what data give in which the background fluctuated by n.
        let q_asimov = 6.25;
        for (n, expected) in BAND.iter().zip(band(TestStatistic::Q, q_asimov)) {
            let observed = p_values(TestStatistic::Q, (2.5 - n).powi(2), q_asimov);
            assert!((observed.cls - expected.cls).abs() < 1e-14);
        }
        assert!(band(TestStatistic::QTilde, q_asimov).is_sorted_by(|a, b| a.cls < b.cls));
    }

    #[test]
    fn ratios_survive_where_both_tails_underflow() {
        let p = p_values(TestStatistic::Q, 1600.0, 0.01);
        assert_eq!((p.clsb, p.clb), (0.0, 0.0));
        // Q(40)/Q(39.9) in 60-digit arithmetic
        assert!((p.cls / RATIO - 1.0).abs() < 1e-12, "{}", p.cls);
    }

    const RATIO: f64 = 0.018_361_485_210_529_04;

    #[test]
    fn two_sided_ratios_survive_too() {
        for (statistic, exact) in [(TestStatistic::T, T_RATIO), (TestStatistic::TTilde, T_TILDE_RATIO)] {
            let p = p_values(statistic, 1600.0, 0.25);
            assert_eq!((p.clsb, p.clb), (0.0, 0.0));
            assert!((p.cls / exact - 1.0).abs() < 1e-12, "{statistic:?}: {:e}", p.cls);
        }
    }

    /// In 60-digit arithmetic: 2 Q(40)/(Q(40.5) + Q(39.5)), and with the lower side at 1600.25 and
    /// 1599.75.
    const T_RATIO: f64 = 4.612_869_470_066_732e-9;
    const T_TILDE_RATIO: f64 = 556_627_732.299_647_6;

    #[test]
    fn the_p_value_of_a_discovery_is_the_one_of_its_significance() {
        let p = p_values(TestStatistic::Q0, 18.880_674_224_994_55, 20.0);
        assert!((significance(p.cls) - 18.880_674_224_994_55_f64.sqrt()).abs() < 1e-13);
        assert!((p.cls / 6.957_765_139_852_005e-6 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn two_sided_tests_have_two_tails() {
        let p = p_values(TestStatistic::T, 4.0, 9.0);
        assert!((p.clsb - 2.0 * upper_tail(2.0)).abs() < 1e-16);
    }
}
