//! Computes p-values from ensembles of a test statistic: CLs with its Monte Carlo error, the
//! expected band, and the effect of failed toys.
//!
//! The conventions are those of pyhf 0.7's toy calculator: a p-value is the fraction of toys at
//! least as extreme as the data, and the expected band consists of percentiles of the p-values for
//! toys of the alternative hypothesis as data.

use crate::asymptotic::BAND;
use crate::normal::{significance, upper_tail};
use crate::test_statistic::TestStatistic;
use serde::Serialize;

/// Values of a test statistic are equal if they differ by less than this, relative to their size or
/// to 1 if that is larger. Counts are integers, so that different toys often have the same value up
/// to fit errors of about 1e-11.
pub(super) const SAME: f64 = 1e-8;

/// A fraction of toys; with importance sampling one by weights, whose error is that of the weighted
/// mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ToyPValue {
    /// The fraction of toys at least as extreme as the data; NaN without toys.
    pub value: f64,
    /// Its binomial standard deviation at p = (k + ½)/(n + 1), which is not zero for k = 0 or k =
    /// n.
    pub error: f64,
    /// The fraction if every failed toy had been less extreme than the data.
    pub low: f64,
    /// The fraction if every failed toy had been more extreme than the data.
    pub high: f64,
    /// The number of toys at least as extreme as the data.
    pub n_extreme: u64,
    /// The number of toys whose fits converged.
    #[serde(rename = "n_converged")]
    pub n_toys: u64,
}

impl ToyPValue {
    /// Returns the fraction of `values` that are at least `observed`, next to `n_failed` toys
    /// without a value.
    ///
    /// ```
    /// use ns_inference::toys::ToyPValue;
    /// let p = ToyPValue::of(&[0.0, 1.0, 2.0, 3.0], 2.0, 1);
    /// assert_eq!((p.value, p.low, p.high), (0.5, 0.4, 0.6));
    /// ```
    #[must_use]
    pub fn of(values: &[f64], observed: f64, n_failed: u64) -> Self {
        let threshold = threshold(observed);
        let n_extreme = values.iter().filter(|value| **value >= threshold).count();
        Self::from_counts(n_extreme as u64, values.len() as u64, n_failed)
    }

    pub(super) fn from_counts(n_extreme: u64, n_toys: u64, n_failed: u64) -> Self {
        let (k, n, failed) = (n_extreme as f64, n_toys as f64, n_failed as f64);
        let smoothed = (k + 0.5) / (n + 1.0);
        Self {
            value: k / n,
            error: (smoothed * (1.0 - smoothed) / n).sqrt(),
            low: k / (n + failed),
            high: (k + failed) / (n + failed),
            n_extreme,
            n_toys,
        }
    }
}

/// Returns the smallest statistic that counts as at least as extreme as `observed`.
pub(super) fn threshold(observed: f64) -> f64 {
    observed - SAME * observed.abs().max(1.0)
}

/// The observed test statistic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ObservedStatistic {
    /// The test statistic.
    #[serde(rename = "test_stat")]
    pub test_statistic: TestStatistic,
    /// The tested value of the parameter of interest.
    pub mu: f64,
    /// The value of the statistic.
    #[serde(rename = "q")]
    pub value: f64,
    /// The best fit of the parameter of interest.
    pub mu_hat: f64,
}

/// The statistics of the toys of both hypotheses: first the tested one, then the alternative.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatisticSamples {
    /// The values of the toys whose fits converged.
    pub values: [Vec<f64>; 2],
    /// The numbers of toys for which a fit did not converge.
    pub n_failed: [u64; 2],
}

impl StatisticSamples {
    /// Adds a toy of hypothesis `which`.
    pub fn push(&mut self, which: usize, value: Option<f64>) {
        match value {
            Some(value) => self.values[which].push(value),
            None => self.n_failed[which] += 1,
        }
    }

    /// Returns the Monte Carlo error of the observed CLs, or of the p-value of a discovery test;
    /// NaN without toys.
    #[must_use]
    pub fn error(&self, observed: &ObservedStatistic) -> f64 {
        let [tested, alternative] =
            [0, 1].map(|which| ToyPValue::of(&self.values[which], observed.value, self.n_failed[which]));
        if observed.test_statistic == TestStatistic::Q0 { tested.error } else { ratio(tested, alternative).1 }
    }
}

/// Returns CLsb/CLb and its error for independent ensembles.
fn ratio(tested: ToyPValue, alternative: ToyPValue) -> (f64, f64) {
    let cls = tested.value / alternative.value;
    (cls, tested.error.hypot(cls * alternative.error) / alternative.value)
}

