//! Compares all procedures with each other: their results must refer to the same minima.

use ns_compute::{CpuLikelihood, DifferentiableSession};
use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};
use ns_core::{Likelihood, Model};
use ns_inference::contour::{ContourOptions, contours};
use ns_inference::gof::{goodness_of_fit, saturated_deviance};
use ns_inference::hypotest::{ProfileRatioTest, hypotest, significance};
use ns_inference::limit::{LimitOptions, limit};
use ns_inference::parallel::ExecutionContext;
use ns_inference::ranking::{RankingMethods, RankingOptions, ranking};
use ns_inference::scan::{Scan, ScanAxis, ScanValues, scan};
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{AuxTreatment, HypotestSettings, ToyHypotest};
use ns_inference::{
    DifferentiableError, DifferentiableOptions, FitOptions, FitResult, Problem, ProfiledDifferentiableSession,
    Uncertainties, fit,
};
use ns_testkit::multimodal::{self, Cause};
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The largest difference in 2NLL between two procedures that agree.
const TOLERANCE: f64 = 1e-5;

/// The largest difference between CLs at a limit and the level.
const CLS_TOLERANCE: f64 = 1e-4;

/// The level of CLs.
const LEVEL: f64 = 0.05;

/// Returns multimodal model number `k`, cycling through all causes.
pub(crate) fn numbered(k: u64) -> (Cause, u64, Model) {
    let n = Cause::ALL.len() as u64;
    let (cause, seed) = (Cause::ALL[(k % n) as usize], k / n);
    (cause, seed, multimodal::model(cause, seed))
}

/// Returns the contradictions between procedures on the multimodal models `numbers`, one line each.
pub(crate) fn contradictions(numbers: Range<u64>) -> Vec<String> {
    let of_model = |(cause, seed, model): (Cause, u64, Model)| {
        let mut comparison = Comparison::new(&model);
        comparison.run();
        comparison.found.into_iter().map(move |line| format!("{} {seed}: {line}", cause.name()))
    };
    numbers.into_par_iter().map(numbered).flat_map_iter(of_model).collect()
}

/// Returns the limits of model `seed` of `cause` at which the test does not return the level, one
/// line each.
pub(crate) fn limits_off_the_level(cause: Cause, seed: u64) -> Vec<String> {
    let model = multimodal::model(cause, seed);
    let mut comparison = Comparison::new(&model);
    comparison.limit();
    comparison.found
}

/// Returns whether `difference` is at most `tolerance`, which excludes NaN.
fn is_small(difference: f64, tolerance: f64) -> bool {
    difference.abs() <= tolerance
}

