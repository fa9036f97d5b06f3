//! Toys thrown and fitted many at a time by an accelerator, before each is looked at by itself.

use super::pilot::ToySearch;
use super::run::ToyRun;
use super::throw::ToySampler;
use crate::accelerator::{Accelerator, task_in};
use crate::minimize::Domain;
use crate::monitor::WithoutProgress;
use crate::options::{FitOptions, domain_and_start};
use crate::parallel::{self, ExecutionContext};
use ns_core::batch::{BatchData, BatchFit, BatchTask};
use ns_core::{Data, Model};
use std::ops::Range;

/// Toys that a thread throws at a time.
const BATCH: u64 = 64;

/// Data sets, and where the accelerator's fits of them ended; empty without an accelerator.
#[derive(Debug, Default)]
pub(super) struct DevicePrefit {
    first: u64,
    data: Vec<Data>,
    /// The starting points of each toy.
    starts: Vec<[Vec<f64>; 2]>,
    /// Of each toy from each of its starting points.
    free: Vec<Vec<BatchFit>>,
    conditional: Vec<BatchFit>,
    /// Whether a minimum that was reached needs no second look.
    is_final: bool,
}

/// What is known of one toy ahead of its own fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownToy<'a> {
    pub(super) data: &'a Data,
    /// From where it was fitted.
    pub(super) starts: &'a [Vec<f64>],
    /// From each starting point.
    pub(super) free: &'a [BatchFit],
    pub(super) conditional: Option<&'a BatchFit>,
    /// Whether a minimum that was reached needs no second look: kinks may hide a lower one, and several starts are the host's.
    pub(super) is_final: bool,
}

/// A toy among others: who throws it, its number, and how its minimum is looked for.
pub(super) struct ToyRequest<'a> {
    pub(super) sampler: &'a ToySampler,
    pub(super) toy: u64,
    pub(super) search: ToySearch,
}

/// How toys are fitted by an accelerator.
pub(super) struct PrefitRequest<'a> {
    pub(super) accelerator: &'a Accelerator,
    pub(super) model: &'a Model,
    pub(super) options: &'a FitOptions,
    pub(super) run: &'a ToyRun<'a>,
    /// The parameter whose variance is wanted.
    pub(super) variance_of: Option<usize>,
}

impl PrefitRequest<'_> {
    /// Throws the toys `units`, each as `thrown` says, and finds their free minima. Returns `None` if
    /// the accelerator fails.
    pub(super) fn free<'a>(
        &self,
        units: Range<u64>,
        thrown: impl Fn(u64) -> ToyRequest<'a> + Sync,
    ) -> Option<DevicePrefit> {
        let Self { accelerator, run, variance_of, .. } = *self;
        let (domain, start) = domain_and_start(self.model, self.options);
        let first = units.start;
        let n = usize::try_from(units.end - units.start).ok()?;
        let of = |batch: usize| {
            let start = first + batch as u64 * BATCH;
            start..units.end.min(start + BATCH)
        };
        let throw = |(): &mut (), batch: usize| -> Vec<(Data, [Vec<f64>; 2])> {
            let one = |unit| {
                let ToyRequest { sampler, toy, .. } = thrown(unit);
                let mut data = Data::default();
                sampler.throw(toy, &mut data);
                let starts = sampler.starts(&data);
                (data, starts)
            };
            of(batch).map(one).collect()
        };
        let quiet = WithoutProgress(run.monitor);
        let execution = ExecutionContext::new(run.threads, &quiet);
        let batches = parallel::map(n.div_ceil(BATCH as usize), execution, || (), throw);
        let batches: Option<Vec<_>> = batches.into_iter().collect();
        let (data, starts): (Vec<Data>, Vec<[Vec<f64>; 2]>) = batches?.into_iter().flatten().unzip();
        let allowed = |from: &[f64]| -> Vec<f64> {
            (0..from.len()).map(|i| if domain.fixed[i] { start[i] } else { from[i] }).collect()
        };
        let from = |which: usize| starts.iter().flat_map(|starts| allowed(&starts[which])).collect::<Vec<f64>>();
        let fit_from = |which: usize| {
            let starts = from(which);
            accelerator.fit(&BatchTask { variance_of, ..task_in(&domain, BatchData::Each(&data), &starts) })
        };
        let mut free: Vec<Vec<BatchFit>> = fit_from(0)?.into_iter().map(|a| vec![a]).collect();
        let explores = units.clone().any(|unit| thrown(unit).search.explores);
        if units.clone().any(|unit| thrown(unit).search.n_starts > 1) {
            let others = fit_from(1)?;
            for (unit, (arrivals, other)) in units.zip(free.iter_mut().zip(others)) {
                arrivals.extend((thrown(unit).search.n_starts > 1).then_some(other));
            }
        }
        let is_final = domain.kinked.is_empty() && self.options.multi_start.is_none() && !explores;
        Some(DevicePrefit { first, data, starts, free, conditional: Vec::new(), is_final })
    }
}

impl DevicePrefit {
    /// Finds the minima of all toys with the parameter `poi` at `value`, each from where `predict`
    /// moves its free minimum. Returns `None` if the accelerator fails.
    pub(super) fn then_conditional(
        mut self,
        accelerator: &Accelerator,
        domain: &Domain,
        (poi, value): (usize, f64),
        predict: impl Fn(u64, &[f64]) -> Vec<f64>,
    ) -> Option<Self> {
        let mut domain = domain.clone();
        domain.fixed[poi] = true;
        let start = |(i, arrivals): (usize, &Vec<BatchFit>)| {
            let mut start = predict(self.first + i as u64, &lowest(arrivals).params);
            start[poi] = value;
            start
        };
        let starts: Vec<f64> = self.free.iter().enumerate().flat_map(start).collect();
        self.conditional = accelerator.fit(&task_in(&domain, BatchData::Each(&self.data), &starts))?;
        Some(self)
    }

    /// What is known of unit `unit`.
    pub(super) fn of(&self, unit: u64) -> Option<KnownToy<'_>> {
        let i = usize::try_from(unit.checked_sub(self.first)?).ok()?;
        let (data, starts, free) = (self.data.get(i)?, self.starts.get(i)?, self.free.get(i)?);
        let starts = &starts[..free.len()];
        Some(KnownToy { data, starts, free, conditional: self.conditional.get(i), is_final: self.is_final })
    }
}

/// The best of the ends of one toy's fits: of those that arrived the lowest, else the first.
pub(super) fn lowest(arrivals: &[BatchFit]) -> &BatchFit {
    let arrived = arrivals.iter().filter(|arrival| arrival.converged);
    arrived.min_by(|a, b| a.nll.total_cmp(&b.nll)).unwrap_or(&arrivals[0])
}
