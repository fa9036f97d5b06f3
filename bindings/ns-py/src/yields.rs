//! Expected yields before and after a fit with their uncertainties, and reports of one fit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::comparison::Comparison;
use nextstat::full_report::FullReportRequest;
use ns_inference::monitor::Monitor;
use ns_inference::yields::{ChannelPrediction, Prediction};
use ns_translate::FitDocument;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::asimov::{FitText, read_fit};
use crate::convert::{array, fields, object, optional_array};
use crate::error;
use crate::fits::fit_document;
use crate::interrupt::answer;
use crate::model::PyModel;
use crate::settings::{analysis, annotate};
use crate::watch::{answer_watched, callback};

/// Returns the yields of every channel before the fit and after it, with the data; those that the
/// stored `fit` predicts, if there is one, as the JSON text of its document and its file.
#[pyfunction]
#[pyo3(signature = (model, settings, fit=None))]
fn yields_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    fit: Option<FitText>,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    if let Some(fit) = fit {
        return projected(py, &analysis, fit);
    }
    let yields = answer(py, &analysis, Analysis::yields)?.result;
    let document = PyDict::new(py);
    document.set_item("converged", yields.fit.result.converged)?;
    document.set_item("warnings", &yields.fit.result.warnings)?;
    document.set_item("channels", channels(py, &analysis, &yields.prefit, &yields.postfit)?)?;
    document.set_item("alarm", yields.alarm())?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// Returns the yields that the stored `fit` predicts.
fn projected<'py>(py: Python<'py>, analysis: &Analysis, fit: FitText) -> PyResult<Bound<'py, PyDict>> {
    let stored = read_fit(py, fit)?;
    let projected = answer(py, analysis, |analysis| analysis.project(&stored))?;
    let (found, analysis) = (projected.result, &projected.analysis);
    let document = PyDict::new(py);
    document.set_item("converged", true)?;
    document.set_item("warnings", found.warnings)?;
    document.set_item("channels", channels(py, analysis, &found.prefit, &found.postfit)?)?;
    document.set_item("unmatched", found.unmatched)?;
    document.set_item("unused", found.unused)?;
    annotate(analysis, &document)?;
    Ok(document)
}

fn channels<'py>(
    py: Python<'py>,
    analysis: &Analysis,
    prefit: &[ChannelPrediction],
    postfit: &[ChannelPrediction],
) -> PyResult<Bound<'py, PyList>> {
    let (model, data) = (analysis.whole_model(), analysis.shown_data());
    let channels = PyList::empty(py);
    for (c, (before, after)) in prefit.iter().zip(postfit).enumerate() {
        let channel = PyDict::new(py);
        channel.set_item("channel", &before.channel)?;
        channel.set_item("data", array(py, &data.main[model.channel_bins(c)]))?;
        channel.set_item("prefit", of_channel(py, before)?)?;
        channel.set_item("postfit", of_channel(py, after)?)?;
        channels.append(channel)?;
    }
    Ok(channels)
}

/// Returns one fit, its goodness and its yields; those of the stored `fit`, if there is one, as the
/// JSON text of its document.
#[pyfunction]
#[pyo3(signature = (model, settings, fit=None, page=None))]
fn report_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    fit: Option<FitText>,
    page: Option<PageWanted<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let stored = fit.map(|fit| read_fit(py, fit)).transpose()?;
    let (reported, page, alarm) = match page {
        Some(PageWanted { progress }) => {
            let request = FullReportRequest { fit: stored.map(Arc::new), ..FullReportRequest::default() };
            let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.full_report(&request, monitor);
            let full = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
            let page = py.detach(|| ns_report::page(&ns_report::data(&full)));
            let alarm = full.result.alarm();
            (full.result.overview, Some(page), alarm)
        }
        None => {
            let report = |analysis: &Analysis| match &stored {
                None => analysis.report(),
                Some(stored) => analysis.report_from(stored),
            };
            let report = answer(py, &analysis, report)?;
            let alarm = report.result.alarm();
            (report, None, alarm)
        }
    };
    let (found, analysis) = (reported.result, reported.analysis);
    let (fit, document) = (&found.yields.fit, PyDict::new(py));
    document.set_item("converged", fit.result.converged)?;
    document.set_item("goodness_of_fit", object(py, &found.goodness)?)?;
    document.set_item("channels", channels(py, &analysis, &found.yields.prefit, &found.yields.postfit)?)?;
    document.set_item("alarm", alarm)?;
    document.set_item("warnings", found.warnings())?;
    annotate(&analysis, &document)?;
    if let Some(comparison) = &found.comparison {
        document.set_item("goodness_of_fit", compared(py, comparison)?)?;
        document.set_item("unmatched", &comparison.unmatched)?;
        document.set_item("unused", &comparison.unused)?;
    }
    document.set_item("fit", fit_document(py, &analysis, fit.result.clone(), model.names(py)?)?)?;
    if let Some(page) = page {
        document.set_item("page", page)?;
    }
    Ok(document)
}