/// The value and the Monte Carlo error of CLs, or of CLs+b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TailEstimate {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl StatisticSamples {
    /// Returns CLs, or with `is_clsb` CLs+b, of the data, whose statistic is `observed`, and
    /// expected at -2 … +2 standard deviations of the alternative hypothesis (in the order of
    /// [`BAND`]).
    pub(super) fn estimates(&self, observed: f64, is_clsb: bool) -> (TailEstimate, [TailEstimate; 5]) {
        let sorted = self.sorted();
        let [clsb, clb] = p_values(&sorted, self, observed);
        let (value, error) = if is_clsb { (clsb.value, clsb.error) } else { ratio(clsb, clb) };
        let (expected, errors) = band(&sorted, self, is_clsb);
        let expected = std::array::from_fn(|i| TailEstimate { value: expected[i], error: errors[i] });
        (TailEstimate { value, error }, expected)
    }

    fn sorted(&self) -> [Vec<f64>; 2] {
        self.values.clone().map(|mut values| {
            values.sort_by(f64::total_cmp);
            values
        })
    }
}

/// The result of a hypothesis test with toys.
///
/// In a discovery test (q0) the tested hypothesis is background alone, and `cls_observed` and its
/// band are the p-value of that hypothesis, as in pyhf; `discovery` repeats them as p₀.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HypotestToys {
    /// The observed statistic.
    #[serde(flatten)]
    pub observed: ObservedStatistic,
    /// The observed CLs, CLsb/CLb.
    #[serde(rename = "CLs_obs")]
    pub cls_observed: f64,
    /// The Monte Carlo error of the observed CLs.
    #[serde(rename = "CLs_obs_error")]
    pub cls_observed_error: f64,
    /// The range of the observed CLs over all possible results of the failed toys; absent if none
    /// failed.
    #[serde(rename = "CLs_obs_range", skip_serializing_if = "Option::is_none")]
    pub cls_observed_range: Option<[f64; 2]>,
    /// CLs expected at -2, -1, 0, 1, 2 standard deviations under the alternative hypothesis (in
    /// ascending order, as in pyhf).
    #[serde(rename = "CLs_exp")]
    pub cls_expected: [f64; 5],
    /// The Monte Carlo errors of the expected values.
    #[serde(rename = "CLs_exp_errors")]
    pub cls_expected_errors: [f64; 5],
    /// p-values and significances of a discovery test.
    #[serde(flatten)]
    pub discovery: Option<ToySignificance>,
    /// The p-value of the tested hypothesis.
    #[serde(rename = "CLsb_obs")]
    pub clsb: ToyPValue,
    /// The p-value of the alternative hypothesis.
    #[serde(rename = "CLb_obs")]
    pub clb: ToyPValue,
    /// The numbers of toys of the tested and of the alternative hypothesis, including failed ones.
    pub n_toys: [u64; 2],
    /// The numbers of toys for which a fit did not converge.
    pub n_failed: [u64; 2],
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
}

impl HypotestToys {
    /// Computes the result for `observed` from `samples`.
    #[must_use]
    pub fn new(observed: ObservedStatistic, samples: &StatisticSamples) -> Self {
        let sorted = samples.sorted();
        let [clsb, clb] = p_values(&sorted, samples, observed.value);
        let is_discovery = observed.test_statistic == TestStatistic::Q0;
        let (cls, error) = if is_discovery { (clsb.value, clsb.error) } else { ratio(clsb, clb) };
        let range = if is_discovery { [clsb.low, clsb.high] } else { [clsb.low / clb.high, clsb.high / clb.low] };
        let (expected, expected_errors) = band(&sorted, samples, is_discovery);
        let n_toys = [0, 1].map(|which| samples.values[which].len() as u64 + samples.n_failed[which]);
        Self {
            observed,
            cls_observed: cls,
            cls_observed_error: error,
            cls_observed_range: (samples.n_failed != [0, 0]).then_some(range),
            cls_expected: expected,
            cls_expected_errors: expected_errors,
            discovery: is_discovery.then(|| ToySignificance::new(clsb, expected, expected_errors)),
            clsb,
            clb,
            n_toys,
            n_failed: samples.n_failed,
            warnings: warnings(&clsb, &clb, samples.n_failed, is_discovery),
        }
    }
}

