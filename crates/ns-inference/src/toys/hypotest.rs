//! Hypothesis tests by toys: the distributions of a test statistic under two hypotheses, from toys thrown at the fits of the data to each.
//!
//! Conventions are those of pyhf 0.7's toy calculator. For upper limits the tested hypothesis has the parameter of interest at μ and the alternative at 0;
//! for a discovery (q0) it is tested at μ, usually 0, against 1. Nuisance parameters are at their conditional best fit to the data in each.

use super::fit::{refit, refit_from};
use super::p_value::{HypotestToys, ObservedStatistic, StatisticSamples};
use super::pilot::{ToySearch, toy_search};
use super::prefit::{DevicePrefit, KnownToy, PrefitRequest, ToyRequest};
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use super::throw::{AuxTreatment, Ensemble, ToySampler, ToySource};
use crate::accelerator::Accelerator;
use crate::hessian::Hessian;
use crate::minimize::Domain;
use crate::options::{FitOptions, domain_and_start};
use crate::problem::Problem;
use crate::profile::{DISTINCT, Profiler};
use crate::test_statistic::{EvaluatedStatistic, TestFailure, TestStatistic, classify, test_from};
use ns_core::expected::asimov;
use ns_core::likelihood::NonFinite;
use ns_core::{Data, DataLikelihood, Model};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// What is tested, and with how many toys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HypotestSettings {
    /// The statistic.
    pub test_statistic: TestStatistic,
    /// The parameter of interest.
    pub poi: usize,
    /// Its tested value.
    pub mu: f64,
    /// Toys of the tested and of the alternative hypothesis.
    pub n_toys: [u64; 2],
    /// Toys of two seeds share nothing.
    pub seed: u64,
    /// What happens to the auxiliary data.
    pub aux: AuxTreatment,
}

impl HypotestSettings {
    /// Units of the run: the toys of both hypotheses, in turns until the smaller ensemble is complete, so that a run that stops early has both.
    #[must_use]
    pub fn n_units(&self) -> u64 {
        self.n_toys[0] + self.n_toys[1]
    }

    /// The toy that unit `unit` is.
    #[must_use]
    pub fn unit(&self, unit: u64) -> HypothesisToy {
        let shorter = self.n_toys[0].min(self.n_toys[1]);
        if unit < 2 * shorter {
            return HypothesisToy { which: (unit % 2) as usize, toy: unit / 2 };
        }
        HypothesisToy { which: usize::from(self.n_toys[1] > self.n_toys[0]), toy: unit - shorter }
    }
}

/// A toy of one of the two hypotheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HypothesisToy {
    /// 0 for the tested, 1 for the alternative hypothesis.
    pub which: usize,
    /// Its number.
    pub toy: u64,
}

/// The test statistic of one toy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToyTest {
    /// Which toy.
    pub unit: HypothesisToy,
    /// The statistic; `None` where a fit did not converge.
    pub value: Option<f64>,
    /// The best-fit value of the parameter of interest.
    pub mu_hat: f64,
}

/// Why no toys can be thrown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ToysError {
    /// The statistic of the data themselves is not known.
    #[error("the data have no test statistic at {mu}: {reason}")]
    Observed {
        /// The tested value.
        mu: f64,
        /// Which fit is to blame.
        reason: &'static str,
    },
    /// The fit of the data to a hypothesis did not converge.
    #[error(
        "the fit of the data with the parameter of interest at {mu}, where toys are to be thrown, did not converge"
    )]
    Conditional {
        /// The value of the parameter of interest.
        mu: f64,
    },
    /// The accelerator failed, which knows why.
    #[error("the accelerator that was to fit the toys failed")]
    Accelerator,
    /// Nothing can be thrown where something expected is negative or not a number.
    #[error("no toys can be thrown: {0}")]
    NotThrown(NonFinite),
}

impl From<NonFinite> for ToysError {
    fn from(reason: NonFinite) -> Self {
        Self::NotThrown(reason)
    }
}

