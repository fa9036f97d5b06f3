//! Upper limits by CLs: the value of the parameter of interest at which CLs falls to the level,
//! observed and expected.
//!
//! The expected limits follow from the Asimov data set alone: CLs at n standard deviations of the
//! background equals the level where √q_A(μ) reaches a number that only depends on n. √q_A is
//! nearly a straight line and its derivative is the gradient of the conditional fit, so each of the
//! five takes two or three fits.

use crate::asymptotic::{BAND, band, ln_cls, p_values, root_asimov_at};
use crate::hessian::Hessian;
use crate::hypotest::{DataSet, ProfileRatioTest, TestedValue};
use crate::problem::Problem;
use crate::result::PoiBestFit;
use crate::root::{Root, RootInterval, increasing};
use crate::scan::ROUNDS;
use crate::search::is_distinctly_lower;
use crate::test_statistic::{EvaluatedStatistic, TestStatistic, classify};
use ns_core::DataLikelihood;
use serde::Serialize;

/// How far beyond the range of the parameter, in units of the distance to its upper end, a limit is
/// looked for.
const BEYOND: f64 = 1e6;

/// What is said where the last round has met lower minima still.
const UNSETTLED: &str = "the limits may be wrong: the tests found a lower minimum than the search; use multi-start";

/// By how much a statistic at a limit may differ when it is explored: √q_A, or CLs relative to the
/// level.
const LOWERED: f64 = 1e-5;

/// Values that are nearer to the best fit of the Asimov data than this, in units of its σ, are no
/// limits.
const INDISTINGUISHABLE: f64 = 1e-4;

/// What limit is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitOptions {
    /// CLs at the limit: 0.05 for a limit at 95 % confidence level.
    pub level: f64,
    /// The statistic: q̃_μ or q_μ.
    pub statistic: TestStatistic,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self { level: 0.05, statistic: TestStatistic::QTilde }
    }
}

/// Upper limits on a parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitResult {
    /// The parameter of interest, with its best fit.
    pub poi: PoiBestFit,
    /// CLs at the limit.
    pub level: f64,
    /// The test statistic.
    pub test_stat: TestStatistic,
    /// The observed limit; `None` where there is none, for a reason in `warnings`.
    pub observed: Option<f64>,
    /// The limits expected if the background fluctuates by -2, -1, 0, +1, +2 standard deviations.
    pub expected: [Option<f64>; 5],
    /// The range of the parameter of interest.
    pub range: [f64; 2],
    /// Whether every limit was found.
    pub converged: bool,
    /// What to know before the numbers are used.
    pub warnings: Vec<String>,
    /// The values tested, ascending.
    pub tested: Vec<ClsPoint>,
}

/// CLs at one value of the parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClsPoint {
    /// The value.
    pub mu: f64,
    /// Observed CLs; `None` where it was not needed or a fit failed.
    #[serde(rename = "CLs_obs")]
    pub cls_obs: Option<f64>,
    /// Expected CLs, in the order of the expected limits.
    #[serde(rename = "CLs_exp")]
    pub cls_exp: Option<[f64; 5]>,
}

/// Returns the upper limits on parameter `poi` by root finding.
pub fn limit<L: DataLikelihood + Clone>(problem: &mut Problem<'_, L>, poi: usize, wanted: LimitOptions) -> LimitResult {
    let mut scratch = problem.likelihood.clone();
    LimitSolver::new(problem.reborrow(), &mut scratch, poi, wanted).limits()
}

/// Returns the upper limits on the parameter that `test` tests by root finding, and the test, which
/// knows the minima that were met.
pub(crate) fn limit_of<L: DataLikelihood + ?Sized>(
    test: ProfileRatioTest<'_, L>,
    wanted: LimitOptions,
) -> (LimitResult, ProfileRatioTest<'_, L>) {
    let mut solver = LimitSolver::of(test, wanted);
    (solver.limits(), solver.test)
}

