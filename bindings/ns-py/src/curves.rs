//! Profile scans of one parameter, grids of two, contours.

use ns_inference::contour::{ContourOptions, contours};
use ns_inference::parallel::Crew;
use ns_inference::scan::{Axis, Scan, Values, grid, scan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, matrix, optional_array};
use crate::model::PyModel;
use crate::settings::{Floats, Setup, setup};
use crate::watch::watched;

/// An axis as Python has it: the parameter, values or None for automatic ones, and how many of those.
type PyAxis<'py> = (Option<String>, Option<Floats<'py>>, usize);

fn axis(py: Python<'_>, setup: &Setup, (name, values, points): PyAxis<'_>) -> PyResult<Axis> {
    let parameter = setup.parameter(py, name.as_deref(), "profile_scan")?;
    let values = match values {
        Some(values) => Values::Given(values.as_array().iter().copied().collect()),
        None => Values::Automatic(points),
    };
    Ok(Axis { parameter, values })
}

/// A scan of one or two parameters.
#[pyfunction]
fn scan_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    axes: Vec<PyAxis<'py>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut setup = setup(py, model, settings)?;
    let axes = axes.into_iter().map(|wanted| axis(py, &setup, wanted)).collect::<PyResult<Vec<Axis>>>()?;
    let Setup { model, likelihood, options, threads, .. } = &mut setup;
    let threads = *threads;
    let result = watched(py, progress.as_ref(), |monitor| match axes.as_slice() {
        [a, b] => grid(model, likelihood, options, [a, b], Crew { threads, monitor }),
        _ => scan(model, likelihood, options, &axes[0], Crew { threads, monitor }),
    })?;
    scan_fields(py, result)
}

/// Arrays over the points: (N), or (N₁ × N₂) of a grid; parameters of points (points × P), NaN where a point has no value.
fn scan_fields(py: Python<'_>, mut result: Scan) -> PyResult<Bound<'_, PyDict>> {
    let n_params = result.best.params.len();
    let columns = match result.values.as_slice() {
        [_, second] => Some(second.len()),
        _ => None,
    };
    let shaped = |values: &[Option<f64>]| match columns {
        None => Ok(optional_array(py, values).into_any()),
        Some(n) => matrix(py, &values.iter().map(|value| value.unwrap_or(f64::NAN)).collect::<Vec<_>>(), n),
    };
    let (delta, twice) = (shaped(&result.delta_nll)?, shaped(&result.twice_delta_nll)?);
    let unknown = vec![f64::NAN; n_params];
    let params: Vec<f64> =
        result.params.iter().flat_map(|params| params.as_ref().unwrap_or(&unknown).iter().copied()).collect();
    result.params.clear();
    let values: Vec<_> = result.values.iter().map(|values| array(py, values)).collect();
    let document = fields(py, &result)?;
    document.set_item("values", values)?;
    document.set_item("delta_nll", delta)?;
    document.set_item("twice_delta_nll", twice)?;
    document.set_item("params", matrix(py, &params, n_params)?)?;
    Ok(document)
}

/// Contours of two parameters at confidence levels.
#[pyfunction]
fn contours_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    parameters: (String, String),
    levels: Vec<f64>,
    n_points: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut setup = setup(py, model, settings)?;
    let name = |name: &str| setup.parameter(py, Some(name), "contours");
    let wanted = ContourOptions { parameters: [name(&parameters.0)?, name(&parameters.1)?], levels, n_points };
    let Setup { model, likelihood, options, threads, .. } = &mut setup;
    let threads = *threads;
    let result = watched(py, progress.as_ref(), |monitor| {
        contours(model, likelihood, options, &wanted, Crew { threads, monitor })
    })?;
    fields(py, &result)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_model, module)?)?;
    module.add_function(wrap_pyfunction!(contours_model, module)?)
}
