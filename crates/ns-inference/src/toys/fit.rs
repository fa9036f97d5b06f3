//! Fits of an ensemble of toys, each started where the toys were thrown.

use super::pilot::{ToySearch, toy_search};
use super::prefit::{DevicePrefit, KnownToy, PrefitRequest, ToyRequest, lowest};
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
    /// Its number.
    pub toy: u64,
    /// Why the fit stopped; numbers of one that did not converge are not to be used.
    pub outcome: Outcome,
    /// -ln L at the minimum, with all constants.
    pub nll: f64,
    /// The parameters there (P).
    pub params: Vec<f64>,
    /// Standard deviation of the parameter that was asked for; `None` where it has none.
    pub uncertainty: Option<f64>,
}

/// What is done with each toy of an ensemble.
#[derive(Debug, Clone, Copy)]
pub struct ToyFitter<'a> {
    /// The model.
    pub model: &'a Model,
    /// What is fixed and which ranges apply.
    pub options: &'a FitOptions,
    /// Where the toys come from.
    pub sampler: &'a ToySampler,
    /// A parameter whose uncertainty is wanted.
    pub uncertainty_of: Option<usize>,
}

impl ToyFitter<'_> {
    /// Fits the toys `toys`, and hands the results to `sink`, in order and many at a time.
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
        let search = toy_search(self.model, likelihood, self.options, self.sampler, run);
        let prefit = |accelerator: &Accelerator, toys| {
            let thrown = |toy| ToyRequest { sampler: self.sampler, toy, search };
            let Self { model, options, uncertainty_of: variance_of, .. } = *self;
            PrefitRequest { accelerator, model, options, run, variance_of }.free(toys, thrown)
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
            let Some((known, accelerator)) = prefit.of(toy).zip(accelerator) else {
                refit(&mut profiler, self.sampler, toy, &mut data, search);
                return self.result(&mut profiler, toy);
            };
            if !refit_from(&mut profiler, accelerator, known) {
                return self.result(&mut profiler, toy);
            }
            let uncertainty = self.uncertainty_of.and(lowest(known.free).variance).map(f64::sqrt);
            Self::result_with(&profiler, toy, uncertainty)
        };
        toys.map(&mut one).collect()
    }

    fn result<L: DataLikelihood>(&self, profiler: &mut Profiler<'_, L>, toy: u64) -> ToyFit {
        let converged = profiler.best().converged();
        let uncertainty = self.uncertainty_of.filter(|_| converged).and_then(|i| {
            let hessian = profiler.hessian();
            let variance = hessian.variance(i);
            (hessian.is_positive_definite() && variance > 0.0).then(|| variance.sqrt())
        });
        Self::result_with(profiler, toy, uncertainty)
    }

    fn result_with<L: DataLikelihood>(profiler: &Profiler<'_, L>, toy: u64, uncertainty: Option<f64>) -> ToyFit {
        let best = profiler.best();
        ToyFit { toy, outcome: best.outcome, nll: best.nll, params: best.params.clone(), uncertainty }
    }
}

/// Throws toy number `toy`, and finds its free minimum as `search` says.
pub(super) fn refit<L: DataLikelihood>(
    profiler: &mut Profiler<'_, L>,
    sampler: &ToySampler,
    toy: u64,
    data: &mut Data,
    search: ToySearch,
) {
    sampler.throw(toy, data);
    profiler.likelihood().set_data(data);
    let starts = sampler.starts(data);
    profiler.refit(&starts.each_ref().map(Vec::as_slice)[..search.n_starts]);
}

/// Takes the free minimum that an accelerator found for a toy; where one of its fits did not arrive, or a lower minimum may be hidden, the host goes on
/// from all their ends, and does the fits itself too, so that nothing is missed that it would have found alone. Ends in single precision are only gone on
/// from. Whether there was nothing left to do.
pub(super) fn refit_from<L: DataLikelihood>(
    profiler: &mut Profiler<'_, L>,
    accelerator: &Accelerator,
    known: KnownToy<'_>,
) -> bool {
    profiler.likelihood().set_data(known.data);
    let is_final = known.is_final && known.free.iter().all(|arrival| arrival.converged);
    let minimum = accelerator.minimum(lowest(known.free)).filter(|_| is_final);
    let is_done = minimum.is_some();
    match minimum {
        Some(minimum) => profiler.adopt(minimum),
        None => {
            accelerator.leave(1);
            let ends = known.free.iter().map(|arrival| &arrival.params[..]);
            let own = known.starts.iter().map(Vec::as_slice).filter(|_| !is_final);
            profiler.refit(&ends.chain(own).collect::<Vec<_>>());
        }
    }
    is_done
}

/// The fits of the toys `toys`, all in memory, on one thread.
///
/// ```no_run
/// # use ns_core::{Data, DataLikelihood, Model};
/// # use ns_inference::{FitOptions, toys::{Aux, Ensemble, Source, Thrower, FitToys, fit_toys}};
/// # fn example(model: &Model, likelihood: &(impl DataLikelihood + Clone + Sync), bestfit: &[f64]) {
/// let source = Source { seed: 1, ensemble: Ensemble::Fits, aux: Aux::Fluctuated };
/// let thrower = Thrower::new(model, &model.observed, bestfit, source).expect("a point of the model's domain");
/// let options = FitOptions::default();
/// let fits = fit_toys(&FitToys { model, options: &options, thrower: &thrower, uncertainty_of: None }, likelihood, 0..100);
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