/// Returns the upper limits on parameter `poi` from the CLs at the values of `grid` (ascending),
/// interpolated linearly as pyhf does.
pub fn limit_from_grid<L: DataLikelihood + Clone>(
    problem: &mut Problem<'_, L>,
    poi: usize,
    wanted: LimitOptions,
    grid: &[f64],
) -> LimitResult {
    let mut scratch = problem.likelihood.clone();
    let mut solver = LimitSolver::new(problem.reborrow(), &mut scratch, poi, wanted);
    solver.settle(|solver| {
        for &mu in grid {
            let pair = solver.test.at(mu);
            solver.remember(mu, &pair);
        }
    });
    let points = solver.tested.clone();
    let line = |value: &dyn Fn(&ClsPoint) -> Option<f64>| {
        let known: Vec<(f64, f64)> = points.iter().filter_map(|p| Some((p.mu, value(p)?))).collect();
        interpolate(&known, wanted.level)
    };
    let expected = [0, 1, 2, 3, 4].map(|i| line(&|p: &ClsPoint| p.cls_exp.map(|band| band[i])));
    let observed = line(&|p: &ClsPoint| p.cls_obs);
    let n_failed = points.iter().filter(|point| point.cls_obs.is_none()).count();
    let gap = solver.last_failure.as_ref().filter(|_| n_failed > 0).map(|reason| {
        format!(
            "{n_failed} of {} values of the grid have no CLs, and the limits are interpolated across them: {reason}",
            points.len()
        )
    });
    solver.failures = std::array::from_fn(|_| solver.last_failure.clone());
    let mut result = solver.report(observed, expected);
    result.warnings.extend(gap);
    result
}

/// Returns where straight lines through `points` (μ ascending, CLs) last fall through `level`.
fn interpolate(points: &[(f64, f64)], level: f64) -> Root {
    let is_crossing = |pair: &&[(f64, f64)]| pair[0].1 >= level && pair[1].1 < level;
    match points.windows(2).rfind(is_crossing) {
        Some(&[(a, cls_a), (b, cls_b)]) => Root::At(a + (b - a) * (cls_a - level) / (cls_a - cls_b)),
        _ if points.is_empty() => Root::Unknown,
        _ if points.iter().all(|(_, cls)| *cls < level) => Root::Below,
        _ if points.iter().all(|(_, cls)| *cls >= level) => Root::Above,
        // CLs rises through the level on the grid and never falls through it.
        _ => Root::Unknown,
    }
}

/// Values are explored until a limit has cost this number of evaluations of a model of [`LARGE`]
/// parameters, in smaller ones, where each costs less, as many more as they are smaller.
const MOST_EVALUATIONS: usize = 20_000;
const LARGE: usize = 60;

/// Finds limits, and keeps what was tested on the way.
struct LimitSolver<'a, L: ?Sized> {
    test: ProfileRatioTest<'a, L>,
    wanted: LimitOptions,
    /// Distance in μ over which √q_A rises by about one.
    sigma: f64,
    tested: Vec<ClsPoint>,
    last_failure: Option<String>,
    last_pair: Option<TestedValue>,
    /// Whether exploring at a limit has found a lower conditional minimum than the one it was found
    /// with.
    has_met_lower: bool,
    /// Whether every value is explored, because it turned out to be necessary.
    explores_all: bool,
    /// The last failure on the way to each limit: the observed one, then those of [`BAND`].
    failures: [Option<String>; 6],
    /// Whether the last round still has met lower minima.
    is_unsettled: bool,
}

impl<'a, L: DataLikelihood + ?Sized> LimitSolver<'a, L> {
    fn new(problem: Problem<'a, L>, scratch: &'a mut L, poi: usize, wanted: LimitOptions) -> Self {
        Self::of(ProfileRatioTest::new(problem, scratch, wanted.statistic, poi, 0.0), wanted)
    }

    fn of(mut test: ProfileRatioTest<'a, L>, wanted: LimitOptions) -> Self {
        let sigma = asimov_sigma(&mut test);
        Self {
            test,
            wanted,
            sigma,
            tested: Vec::new(),
            last_failure: None,
            last_pair: None,
            has_met_lower: false,
            explores_all: false,
            failures: Default::default(),
            is_unsettled: false,
        }
    }

    /// Finds every limit.
    fn limits(&mut self) -> LimitResult {
        let (observed, expected) = self.settle(|solver| {
            let expected = [0, 1, 2, 3, 4].map(|i| solver.noting_failures(i + 1, |solver| solver.expected(BAND[i])));
            let observed = solver.noting_failures(0, LimitSolver::observed);
            solver.explore_at(observed, &expected);
            (observed, expected)
        });
        self.report(observed, expected)
    }

