//! Compares default results with an exhaustive search that does not know why minima are hidden.

use ns_compute::CpuLikelihood;
use ns_core::{DataLikelihood, Likelihood, Model, expected};
use ns_inference::hypotest::ProfileRatioTest;
use ns_inference::minimize::Minimum;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::exhaustive::{self, Effort};
use ns_testkit::multimodal::Cause;

/// The largest difference to the exhaustive result, in 2NLL, of a correct result.
const TOLERANCE: f64 = 2e-6;

/// The number of random starts of the exhaustive search.
const N_STARTS: usize = 60;

const KINDS: [&str; 4] = ["free fit", "mu = 0", "mu = 1", "mu = 1 of the Asimov data set"];

/// Results above the exhaustive ones, one line each.
#[derive(Debug, Default)]
pub(crate) struct HigherResults {
    pub(crate) warned: Vec<String>,
    pub(crate) unwarned: Vec<String>,
}

impl HigherResults {
    /// Returns the results above the exhaustive ones for the models `seeds` of `cause`, created by
    /// `make`.
    pub(crate) fn of(make: fn(Cause, u64) -> Model, cause: Cause, seeds: std::ops::Range<u64>) -> Self {
        let mut higher = Self::default();
        for seed in seeds {
            let (above, is_warned) = above_exhaustive(&make(cause, seed));
            let lines = KINDS.iter().zip(above).filter(|(_, above)| *above > TOLERANCE);
            let lines = lines.map(|(kind, above)| format!("{} {seed}: {kind}: {above:.2e}", cause.name()));
            if is_warned { higher.warned.extend(lines) } else { higher.unwarned.extend(lines) }
        }
        higher
    }
}

/// Returns how far the default results of `model` are above the exhaustive ones, in 2NLL, and
/// whether they warn of several minima.
fn above_exhaustive(model: &Model) -> ([f64; 4], bool) {
    let poi = model.poi().expect("random models have one");
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let fitted = fit(&mut Problem::new(model, &mut likelihood, &options));
    let mut scratch = likelihood.clone();
    let mut test = ProfileRatioTest::new(
        Problem::new(model, &mut likelihood, &options),
        &mut scratch,
        TestStatistic::QTilde,
        poi,
        0.0,
    );
    let pair = test.at(1.0);
    let warnings = test.warnings(Some(1.0), &pair);
    let at_asimov = test.asimov_params.clone();
    let effort = Effort { n_starts: N_STARTS, n_values: 6, ..Effort::default() };
    let mut observed = CpuLikelihood::new(model);
    let lowest = exhaustive::search(model, &mut observed, Some(poi), &[0.0, 1.0], effort);
    let mut asimov = CpuLikelihood::new(model);
    asimov.set_data(&expected::asimov(model, &at_asimov));
    let of_asimov = exhaustive::search(model, &mut asimov, Some(poi), &[1.0], effort);
    let above = |nll: f64, minimum: &Minimum| if minimum.converged() { 2.0 * (nll - minimum.nll) } else { 0.0 };
    let above = [
        above(fitted.nll, &lowest.free),
        above(observed.nll(&at_asimov), &lowest.conditional[0]),
        above(observed.nll(&pair.observed.conditional), &lowest.conditional[1]),
        above(asimov.nll(&pair.asimov.conditional), &of_asimov.conditional[0]),
    ];
    let is_warned = fitted.warnings.iter().chain(&warnings).any(|warning| warning.contains("minima"));
    (above, is_warned)
}