/// The procedures on one model, and their contradictions.
struct Comparison<'a> {
    model: &'a Model,
    poi: usize,
    options: FitOptions,
    likelihood: CpuLikelihood,
    /// The free fit.
    best: FitResult,
    /// 2NLL by procedure of the free minimum, and of the conditional minima at 0 and at 1.
    free: Vec<(&'static str, f64)>,
    at: [Vec<(&'static str, f64)>; 2],
    /// q̃ of the Asimov data set at 1, by procedure.
    q_asimov: Vec<(&'static str, f64)>,
    found: Vec<String>,
}

impl<'a> Comparison<'a> {
    fn new(model: &'a Model) -> Self {
        let (poi, options) = (model.poi().expect("mu"), FitOptions::default());
        let mut likelihood = CpuLikelihood::new(model);
        let best = fit(&mut Problem::new(model, &mut likelihood, &options));
        let (free, at) = (vec![("fit", best.twice_nll)], [Vec::new(), Vec::new()]);
        Self { model, poi, options, likelihood, best, free, at, q_asimov: Vec::new(), found: Vec::new() }
    }

    fn run(&mut self) {
        for mu in [0, 1] {
            let fixed = self.fitted(&[(self.poi, mu as f64)]);
            self.at[mu].push(("fit", fixed));
        }
        self.scan_poi();
        self.tests();
        self.limit();
        self.contours();
        self.ranking();
        self.session();
        self.goodness();
        let free = std::mem::take(&mut self.free);
        self.compare("the free minimum", &free);
        for mu in [0, 1] {
            let at = std::mem::take(&mut self.at[mu]);
            self.compare(&format!("the minimum at mu = {mu}"), &at);
        }
        let q_asimov = std::mem::take(&mut self.q_asimov);
        self.compare("q of the Asimov data set at mu = 1", &q_asimov);
    }

    /// Records every value that is above the lowest.
    fn compare(&mut self, what: &str, values: &[(&'static str, f64)]) {
        let Some(lowest) = values.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        for (procedure, value) in values {
            let above = value - lowest.1;
            if !is_small(above, TOLERANCE) {
                self.found.push(format!("{what}: {procedure} is above {} by {above:.2e}", lowest.0));
            }
        }
    }

    /// Returns 2NLL of a fit with `fixed`.
    fn fitted(&mut self, fixed: &[(usize, f64)]) -> f64 {
        let options = FitOptions { fixed: fixed.to_vec(), uncertainties: Uncertainties::None, ..FitOptions::default() };
        fit(&mut Problem::new(self.model, &mut self.likelihood, &options)).twice_nll
    }

    fn scan(&mut self, parameter: usize, values: &[f64]) -> Scan {
        let axis = ScanAxis { parameter, values: ScanValues::Given(values.to_vec()) };
        scan(
            &mut Problem::new(self.model, &mut self.likelihood, &self.options),
            &axis,
            ExecutionContext::SINGLE_THREADED,
        )
    }

    /// Records the best fit `mu` of `procedure`, where a fit should reach the free minimum.
    fn best_at(&mut self, procedure: &'static str, mu: f64) {
        let fixed = self.fitted(&[(self.poi, mu)]);
        self.free.push((procedure, fixed));
    }

    fn scan_poi(&mut self) {
        let scan = self.scan(self.poi, &[0.0, 0.5, 1.0, 2.0]);
        self.free.push(("scan", scan.best.twice_nll));
        for (mu, k) in [(0, 0), (1, 2)] {
            let rise = scan.twice_delta_nll[k].unwrap_or(f64::NAN);
            self.at[mu].push(("scan", scan.best.twice_nll + rise));
        }
    }

    fn tests(&mut self) {
        let Self { model, poi, .. } = *self;
        let mut scratch = self.likelihood.clone();
        let mut test = ProfileRatioTest::new(
            Problem::new(model, &mut self.likelihood, &self.options),
            &mut scratch,
            TestStatistic::QTilde,
            poi,
            0.0,
        );
        let tested = test.result(1.0);
        let free = 2.0 * test.observed.best().nll;
        let at_asimov = test.asimov_params.clone();
        self.free.push(("hypotest", free));
        self.at[0].push(("hypotest (Asimov data set)", 2.0 * self.likelihood.nll(&at_asimov)));
        let q = tested.q.unwrap_or(f64::NAN);
        let mu_hat = tested.poi.bestfit.unwrap_or(f64::NAN);
        if mu_hat <= 1.0 {
            self.at[1].push(("hypotest", free + q));
        }
        self.q_asimov.push(("hypotest", tested.q_asimov.unwrap_or(f64::NAN)));
        self.best_at("hypotest (mu_hat)", mu_hat);
        for mu in [0, 1] {
            let statistic = TestStatistic::TTilde;
            let tested =
                hypotest(&mut Problem::new(model, &mut self.likelihood, &self.options), statistic, poi, mu as f64);
            self.at[mu].push(("hypotest (t)", free + tested.q.unwrap_or(f64::NAN)));
        }
        let discovered = significance(&mut Problem::new(model, &mut self.likelihood, &self.options), poi, 1.0);
        self.at[0].push(("significance", free + discovered.q0.unwrap_or(f64::NAN)));
        self.best_at("significance (mu_hat)", discovered.poi.bestfit.unwrap_or(f64::NAN));
        self.toys(q, mu_hat);
    }

    /// Compares the observed statistic of a test by toys with that of the asymptotic test, `q`.
    fn toys(&mut self, q: f64, mu_hat: f64) {
        let settings = HypotestSettings {
            test_statistic: TestStatistic::QTilde,
            poi: self.poi,
            mu: 1.0,
            n_toys: [1; 2],
            seed: 1,
            aux: AuxTreatment::Fluctuated,
        };
        match ToyHypotest::new(self.model, &mut self.likelihood, &self.options, settings) {
            Ok(toys) => {
                let observed = toys.observed();
                if !is_small(observed.value - q, TOLERANCE) {
                    let line = format!("q at mu = 1: {q} by hypotest, {} by its toys", observed.value);
                    self.found.push(format!("{line} (mu_hat {mu_hat} and {})", observed.mu_hat));
                }
                self.best_at("hypotest by toys (mu_hat)", observed.mu_hat);
            }
            Err(error) => self.found.push(format!("hypotest by toys: {error}")),
        }
    }

    fn limit(&mut self) {
        let Self { model, poi, .. } = *self;
        let wanted = LimitOptions { level: LEVEL, statistic: TestStatistic::QTilde };
        let limits = limit(&mut Problem::new(model, &mut self.likelihood, &self.options), poi, wanted);
        self.best_at("limit (mu_hat)", limits.poi.bestfit.unwrap_or(f64::NAN));
        let each = std::iter::once(limits.observed).chain(limits.expected).enumerate();
        for (k, mu) in each.filter_map(|(k, mu)| Some((k, mu?))) {
            let tested =
                hypotest(&mut Problem::new(model, &mut self.likelihood, &self.options), TestStatistic::QTilde, poi, mu);
            let cls = if k == 0 { tested.cls_obs } else { tested.cls_exp.map(|band| band[k - 1]) };
            let cls = cls.unwrap_or(f64::NAN);
            if !is_small(cls - LEVEL, CLS_TOLERANCE) {
                let which = ["observed", "-2", "-1", "0", "+1", "+2"][k];
                self.found.push(format!("limit ({which}) {mu}: CLs is {cls:.6} by hypotest"));
            }
        }
    }

    fn contours(&mut self) {
        let Some(other) = self.nuisances().next() else { return };
        let wanted = ContourOptions { parameters: [self.poi, other], levels: vec![0.68], n_points: 8 };
        let contours = contours(
            &Problem::new(self.model, &mut self.likelihood, &self.options),
            &wanted,
            ExecutionContext::SINGLE_THREADED,
        );
        self.free.push(("contours", contours.best.twice_nll));
        for point in contours.contours.iter().flat_map(|contour| &contour.points) {
            let Some(height) = point.twice_delta_nll else { continue };
            let fixed = self.fitted(&[(self.poi, point.values[0]), (other, point.values[1])]);
            let height = contours.best.twice_nll + height;
            if !is_small(fixed - height, TOLERANCE) {
                let line = format!("the contour is higher than a fit by {:.2e}", height - fixed);
                self.found.push(format!("{line} at {:?}", point.values));
            }
        }
    }

    fn nuisances(&self) -> impl Iterator<Item = usize> + use<> {
        let (poi, fixed) = (self.poi, self.model.parameters.fixed.clone());
        (0..fixed.len()).filter(move |&i| i != poi && !fixed[i])
    }

    /// Compares post-fit impacts with scans of two points.
    fn ranking(&mut self) {
        let methods = RankingMethods { classic: true, global: false, covariance: false };
        let wanted = RankingOptions { poi: self.poi, methods, minos: false, groups: Vec::new() };
        let ranking = ranking(
            &Problem::new(self.model, &mut self.likelihood, &self.options),
            &wanted,
            ExecutionContext::SINGLE_THREADED,
        );
        self.free.push(("ranking", ranking.best.twice_nll));
        for entry in &ranking.entries {
            let Some(impacts) = &entry.postfit else { continue };
            let i = self.best.index_of(&entry.parameter).expect("a parameter of the model");
            let shifts = [impacts.down, impacts.up];
            let scan = self.scan(i, &shifts.map(|shift| shift.at));
            for (shift, rise) in shifts.iter().zip(&scan.twice_delta_nll) {
                let (Some(impact), Some(rise)) = (shift.impact, rise) else { continue };
                let mu = ranking.best.params[self.poi] + impact;
                let fixed = self.fitted(&[(i, shift.at), (self.poi, mu)]);
                let above = fixed - (scan.best.twice_nll + rise);
                if !is_small(above, TOLERANCE) {
                    let name = &entry.parameter;
                    self.found.push(format!("`{name}` = {:.3}: ranking is above scan by {above:.2e}", shift.at));
                }
            }
        }
    }

    fn session(&mut self) {
        let select =
            TemplateSelection { sample: "signal".to_owned(), channel: None, variations: TemplateVariations::None };
        let inputs = Inputs::new(self.model, &[select]).expect("every model has a signal");
        let likelihood = DifferentiableSession::new(self.model, inputs);
        let options = DifferentiableOptions::default();
        let mut session = ProfiledDifferentiableSession::new(self.model, likelihood, self.poi, options);
        let mut failed = Vec::new();
        let mut number = |found: Result<[f64; 2], DifferentiableError>| match found {
            Ok([value, _]) => Some(value),
            // The gradient is not defined there, so a session has no value either.
            Err(DifferentiableError::Edge { .. }) => None,
            Err(error) => {
                failed.push(format!("session: {error}"));
                None
            }
        };
        let free = number(session.profiled_nll(None, None));
        let at = [0.0, 1.0].map(|mu| number(session.profiled_nll(Some(mu), None)));
        let q0 = number(session.statistic(TestStatistic::Q0, 0.0, None));
        let t = number(session.statistic(TestStatistic::TTilde, 1.0, None));
        let q_asimov = number(session.asimov_statistic(TestStatistic::QTilde, 1.0, None));
        self.free.extend(free.map(|nll| ("session", 2.0 * nll)));
        for (mu, name, q) in [(0, "session (q0)", q0), (1, "session (t)", t)] {
            self.at[mu].extend(at[mu].map(|nll| ("session", 2.0 * nll)));
            self.at[mu].extend(free.zip(q).map(|(nll, q)| (name, 2.0 * nll + q)));
        }
        self.q_asimov.extend(q_asimov.map(|q| ("session", q)));
        failed.dedup();
        self.found.extend(failed);
    }

    /// Compares the goodness of fit with that at the best fit of a scan.
    fn goodness(&mut self) {
        let Self { model, ref options, ref mut likelihood, ref best, .. } = *self;
        let goodness = goodness_of_fit(&mut Problem::new(model, likelihood, options), best, NonZeroUsize::MIN);
        let scan = self.scan(self.poi, &[1.0]);
        let other = saturated_deviance(model, &model.observed, &scan.best.params, &model.parameters.fixed).total;
        let statistic = goodness.statistic.unwrap_or(f64::NAN);
        if !is_small(statistic - other, TOLERANCE) {
            self.found.push(format!("goodness of fit: {statistic}, and {other} at the best fit of a scan"));
        }
    }
}