/// A test that is ready to throw its toys.
#[derive(Debug)]
pub struct ToyHypotest<'a> {
    model: &'a Model,
    options: &'a FitOptions,
    settings: HypotestSettings,
    observed: ObservedStatistic,
    hypotheses: [Hypothesis; 2],
    /// How the minima of each one's toys are looked for, found out by the first run.
    searches: OnceLock<[ToySearch; 2]>,
}

/// Where the toys of one hypothesis are thrown.
#[derive(Debug)]
struct Hypothesis {
    sampler: ToySampler,
    /// How far each parameter moves, in the mean, when the parameter of interest is moved by 1 (P).
    direction: Vec<f64>,
}

impl<'a> ToyHypotest<'a> {
    /// Fits `data`, whose likelihood is `likelihood`, to both hypotheses.
    ///
    /// # Errors
    /// A fit of the data that does not converge, or ends where nothing can be thrown.
    pub fn new<L: DataLikelihood>(
        model: &'a Model,
        likelihood: &mut L,
        options: &'a FitOptions,
        settings: HypotestSettings,
    ) -> Result<Self, ToysError> {
        let HypotestSettings { test_statistic, poi, mu, seed, aux, .. } = settings;
        let data = &likelihood.data().clone();
        let mut profiler = Profiler::new(model, likelihood, options);
        let against = test_statistic.asimov_mu();
        // Each minimum is looked for in all the ways in which the asymptotic test does it: both have the same observed statistic.
        let start = profiler.start().to_vec();
        let mut alternative = profiler.at_explored(&[(poi, against)], std::slice::from_ref(&start));
        profiler.try_from_point(&alternative.params);
        let starts = [alternative.params.clone(), start];
        let mut tested = test_from(&mut profiler, test_statistic, poi, mu, &starts);
        // A basin met by the test may be lower at the alternative, and lead to a lower free minimum.
        let known = profiler.best().nll;
        if profiler.pool().n_found() > 0 {
            let again = profiler.at_on_the_way(&[(poi, against)], &[]);
            if again.converged() && (!alternative.converged() || again.nll < alternative.nll - DISTINCT) {
                alternative = again;
            }
        }
        if profiler.best().nll < known - DISTINCT {
            let starts = [tested.conditional.clone()];
            tested = test_from(&mut profiler, test_statistic, poi, mu, &starts);
        }
        let EvaluatedStatistic { value: Some(value), mu_hat, conditional, .. } = tested else {
            return Err(ToysError::Observed {
                mu,
                reason: tested.failure.map_or("a fit did not converge", TestFailure::reason),
            });
        };
        if !alternative.converged() {
            return Err(ToysError::Conditional { mu: against });
        }
        let domain = profiler.domain().clone();
        let mut hypothesis = |params: &[f64], ensemble| -> Result<Hypothesis, ToysError> {
            let sampler = ToySampler::new(model, data, params, ToySource { seed, ensemble, aux })?;
            Ok(Hypothesis { direction: direction(model, profiler.likelihood(), &domain, params, poi), sampler })
        };
        let hypotheses =
            [hypothesis(&conditional, Ensemble::Tested)?, hypothesis(&alternative.params, Ensemble::Alternative)?];
        profiler.likelihood().set_data(data);
        let observed = ObservedStatistic { test_statistic, mu, value, mu_hat };
        Ok(Self { model, options, settings, observed, hypotheses, searches: OnceLock::new() })
    }

    /// The statistic of the data.
    #[must_use]
    pub fn observed(&self) -> ObservedStatistic {
        self.observed
    }

    /// What is tested.
    #[must_use]
    pub fn settings(&self) -> &HypotestSettings {
        &self.settings
    }

    /// Where the toys of both hypotheses are thrown (P each).
    #[must_use]
    pub fn thrown_at(&self) -> [&[f64]; 2] {
        [self.hypotheses[0].sampler.params(), self.hypotheses[1].sampler.params()]
    }

