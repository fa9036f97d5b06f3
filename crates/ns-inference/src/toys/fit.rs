//! Fits an ensemble of toys, each starting at the parameters at which the toys were thrown.

use super::pilot::{ToySearch, toy_search};
use super::prefit::{DataSetRequest, DataSetSource as _, DevicePrefit, FittedDataSet, PrefitRequest, lowest};
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use super::throw::ToySampler;
use crate::accelerator::Accelerator;
use crate::minimize::Outcome;
use crate::monitor::NoMonitor;
use crate::options::FitOptions;
use crate::profile::Profiler;
use ns_core::{Data, DataLikelihood, Model};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

/// The fit of one toy.
#[derive(Debug, Clone, PartialEq)]
pub struct ToyFit {
    /// The index of the toy.
    pub toy: u64,
    /// Why the fit stopped. Ignore the numbers of a fit that did not converge.
    pub outcome: Outcome,
    /// -ln L at the minimum, with all constants.
    pub nll: f64,
    /// The parameters at the minimum (P).
    pub params: Vec<f64>,
    /// The standard deviation of the requested parameter; `None` if it has none.
    pub uncertainty: Option<f64>,
}

/// Fits the toys of an ensemble.
#[derive(Debug, Clone, Copy)]
pub struct ToyFitter<'a> {
    /// The model.
    pub model: &'a Model,
    /// The fixed parameters and ranges.
    pub options: &'a FitOptions,
    /// The source of the toys.
    pub sampler: &'a ToySampler,
    /// The parameter whose uncertainty is computed.
    pub uncertainty_of: Option<usize>,
}

impl ToyFitter<'_> {
    /// Fits the toys with indices `toys`, and passes the results to `sink` in order and in batches.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn run<L: DataLikelihood + Clone + Sync, E>(
        &self,
        likelihood: &L,
        toys: Range<u64>,
        run: &ToyRun<'_>,
        mut sink: impl FnMut(Vec<ToyFit>) -> Result<(), E>,
    ) -> Result<RunStatus, E> {
        let search = toy_search(self.model, likelihood, self.options, self.sampler, &[], run);
        let prefit = |accelerator: &Accelerator, toys| {
            let request_of = |index| DataSetRequest { source: self.sampler, index, search };
            let Self { model, options, uncertainty_of: variance_of, .. } = *self;
            PrefitRequest { accelerator, model, options, run, variance_of }.free(toys, request_of)
        };
        let work = |likelihood: &mut L, prefit: &DevicePrefit, toys| {
            self.batch(likelihood, toys, prefit, run.accelerator, search)
        };
        let make = || likelihood.clone();
        in_batches(toys, run, BatchWork { prefit, make, work }, |fits| sink(fits).map(ControlFlow::Continue))
    }

    fn batch<L: DataLikelihood>(
        &self,
        likelihood: &mut L,
        toys: Range<u64>,
        prefit: &DevicePrefit,
        accelerator: Option<&Accelerator>,
        search: ToySearch,
    ) -> Vec<ToyFit> {
        let mut profiler = Profiler::unfitted(self.model, likelihood, self.options);
        profiler.set_exploring(search.explores);
        let mut data = Data::default();
        let mut one = |toy| {
            let Some((fitted, accelerator)) = prefit.of(toy).zip(accelerator) else {
                self.sampler.throw(toy, &mut data);
                refit(&mut profiler, self.sampler, &data, search);
                return self.result(&mut profiler, toy);
            };
            if !refit_from(&mut profiler, accelerator, fitted) {
                return self.result(&mut profiler, toy);
            }
            let variance = lowest(fitted.free).variance;
            if variance.is_none() && self.has_uncertainty(&profiler) {
                // Where a matrix is singular to rounding, fused products may leave no variance.
                accelerator.leave(1);
                return self.result(&mut profiler, toy);
            }
            Self::result_with(&profiler, toy, self.uncertainty_of.and(variance).map(f64::sqrt))
        };
        toys.map(&mut one).collect()
    }

    /// Returns whether an uncertainty is wanted, and its parameter is free and inside its range.
    fn has_uncertainty<L: DataLikelihood>(&self, profiler: &Profiler<'_, L>) -> bool {
        let domain = profiler.domain();
        let is_inside = |i: usize| domain.bound_at(i, profiler.best().params[i]).is_none() && !domain.fixed[i];
        self.uncertainty_of.is_some_and(is_inside)
    }

    fn result<L: DataLikelihood>(&self, profiler: &mut Profiler<'_, L>, toy: u64) -> ToyFit {
        let converged = profiler.best().converged();
        let uncertainty = self.uncertainty_of.filter(|_| converged).and_then(|i| profiler.hessian().sigma(i));
        Self::result_with(profiler, toy, uncertainty)
    }

    fn result_with<L: DataLikelihood>(profiler: &Profiler<'_, L>, toy: u64, uncertainty: Option<f64>) -> ToyFit {
        let best = profiler.best();
        ToyFit { toy, outcome: best.outcome, nll: best.nll, params: best.params.clone(), uncertainty }
    }
}

