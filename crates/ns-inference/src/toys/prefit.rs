//! Fits toys and other data sets in batches on an accelerator, before the host evaluates each one.

use super::pilot::ToySearch;
use super::run::ToyRun;
use crate::accelerator::{Accelerator, task_in};
use crate::minimize::Domain;
use crate::monitor::WithoutProgress;
use crate::options::{FitOptions, domain_and_start};
use crate::parallel::{self, ExecutionContext};
use crate::search::lowest_of;
use ns_core::batch::{BatchData, BatchFit, BatchTask};
use ns_core::{Data, Model};
use std::ops::Range;

/// The number of toys that a thread throws at a time.
const BATCH: u64 = 64;

/// Data sets by their index, and where their fits start.
pub(crate) trait DataSetSource: Sync {
    /// Writes the data set with index `index` to `out`.
    fn write(&self, index: u64, out: &mut Data);

    /// Returns the starting points for the fit of `data` (P each): a common one, and one at its own
    /// auxiliary data.
    fn starts(&self, data: &Data) -> [Vec<f64>; 2];
}

/// Toys and the results of the accelerator's fits to them; empty without an accelerator.
#[derive(Debug, Default)]
pub(crate) struct DevicePrefit {
    first: u64,
    data: Vec<Data>,
    /// The starting points of each toy.
    starts: Vec<[Vec<f64>; 2]>,
    /// The free fits of each toy, one from each of its starting points.
    free: Vec<Vec<BatchFit>>,
    conditional: Vec<BatchFit>,
    /// How the minima of each toy are sought.
    searches: Vec<ToySearch>,
    /// Whether minima are accepted without another search by the host.
    is_final: bool,
}

/// One data set with the results of the accelerator's fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FittedDataSet<'a> {
    pub(super) data: &'a Data,
    /// The starting points of the free fits.
    pub(super) starts: &'a [Vec<f64>],
    /// The free fits, one from each starting point.
    pub(super) free: &'a [BatchFit],
    pub(super) conditional: Option<&'a BatchFit>,
    /// Whether the conditional fit starts at the auxiliary data, too.
    pub(super) restarts: bool,
    /// Whether minima are accepted without another search by the host. Kinks may hide a lower
    /// minimum, and multi-start is done on the host.
    pub(super) is_final: bool,
}

/// A data set to fit: what makes it, its index, and how its minimum is sought.
pub(crate) struct DataSetRequest<'a> {
    pub(crate) source: &'a dyn DataSetSource,
    pub(crate) index: u64,
    pub(crate) search: ToySearch,
}

/// A request to fit toys on an accelerator.
pub(crate) struct PrefitRequest<'a> {
    pub(crate) accelerator: &'a Accelerator,
    pub(crate) model: &'a Model,
    pub(crate) options: &'a FitOptions,
    pub(crate) run: &'a ToyRun<'a>,
    /// The parameter whose variance is computed.
    pub(crate) variance_of: Option<usize>,
}

impl PrefitRequest<'_> {
    /// Throws the toys that `request_of` returns for `units`, and finds their free minima. Returns
    /// `None` if the accelerator fails.
    pub(crate) fn free<'a>(
        &self,
        units: Range<u64>,
        request_of: impl Fn(u64) -> DataSetRequest<'a> + Sync,
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
                let DataSetRequest { source, index, .. } = request_of(unit);
                let mut data = Data::default();
                source.write(index, &mut data);
                let starts = source.starts(&data);
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
        let searches: Vec<ToySearch> = units.map(|unit| request_of(unit).search).collect();
        if searches.iter().any(|search| search.n_starts > 1) {
            let others = fit_from(1)?;
            for (search, (fits, other)) in searches.iter().zip(free.iter_mut().zip(others)) {
                fits.extend((search.n_starts > 1).then_some(other));
            }
        }
        let explores = searches.iter().any(|search| search.explores);
        let is_final = domain.kinked.is_empty() && self.options.multi_start.is_none() && !explores;
        Some(DevicePrefit { first, data, starts, free, conditional: Vec::new(), searches, is_final })
    }
}

impl DevicePrefit {
    /// Finds the minima of all toys with the parameters `tested` fixed where `predict` moves the
    /// free minimum of each, and from the auxiliary data of each, too, where a search asks for
    /// that. Returns `None` if the accelerator fails.
    pub(super) fn then_conditional(
        mut self,
        accelerator: &Accelerator,
        domain: &Domain,
        tested: &[usize],
        predict: impl Fn(u64, &[f64]) -> Vec<f64>,
    ) -> Option<Self> {
        let mut domain = domain.clone();
        tested.iter().for_each(|&i| domain.fixed[i] = true);
        let start = |(i, fits): (usize, &Vec<BatchFit>)| predict(self.first + i as u64, &lowest(fits).params);
        let predicted: Vec<Vec<f64>> = self.free.iter().enumerate().map(start).collect();
        let fit_from =
            |starts: &[Vec<f64>]| accelerator.fit(&task_in(&domain, BatchData::Each(&self.data), &starts.concat()));
        let mut conditional = fit_from(&predicted)?;
        if self.searches.iter().any(|search| search.restarts) {
            let mut starts: Vec<Vec<f64>> = self.starts.iter().map(|[_, at_aux]| at_aux.clone()).collect();
            for (start, predicted) in starts.iter_mut().zip(&predicted) {
                (0..start.len()).filter(|&i| domain.fixed[i]).for_each(|i| start[i] = predicted[i]);
            }
            // Of each toy by its own search, so that it does not depend on the others of the
            // launch.
            for ((found, other), search) in conditional.iter_mut().zip(fit_from(&starts)?).zip(&self.searches) {
                if search.restarts {
                    *found = lowest(&[found.clone(), other]).clone();
                }
            }
        }
        self.conditional = conditional;
        Some(self)
    }

    /// Returns the toy of unit `unit`, if it was fitted.
    pub(crate) fn of(&self, unit: u64) -> Option<FittedDataSet<'_>> {
        let i = usize::try_from(unit.checked_sub(self.first)?).ok()?;
        let (data, starts, free) = (self.data.get(i)?, self.starts.get(i)?, self.free.get(i)?);
        let (starts, restarts) = (&starts[..free.len()], self.searches.get(i)?.restarts);
        let (conditional, is_final) = (self.conditional.get(i), self.is_final);
        Some(FittedDataSet { data, starts, free, conditional, restarts, is_final })
    }
}

/// Returns the lowest of one toy's converged fits, or the first fit if none converged.
pub(super) fn lowest(fits: &[BatchFit]) -> &BatchFit {
    let converged = fits.iter().filter(|fit| fit.converged);
    lowest_of(converged, |fit| fit.nll).unwrap_or(&fits[0])
}
