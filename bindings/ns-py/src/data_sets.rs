//! Fits of many data sets, bootstrap replicas, and the covariance of two analyses.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use nextstat::alarm::Alarm;
use nextstat::bootstrap::{BootstrapError, BootstrapRequest};
use nextstat::fits::{FitsRequest, FitsSummary, read_files};
use nextstat::replicas::{ReplicaFits, replica_covariance};
use nextstat::toys::outcome;
use ns_inference::data_sets::DataSetFit;
use ns_inference::minimize::Outcome;
use ns_translate::toys::DataSetRecord;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, frozen_matrix, matrix, object};
use crate::error;
use crate::interrupt::in_parts;
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::{list, number_table, table, threads};
use crate::settings::{analysis, annotate};
use crate::watch::{answer_watched, callback, monitored};

/// Fits of data sets, with the parameters of all in one matrix (N × P).
struct Fits {
    bestfit: Vec<f64>,
    uncertainties: Option<Vec<f64>>,
    twice_nll: Vec<f64>,
    outcomes: Vec<Outcome>,
}

impl Fits {
    fn new(n_sets: usize, n_params: usize, has_uncertainties: bool) -> PyResult<Self> {
        let matrix = || room(n_sets as u64, n_params, "data sets");
        let (twice_nll, outcomes) = (Vec::with_capacity(n_sets), Vec::with_capacity(n_sets));
        let uncertainties = has_uncertainties.then(matrix).transpose()?;
        Ok(Self { bestfit: matrix()?, uncertainties, twice_nll, outcomes })
    }

    fn push(&mut self, fit: &DataSetFit) {
        self.bestfit.extend(&fit.bestfit);
        if let (Some(all), Some(uncertainties)) = (&mut self.uncertainties, &fit.uncertainties) {
            all.extend(uncertainties);
        }
        self.twice_nll.push(fit.twice_nll);
        self.outcomes.push(fit.outcome);
    }

    /// Writes the arrays over data sets to `document`.
    fn write(self, document: &Bound<'_, PyDict>, n_params: usize) -> PyResult<()> {
        let (py, n_sets) = (document.py(), self.outcomes.len());
        let converged = self.outcomes.iter().map(|outcome| *outcome == Outcome::Converged).collect();
        document.set_item("converged", PyArray1::from_vec(py, converged))?;
        document.set_item("outcomes", object(py, &self.outcomes)?)?;
        document.set_item("twice_nll", PyArray1::from_vec(py, self.twice_nll))?;
        document.set_item("bestfit", frozen_matrix(py, self.bestfit, [n_sets, n_params])?)?;
        let uncertainties = self.uncertainties.map(|values| frozen_matrix(py, values, [n_sets, n_params]));
        document.set_item("uncertainties", uncertainties.transpose()?)
    }
}

/// Fits the data sets in the rows of `data`, or of the arrays of its channels.
#[pyfunction]
fn fits_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    data: &Bound<'py, PyAny>,
    has_uncertainties: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let request =
        FitsRequest { uncertainties: has_uncertainties, ..FitsRequest::new(number_table(model.model(), data)?) };
    let n_params = analysis.model().n_params();
    let mut fits = Fits::new(request.data.n_rows, n_params, has_uncertainties)?;
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, |analysis, monitor| {
        let mut run = analysis.fits(&request)?;
        run.run(monitor, |_, more| {
            more.iter().for_each(|fit| fits.push(fit));
            Ok::<_, nextstat::Error>(())
        })?;
        run.answer()
    })?;
    let document = summary_fields(py, &answer.result)?;
    fits.write(&document, n_params)?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// Returns the entries of the command's document without the fits, the correlations as an array.
fn summary_fields<'py>(py: Python<'py>, summary: &FitsSummary) -> PyResult<Bound<'py, PyDict>> {
    let document = fields(py, &summary.document_fields())?;
    for key in ["data_sets", "converged"] {
        document.del_item(key)?;
    }
    document.set_item("correlation", rows_as_array(py, summary.correlation())?)?;
    document.set_item("alarm", summary.alarm())?;
    Ok(document)
}

