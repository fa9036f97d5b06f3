//! Upper limits by toys: where CLs or CLs+b, computed from toys at several values of the parameter
//! of interest, falls to the level.
//!
//! Toys of the tested hypothesis are thrown at each value, and toys of the alternative at 0; both
//! with nuisance parameters at their conditional best fits to the data. Values are chosen near each
//! limit, observed and expected in turn, until its Monte Carlo error is small enough (`crossing`).

use super::crossing::{CrossingSearch, Estimate, smooth};
use super::hypotest::ToysError;
use super::jobs::{Stop, Unfinished};
use super::p_value::{StatisticSamples, TailEstimate, ToyPValue};
use super::pilot::ToySearch;
use super::run::ToyRun;
use super::tested_points::{MoreToys, TestedPoint, TestedPoints, ToyBudget};
use super::throw::{AuxTreatment, Ensemble, ToySource};
use crate::asymptotic::BAND;
use crate::limit::{LimitOptions, LimitResult, limit};
use crate::normal::{density, significance, upper_tail};
use crate::problem::Problem;
use crate::result::PoiBestFit;
use crate::test_statistic::TestStatistic;
use ns_core::DataLikelihood;
use serde::Serialize;

/// The first values, in units of the asymptotic limit.
const FIRST: [f64; 3] = [0.8, 1.0, 1.25];

/// The largest ratio of a limit by toys to the asymptotic one.
const FARTHEST: f64 = 5.0;

/// The expected number of extreme toys of the tested hypothesis in the first round at a value.
/// Fewer of them make percentiles of CLs wrong.
const FIRST_EXTREME: f64 = 10.0;

/// CLb of the observed limit, until toys have shown it.
const OBSERVED_CLB: f64 = 0.5;

/// The number of toys of the alternative hypothesis for each of the tested one: if only the
/// observed limit is wanted, and if expected ones are, too.
const ALTERNATIVE: f64 = 0.25;
const ALTERNATIVE_EXPECTED: f64 = 0.5;

/// The errors of expected limits that are small enough, in units of the tolerance (in the order of
/// [`BAND`]): CLs in the tails of the band takes many more toys.
const EXPECTED_TOLERANCES: [f64; 5] = [5.0, 2.5, 1.0, 2.5, 5.0];

/// What falls to the level at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum LimitCriterion {
    /// CLs = CLs+b/CLb.
    #[default]
    #[serde(rename = "CLs")]
    Cls,
    /// CLs+b, the p-value of the tested hypothesis.
    #[serde(rename = "CLsb")]
    Clsb,
}

impl LimitCriterion {
    /// Returns the criterion of that name in documents and arguments.
    ///
    /// ```
    /// use ns_inference::toys::LimitCriterion;
    /// assert_eq!(LimitCriterion::named("CLsb"), Some(LimitCriterion::Clsb));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "CLs" => Some(Self::Cls),
            "CLsb" => Some(Self::Clsb),
            _ => None,
        }
    }
}

/// Which limits are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToyLimitSettings {
    /// The index of the parameter of interest.
    pub poi: usize,
    /// CLs or CLs+b at the limit.
    pub level: f64,
    /// The statistic: q̃_μ or q_μ.
    pub statistic: TestStatistic,
    /// What falls to the level.
    pub criterion: LimitCriterion,
    /// Whether expected limits are wanted, too.
    pub expected: bool,
    /// The error at which a limit is known well enough, relative to the limit.
    pub tolerance: f64,
    /// The largest number of toys of both hypotheses together.
    pub max_toys: u64,
    /// The seed.
    pub seed: u64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

/// The test of one value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToyLimitPoint {
    /// The value.
    pub mu: f64,
    /// The statistic of the data.
    pub q: f64,
    /// Observed CLs or CLs+b, and its error.
    pub observed: f64,
    /// See `observed`.
    pub observed_error: f64,
    /// The same expected at -2 … +2 standard deviations of the alternative, with their errors.
    pub expected: Option<[f64; 5]>,
    /// See `expected`.
    pub expected_errors: Option<[f64; 5]>,
    /// The p-value of the tested hypothesis.
    #[serde(rename = "CLsb_obs")]
    pub clsb: ToyPValue,
    /// The p-value of the alternative hypothesis.
    #[serde(rename = "CLb_obs")]
    pub clb: ToyPValue,
}

