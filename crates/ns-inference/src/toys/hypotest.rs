//! Tests hypotheses with toys: the distributions of a test statistic under two hypotheses, from
//! toys thrown at the fit of each to the data.
//!
//! The conventions are those of pyhf 0.7's toy calculator. For upper limits, the tested hypothesis
//! has the parameter of interest at μ and the alternative at 0. For a discovery (q0), it is tested
//! at μ, usually 0, against 1. In each hypothesis, the nuisance parameters are at their conditional
//! best fit to the data.

use super::p_value::{HypotestToys, ObservedStatistic, StatisticSamples};
use super::pilot::{ToySearch, toy_search};
use super::point::{Hypothesis, PointTest};
use super::prefit::{DataSetRequest, DevicePrefit, PrefitRequest};
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use super::throw::{AuxTreatment, Ensemble, ToySampler, ToySource};
use crate::accelerator::Accelerator;
use crate::minimize::Domain;
use crate::options::{FitOptions, domain_and_start};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::search::is_lower;
use crate::test_statistic::{EvaluatedStatistic, TestFailure, TestStatistic, test_from};
use ns_core::likelihood::NonFinite;
use ns_core::{Data, DataLikelihood, Model};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// The tested hypothesis, and the numbers of toys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HypotestSettings {
    /// The statistic.
    pub test_statistic: TestStatistic,
    /// The index of the parameter of interest.
    pub poi: usize,
    /// The tested value of the parameter of interest.
    pub mu: f64,
    /// The numbers of toys of the tested and of the alternative hypothesis.
    pub n_toys: [u64; 2],
    /// The seed. Toys of different seeds share no random numbers.
    pub seed: u64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

impl HypotestSettings {
    /// Returns the number of units of the run: the toys of both hypotheses. They alternate until
    /// the smaller ensemble is complete, so that a run that stops early has toys of both.
    #[must_use]
    pub fn n_units(&self) -> u64 {
        self.n_toys[0] + self.n_toys[1]
    }

    /// Returns the toy that belongs to unit `unit`.
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
    /// 0 for the tested hypothesis, 1 for the alternative.
    pub which: usize,
    /// The index of the toy.
    pub toy: u64,
}

/// The test statistic of one toy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToyTest {
    /// The toy.
    pub unit: HypothesisToy,
    /// The statistic; `None` if a fit did not converge.
    pub value: Option<f64>,
    /// The best fit of the parameter of interest.
    pub mu_hat: f64,
}

/// The reason why no toys can be thrown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ToysError {
    /// The statistic of the data is unknown.
    #[error("the test statistic of the data at {mu} could not be computed: {reason}")]
    Observed {
        /// The tested value.
        mu: f64,
        /// The fit that failed.
        reason: &'static str,
    },
    /// The fit of a hypothesis to the data did not converge.
    #[error(
        "the fit to the data with the parameter of interest fixed at {mu} did not converge, so no toys can be thrown there"
    )]
    Conditional {
        /// The value of the parameter of interest.
        mu: f64,
    },
    /// The free fit to the data did not converge.
    #[error("the free fit to the data did not converge, so toys have nothing to be compared with")]
    Free,
    /// A value at which toys would be thrown, but not fitted.
    #[error("no toys can be fitted at {mu}, which is outside the range of the parameter of interest, {} to {}", range[0], range[1])]
    Outside {
        /// The value.
        mu: f64,
        /// The ends of the range.
        range: [f64; 2],
    },
    /// The accelerator failed; it keeps the error.
    #[error("the accelerator failed while fitting toys")]
    Accelerator,
    /// Importance sampling of toys whose auxiliary data are fixed.
    #[error("importance sampling weights auxiliary data by their probability, and they are fixed")]
    ImportanceOfFixedAux,
    /// An expected value is negative or not a number.
    #[error("no toys can be thrown: {0}")]
    NotThrown(NonFinite),
}

/// Refuses the value `mu` of parameter `poi` outside its range: minima of toys are sought in it,
/// and the tested value must be among them.
pub(super) fn require_inside(domain: &Domain, poi: usize, mu: f64) -> Result<(), ToysError> {
    let range = [domain.lower[poi], domain.upper[poi]];
    if (range[0]..=range[1]).contains(&mu) { Ok(()) } else { Err(ToysError::Outside { mu, range }) }
}

impl From<NonFinite> for ToysError {
    fn from(reason: NonFinite) -> Self {
        Self::NotThrown(reason)
    }
}

/// A hypothesis test with its observed statistic, ready to throw toys.
#[derive(Debug)]
pub struct ToyHypotest<'a> {
    model: &'a Model,
    options: &'a FitOptions,
    settings: HypotestSettings,
    observed: ObservedStatistic,
    /// The free best fit to the data (P).
    best: Vec<f64>,
    /// The parameter of interest and its tested value.
    tested: [(usize, f64); 1],
    hypotheses: [Hypothesis; 2],
    /// How the minima of each hypothesis's toys are sought; determined by the first run.
    searches: OnceLock<[ToySearch; 2]>,
}