/// Reads the fits of a file, or of the files of all shards of a run.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's argument becomes a value")]
fn load_fits(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Bound<'_, PyDict>> {
    let mut records = Vec::new();
    let summary = py
        .detach(|| read_files(&paths, |record| records.push(record)))
        .map_err(|problem| error::fits_file(py, &problem))?;
    let n_params = summary.parameters().len();
    let has_uncertainties = records.first().is_some_and(|record| record.uncertainties.is_some());
    let mut fits = Fits::new(records.len(), n_params, has_uncertainties)?;
    for DataSetRecord { data_set, status, twice_nll, bestfit, uncertainties } in records {
        fits.push(&DataSetFit { data_set, outcome: outcome(status), twice_nll, bestfit, uncertainties });
    }
    let document = summary_fields(py, &summary)?;
    fits.write(&document, n_params)?;
    document.set_item("measurement", summary.measurement())?;
    Ok(document)
}

/// The numbers of replicas that are wanted, and their seed.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct ReplicasWanted {
    first: u32,
    end: u32,
    seed: u64,
}

fn refused(py: Python<'_>, problem: &BootstrapError) -> PyErr {
    match problem {
        BootstrapError::TooLarge { .. } => PyMemoryError::new_err(problem.to_string()),
        _ => error::parameter(py, problem.to_string(), problem.hint()),
    }
}

/// The columns of a list of events.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Events<'py> {
    bins: PyReadonlyArray1<'py, i64>,
    events: PyReadonlyArray1<'py, u64>,
    runs: PyReadonlyArray1<'py, u32>,
    weights: Option<Bound<'py, PyAny>>,
    n_bins: usize,
}

/// Returns histograms of bootstrap replicas (N × B).
#[pyfunction]
fn bootstrap_histograms<'py>(
    py: Python<'py>,
    events: Events<'py>,
    wanted: ReplicasWanted,
    n_threads: Option<&Bound<'py, PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Events { bins, events, runs, weights, n_bins } = events;
    let (bins, numbers, runs) = (bins.as_slice()?.to_vec(), events.as_slice()?.to_vec(), runs.as_slice()?.to_vec());
    let weights = weights.map(|weights| list(&weights, "weights")).transpose()?;
    // No weights at all mean weights of 1, so an empty list for events is not valid.
    if let Some(weights) = weights.as_ref().filter(|weights| weights.len() != numbers.len()) {
        let (found, expected) = (weights.len(), numbers.len());
        return Err(refused(py, &BootstrapError::Length { column: "weights", found, expected }));
    }
    let weights = weights.unwrap_or_default();
    let threads: NonZeroUsize = threads(py, n_threads)?;
    let ReplicasWanted { first, end, seed } = wanted;
    let request = BootstrapRequest {
        bins: &bins,
        events: &numbers,
        runs: &runs,
        weights: &weights,
        n_bins,
        seed,
        replicas: first..end,
    };
    let work = |monitor: &dyn nextstat::Monitor| nextstat::bootstrap::bootstrap(&request, threads, monitor);
    let made = monitored(py, callback(progress).as_ref(), work)?.map_err(|problem| refused(py, &problem))?;
    // A run that was cancelled has raised an exception.
    matrix(py, made.unwrap_or_default(), [request.replicas.len(), n_bins])
}

