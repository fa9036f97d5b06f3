//! Fits.

use ns_inference::pulls::pulls;
use ns_inference::{Errors, FitOptions, FitResult, fit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, matrix, object, optional_array};
use crate::model::PyModel;
use crate::settings::{Setup, index_of, setup};

/// A fit; `errors` is `none`, `hessian` or `covariance`, `minos` names parameters.
#[pyfunction]
fn fit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    errors: &str,
    minos: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let Setup { model, data, mut likelihood, options, .. } = setup(py, model, settings)?;
    let minos = minos.iter().map(|name| index_of(py, &model, name)).collect::<PyResult<Vec<usize>>>()?;
    let errors = match errors {
        "none" => Errors::None,
        "hessian" => Errors::Hessian,
        _ => Errors::Covariance,
    };
    let options = FitOptions { errors, minos, ..options };
    let result = py.detach(|| fit(&model, &data, &mut likelihood, &options));
    let (domain, _) = ns_inference::fit::domain_and_start(&model, &options);
    let pulls = (errors != Errors::None).then(|| pulls(&model, &data, &result, &domain.fixed));
    let document = fit_fields(py, result)?;
    document.set_item("poi", model.poi().map(|i| &model.parameters.names[i]))?;
    document.set_item("pulls", object(py, &pulls)?)?;
    Ok(document)
}

/// The fields of a fit's result, its vectors and matrices as arrays.
fn fit_fields(py: Python<'_>, mut result: FitResult) -> PyResult<Bound<'_, PyDict>> {
    let n = result.par_names.len();
    let correlation = result.correlation();
    // As Python floats they would take longer than the fit.
    let covariance = result.covariance.take();
    let (bestfit, uncertainties) = (std::mem::take(&mut result.bestfit), std::mem::take(&mut result.uncertainties));
    let document = fields(py, &result)?;
    document.set_item("bestfit", array(py, &bestfit))?;
    document.set_item("uncertainties", optional_array(py, &uncertainties))?;
    let square = |values: Option<Vec<f64>>| values.map(|values| matrix(py, &values, n)).transpose();
    document.set_item("covariance", square(covariance)?)?;
    document.set_item("correlation", square(correlation)?)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fit_model, module)?)
}
