//! Decides for one toy and each method whether the interval contains the true value, with no more
//! fits than that takes.

use super::{CoverageMethod, CoverageSettings};
use crate::accelerator::Accelerator;
use crate::asymptotic::p_values;
use crate::hypotest::{ProfileRatioTest, TestedHypothesis};
use crate::minos;
use crate::normal::upper_tail;
use crate::options::{FitOptions, domain_and_start};
use crate::profile::Profiler;
use crate::test_statistic::{EvaluatedStatistic, TestStatistic};
use crate::toys::fit::{refit, refit_from};
use crate::toys::p_value::threshold;
use crate::toys::pilot::ToySearch;
use crate::toys::point::{Hypothesis, PointTest};
use crate::toys::prefit::{DataSetRequest, DevicePrefit, FittedDataSet, PrefitRequest};
use crate::toys::run::ToyRun;
use crate::toys::throw::{Ensemble, ToySampler, ToySource};
use ns_core::{Data, DataLikelihood, Model};
use std::ops::Range;

/// Whether the interval of a toy contains the true value.
#[derive(Debug)]
pub(super) enum Decision {
    /// It does.
    Covers,
    /// It does not.
    Misses,
    /// There is no interval: -ln L has no curvature at the best fit.
    NoInterval,
    /// It is unknown, because a fit did not converge.
    Failed,
    /// Inner toys have to decide it.
    Open(Box<OpenToy>),
    /// It was decided by this estimate after the given number of inner toys, but not significantly.
    Undecided { covers: bool },
}

/// A toy that is compared with toys of its own.
#[derive(Debug)]
pub(super) struct OpenToy {
    /// The hypothesis of the inner toys: the true value, with the other parameters at their
    /// conditional best fit to the toy.
    pub(super) hypothesis: Hypothesis,
    /// t_μ of the toy.
    pub(super) t: f64,
}

/// The decisions about one toy, by the index of their method.
#[derive(Debug, Default)]
pub(super) struct ToyDecisions {
    pub(super) decisions: [Option<Decision>; CoverageMethod::ALL.len()],
    /// The number of inner toys.
    pub(super) n_inner: u64,
}

/// What the fits of a coverage share.
#[derive(Clone, Copy)]
pub(super) struct CoverageFits<'a> {
    pub(super) model: &'a Model,
    pub(super) options: &'a FitOptions,
    pub(super) settings: &'a CoverageSettings,
}

/// A toy that an accelerator has fitted.
pub(super) struct FittedToy<'a> {
    pub(super) fitted: FittedDataSet<'a>,
    pub(super) accelerator: &'a Accelerator,
}

/// A toy to decide about.
pub(super) struct DecidedToy<'a> {
    /// Its number.
    pub(super) unit: u64,
    /// What an accelerator found of it; `None` if it is to be thrown and fitted.
    pub(super) fitted: Option<FittedToy<'a>>,
}

/// What the decisions about the toys of one true value need.
pub(super) struct ToyDecider<'a> {
    fits: CoverageFits<'a>,
    /// The parameter of interest and its true value.
    tested: [(usize, f64); 1],
    hypothesis: &'a Hypothesis,
    search: ToySearch,
    /// The number of standard deviations of an interval on each side.
    height: f64,
    /// Whether a method needs the fit with the true value.
    needs_conditional: bool,
}

impl<'a> ToyDecider<'a> {
    /// Prepares decisions about toys of `hypothesis`, that of true value `k`.
    pub(super) fn new(fits: CoverageFits<'a>, k: usize, hypothesis: &'a Hypothesis, search: ToySearch) -> Self {
        let settings = fits.settings;
        let tested = [(settings.poi, settings.true_values[k])];
        let needs_conditional = settings.methods().any(|method| method != CoverageMethod::Hessian);
        let height = minos::height(settings.cl);
        Self { fits, tested, hypothesis, search, height, needs_conditional }
    }

    /// Returns the parameter of interest and its true value.
    pub(super) fn tested(&self) -> &[(usize, f64); 1] {
        &self.tested
    }

