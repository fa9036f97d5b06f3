//! Tests toys at one point: how much worse each fits with the tested parameters fixed at their
//! values.

use super::fit::{refit, refit_from};
use super::hypotest::ToysError;
use super::pilot::ToySearch;
use super::prefit::{DataSetSource as _, FittedDataSet};
use super::throw::{ToySampler, ToySource};
use crate::accelerator::Accelerator;
use crate::minimize::{Domain, Minimum};
use crate::profile::Profiler;
use crate::response::Response;
use crate::test_statistic::{EvaluatedStatistic, TestStatistic, classify};
use ns_core::expected::asimov;
use ns_core::{Data, DataLikelihood, Model};

/// The hypothesis that toys are thrown from.
#[derive(Debug)]
pub(super) struct Hypothesis {
    pub(super) sampler: ToySampler,
    /// How the other parameters follow the tested ones.
    response: Response,
}

impl Hypothesis {
    /// Returns the hypothesis of `sampler`, whose toys are tested with the one or two parameters
    /// `tested` fixed. Leaves Asimov data in `likelihood`.
    pub(super) fn new<L: DataLikelihood>(
        model: &Model,
        likelihood: &mut L,
        domain: &Domain,
        sampler: ToySampler,
        tested: &[usize],
    ) -> Self {
        likelihood.set_data(&asimov(model, sampler.params()));
        let response = Response::at(model, likelihood, domain, sampler.params(), tested);
        Self { sampler, response }
    }

    /// Returns the hypothesis that `values` are those of the tested parameters, with the others at
    /// their conditional best fit to `data`, those of `profiler`; and -ln L there.
    ///
    /// # Errors
    /// If the fit does not converge, or ends where no toys can be thrown.
    pub(super) fn at_best_fit<L: DataLikelihood>(
        profiler: &mut Profiler<'_, L>,
        data: &Data,
        values: &[(usize, f64)],
        source: ToySource,
    ) -> Result<(Self, f64), ToysError> {
        let start = profiler.start().to_vec();
        let conditional = profiler.at_explored(values, &[start]);
        if !conditional.converged() {
            return Err(ToysError::Conditional { mu: values[0].1 });
        }
        let model = profiler.model();
        let sampler = ToySampler::new(model, data, &conditional.params, source)?;
        let tested: Vec<usize> = values.iter().map(|(i, _)| *i).collect();
        let domain = profiler.domain().clone();
        let likelihood = profiler.likelihood();
        let hypothesis = Self::new(model, likelihood, &domain, sampler, &tested);
        likelihood.set_data(data);
        Ok((hypothesis, conditional.nll))
    }
}

/// The test of toys at one point.
#[derive(Debug, Clone, Copy)]
pub(super) struct PointTest<'a> {
    pub(super) statistic: TestStatistic,
    /// The one or two tested parameters and their values. One-sided statistics test one parameter.
    pub(super) values: &'a [(usize, f64)],
}

/// The test statistic of a toy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ToyStatistic {
    /// The statistic; `None` if a fit did not converge.
    pub(super) value: Option<f64>,
    /// The best fit of the first tested parameter.
    pub(super) mu_hat: f64,
}

impl From<EvaluatedStatistic> for ToyStatistic {
    fn from(tested: EvaluatedStatistic) -> Self {
        Self { value: tested.value, mu_hat: tested.mu_hat }
    }
}

impl PointTest<'_> {
    /// Predicts the conditional minimum of a toy of `hypothesis` whose free minimum is `best` (P).
    pub(super) fn predict(&self, hypothesis: &Hypothesis, best: &[f64]) -> Vec<f64> {
        let values: Vec<f64> = self.values.iter().map(|(_, value)| *value).collect();
        hypothesis.response.moved(best, &values)
    }

    /// Throws, fits and tests a toy.
    pub(super) fn test<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        data: &mut Data,
        hypothesis: &Hypothesis,
        toy: u64,
        search: ToySearch,
    ) -> EvaluatedStatistic {
        hypothesis.sampler.throw(toy, data);
        self.test_data(profiler, data, hypothesis, search)
    }

    /// Fits and tests `data`, which were thrown near the parameters of `hypothesis`.
    pub(super) fn test_data<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        data: &Data,
        hypothesis: &Hypothesis,
        search: ToySearch,
    ) -> EvaluatedStatistic {
        refit(profiler, &hypothesis.sampler, data, search);
        let mut starts = vec![self.predict(hypothesis, &profiler.best().params)];
        if search.restarts {
            let [_, at_aux] = hypothesis.sampler.starts(data);
            starts.push(at_aux);
        }
        let conditional = profiler.at_from(self.values, &starts);
        self.finish(profiler, hypothesis, conditional)
    }

    /// Tests a toy that an accelerator has fitted.
    pub(super) fn test_fitted<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        hypothesis: &Hypothesis,
        fitted: FittedDataSet<'_>,
        accelerator: &Accelerator,
    ) -> EvaluatedStatistic {
        refit_from(profiler, accelerator, fitted);
        let conditional = match fitted.conditional.map(|fit| (accelerator.minimum(fit), fit)) {
            Some((Some(minimum), _)) if fitted.is_final => {
                profiler.learn_from(self.values, &minimum);
                minimum
            }
            Some((_, fit)) => {
                accelerator.leave(1);
                let mut starts = vec![fit.params.clone()];
                if fitted.restarts {
                    let [_, at_aux] = hypothesis.sampler.starts(fitted.data);
                    starts.push(at_aux);
                }
                profiler.at_from(self.values, &starts)
            }
            None => profiler.at(self.values),
        };
        self.finish(profiler, hypothesis, conditional)
    }

    /// Returns the test of a toy with the minimum `conditional`, after a refit from more starting
    /// points if it has no value.
    fn finish<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        hypothesis: &Hypothesis,
        conditional: Minimum,
    ) -> EvaluatedStatistic {
        let mut tested = self.classify(profiler, conditional);
        if tested.value.is_none() {
            let thrown_at = hypothesis.sampler.params();
            profiler.refit_widely(thrown_at);
            let starts = [profiler.best().params.clone(), thrown_at.to_vec()];
            let conditional = profiler.at_from(self.values, &starts);
            tested = self.classify(profiler, conditional);
        }
        tested
    }

    fn classify<L: DataLikelihood>(&self, profiler: &Profiler<'_, L>, conditional: Minimum) -> EvaluatedStatistic {
        let (poi, mu) = self.values[0];
        classify(profiler, self.statistic, poi, mu, conditional)
    }
}