/// Finds the free minimum of `data`, a toy of `sampler`, with the strategy `search`.
pub(super) fn refit<L: DataLikelihood>(
    profiler: &mut Profiler<'_, L>,
    sampler: &ToySampler,
    data: &Data,
    search: ToySearch,
) {
    profiler.likelihood().set_data(data);
    let starts = sampler.starts(data);
    profiler.refit(&starts.each_ref().map(Vec::as_slice)[..search.n_starts]);
}

/// Adopts the free minimum that an accelerator found for a toy, and returns whether that sufficed.
///
/// If a fit on the accelerator did not converge, or if a lower minimum may be hidden, the host
/// refits from all end points and from the original starting points, and so finds every minimum
/// that it would have found alone. End points in single precision are used only as starting points.
pub(crate) fn refit_from<L: DataLikelihood>(
    profiler: &mut Profiler<'_, L>,
    accelerator: &Accelerator,
    fitted: FittedDataSet<'_>,
) -> bool {
    profiler.likelihood().set_data(fitted.data);
    let is_final = fitted.is_final && fitted.free.iter().all(|fit| fit.converged);
    let minimum = accelerator.minimum(lowest(fitted.free)).filter(|_| is_final);
    let is_done = minimum.is_some();
    match minimum {
        Some(minimum) => profiler.adopt(minimum),
        None => {
            accelerator.leave(1);
            let ends = fitted.free.iter().map(|fit| &fit.params[..]);
            let original = fitted.starts.iter().map(Vec::as_slice).filter(|_| !is_final);
            profiler.refit(&ends.chain(original).collect::<Vec<_>>());
        }
    }
    is_done
}

/// Fits the toys with indices `toys` on one thread, and returns all fits.
///
/// ```no_run
/// # use ns_core::{Data, DataLikelihood, Model};
/// # use ns_inference::FitOptions;
/// # use ns_inference::toys::{AuxTreatment, Ensemble, ToyFitter, ToySampler, ToySource, fit_toys};
/// # fn example(model: &Model, likelihood: &(impl DataLikelihood + Clone + Sync), bestfit: &[f64]) {
/// let source = ToySource { seed: 1, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
/// let sampler = ToySampler::new(model, &model.observed, bestfit, source).expect("a point of the domain");
/// let options = FitOptions::default();
/// let fitter = ToyFitter { model, options: &options, sampler: &sampler, uncertainty_of: None };
/// let fits = fit_toys(&fitter, likelihood, 0..100);
/// # }
/// ```
#[must_use]
pub fn fit_toys<L: DataLikelihood + Clone + Sync>(
    ensemble: &ToyFitter<'_>,
    likelihood: &L,
    toys: Range<u64>,
) -> Vec<ToyFit> {
    let run = ToyRun::new(NonZeroUsize::MIN, &NoMonitor);
    let mut all = Vec::new();
    let Ok(_) = ensemble.run(likelihood, toys, &run, |fits| {
        all.extend(fits);
        Ok::<(), Infallible>(())
    });
    all
}
