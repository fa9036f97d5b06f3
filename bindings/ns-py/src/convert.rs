//! Library results as Python dictionaries: fields by their serialised names, vectors as arrays.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

/// Returns the fields of `value`.
pub(crate) fn fields<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    Ok(object(py, value)?.cast_into::<PyDict>()?)
}

/// Returns `value` in Python's own types.
pub(crate) fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Returns a vector as an array.
pub(crate) fn array<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_slice(py, values)
}

/// Returns a read-only copy of a vector that belongs to a model.
pub(crate) fn frozen_array<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let array = array(py, values);
    array.call_method1("setflags", (false,))?;
    Ok(array)
}

/// Returns a vector as an array, with NaN for missing values.
pub(crate) fn optional_array<'py>(py: Python<'py>, values: &[Option<f64>]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_iter(py, values.iter().map(|value| value.unwrap_or(f64::NAN)))
}

/// Returns a matrix, stored row by row, as an array of two dimensions.
pub(crate) fn matrix(py: Python<'_>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}

/// Returns a read-only matrix, which results can keep without a copy.
pub(crate) fn frozen_matrix(py: Python<'_>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'_, PyAny>> {
    let array = PyArray1::from_vec(py, values);
    array.call_method1("setflags", (false,))?;
    Ok(array.reshape(shape)?.into_any())
}

/// Returns `values` as an array of this shape.
pub(crate) fn shaped<'py>(py: Python<'py>, values: Vec<f64>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}