/// Upper limits by toys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToyLimit {
    /// The parameter of interest, with its best fit.
    pub poi: PoiBestFit,
    /// CLs or CLs+b at the limits.
    pub level: f64,
    /// What falls to the level.
    pub criterion: LimitCriterion,
    /// The test statistic.
    pub test_stat: TestStatistic,
    /// The observed limit, and its Monte Carlo error; `None` where there is none.
    pub observed: Option<f64>,
    /// See `observed`.
    pub observed_error: Option<f64>,
    /// The limits expected if the background fluctuates by -2 … +2 standard deviations, with their
    /// errors.
    pub expected: [Option<f64>; 5],
    /// See `expected`.
    pub expected_errors: [Option<f64>; 5],
    /// The limits of CLs by asymptotic formulas: observed, then expected.
    pub asymptotic: AsymptoticLimits,
    /// The range of the parameter.
    pub range: [f64; 2],
    /// How nuisance parameters of toys are chosen: `conditional_best_fit`.
    pub nuisance_parameters: &'static str,
    /// The wanted relative error of the observed and of the median expected limit.
    pub tolerance: f64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
    /// The seed.
    pub seed: u64,
    /// The number of toys of the tested and of the alternative hypothesis, including failed ones.
    pub n_toys: [u64; 2],
    /// The number of toys for which a fit did not converge.
    pub n_failed: u64,
    /// Whether every limit is known to the tolerance and the fits of all toys converged.
    pub converged: bool,
    /// Whether the run was not cancelled.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
    /// The tested values, ascending.
    pub tested: Vec<ToyLimitPoint>,
}

/// Limits by asymptotic formulas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AsymptoticLimits {
    /// The observed limit.
    pub observed: Option<f64>,
    /// The limits expected if the background fluctuates by -2 … +2 standard deviations.
    pub expected: [Option<f64>; 5],
}

/// Finds upper limits by toys.
///
/// # Errors
/// If a fit to the data does not converge or ends where no toys can be thrown, if no asymptotic
/// limit tells where to begin, or if the accelerator fails.
pub fn toy_limit<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: ToyLimitSettings,
    run: &ToyRun<'_>,
) -> Result<ToyLimit, ToysError> {
    let ToyLimitSettings { poi, level, statistic, seed, aux, max_toys, .. } = settings;
    let asymptotic = limit(problem, poi, LimitOptions { level, statistic });
    let likelihood = problem.likelihood.clone();
    let source = ToySource { seed, ensemble: Ensemble::Intervals, aux };
    let tested = [poi];
    let mut points =
        TestedPoints::new(problem.reborrow(), &likelihood, &tested, source, ToyBudget { run: *run, max_toys });
    if !points.profiler.best().converged() {
        return Err(ToysError::Free);
    }
    points.set_alternative(&[0.0])?;
    let search = points.search_of_alternative().unwrap_or(ToySearch::ONE_START);
    let mut solver = LimitSolver { settings, points, asymptotic, searches: [search; 2], limits: Vec::new() };
    let is_complete = match solver.solve()? {
        None => true,
        Some(Unfinished::Cancelled) => false,
        Some(Unfinished::Failed) => return Err(ToysError::Accelerator),
    };
    Ok(solver.report(is_complete))
}

/// The search for one limit.
struct LimitSearch {
    /// The index of the expected limit in [`BAND`]; `None` for the observed one.
    band: Option<usize>,
    search: CrossingSearch,
}

impl LimitSearch {
    /// Returns the wanted error.
    fn tolerance(&self, relative: f64) -> f64 {
        relative * self.band.map_or(1.0, |i| EXPECTED_TOLERANCES[i]) * self.search.x
    }
}

struct LimitSolver<'a, L> {
    settings: ToyLimitSettings,
    points: TestedPoints<'a, L>,
    asymptotic: LimitResult,
    /// How the minima of toys of the tested and of the alternative hypothesis are sought.
    searches: [ToySearch; 2],
    limits: Vec<LimitSearch>,
}