    /// Does `work`, and does it again where it has met a lower minimum, free or conditional: every
    /// statistic refers to the lowest.
    fn settle<T>(&mut self, work: impl Fn(&mut Self) -> T) -> T {
        let mut round = 1;
        loop {
            let (known, n_renewed) = (self.free_minima(), self.test.n_renewed);
            let done = work(self);
            // A lower minimum at μ = 0 replaces the Asimov data set, and -ln L of two data sets
            // cannot be compared.
            let is_renewed = self.test.n_renewed != n_renewed;
            let is_lower = |(known, now): (f64, f64)| is_distinctly_lower(now, known);
            let has_met_lower = known.into_iter().zip(self.free_minima()).any(is_lower);
            let is_settled = !std::mem::take(&mut self.has_met_lower) && !is_renewed && !has_met_lower;
            if is_settled || round == ROUNDS {
                self.is_unsettled = !is_settled;
                return done;
            }
            (self.tested, self.last_failure, self.last_pair) = (Vec::new(), None, None);
            round += 1;
        }
    }

    /// Does `work`, which looks for limit `k` of [`Self::failures`], and keeps what failed last on
    /// the way.
    fn noting_failures(&mut self, k: usize, work: impl FnOnce(&mut Self) -> Root) -> Root {
        self.last_failure = None;
        let root = work(self);
        self.failures[k] = self.last_failure.clone();
        root
    }

    /// Explores at the limits that were found, and notes whether a conditional minimum there is
    /// lower than the one that the limit was found with.
    fn explore_at(&mut self, observed: Root, expected: &[Root; 5]) {
        if !self.test.asimov.explores_widely() || !self.test.asimov.is_exploring() {
            return;
        }
        let mut is_lower = false;
        for (k, root) in expected.iter().enumerate() {
            let &Root::At(mu) = root else { continue };
            let asimov = self.asimov_explored(mu);
            let target = root_asimov_at(self.wanted.level, BAND[k]);
            if asimov.value.is_some_and(|q| (q.sqrt() - target).abs() > LOWERED * target.max(1.0)) {
                self.test.add_start(DataSet::Asimov, &asimov);
                is_lower = true;
            }
        }
        if let Root::At(mu) = observed {
            let pair = self.test.at(mu);
            let q = pair.observed.value.zip(pair.asimov.value);
            let p = q.map(|(q, q_asimov)| p_values(self.wanted.statistic, q, q_asimov));
            if p.is_some_and(|p| (p.cls / self.wanted.level - 1.0).abs() > LOWERED) {
                self.test.add_start(DataSet::Observed, &pair.observed);
                self.test.add_start(DataSet::Asimov, &pair.asimov);
                is_lower = true;
            }
        }
        self.has_met_lower = is_lower;
        self.explores_all |= is_lower;
    }

    /// Returns -ln L at the free minima of the observed data and of the Asimov data set.
    fn free_minima(&self) -> [f64; 2] {
        [self.test.observed.best().nll, self.test.asimov.best().nll]
    }

    /// Returns the lowest value that may be a limit: the best fit of the Asimov data set,
    /// usually 0.
    fn lower(&self) -> f64 {
        self.test.asimov.best().params.get(self.test.poi).copied().unwrap_or(0.0)
    }

    fn interval(&self, guess: f64) -> RootInterval {
        let (lower, range_end) = (self.lower(), self.test.observed.domain().upper[self.test.poi]);
        let upper = if range_end.is_finite() { lower + BEYOND * (range_end - lower).max(1.0) } else { f64::MAX };
        RootInterval { lower, upper, guess: guess.min(upper) }
    }

    /// Returns the limit expected `n` standard deviations from the median.
    fn expected(&mut self, n: f64) -> Root {
        let target = root_asimov_at(self.wanted.level, n);
        // A line through the best fit and the nearest point already tested.
        let guess = self.lower() + target * self.sigma;
        increasing(self.interval(guess), |mu| {
            let [root, derivative] = self.root_asimov(mu)?;
            self.sigma = (mu - self.lower()) / root.max(f64::MIN_POSITIVE);
            Some([root - target, derivative])
        })
    }