/// The p-value of the background and its significance, named as in
/// [`SignificanceResult`](crate::hypotest::SignificanceResult).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ToySignificance {
    /// The significance of the observed p-value; 0 for p-values above ½, because √q₀ is never
    /// negative; `None` if no toy is as extreme as the data.
    #[serde(rename = "Z_obs")]
    pub z_observed: Option<f64>,
    /// The observed p-value.
    #[serde(rename = "p0_obs")]
    pub p0_observed: f64,
    /// Its Monte Carlo error.
    #[serde(rename = "p0_obs_error")]
    pub p0_observed_error: f64,
    /// The significance of the median expected p-value.
    #[serde(rename = "Z_exp")]
    pub z_expected: Option<f64>,
    /// p-values expected where the signal of the alternative hypothesis fluctuates by +2, +1, 0,
    /// -1, -2 standard deviations, in ascending order.
    #[serde(rename = "p0_exp")]
    pub p0_expected: [f64; 5],
    /// Their Monte Carlo errors.
    #[serde(rename = "p0_exp_errors")]
    pub p0_expected_errors: [f64; 5],
}

impl ToySignificance {
    fn new(observed: ToyPValue, expected: [f64; 5], errors: [f64; 5]) -> Self {
        Self {
            z_observed: z_of(observed.value),
            p0_observed: observed.value,
            p0_observed_error: observed.error,
            z_expected: z_of(expected[2]),
            p0_expected: expected,
            p0_expected_errors: errors,
        }
    }
}

/// Returns the significance of a fraction of toys; `None` for a fraction of 0, which only bounds
/// the p-value, and without toys.
fn z_of(p: f64) -> Option<f64> {
    (p > 0.0).then(|| significance(p).max(0.0))
}

fn p_values(sorted: &[Vec<f64>; 2], samples: &StatisticSamples, observed: f64) -> [ToyPValue; 2] {
    let threshold = threshold(observed);
    [0, 1].map(|which| {
        let values = &sorted[which];
        let n_below = values.partition_point(|value| *value < threshold);
        ToyPValue::from_counts((values.len() - n_below) as u64, values.len() as u64, samples.n_failed[which])
    })
}

/// Returns the expected band and its errors, which combine that of the order statistic with that of
/// the p-value there.
fn band(sorted: &[Vec<f64>; 2], samples: &StatisticSamples, is_discovery: bool) -> ([f64; 5], [f64; 5]) {
    let of_toy = |value: &f64| {
        let [clsb, clb] = p_values(sorted, samples, *value);
        if is_discovery { (clsb.value, clsb.error) } else { ratio(clsb, clb) }
    };
    let mut all: Vec<(f64, f64)> = sorted[1].iter().map(of_toy).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |p: f64| percentile(&all, p);
    let entry = |z: f64| {
        let p = upper_tail(-z);
        let spread = (p * (1.0 - p) / all.len() as f64).sqrt();
        let half_width = 0.5 * (at((p + spread).min(1.0)).0 - at((p - spread).max(0.0)).0);
        let (value, error) = at(p);
        (value, half_width.hypot(error))
    };
    let entries = BAND.map(entry);
    (entries.map(|e| e.0), entries.map(|e| e.1))
}

/// Returns the percentile of sorted pairs at a fraction `p`, interpolated linearly as in NumPy.
fn percentile(sorted: &[(f64, f64)], p: f64) -> (f64, f64) {
    let Some(last) = sorted.len().checked_sub(1) else { return (f64::NAN, f64::NAN) };
    let position = p * last as f64;
    let (below, weight) = (position.floor(), position - position.floor());
    let (a, b) = (sorted[below as usize], sorted[last.min(below as usize + 1)]);
    (a.0 + weight * (b.0 - a.0), a.1 + weight * (b.1 - a.1))
}

