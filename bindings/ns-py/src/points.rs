//! Points of a model: arrays of all parameters, or values by their names.

use nextstat::settings::AsimovPoint;
use ns_core::Model;
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::by_name::ByName;
use crate::error;
use crate::numbers::{Numbers, list, number, numbers};

const POINT: ByName = ByName { setting: "params", form: "a value" };

/// Reads values by the names of parameters; None for what is not a dictionary.
pub(crate) fn by_name(values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<(String, f64)>>> {
    if values.cast::<PyUntypedArray>().is_ok() {
        return Ok(None);
    }
    let Ok(mapping) = values.cast::<PyMapping>() else { return Ok(None) };
    let given = PyDict::from_sequence(mapping.items()?.as_any())?;
    let value = |name: &str, value: &Bound<'_, PyAny>| number(value, || format!("the value of `{name}`"));
    POINT.read(Some(given.into_any()), value).map(Some)
}

/// Returns the point (P) with `parameters` by name, and all others at their starting values.
fn resolved(py: Python<'_>, model: &Model, parameters: Vec<(String, f64)>) -> PyResult<Vec<f64>> {
    let point = AsimovPoint { parameters, ..AsimovPoint::default() };
    point.resolve(model).map_err(|problem| error::settings(py, &problem))
}

/// Reads points of the model's parameters: (P), (N, P), or one by the names of parameters.
pub(crate) fn points(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    if let Some(parameters) = by_name(values)? {
        return Ok(Numbers { values: resolved(values.py(), model, parameters)?, rows: None });
    }
    let found = numbers(values, "params")?;
    let (wanted, columns) = (model.n_params(), found.columns());
    if columns != wanted && found.rows != Some(0) {
        return Err(error::data(format!("{columns} values for {wanted} parameters")));
    }
    Ok(found)
}

/// Reads one point: all parameters (P), or some by name, the others at their starting values.
pub(crate) fn point(model: &Model, values: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    if let Some(parameters) = by_name(values)? {
        return resolved(values.py(), model, parameters);
    }
    let point = list(values, what)?;
    if point.len() != model.n_params() {
        return Err(error::data(format!("`{what}` has {} values for {} parameters", point.len(), model.n_params())));
    }
    Ok(point)
}
