//! Tests of many signals with one background.
//!
//! Without signal, every model of a scan is the background. Its minima are looked for once
//! ([`BackgroundMinima::find`]), and so is the Asimov data set of μ = 0. The fits of a signal start
//! at each of these minima, and look for others where the model or the signal gives reason to
//! ([`SignalTest::from_background`]).
//! Whether that is enough for the signals of a scan is for a few of them to show, which are fitted
//! with the full search as well ([`SignalTest::explore`]).

use crate::hypotest::{HypotestResult, ProfileRatioTest, TestedHypothesis, TestedValue};
use crate::limit::{LimitOptions, LimitResult, limit_of};
use crate::minimize::Minimum;
use crate::options::FitOptions;
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::search::BasinPool;
use crate::test_statistic::TestStatistic;
use ns_core::{DataLikelihood, Model};

/// The minima of -ln L of the observed data without signal.
#[derive(Debug, Clone)]
pub struct BackgroundMinima {
    lowest: Minimum,
    /// The others, free or with parameters fixed.
    others: BasinPool,
    /// Whether another one is as deep as the lowest.
    is_ambiguous: bool,
}

impl BackgroundMinima {
    /// Looks for the minima of `problem` with parameter `poi`, the strength of a signal, at 0.
    /// Returns `None` if the fit does not converge.
    pub fn find<L: DataLikelihood + ?Sized>(problem: &mut Problem<'_, L>, poi: usize) -> Option<Self> {
        let options = with_strength(problem.options, poi, 0.0);
        let mut profiler = Profiler::new(problem.model, problem.likelihood, &options);
        let lowest = profiler.best().clone();
        let is_ambiguous = profiler.has_equal_minimum(&lowest, &[(poi, 0.0)]);
        lowest.converged().then(|| Self { others: profiler.pool().clone(), lowest, is_ambiguous })
    }

    /// Returns the parameters (P) of the lowest minimum.
    #[must_use]
    pub fn params(&self) -> &[f64] {
        &self.lowest.params
    }

    /// Returns -ln L at the lowest minimum.
    #[must_use]
    pub fn nll(&self) -> f64 {
        self.lowest.nll
    }

    /// Returns the parameters (P) of all minima, the lowest first.
    fn starts(&self) -> impl Iterator<Item = &[f64]> {
        let others = self.others.basins().iter().map(|basin| &basin.minimum.params[..]);
        std::iter::once(self.params()).chain(others)
    }
}

/// Returns `options` with parameter `poi` fixed at `value`.
fn with_strength(options: &FitOptions, poi: usize, value: f64) -> FitOptions {
    let mut options = options.clone();
    options.fixed.retain(|&(i, _)| i != poi);
    options.fixed.push((poi, value));
    options
}

/// What is computed for a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalTest {
    /// The strength of the signal, one of the parameters.
    pub poi: usize,
    /// Its tested value.
    pub mu: f64,
    /// The statistic: q̃_μ or q_μ.
    pub statistic: TestStatistic,
    /// CLs at the upper limits on the strength; `None` for no limits.
    pub limit_level: Option<f64>,
}

/// A signal whose statistic is larger, more than five standard deviations, is fitted so far from
/// the background that its minima need not be those of the background.
const FAR: f64 = 25.0;

/// Returns `true` if a statistic of `tested` is larger than that, or was not found.
fn needs_more_starts(tested: &TestedValue) -> bool {
    [&tested.observed, &tested.asimov].iter().any(|statistic| statistic.value.is_none_or(|q| q > FAR))
}

/// Returns `true` if both statistics of `tested` were found.
fn has_values(tested: &TestedValue) -> bool {
    tested.observed.value.is_some() && tested.asimov.value.is_some()
}

/// What was found of a signal.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalResult {
    /// The test.
    pub test: HypotestResult,
    /// The upper limits, if they were wanted.
    pub limit: Option<LimitResult>,
    /// -2 ln L at the best fit.
    pub twice_nll_best: f64,
    /// -2 ln L at the tested strength.
    pub twice_nll: f64,
}

impl SignalTest {
    /// Tests the signal of `problem` with warm starts at the minima of `background`. `scratch` is a
    /// likelihood of the same model.
    ///
    /// In models with a normsys that multiplies a yield several times, conditional fits are
    /// explored: small signals can have other minima there than the background. Else, where a
    /// statistic is larger than 25 or a fit did not converge, they also start at the background, at
    /// the model's starting values, and, for the Asimov data set, where the observed data led; they
    /// are explored if they end with large pulls.
    pub fn from_background<L: DataLikelihood + ?Sized>(
        &self,
        problem: Problem<'_, L>,
        scratch: &mut L,
        background: &BackgroundMinima,
    ) -> SignalResult {
        let (Problem { model, likelihood, options }, data) = (problem, scratch.data().clone());
        // Random starts belong to the search, which is done with the background.
        let options = &FitOptions { multi_start: None, ..options.clone() };
        let observed = self.fit_from(model, likelihood, options, background);
        let hypothesis = self.hypothesis();
        let mut test = ProfileRatioTest::from_basins(observed, &mut *scratch, options, hypothesis, background.params());
        test.note_ambiguous(background.is_ambiguous);
        if test.observed.has_explosive_suspects() {
            test.explore();
        }
        let result = self.result(test);
        scratch.set_data(&data);
        result
    }

    /// Does the same with the full search for the lowest minima of this signal alone.
    pub fn explore<L: DataLikelihood + ?Sized>(&self, problem: Problem<'_, L>, scratch: &mut L) -> SignalResult {
        let data = scratch.data().clone();
        let result = self.result(ProfileRatioTest::new(problem, &mut *scratch, self.statistic, self.poi, 0.0));
        scratch.set_data(&data);
        result
    }

    fn hypothesis(&self) -> TestedHypothesis {
        TestedHypothesis { statistic: self.statistic, poi: self.poi, asimov_mu: 0.0 }
    }

    /// Returns the free minimum of the observed data, the lowest of those that the minima of
    /// `background` lead to.
    fn fit_from<'a, L: DataLikelihood + ?Sized>(
        &self,
        model: &'a Model,
        likelihood: &'a mut L,
        options: &FitOptions,
        background: &BackgroundMinima,
    ) -> Profiler<'a, L> {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        profiler.set_exploring(false);
        let starts: Vec<&[f64]> = background.starts().collect();
        profiler.refit(&starts);
        profiler.with_pool(&background.others)
    }

    fn result<L: DataLikelihood + ?Sized>(&self, mut test: ProfileRatioTest<'_, L>) -> SignalResult {
        let mut pair = test.at(self.mu);
        if test.starts_at_basins() && needs_more_starts(&pair) {
            test.start_widely();
            pair = test.at(self.mu);
            if test.has_large_pulls(&pair) || !has_values(&pair) {
                test.explore();
                pair = test.at(self.mu);
            }
        }
        let mut limit = None;
        if let Some(level) = self.limit_level {
            let (found, known) = limit_of(test, LimitOptions { level, statistic: self.statistic });
            (limit, test) = (Some(found), known);
            // All that is reported is to be of the lowest minima that either meets.
            pair = test.at(self.mu);
        }
        let twice_nll = 2.0 * test.observed.likelihood().nll(&pair.observed.conditional);
        let result = test.result_of(self.mu, &pair);
        let twice_nll_best = 2.0 * test.observed.best().nll;
        SignalResult { test: result, limit, twice_nll_best, twice_nll }
    }
}