    fn test(&self) -> PointTest<'_> {
        PointTest { statistic: TestStatistic::T, values: &self.tested }
    }

    /// Finds the minima of the toys `units` on the accelerator. Returns `None` if it fails.
    pub(super) fn prefit(
        &self,
        accelerator: &Accelerator,
        units: Range<u64>,
        run: &ToyRun<'_>,
    ) -> Option<DevicePrefit> {
        let Self { fits: CoverageFits { model, options, .. }, hypothesis, search, .. } = *self;
        let request_of = |index| DataSetRequest { source: &hypothesis.sampler, index, search };
        let free = PrefitRequest { accelerator, model, options, run, variance_of: None }.free(units, request_of)?;
        if !self.needs_conditional {
            return Some(free);
        }
        let (domain, _) = domain_and_start(model, options);
        let predict = |_, best: &[f64]| self.test().predict(hypothesis, best);
        free.then_conditional(accelerator, &domain, &[self.fits.settings.poi], predict)
    }

    /// Throws toy `unit`, and decides it; leaves open what takes inner toys. `scratch` is another
    /// likelihood of the model.
    pub(super) fn decide<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        scratch: &mut L,
        data: &mut Data,
        DecidedToy { unit, fitted }: DecidedToy<'_>,
    ) -> ToyDecisions {
        let Self { hypothesis, search, .. } = *self;
        profiler.set_exploring(search.explores);
        let tested = match (self.needs_conditional, fitted) {
            (true, Some(FittedToy { fitted, accelerator })) => {
                Some(self.test().test_fitted(profiler, hypothesis, fitted, accelerator))
            }
            (true, None) => Some(self.test().test(profiler, data, hypothesis, unit, search)),
            (false, Some(FittedToy { fitted, accelerator })) => {
                refit_from(profiler, accelerator, fitted);
                None
            }
            (false, None) => {
                hypothesis.sampler.throw(unit, data);
                refit(profiler, &hypothesis.sampler, data, search);
                None
            }
        };
        let mut toy = ToyDecisions::default();
        // Feldman-Cousins comes last, because it replaces the data.
        for method in self.fits.settings.methods() {
            let decision = match (method, &tested) {
                (CoverageMethod::Hessian, _) | (_, None) => self.hessian(profiler),
                (CoverageMethod::Minos, Some(tested)) => self.minos(tested),
                (CoverageMethod::Cls, Some(tested)) => self.cls(profiler, scratch, tested),
                (CoverageMethod::FeldmanCousins, Some(tested)) => self.feldman_cousins(profiler, tested),
            };
            toy.decisions[method.index()] = Some(decision);
        }
        toy
    }

    /// Compares the distance of the best fit from the true value with z standard deviations.
    fn hessian<L: DataLikelihood>(&self, profiler: &mut Profiler<'_, L>) -> Decision {
        let [(poi, value)] = self.tested;
        if !profiler.best().converged() {
            return Decision::Failed;
        }
        let distance = (profiler.best().params[poi] - value).abs();
        profiler
            .sigma_without_range(poi)
            .map_or(Decision::NoInterval, |sigma| covers_if(distance <= self.height * sigma))
    }

    /// Compares t_μ with z².
    fn minos(&self, tested: &EvaluatedStatistic) -> Decision {
        tested.value.map_or(Decision::Failed, |t| covers_if(t <= self.height * self.height))
    }

    /// Compares the asymptotic CLs with 1 - CL.
    fn cls<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        scratch: &mut L,
        tested: &EvaluatedStatistic,
    ) -> Decision {
        let ([(poi, mu)], statistic, level) = (self.tested, TestStatistic::QTilde, 1.0 - self.fits.settings.cl);
        let Some(t) = tested.value else { return Decision::Failed };
        if least_cls(statistic.value(mu, tested.mu_hat, 0.5 * t)) >= level {
            return Decision::Covers;
        }
        let (best, pool) = (profiler.best().clone(), profiler.pool().clone());
        let mut observed =
            Profiler::around(self.fits.model, profiler.likelihood(), self.fits.options, &best).with_pool(&pool);
        observed.set_exploring(self.search.explores);
        let hypothesis = TestedHypothesis { statistic, poi, asimov_mu: statistic.asimov_mu() };
        let pair = ProfileRatioTest::around(observed, scratch, self.fits.options, hypothesis).at(mu);
        let values = pair.observed.value.zip(pair.asimov.value);
        values.map_or(Decision::Failed, |(q, q_asimov)| covers_if(p_values(statistic, q, q_asimov).cls >= level))
    }

    /// Prepares the inner toys.
    fn feldman_cousins<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        tested: &EvaluatedStatistic,
    ) -> Decision {
        let Some(t) = tested.value else { return Decision::Failed };
        if threshold(t) <= 0.0 {
            // The statistic of every toy is at least that.
            return Decision::Covers;
        }
        let CoverageSettings { seed, aux, poi, .. } = *self.fits.settings;
        let source = ToySource { seed, ensemble: Ensemble::Inner, aux };
        let data = profiler.likelihood().data().clone();
        let Ok(sampler) = ToySampler::new(self.fits.model, &data, &tested.conditional, source) else {
            return Decision::Failed;
        };
        let domain = profiler.domain().clone();
        let hypothesis = Hypothesis::new(self.fits.model, profiler.likelihood(), &domain, sampler, &[poi]);
        Decision::Open(Box::new(OpenToy { hypothesis, t }))
    }
}

fn covers_if(covers: bool) -> Decision {
    if covers { Decision::Covers } else { Decision::Misses }
}

/// Returns a lower bound on the asymptotic CLs of q̃ = `q`, whatever the Asimov value.
///
/// It is Q(√q). With a = √q̃_A, CLs is Q(√q)/Q(√q - a) below the Asimov value, and above it
/// Q(t)/Q(d) with t² = d² + q. There Q(d) Q(√q) is the probability of a quadrant of two normal
/// variables, which is inside the half-plane at the distance t, of probability Q(t).
fn least_cls(q: f64) -> f64 {
    upper_tail(q.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cls_is_never_below_its_bound() {
        for q in [0.0, 0.01, 0.5, 2.7, 3.84, 10.0, 40.0] {
            for q_asimov in [0.0, 1e-3, 0.1, 1.0, 2.5, 9.0, 50.0] {
                let cls = p_values(TestStatistic::QTilde, q, q_asimov).cls;
                assert!(cls >= least_cls(q) * (1.0 - 1e-12), "{q}, {q_asimov}: {cls} is below {}", least_cls(q));
            }
        }
    }
}