    /// Returns √q_A at `mu` and its derivative.
    fn root_asimov(&mut self, mu: f64) -> Option<[f64; 2]> {
        let tested = if self.explores_next() { self.asimov_explored(mu) } else { self.asimov_on_the_way(mu) };
        if let Some(failure) = tested.failure {
            self.last_failure = Some(self.test.describe(DataSet::Asimov, failure));
        }
        let q = tested.value?;
        let cls_exp = Some(band(self.wanted.statistic, q).map(|p| p.cls));
        self.tested.push(ClsPoint { mu, cls_obs: None, cls_exp });
        Some([q.sqrt(), tested.derivative / q.sqrt()])
    }

    /// Returns `true` if the next value is explored: where that is necessary, until it has cost too
    /// much. From then on fits only start at the basins that were met.
    fn explores_next(&mut self) -> bool {
        let ProfileRatioTest { observed, asimov, .. } = &mut self.test;
        let spent = observed.search().spent().evaluations + asimov.search().spent().evaluations;
        let n_params = observed.model().n_params().clamp(1, LARGE);
        self.explores_all && spent < MOST_EVALUATIONS * LARGE / n_params
    }

    /// Returns the statistic of the Asimov data set at `mu`, explored.
    fn asimov_explored(&mut self, mu: f64) -> EvaluatedStatistic {
        let branches = self.test.branches_of(DataSet::Asimov).clone();
        let ProfileRatioTest { asimov, poi, .. } = &mut self.test;
        let starts = [vec![asimov.start().to_vec()], branches].concat();
        let conditional = asimov.at_explored(&[(*poi, mu)], &starts);
        classify(asimov, self.wanted.statistic, *poi, mu, conditional)
    }

    /// Returns the statistic of the Asimov data set at `mu`, on the way to a limit.
    fn asimov_on_the_way(&mut self, mu: f64) -> EvaluatedStatistic {
        let branches = self.test.branches_of(DataSet::Asimov).clone();
        let ProfileRatioTest { asimov, poi, .. } = &mut self.test;
        let starts = [asimov.cheap_starts(), branches].concat();
        let conditional = asimov.at_on_the_way(&[(*poi, mu)], &starts);
        classify(asimov, self.wanted.statistic, *poi, mu, conditional)
    }

    /// Returns the observed limit.
    fn observed(&mut self) -> Root {
        let mu_hat = self.test.observed.best().params[self.test.poi];
        let target = root_asimov_at(self.wanted.level, 0.0);
        let guess = self.lower().max(mu_hat) + target * self.sigma;
        let ln_level = self.wanted.level.ln();
        let root = increasing(self.interval(guess), |mu| {
            let pair = if self.explores_next() { self.test.at(mu) } else { self.test.at_on_the_way(mu) };
            self.remember(mu, &pair);
            let (q, q_asimov) = (pair.observed.value?, pair.asimov.value?);
            let (root, root_asimov) = (q.sqrt(), q_asimov.sqrt());
            let rise = if q > 0.0 { pair.observed.derivative / root } else { 0.0 };
            let asimov = [root_asimov, pair.asimov.derivative / root_asimov];
            let [value, derivative] = ln_cls(self.wanted.statistic, [root, rise], asimov);
            Some([ln_level - value, -derivative])
        });
        // So near to the best fit of the Asimov data, the two hypotheses differ by rounding only
        // and CLs jumps to 1: the search has found this jump.
        match root {
            Root::At(mu) if mu - self.lower() < INDISTINGUISHABLE * self.sigma => Root::Below,
            root => root,
        }
    }

    fn remember(&mut self, mu: f64, pair: &TestedValue) {
        let (q, q_asimov) = (pair.observed.value, pair.asimov.value);
        let p = q.zip(q_asimov).map(|(q, q_asimov)| p_values(self.wanted.statistic, q, q_asimov));
        let cls_exp = q_asimov.map(|q| band(self.wanted.statistic, q).map(|p| p.cls));
        self.last_failure = self.test.failures(pair).into_iter().next().or(self.last_failure.take());
        self.tested.push(ClsPoint { mu, cls_obs: p.map(|p| p.cls), cls_exp });
        self.last_pair = Some(pair.clone());
    }

