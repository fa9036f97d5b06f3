//! Expected yields before and after a fit, with their uncertainties.

use ns_inference::yields::{ChannelPrediction, Prediction, postfit, prefit};
use ns_inference::{Errors, FitOptions, fit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::{array, optional_array};
use crate::model::PyModel;
use crate::settings::{Setup, setup};

/// Yields of every channel before the fit and after it, with the data.
#[pyfunction]
fn yields_model<'py>(py: Python<'py>, model: &PyModel, settings: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let Setup { model, data, mut likelihood, options, threads, .. } = setup(py, model, settings)?;
    let options = FitOptions { errors: Errors::Hessian, ..options };
    let (result, before, after) = py.detach(|| {
        let result = fit(&model, &data, &mut likelihood, &options);
        let before = prefit(&model, &data, &options, threads);
        let after = postfit(&model, &mut likelihood, &result, &options, threads);
        (result, before, after)
    });
    let document = PyDict::new(py);
    document.set_item("converged", result.converged)?;
    document.set_item("warnings", &result.warnings)?;
    let channels = PyList::empty(py);
    for (c, (before, after)) in before.iter().zip(&after).enumerate() {
        let channel = PyDict::new(py);
        channel.set_item("channel", &before.channel)?;
        channel.set_item("data", array(py, &data.main[model.channel_bins(c)]))?;
        channel.set_item("prefit", of_channel(py, before)?)?;
        channel.set_item("postfit", of_channel(py, after)?)?;
        channels.append(channel)?;
    }
    document.set_item("channels", channels)?;
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
    module.add_function(wrap_pyfunction!(yields_model, module)?)
}