/// Refuses the name of a page that ends as that of another kind of file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's argument becomes a value")]
fn require_page(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let checked = nextstat::full_report::require_page(&path);
    checked.map_err(|problem| error::parameter(py, format!("`html`: {problem}"), Some(problem.hint())))
}

/// Returns the checksums of the fit in a document, by what they are of.
#[pyfunction]
fn fit_checksums(document: FitNumbers) -> BTreeMap<&'static str, String> {
    let joined = |matrix: Option<Vec<Vec<Option<f64>>>>| {
        matrix.map(|rows| rows.into_iter().flatten().map(|value| value.unwrap_or(f64::NAN)).collect())
    };
    let FitNumbers { par_names, bestfit, uncertainties, covariance, correlation } = document;
    let found = ns_translate::fit_checksums(&FitDocument {
        par_names,
        bestfit: bestfit.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
        uncertainties,
        covariance: joined(covariance),
        correlation: joined(correlation),
        ..FitDocument::default()
    });
    found.into_iter().collect()
}

/// The names and numbers of a fit.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FitNumbers {
    par_names: Vec<String>,
    bestfit: Vec<Option<f64>>,
    uncertainties: Vec<Option<f64>>,
    covariance: Option<Vec<Vec<Option<f64>>>>,
    correlation: Option<Vec<Vec<Option<f64>>>>,
}

/// That a page for a browser is wanted, too.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PageWanted<'py> {
    progress: Option<Bound<'py, PyAny>>,
}

/// Returns how well a stored fit predicts the data, with all warnings.
fn compared<'py>(py: Python<'py>, comparison: &Comparison) -> PyResult<Bound<'py, PyDict>> {
    let document = fields(py, &comparison.test)?;
    document.set_item("warnings", &comparison.warnings)?;
    Ok(document)
}

/// Returns how well the stored `fit` predicts the data.
#[pyfunction]
fn compare_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    fit: FitText,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let stored = read_fit(py, fit)?;
    let found = answer(py, &analysis, |analysis| analysis.compare(&stored))?;
    let document = fields(py, &found.result_document())?;
    annotate(&found.analysis, &document)?;
    Ok(document)
}

fn of_channel<'py>(py: Python<'py>, channel: &ChannelPrediction) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    let samples = PyDict::new(py);
    for sample in &channel.samples {
        samples.set_item(&sample.sample, prediction(py, &sample.prediction)?)?;
    }
    document.set_item("samples", samples)?;
    if !channel.groups.is_empty() {
        let groups = PyDict::new(py);
        for group in &channel.groups {
            let found = prediction(py, &group.prediction)?;
            found.set_item("samples", &group.samples)?;
            groups.set_item(&group.group, found)?;
        }
        document.set_item("groups", groups)?;
    }
    document.set_item("total", prediction(py, &channel.total)?)?;
    Ok(document)
}

fn prediction<'py>(py: Python<'py>, prediction: &Prediction) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    document.set_item("yields", array(py, &prediction.yields))?;
    document.set_item("uncertainties", optional_array(py, &prediction.uncertainties))?;
    document.set_item("sum", prediction.sum)?;
    document.set_item("sum_uncertainty", prediction.sum_uncertainty)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compare_model, module)?)?;
    module.add_function(wrap_pyfunction!(report_model, module)?)?;
    module.add_function(wrap_pyfunction!(require_page, module)?)?;
    module.add_function(wrap_pyfunction!(fit_checksums, module)?)?;
    module.add_function(wrap_pyfunction!(yields_model, module)?)
}