    fn report(&mut self, observed: Root, expected: [Root; 5]) -> LimitResult {
        let names = &self.test.observed.model().parameters.names;
        let parameter = names[self.test.poi].clone();
        let domain = self.test.observed.domain();
        let range = [domain.lower[self.test.poi], domain.upper[self.test.poi]];
        let mut warnings = self.explain(&parameter, range, observed, &expected);
        let converged = value(observed).is_some() && expected.into_iter().all(|root| value(root).is_some());
        if !converged {
            warnings.extend(self.test.impossible());
        }
        if let Some(pair) = &self.last_pair {
            let untroubled = |tested: &EvaluatedStatistic| EvaluatedStatistic { failure: None, ..tested.clone() };
            let pair = TestedValue { observed: untroubled(&pair.observed), asimov: untroubled(&pair.asimov) };
            warnings.extend(self.test.warnings(None, &pair));
        }
        if self.wanted.level > 0.5 {
            let level = self.wanted.level;
            warnings.push(format!(
                "these limits are where CLs is {level}; a limit at {level} confidence level needs {:.4}",
                1.0 - level
            ));
        }
        self.tested.sort_by(|a, b| a.mu.total_cmp(&b.mu));
        self.tested.dedup_by(|b, a| a.mu == b.mu && (b.cls_obs.is_none() || a.cls_obs.is_some()));
        let bestfit = self.test.bestfit(DataSet::Observed);
        LimitResult {
            poi: PoiBestFit { name: parameter, index: self.test.poi, bestfit },
            level: self.wanted.level,
            test_stat: self.wanted.statistic,
            observed: value(observed),
            expected: expected.map(value),
            range,
            converged,
            warnings,
            tested: std::mem::take(&mut self.tested),
        }
    }

    /// Writes a sentence for every limit that is missing, and one for all that lie above the
    /// range.
    fn explain(&self, parameter: &str, range: [f64; 2], observed: Root, expected: &[Root; 5]) -> Vec<String> {
        let name = |i: usize| format!("the expected limit ({:+}σ)", BAND[i]);
        let expected = expected.iter().enumerate().map(|(i, root)| (name(i), *root));
        let all: Vec<(String, Root)> =
            std::iter::once(("the observed limit".to_owned(), observed)).chain(expected).collect();
        let beyond = above(&all, range[1], parameter);
        let missing = all.iter().zip(&self.failures).filter_map(|((what, root), failure)| {
            Some(format!("{what} was not found: {}", reason(*root, failure.as_deref())?))
        });
        let unsettled = self.is_unsettled.then(|| UNSETTLED.to_owned());
        missing.chain(beyond).chain(unsettled).collect()
    }
}

/// Returns a sentence about the limits that lie above the range of `parameter`, which ends at
/// `upper`; `None` if there are none.
fn above(limits: &[(String, Root)], upper: f64, parameter: &str) -> Option<String> {
    let is_above = |root: &Root| matches!(root, Root::At(mu) if *mu > upper);
    let found: Vec<&str> = limits.iter().filter(|(_, root)| is_above(root)).map(|(what, _)| what.as_str()).collect();
    let verb = if found.len() == 1 { "lies" } else { "lie" };
    let said = || format!("{} {verb} above the range of `{parameter}`, which ends at {upper}", found.join(", "));
    (!found.is_empty()).then(said)
}

/// Returns why there is no limit, after `failure`.
fn reason(root: Root, failure: Option<&str>) -> Option<&str> {
    match root {
        Root::At(_) => None,
        Root::Below => Some("every value tested is excluded"),
        Root::Above => Some("no value tested is excluded"),
        Root::Unknown => Some(failure.unwrap_or("CLs could not be computed where it had to be")),
    }
}

fn value(root: Root) -> Option<f64> {
    if let Root::At(mu) = root { Some(mu) } else { None }
}

/// Returns σ of the parameter of interest in the Asimov data set, or 1 where it has none.
fn asimov_sigma<L: DataLikelihood + ?Sized>(test: &mut ProfileRatioTest<'_, L>) -> f64 {
    let poi = test.poi;
    let mut domain = test.asimov.domain().clone();
    (domain.lower[poi], domain.upper[poi]) = (f64::NEG_INFINITY, f64::INFINITY);
    let params = test.asimov.best().params.clone();
    if params.is_empty() {
        return 1.0;
    }
    let sigma = Hessian::at(test.asimov.likelihood(), &params, &domain).variance(poi).sqrt();
    if sigma.is_finite() && sigma > 0.0 { sigma } else { 1.0 }
}