impl<L: DataLikelihood + Clone + Sync> LimitSolver<'_, L> {
    /// Finds the limits one after the other, each from all toys so far. Returns why that ended
    /// early.
    fn solve(&mut self) -> Result<Option<Unfinished>, ToysError> {
        let expected = if self.settings.expected { vec![2, 1, 3, 4, 0] } else { Vec::new() };
        for band in std::iter::once(None).chain(expected.into_iter().map(Some)) {
            match self.find(band) {
                Err(Stop::Toys(error)) => return Err(error),
                Err(Stop::Unfinished(reason)) => return Ok(Some(reason)),
                Ok(()) => {}
            }
        }
        Ok(None)
    }

    fn find(&mut self, band: Option<usize>) -> Result<(), Stop> {
        let LimitResult { observed, expected, .. } = &self.asymptotic;
        let known = [*observed, expected[2]].into_iter().flatten().next();
        let Some(guess) = band.map_or(*observed, |i| expected[i]).or(known).filter(|limit| *limit > 0.0) else {
            let reason = "there is no asymptotic limit to begin with";
            return Err(ToysError::Observed { mu: 0.0, reason }.into());
        };
        let level = self.settings.level;
        // Beyond the range, toys with a best fit there would have no statistic.
        let upper = self.points.profiler.domain().upper[self.settings.poi];
        let guess = guess.min(FIRST[0] * upper);
        // CLs falls to the level within about two standard deviations.
        let mut limit = LimitSearch {
            band,
            search: CrossingSearch::new(level, [0.0, upper.min(FARTHEST * guess)], guess, 2.0 / guess),
        };
        let first = self.first_toys(band);
        let is_near = |point: &&TestedPoint| (FIRST[0] * guess..FIRST[2] * guess).contains(&point.values[0].1);
        if self.points.points.iter().filter(is_near).filter(|point| self.is_usable(point, band)).count() < FIRST.len() {
            let is_first = self.points.points.is_empty();
            let indices =
                FIRST.iter().map(|f| self.points.add(&[upper.min(f * guess)])).collect::<Result<Vec<usize>, _>>()?;
            if is_first {
                self.searches[0] = self.points.search(indices[1]);
            }
            self.throw(&indices.iter().map(|index| (*index, first)).collect::<Vec<_>>())?;
        }
        loop {
            let estimates = self.estimates(band);
            let clb = self.observed_clb(&limit).filter(|_| band.is_none() && !self.is_clsb());
            if let Some((clb, error)) = clb {
                limit.search.set_level(level * clb, error);
            }
            limit.search.update(&estimates);
            let first = clb.map_or(first, |(clb, _)| self.toys_for(clb).max(first));
            let wanted = limit.search.wanted(&estimates, limit.tolerance(self.settings.tolerance), first);
            if wanted.is_empty() || self.points.is_cut_short {
                break;
            }
            let mut more = Vec::with_capacity(wanted.len());
            for (mu, n_toys) in wanted {
                more.push((self.points.add(&[mu])?, n_toys));
            }
            self.throw(&more)?;
        }
        self.limits.push(limit);
        Ok(())
    }

    /// Returns the number of toys of the tested hypothesis in the first round at a value.
    fn first_toys(&self, band: Option<usize>) -> u64 {
        self.toys_for(band.map_or(OBSERVED_CLB, clb_of_band))
    }

    fn toys_for(&self, clb: f64) -> u64 {
        (FIRST_EXTREME / (self.settings.level * clb)).ceil() as u64
    }

    /// Returns CLb of the data near the limit and its relative error, from the toys of all points
    /// there: it hardly depends on the tested value.
    fn observed_clb(&self, limit: &LimitSearch) -> Option<(f64, f64)> {
        let x = limit.search.x;
        let near = (0..self.points.points.len()).filter(|index| {
            let value = self.points.points[*index].values[0].1;
            (0.5 * x..=2.0 * x).contains(&value)
        });
        let estimates: Vec<Estimate> = near.filter_map(|index| self.binomial(index, 1)).collect();
        smooth(&estimates, x, 2.0 / x)
    }

    /// Returns the fraction of toys of one hypothesis that are as extreme as the data.
    fn binomial(&self, index: usize, which: usize) -> Option<Estimate> {
        let (q, samples) = self.points.upper(index);
        let ToyPValue { value, n_toys, .. } = p_value(&samples, which, q);
        let x = self.points.points[index].values[0].1;
        (n_toys > 0).then_some(Estimate { x, probability: value, trials: n_toys as f64 })
    }

    /// Returns whether a point has enough toys for a limit. A round shares its toys between two
    /// values.
    fn is_usable(&self, point: &TestedPoint, band: Option<usize>) -> bool {
        point.n_toys()[0] >= self.first_toys(band) / 2
    }

    /// Throws toys at points: of the tested hypothesis as many as `wanted` says for each index of a
    /// point, and a multiple of that of the alternative.
    fn throw(&mut self, wanted: &[(usize, u64)]) -> Result<(), Stop> {
        let ratio = match (self.settings.expected, self.settings.criterion) {
            (true, _) => ALTERNATIVE_EXPECTED,
            (false, LimitCriterion::Cls) => ALTERNATIVE,
            (false, LimitCriterion::Clsb) => 0.0,
        };
        let mut jobs = Vec::with_capacity(2 * wanted.len());
        for (which, ratio) in [1.0, ratio].into_iter().enumerate() {
            for &(index, n_toys) in wanted {
                let n_toys = (ratio * n_toys as f64).ceil() as u64;
                jobs.push(MoreToys { index, which, search: self.searches[which], n_toys });
            }
        }
        Ok(self.points.throw(&jobs)?)
    }

    fn is_clsb(&self) -> bool {
        self.settings.criterion == LimitCriterion::Clsb
    }

    /// Returns the tail probabilities of every point: CLs+b of the data, or what is expected.
    fn estimates(&self, band: Option<usize>) -> Vec<Estimate> {
        let usable = (0..self.points.points.len()).filter(|index| self.is_usable(&self.points.points[*index], band));
        usable.filter_map(|index| band.map_or_else(|| self.binomial(index, 0), |i| self.expected(index, i))).collect()
    }

    /// Returns CLs or CLs+b expected at entry `i` of the band. Its weight is that of toys with the
    /// level as CLs: errors that are computed from a fluctuation are small where it is low, and
    /// would pull limits down.
    fn expected(&self, index: usize, i: usize) -> Option<Estimate> {
        let (q, samples) = self.points.upper(index);
        let (_, expected) = samples.estimates(q, self.is_clsb());
        let [n_tested, n_alternative] = [0, 1].map(|which| samples.values[which].len() as f64);
        let (level, clb) = (self.settings.level, clb_of_band(i));
        let clsb = if self.is_clsb() { level } else { level * clb };
        // By how much ln CLs+b changes with ln CLb where the threshold is a percentile of toys.
        let response = hazard(clsb) / hazard(clb);
        let variance = (1.0 - clsb) / (n_tested * clsb) + response * response * (1.0 - clb) / (n_alternative * clb);
        let trials = (1.0 - level) / (level * variance);
        let is_known = expected[i].value.is_finite() && trials > 0.0;
        let x = self.points.points[index].values[0].1;
        is_known.then(|| Estimate { x, probability: expected[i].value.min(1.0), trials })
    }

    fn point(&self, index: usize) -> ToyLimitPoint {
        let (q, samples) = self.points.upper(index);
        let (observed, expected) = samples.estimates(q, self.is_clsb());
        let [clsb, clb] = [0, 1].map(|which| p_value(&samples, which, q));
        let band = |of: fn(&TailEstimate) -> f64| self.settings.expected.then(|| expected.each_ref().map(of));
        ToyLimitPoint {
            mu: self.points.points[index].values[0].1,
            q,
            observed: observed.value,
            observed_error: observed.error,
            expected: band(|estimate| estimate.value),
            expected_errors: band(|estimate| estimate.error),
            clsb,
            clb,
        }
    }

    fn report(self, is_complete: bool) -> ToyLimit {
        let ToyLimitSettings { poi, level, statistic, criterion, tolerance, seed, aux, .. } = self.settings;
        // What is anywhere between the ends of the search is no limit.
        let found =
            |band: Option<usize>| self.limits.iter().find(|limit| limit.band == band && limit.search.is_found());
        let values = |of: fn(&LimitSearch) -> f64| std::array::from_fn(|i| found(Some(i)).map(of));
        let n_toys = [0, 1].map(|which| self.points.points.iter().map(|point| point.n_toys()[which]).sum());
        let n_failed = self.points.points.iter().map(TestedPoint::n_failed).sum();
        let imprecise: Vec<String> = self
            .limits
            .iter()
            .filter(|limit| limit.search.error > limit.tolerance(tolerance))
            .map(|limit| limit.band.map_or_else(|| "observed".to_owned(), |i| format!("expected ({:+}σ)", BAND[i])))
            .collect();
        let has_toys = |index: &usize| self.points.points[*index].n_toys()[0] > 0;
        let indices = (0..self.points.points.len()).filter(has_toys);
        let mut tested: Vec<ToyLimitPoint> = indices.map(|index| self.point(index)).collect();
        tested.sort_by(|a, b| a.mu.total_cmp(&b.mu));
        let model = self.points.profiler.model();
        let (domain, best) = (self.points.profiler.domain(), self.points.profiler.best());
        let range = [domain.lower[poi], domain.upper[poi]];
        let mut warnings = Vec::new();
        if !is_complete {
            warnings.push(format!("interrupted after {} toys; the limits are not final", self.points.jobs.n_thrown));
        } else if !imprecise.is_empty() {
            warnings.push(format!(
                "the error is above the tolerance after {} of at most {} toys: {}",
                self.points.jobs.n_thrown,
                self.settings.max_toys,
                imprecise.join(", ")
            ));
        }
        let is_beyond = |limit: &LimitSearch| {
            let is_near = limit.search.is_found() && limit.search.x + 3.0 * limit.search.error > range[1];
            is_near || limit.search.is_beyond(range[1])
        };
        if self.limits.iter().any(is_beyond) {
            let name = &model.parameters.names[poi];
            warnings.push(format!("a limit is near the end of the range of `{name}`, {}, or beyond it", range[1]));
        }
        if n_failed > 0 {
            warnings.push(format!("the fits of {n_failed} toys did not converge; the p-values exclude them"));
        }
        if statistic == TestStatistic::QTilde && range[0] < 0.0 {
            let name = &model.parameters.names[poi];
            warnings.push(format!(
                "`{name}` may go down to {}, so the statistic is the one without tilde; its best fit is compared, also a negative one",
                range[0]
            ));
        }
        ToyLimit {
            poi: PoiBestFit { name: model.parameters.names[poi].clone(), index: poi, bestfit: Some(best.params[poi]) },
            level,
            criterion,
            test_stat: statistic,
            observed: found(None).map(|limit| limit.search.x),
            observed_error: found(None).map(|limit| limit.search.error),
            expected: values(|limit| limit.search.x),
            expected_errors: values(|limit| limit.search.error),
            asymptotic: AsymptoticLimits { observed: self.asymptotic.observed, expected: self.asymptotic.expected },
            range,
            nuisance_parameters: "conditional_best_fit",
            tolerance,
            aux,
            seed,
            n_toys,
            n_failed,
            converged: is_complete && imprecise.is_empty() && n_failed == 0,
            is_complete,
            warnings,
            tested,
        }
    }
}

/// Returns CLb of entry `i` of the band.
fn clb_of_band(i: usize) -> f64 {
    upper_tail(-BAND[i])
}

/// Returns the normal density over the upper tail where that is `p`.
fn hazard(p: f64) -> f64 {
    density(significance(p)) / p
}

fn p_value(samples: &StatisticSamples, which: usize, observed: f64) -> ToyPValue {
    ToyPValue::of(&samples.values[which], observed, samples.n_failed[which])
}
