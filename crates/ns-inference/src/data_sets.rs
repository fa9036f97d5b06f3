//! Fits of many data sets of the caller, such as bootstrap replicas or systematic variations of the
//! data.
//!
//! The fits are those of toys, in batches and on several threads, and start at a common point,
//! usually the best fit to the nominal data. Data of a caller need not be like toys of the model:
//! no pilot fits decide how widely minima are sought, and every data set is searched as a single
//! fit is. Each result depends on its own data and on the starting point, not on other data sets.

use crate::accelerator::Accelerator;
use crate::minimize::Outcome;
use crate::options::{FitOptions, domain_and_start};
use crate::profile::Profiler;
use crate::search::Candidates;
use crate::toys::{
    BatchWork, DataSetRequest, DataSetSource, DevicePrefit, PrefitRequest, RunStatus, ToyRun, ToySearch, at_aux,
    in_batches, refit_from,
};
use ns_core::{Constraint, Data, DataLikelihood, Model};
use std::ops::{ControlFlow, Range};

/// N data sets in the rows of a matrix.
#[derive(Debug, Clone, Copy)]
pub struct DataTable<'a> {
    /// The data, row by row (N × B or N × (B + K)): event counts, then auxiliary data.
    pub values: &'a [f64],
    /// The number of values of a row.
    pub n_columns: usize,
    /// The number of event counts of a row (B), those of masked bins included.
    pub n_bins: usize,
    /// Which bins (B) the model does not have; `None` if it has all.
    pub masked: Option<&'a [bool]>,
    /// The auxiliary data (K) of rows without them.
    pub aux: &'a [f64],
}

impl DataTable<'_> {
    /// Returns the number of data sets.
    #[must_use]
    pub fn n_sets(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// Writes the data set of row `index` to `out`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn write(&self, index: usize, out: &mut Data) {
        let row = &self.values[index * self.n_columns..(index + 1) * self.n_columns];
        let (main, aux) = row.split_at(self.n_bins);
        let is_masked = |bin: usize| self.masked.is_some_and(|masked| masked[bin]);
        out.main.clear();
        out.main.extend(main.iter().enumerate().filter(|(bin, _)| !is_masked(*bin)).map(|(_, n)| *n));
        out.aux.clear();
        out.aux.extend_from_slice(if aux.is_empty() { self.aux } else { aux });
    }
}

/// The fit of one data set. The numbers of a fit that did not converge are NaN.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSetFit {
    /// The row of the data set.
    pub data_set: u64,
    /// Why the fit stopped.
    pub outcome: Outcome,
    /// 2·(-ln L) at the minimum, with all constants.
    pub twice_nll: f64,
    /// The parameters at the minimum (P).
    pub bestfit: Vec<f64>,
    /// Their standard deviations (P), NaN for a parameter that has none; `None` if they were not
    /// wanted.
    pub uncertainties: Option<Vec<f64>>,
}

/// Fits the data sets of a table.
#[derive(Debug, Clone, Copy)]
pub struct DataSetFitter<'a> {
    /// The model.
    pub model: &'a Model,
    /// The fixed parameters and ranges.
    pub options: &'a FitOptions,
    /// The data sets.
    pub table: DataTable<'a>,
    /// The point at which fits start (P).
    pub start: &'a [f64],
    /// Whether to compute the standard deviations of the parameters.
    pub wants_uncertainties: bool,
}

/// A table with what the starting points of its fits need.
struct StartedTable<'a> {
    table: DataTable<'a>,
    start: &'a [f64],
    terms: Vec<(usize, Constraint)>,
}

impl DataSetSource for StartedTable<'_> {
    fn write(&self, index: u64, out: &mut Data) {
        self.table.write(index as usize, out);
    }

    fn starts(&self, data: &Data) -> [Vec<f64>; 2] {
        [self.start.to_vec(), at_aux(self.start, &self.terms, data)]
    }
}

impl DataSetFitter<'_> {
    /// Fits the data sets in the rows `rows`, and passes the results to `sink` in order and in
    /// batches.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn run<L: DataLikelihood + Clone + Sync, E>(
        &self,
        likelihood: &L,
        rows: Range<u64>,
        run: &ToyRun<'_>,
        mut sink: impl FnMut(Vec<DataSetFit>) -> Result<(), E>,
    ) -> Result<RunStatus, E> {
        let Self { model, options, table, start, .. } = *self;
        let explores = !Candidates::of(model).are_none(&domain_and_start(model, options).0);
        let search = ToySearch { n_starts: if explores { 2 } else { 1 }, explores, restarts: false };
        let sets = StartedTable { table, start, terms: model.constraint_terms().collect() };
        let prefit = |accelerator: &Accelerator, rows| {
            let request_of = |index| DataSetRequest { source: &sets, index, search };
            PrefitRequest { accelerator, model, options, run, variance_of: None }.free(rows, request_of)
        };
        let work = |likelihood: &mut L, prefit: &DevicePrefit, rows: Range<u64>| {
            let mut profiler = Profiler::unfitted(model, likelihood, options);
            profiler.set_exploring(explores);
            profiler.explore_every_fit();
            let mut data = Data::default();
            let mut one = |row| {
                match prefit.of(row).zip(run.accelerator) {
                    Some((fitted, accelerator)) => {
                        refit_from(&mut profiler, accelerator, fitted);
                    }
                    None => {
                        sets.write(row, &mut data);
                        profiler.likelihood().set_data(&data);
                        let starts = sets.starts(&data);
                        profiler.refit(&starts.each_ref().map(Vec::as_slice)[..search.n_starts]);
                    }
                }
                self.result(&mut profiler, row)
            };
            rows.map(&mut one).collect()
        };
        let make = || likelihood.clone();
        in_batches(rows, run, BatchWork { prefit, make, work }, |fits| sink(fits).map(ControlFlow::Continue))
    }

    fn result<L: DataLikelihood>(&self, profiler: &mut Profiler<'_, L>, data_set: u64) -> DataSetFit {
        let n_params = self.model.n_params();
        let (fit, uncertainties) = if self.wants_uncertainties && profiler.best().converged() {
            let fit = profiler.best_fit();
            let uncertainties = fit.uncertainties.iter().map(|sigma| sigma.unwrap_or(f64::NAN)).collect();
            ((fit.outcome, fit.twice_nll, fit.params), Some(uncertainties))
        } else {
            let best = profiler.best();
            let uncertainties = self.wants_uncertainties.then(|| vec![f64::NAN; n_params]);
            ((best.outcome, 2.0 * best.nll, best.params.clone()), uncertainties)
        };
        let (outcome, twice_nll, bestfit) = fit;
        if outcome == Outcome::Converged {
            return DataSetFit { data_set, outcome, twice_nll, bestfit, uncertainties };
        }
        let nothing = || vec![f64::NAN; n_params];
        let uncertainties = uncertainties.map(|_| nothing());
        DataSetFit { data_set, outcome, twice_nll: f64::NAN, bestfit: nothing(), uncertainties }
    }
}