fn warnings(clsb: &ToyPValue, clb: &ToyPValue, n_failed: [u64; 2], is_discovery: bool) -> Vec<String> {
    const FEW: u64 = 10;
    let mut warnings = Vec::new();
    let failed = n_failed[0] + n_failed[1];
    if failed > 0 {
        warnings.push(format!(
            "the fits of {failed} toys did not converge; the p-values exclude them, and `CLs_obs_range` shows their possible effect"
        ));
    }
    let few = |name: &str, p: &ToyPValue| {
        (p.n_extreme < FEW).then(|| {
            format!(
                "{name} is based on {} of {} toys, so its error is unreliable; throw more toys",
                p.n_extreme, p.n_toys
            )
        })
    };
    warnings.extend(few("CLsb", clsb));
    warnings.extend(few("CLb", clb).filter(|_| !is_discovery));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBSERVED: ObservedStatistic =
        ObservedStatistic { test_statistic: TestStatistic::QTilde, mu: 1.0, value: 2.0, mu_hat: 0.3 };

    /// Digits from pyhf 0.7.6: `EmpiricalDistribution` of these samples in `ToyCalculator.pvalues`
    /// and `.expected_pvalues`.
    #[test]
    fn results_match_pyhf_on_the_same_samples() {
        let tested: Vec<f64> = (0..50).map(|i| f64::from(i * i % 47) / 10.0).collect();
        let alternative: Vec<f64> = (0..40).map(|i| f64::from(i * i * i % 89) / 10.0).collect();
        let samples = StatisticSamples { values: [tested, alternative], n_failed: [0, 0] };
        let result = HypotestToys::new(OBSERVED, &samples);
        assert_eq!((result.clsb.value, result.clb.value), PYHF_OBSERVED);
        for (ours, pyhf) in result.cls_expected.iter().zip(PYHF_BAND) {
            assert!((ours - pyhf).abs() < 1e-9, "{ours} is not {pyhf}");
        }
    }

    const PYHF_OBSERVED: (f64, f64) = (0.4, 0.7);
    const PYHF_BAND: [f64; 5] = [0.0, 0.0, 0.038_095_238_095_238_09, 0.786_359_643_483_636_1, 0.986_349_920_860_000_1];

    /// 3 of 1000 and 160 of 1000; digits from SciPy 1.17.1: `scipy.stats.norm.isf`.
    #[test]
    fn discovery_tests_have_the_significance_of_their_p_values() {
        let observed = ObservedStatistic { test_statistic: TestStatistic::Q0, ..OBSERVED };
        let tested = (0..1000).map(|i| if i < 3 { 2.5 } else { f64::from(i) / 1000.0 }).collect();
        let samples = StatisticSamples { values: [tested, vec![0.843; 40]], n_failed: [0, 0] };
        let found = HypotestToys::new(observed, &samples).discovery.expect("a discovery test");
        assert_eq!((found.p0_observed, found.p0_expected), (0.003, [0.16; 5]));
        let [z, expected] = [found.z_observed, found.z_expected].map(|z| z.expect("a significance"));
        assert!((z - 2.747_781_385_444_992_6).abs() < 1e-12, "{z}");
        assert!((expected - 0.994_457_883_209_753).abs() < 1e-12, "{expected}");
    }

    #[test]
    fn significances_are_bounded_by_the_number_of_toys_and_by_zero() {
        let at = |value| {
            let observed = ObservedStatistic { test_statistic: TestStatistic::Q0, value, ..OBSERVED };
            let samples = StatisticSamples { values: [vec![0.0, 0.0, 0.0, 1.0], vec![0.0; 4]], n_failed: [0, 0] };
            HypotestToys::new(observed, &samples).discovery.expect("a discovery test").z_observed
        };
        assert_eq!((at(2.0), at(0.0)), (None, Some(0.0)));
        assert_eq!(HypotestToys::new(OBSERVED, &StatisticSamples::default()).discovery, None);
    }

    #[test]
    fn failed_toys_widen_the_range_and_are_reported() {
        let samples =
            StatisticSamples { values: [vec![1.0, 3.0, 4.0, 0.0], vec![2.5, 0.0, 3.0, 5.0]], n_failed: [1, 2] };
        let result = HypotestToys::new(OBSERVED, &samples);
        assert_eq!((result.n_toys, result.n_failed), ([5, 6], [1, 2]));
        let [low, high] = result.cls_observed_range.expect("some failed");
        assert_eq!((low, high), ((2.0 / 5.0) / (5.0 / 6.0), (3.0 / 5.0) / (3.0 / 6.0)));
        assert!(low < result.cls_observed && result.cls_observed < high);
        assert!(result.warnings[0].starts_with("the fits of 3 toys"), "{:?}", result.warnings);
    }

    #[test]
    fn values_that_differ_by_rounding_are_equal() {
        assert_eq!(ToyPValue::of(&[2.0 - 1e-10, 1.0], 2.0, 0).n_extreme, 1);
        assert_eq!(ToyPValue::of(&[2.0 - 1e-6, 1.0], 2.0, 0).n_extreme, 0);
    }

    #[test]
    fn results_without_toys_are_nan() {
        let result = HypotestToys::new(OBSERVED, &StatisticSamples::default());
        assert!(result.cls_observed.is_nan() && result.cls_expected.iter().all(|value| value.is_nan()));
    }
}