    /// Throws and fits the toys `units` and hands them to `sink`, in order and many at a time, until it wants no more.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn run<L: DataLikelihood + Clone + Sync, E>(
        &self,
        likelihood: &L,
        units: Range<u64>,
        run: &ToyRun<'_>,
        sink: impl FnMut(Vec<ToyTest>) -> Result<ControlFlow<()>, E>,
    ) -> Result<RunStatus, E> {
        let pilot =
            |hypothesis: &Hypothesis| toy_search(self.model, likelihood, self.options, &hypothesis.sampler, run);
        let searches = *self.searches.get_or_init(|| self.hypotheses.each_ref().map(pilot));
        let prefit = |accelerator: &Accelerator, units| self.prefit(accelerator, units, run, searches);
        let work = |likelihood: &mut L, prefit: &DevicePrefit, units: Range<u64>| {
            self.batch(likelihood, units, prefit, run.accelerator, searches)
        };
        in_batches(units, run, BatchWork { prefit, make: || likelihood.clone(), work }, sink)
    }

    /// The free and the conditional minima of the toys `units`, as far as the accelerator finds them.
    fn prefit(
        &self,
        accelerator: &Accelerator,
        units: Range<u64>,
        run: &ToyRun<'_>,
        searches: [ToySearch; 2],
    ) -> Option<DevicePrefit> {
        let HypotestSettings { poi, mu, .. } = self.settings;
        let (domain, _) = domain_and_start(self.model, self.options);
        let thrown = |unit| {
            let HypothesisToy { which, toy } = self.settings.unit(unit);
            ToyRequest { sampler: &self.hypotheses[which].sampler, toy, search: searches[which] }
        };
        let request = PrefitRequest { accelerator, model: self.model, options: self.options, run, variance_of: None };
        let free = request.free(units, thrown)?;
        let predict = |unit, best: &[f64]| self.predict(self.settings.unit(unit), best);
        free.then_conditional(accelerator, &domain, (poi, mu), predict)
    }

    /// Where the conditional minimum of a toy should be whose free one is `best` (P).
    fn predict(&self, unit: HypothesisToy, best: &[f64]) -> Vec<f64> {
        let step = self.settings.mu - best[self.settings.poi];
        best.iter().zip(&self.hypotheses[unit.which].direction).map(|(x, d)| x + step * d).collect()
    }

    fn batch<L: DataLikelihood>(
        &self,
        likelihood: &mut L,
        units: Range<u64>,
        prefit: &DevicePrefit,
        accelerator: Option<&Accelerator>,
        searches: [ToySearch; 2],
    ) -> Vec<ToyTest> {
        let mut profiler = Profiler::unfitted(self.model, likelihood, self.options);
        let mut data = Data::default();
        let mut one = |number| {
            let unit = self.settings.unit(number);
            profiler.set_exploring(searches[unit.which].explores);
            match prefit.of(number).zip(accelerator) {
                Some((known, accelerator)) => self.finish_one(&mut profiler, unit, known, accelerator),
                None => self.test_one(&mut profiler, &mut data, unit, searches),
            }
        };
        units.map(&mut one).collect()
    }

    fn test_one<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        data: &mut Data,
        unit: HypothesisToy,
        searches: [ToySearch; 2],
    ) -> ToyTest {
        let HypotestSettings { test_statistic, poi, mu, .. } = self.settings;
        refit(profiler, &self.hypotheses[unit.which].sampler, unit.toy, data, searches[unit.which]);
        let predicted = self.predict(unit, &profiler.best().params);
        let conditional = profiler.at_from(&[(poi, mu)], &[predicted]);
        let tested = classify(profiler, test_statistic, poi, mu, conditional);
        self.test_again_if_needed(profiler, unit, tested)
    }

    /// The test of a toy that an accelerator has fitted.
    fn finish_one<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        unit: HypothesisToy,
        known: KnownToy<'_>,
        accelerator: &Accelerator,
    ) -> ToyTest {
        let HypotestSettings { test_statistic, poi, mu, .. } = self.settings;
        refit_from(profiler, accelerator, known);
        let conditional = match known.conditional.map(|arrival| (accelerator.minimum(arrival), arrival)) {
            Some((Some(minimum), _)) if known.is_final => {
                profiler.learn_from(&[(poi, mu)], &minimum);
                minimum
            }
            Some((_, arrival)) => {
                accelerator.leave(1);
                profiler.at_from(&[(poi, mu)], std::slice::from_ref(&arrival.params))
            }
            None => profiler.at(&[(poi, mu)]),
        };
        let tested = classify(profiler, test_statistic, poi, mu, conditional);
        self.test_again_if_needed(profiler, unit, tested)
    }

    /// A toy without a value is fitted again from more points.
    fn test_again_if_needed<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        unit: HypothesisToy,
        mut tested: EvaluatedStatistic,
    ) -> ToyTest {
        let HypotestSettings { test_statistic, poi, mu, .. } = self.settings;
        if tested.value.is_none() {
            let thrown_at = self.hypotheses[unit.which].sampler.params();
            profiler.refit_widely(thrown_at);
            let starts = [profiler.best().params.clone(), thrown_at.to_vec()];
            let conditional = profiler.at_from(&[(poi, mu)], &starts);
            tested = classify(profiler, test_statistic, poi, mu, conditional);
        }
        ToyTest { unit, value: tested.value, mu_hat: tested.mu_hat }
    }
}

