//! Expected yields before and after a fit, with their uncertainties; and all that there is to say about one fit.

use std::sync::Arc;

use ns_core::{Data, Model};
use ns_inference::fit::domain_and_start;
use ns_inference::gof::goodness_of_fit;
use ns_inference::yields::{ChannelPrediction, Prediction, postfit, prefit};
use ns_inference::{Errors, FitOptions, fit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::{array, fields, optional_array};
use crate::fits::{FittedOn, fit_document, warnings};
use crate::interrupt::interruptible;
use crate::model::PyModel;
use crate::settings::{Setup, setup};

/// Yields of every channel before the fit and after it, with the data.
#[pyfunction]
fn yields_model<'py>(py: Python<'py>, model: &PyModel, settings: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let Setup { model, data, likelihood, options, threads, .. } = setup(py, model, settings)?;
    let options = FitOptions { errors: Errors::Covariance, ..options };
    let (result, before, after) = interruptible(py, likelihood, |likelihood| {
        let result = fit(&model, &data, likelihood, &options);
        let before = prefit(&model, &data, &options, threads);
        let after = postfit(&model, likelihood, &result, &options, threads);
        (result, before, after)
    })?;
    let document = PyDict::new(py);
    document.set_item("converged", result.converged)?;
    document.set_item("warnings", &result.warnings)?;
    document.set_item("channels", channels(py, (&model, &data), &before, &after)?)?;
    Ok(document)
}

fn channels<'py>(
    py: Python<'py>,
    (model, data): (&Model, &Data),
    before: &[ChannelPrediction],
    after: &[ChannelPrediction],
) -> PyResult<Bound<'py, PyList>> {
    let channels = PyList::empty(py);
    for (c, (before, after)) in before.iter().zip(after).enumerate() {
        let channel = PyDict::new(py);
        channel.set_item("channel", &before.channel)?;
        channel.set_item("data", array(py, &data.main[model.channel_bins(c)]))?;
        channel.set_item("prefit", of_channel(py, before)?)?;
        channel.set_item("postfit", of_channel(py, after)?)?;
        channels.append(channel)?;
    }
    Ok(channels)
}

/// One fit and everything that an analysis shows of it.
#[pyfunction]
fn report_model<'py>(py: Python<'py>, model: &PyModel, settings: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let (names, plan) = (model.names(py)?, Arc::clone(model.plan()));
    let Setup { model, data, likelihood, options, threads, .. } = setup(py, model, settings)?;
    let options = FitOptions { errors: Errors::Covariance, ..options };
    let (result, goodness, before, after) = interruptible(py, likelihood, |likelihood| {
        let result = fit(&model, &data, likelihood, &options);
        let goodness = goodness_of_fit(&model, &data, likelihood, (&result, &options), threads);
        let before = prefit(&model, &data, &options, threads);
        let after = postfit(&model, likelihood, &result, &options, threads);
        (result, goodness, before, after)
    })?;
    let document = PyDict::new(py);
    document.set_item("converged", result.converged)?;
    document.set_item("goodness_of_fit", fields(py, &goodness)?)?;
    document.set_item("channels", channels(py, (&model, &data), &before, &after)?)?;
    document.set_item("warnings", warnings(&model, &result))?;
    let (domain, _) = domain_and_start(&model, &options);
    let has_minima = !result.minima.is_empty();
    let fit = fit_document(py, (FittedOn { model, plan, data, domain }, names), result)?;
    if !has_minima {
        fit.del_item("minima")?;
    }
    document.set_item("fit", fit)?;
    Ok(document)
}

fn of_channel<'py>(py: Python<'py>, channel: &ChannelPrediction) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    let samples = PyDict::new(py);
    for sample in &channel.samples {
        samples.set_item(&sample.sample, prediction(py, &sample.prediction)?)?;
    }
    document.set_item("samples", samples)?;
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
    module.add_function(wrap_pyfunction!(report_model, module)?)?;
    module.add_function(wrap_pyfunction!(yields_model, module)?)
}