impl<'a> ToyHypotest<'a> {
    /// Fits both hypotheses to the data of `likelihood`.
    ///
    /// # Errors
    /// If a fit to the data does not converge, or ends where no toys can be thrown.
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
        // Each minimum is sought in the same ways as by the asymptotic test, so that both observed
        // statistics agree.
        let start = profiler.start().to_vec();
        let mut alternative = profiler.at_explored(&[(poi, against)], std::slice::from_ref(&start));
        profiler.try_from_point(&alternative.params);
        let starts = [alternative.params.clone(), start];
        let mut tested = test_from(&mut profiler, test_statistic, poi, mu, &starts);
        // A basin found by the test may be lower at the alternative, and lead to a lower free
        // minimum.
        let previous_nll = profiler.best().nll;
        if profiler.pool().n_found() > 0 {
            let again = profiler.at_on_the_way(&[(poi, against)], &[]);
            if again.converged() && (!alternative.converged() || is_lower(again.nll, alternative.nll)) {
                alternative = again;
            }
        }
        if is_lower(profiler.best().nll, previous_nll) {
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
        let (domain, best) = (profiler.domain().clone(), profiler.best().params.clone());
        let mut hypothesis = |params: &[f64], ensemble| -> Result<Hypothesis, ToysError> {
            let sampler = ToySampler::new(model, data, params, ToySource { seed, ensemble, aux })?;
            Ok(Hypothesis::new(model, profiler.likelihood(), &domain, sampler, &[poi]))
        };
        let hypotheses =
            [hypothesis(&conditional, Ensemble::Tested)?, hypothesis(&alternative.params, Ensemble::Alternative)?];
        profiler.likelihood().set_data(data);
        let observed = ObservedStatistic { test_statistic, mu, value, mu_hat };
        let tested = [(poi, mu)];
        Ok(Self { model, options, settings, observed, best, tested, hypotheses, searches: OnceLock::new() })
    }

    /// Returns the statistic of the data.
    #[must_use]
    pub fn observed(&self) -> ObservedStatistic {
        self.observed
    }

    /// Returns the settings of the test.
    #[must_use]
    pub fn settings(&self) -> &HypotestSettings {
        &self.settings
    }

    /// Returns the free best fit to the data (P).
    #[must_use]
    pub fn best_fit(&self) -> &[f64] {
        &self.best
    }

    /// Returns the parameters at which the toys of both hypotheses are thrown (P each).
    #[must_use]
    pub fn thrown_at(&self) -> [&[f64]; 2] {
        [self.hypotheses[0].sampler.params(), self.hypotheses[1].sampler.params()]
    }

    /// Throws and fits the toys of `units`, and passes them to `sink` in order and in batches until
    /// it breaks. Returns how the run ended.
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
        let pilot = |hypothesis: &Hypothesis| {
            toy_search(self.model, likelihood, self.options, &hypothesis.sampler, &self.tested, run)
        };
        let searches = *self.searches.get_or_init(|| self.hypotheses.each_ref().map(pilot));
        let prefit = |accelerator: &Accelerator, units| self.prefit(accelerator, units, run, searches);
        let work = |likelihood: &mut L, prefit: &DevicePrefit, units: Range<u64>| {
            self.batch(likelihood, units, prefit, run.accelerator, searches)
        };
        in_batches(units, run, BatchWork { prefit, make: || likelihood.clone(), work }, sink)
    }

    /// Finds the free and the conditional minima of the toys of `units` on the accelerator. Returns
    /// `None` if the accelerator fails.
    fn prefit(
        &self,
        accelerator: &Accelerator,
        units: Range<u64>,
        run: &ToyRun<'_>,
        searches: [ToySearch; 2],
    ) -> Option<DevicePrefit> {
        let (domain, _) = domain_and_start(self.model, self.options);
        let request_of = |unit| {
            let HypothesisToy { which, toy } = self.settings.unit(unit);
            DataSetRequest { source: &self.hypotheses[which].sampler, index: toy, search: searches[which] }
        };
        let request = PrefitRequest { accelerator, model: self.model, options: self.options, run, variance_of: None };
        let free = request.free(units, request_of)?;
        let predict = |unit, best: &[f64]| self.test().predict(&self.hypotheses[self.settings.unit(unit).which], best);
        free.then_conditional(accelerator, &domain, &[self.settings.poi], predict)
    }

    /// Returns the test of each toy.
    fn test(&self) -> PointTest<'_> {
        PointTest { statistic: self.settings.test_statistic, values: &self.tested }
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
            let (hypothesis, search) = (&self.hypotheses[unit.which], searches[unit.which]);
            profiler.set_exploring(search.explores);
            let EvaluatedStatistic { value, mu_hat, .. } = match prefit.of(number).zip(accelerator) {
                Some((fitted, accelerator)) => self.test().test_fitted(&mut profiler, hypothesis, fitted, accelerator),
                None => self.test().test(&mut profiler, &mut data, hypothesis, unit.toy, search),
            };
            ToyTest { unit, value, mu_hat }
        };
        units.map(&mut one).collect()
    }
}

/// Runs a complete test in memory: with all toys, or until the error of CLs is below
/// `stop_at_error`, which is checked every 500 toys.
///
/// # Errors
/// If a fit to the data does not converge or ends where no toys can be thrown, or if the
/// accelerator fails.
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

/// The number of units between two checks of the stopping rule.
const CHECK: u64 = 500;

impl HypotestSettings {
    /// Returns the unit at which a run that has reached `unit` checks the stopping rule next.
    #[must_use]
    pub fn next_check(&self, unit: u64, stop_at_error: Option<f64>) -> u64 {
        match stop_at_error {
            None => self.n_units(),
            Some(_) => self.n_units().min((unit / CHECK + 1) * CHECK),
        }
    }

    /// Returns whether the error of CLs is small enough after `n_units` units. The result depends
    /// only on the toys, not on how they were run.
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