/// The column of the covariance that belongs to `poi`, over its variance, at Asimov data of `params`: the derivative of the profile's path there.
fn direction<L: DataLikelihood>(
    model: &Model,
    likelihood: &mut L,
    domain: &Domain,
    params: &[f64],
    poi: usize,
) -> Vec<f64> {
    likelihood.set_data(&asimov(model, params));
    let mut domain = domain.clone();
    (domain.lower[poi], domain.upper[poi], domain.fixed[poi]) = (f64::MIN, f64::MAX, false);
    let mut hessian = Hessian::at(likelihood, params, &domain);
    let mut column = vec![0.0; params.len()];
    let variance = hessian.variance(poi);
    if hessian.is_positive_definite() && variance > 0.0 && variance.is_finite() {
        hessian.covariance_column(poi, &mut column);
        column.iter_mut().for_each(|c| *c /= variance);
    }
    column[poi] = 1.0;
    column
}

/// A whole test in memory: every toy, or as many as bring the error of CLs below `stop_at_error`, which is looked at every 500 toys.
///
/// # Errors
/// A fit of the data that does not converge, or ends where nothing can be thrown; an accelerator that fails.
pub fn hypotest_toys<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: HypotestSettings,
    run: &ToyRun<'_>,
    stop_at_error: Option<f64>,
) -> Result<HypotestToys, ToysError> {
    let hypotest = ToyHypotest::new(problem.model, problem.likelihood, problem.options, settings)?;
    let (mut samples, mut next) = (StatisticSamples::default(), 0);
    while next < settings.n_units() && !run.monitor.is_cancelled() {
        let end = settings.next_check(next, stop_at_error);
        let Ok(ended) = hypotest.run(problem.likelihood, next..end, run, |tests| {
            tests.iter().for_each(|test| samples.push(test.unit.which, test.value));
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        if ended == RunStatus::Failed {
            return Err(ToysError::Accelerator);
        }
        if settings.is_enough(end, &samples, &hypotest.observed, stop_at_error) {
            break;
        }
        next = end;
    }
    Ok(HypotestToys::new(hypotest.observed, &samples))
}

/// Units after which the stopping rule is looked at, and again after as many more.
const CHECK: u64 = 500;

impl HypotestSettings {
    /// Where a run that has come to `unit` goes on to before its next look at the stopping rule.
    #[must_use]
    pub fn next_check(&self, unit: u64, stop_at_error: Option<f64>) -> u64 {
        match stop_at_error {
            None => self.n_units(),
            Some(_) => self.n_units().min((unit / CHECK + 1) * CHECK),
        }
    }

    /// Whether the error of CLs is small enough after `n_units` units. The answer depends on the toys only, not on how they were run.
    #[must_use]
    pub fn is_enough(
        &self,
        n_units: u64,
        samples: &StatisticSamples,
        observed: &ObservedStatistic,
        stop_at_error: Option<f64>,
    ) -> bool {
        let Some(limit) = stop_at_error else { return false };
        n_units.is_multiple_of(CHECK) && samples.error(observed) < limit
    }
}