/// Returns the Poisson(1) weights of events (E × N).
#[pyfunction]
fn bootstrap_weights<'py>(
    py: Python<'py>,
    events: &Bound<'py, PyArray1<u64>>,
    runs: &Bound<'py, PyArray1<u32>>,
    wanted: ReplicasWanted,
) -> PyResult<Bound<'py, PyAny>> {
    let (events, runs) = (events.try_readonly()?.as_slice()?.to_vec(), runs.try_readonly()?.as_slice()?.to_vec());
    if runs.len() != 1 && runs.len() != events.len() {
        let (found, expected) = (runs.len(), events.len());
        return Err(refused(py, &BootstrapError::Length { column: "runs", found, expected }));
    }
    let ReplicasWanted { first, end, seed } = wanted;
    let n_replicas = (end - first) as usize;
    let mut all: Vec<u8> = room(events.len() as u64, n_replicas, "events")?;
    let mut outcome = Ok(());
    in_parts(py, events.len(), n_replicas, |part| {
        let runs = if runs.len() == 1 { &runs[..] } else { runs.get(part.clone()).unwrap_or(&[]) };
        all.resize(part.end * n_replicas, 0);
        let out = &mut all[part.start * n_replicas..];
        if outcome.is_ok() {
            outcome = nextstat::bootstrap::bootstrap_weights(&events[part], runs, seed, first, out);
        }
    })?;
    outcome.map_err(|problem| refused(py, &problem))?;
    let array = PyArray1::from_vec(py, all);
    array.call_method1("reshape", ((events.len(), n_replicas),))
}

/// The best fits of one analysis to replicas.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Replicas<'py> {
    par_names: Vec<String>,
    bestfit: Bound<'py, PyAny>,
    converged: Vec<bool>,
}

/// The same with its numbers copied.
struct ReadReplicas {
    par_names: Vec<String>,
    bestfit: Vec<f64>,
    converged: Vec<bool>,
}

impl Replicas<'_> {
    fn read(self) -> PyResult<ReadReplicas> {
        let Self { par_names, bestfit, converged } = self;
        let found = table(&bestfit, "bestfit")?;
        let (rows, columns) = (converged.len(), par_names.len());
        if found.n_rows != rows || found.values.len() != rows * columns {
            return Err(error::data(format!(
                "`bestfit` has the shape {} × {}, not {rows} × {columns}",
                found.n_rows, found.n_columns
            )));
        }
        Ok(ReadReplicas { par_names, bestfit: found.values, converged })
    }
}

impl ReadReplicas {
    fn fits(&self) -> ReplicaFits<'_> {
        ReplicaFits { par_names: &self.par_names, bestfit: &self.bestfit, converged: &self.converged }
    }
}

/// Returns the covariance between two analyses.
#[pyfunction]
fn replica_covariance_of<'py>(py: Python<'py>, a: Replicas<'py>, b: Replicas<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (a, b) = (a.read()?, b.read()?);
    let result = py.detach(|| replica_covariance(&a.fits(), &b.fits()));
    let result = result.map_err(|problem| error::parameter(py, problem.to_string(), None))?;
    let document = fields(py, &result)?;
    let known = |rows: &[Vec<f64>]| rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    let matrices: [(&str, Vec<Vec<Option<f64>>>); 5] = [
        ("covariance", known(&result.covariance)),
        ("covariance_a", known(&result.covariance_a)),
        ("covariance_b", known(&result.covariance_b)),
        ("correlation", result.correlation),
        ("correlation_error", result.correlation_error),
    ];
    for (key, rows) in matrices {
        document.set_item(key, rows_as_array(py, rows)?)?;
    }
    document.set_item("mean_a", array(py, &result.mean_a))?;
    document.set_item("mean_b", array(py, &result.mean_b))?;
    Ok(document)
}

/// Returns the rows of a matrix as an array, with NaN for missing numbers.
fn rows_as_array(py: Python<'_>, rows: Vec<Vec<Option<f64>>>) -> PyResult<Bound<'_, PyAny>> {
    let shape = [rows.len(), rows.first().map_or(0, Vec::len)];
    matrix(py, rows.into_iter().flatten().map(|value| value.unwrap_or(f64::NAN)).collect(), shape)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fits_model, module)?)?;
    module.add_function(wrap_pyfunction!(load_fits, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap_histograms, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap_weights, module)?)?;
    module.add_function(wrap_pyfunction!(replica_covariance_of, module)?)
}
