//! Library results as Python dictionaries: every field by its serialised name, large numbers of numbers as NumPy arrays.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

/// The fields of `value`.
pub(crate) fn fields<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    Ok(object(py, value)?.cast_into::<PyDict>()?)
}

/// `value` as Python's own types.
pub(crate) fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A vector as an array.
pub(crate) fn array<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_slice(py, values)
}

/// The same for what belongs to a model: a copy that cannot be taken for the model's own numbers and written to.
pub(crate) fn frozen_array<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let array = array(py, values);
    array.call_method1("setflags", (false,))?;
    Ok(array)
}

/// The same with NaN for what is not there.
pub(crate) fn optional_array<'py>(py: Python<'py>, values: &[Option<f64>]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_iter(py, values.iter().map(|value| value.unwrap_or(f64::NAN)))
}

/// A matrix, stored row by row, as an array of two dimensions.
pub(crate) fn matrix(py: Python<'_>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}

/// The same for a result, which nobody writes to: large ones need not be copied to be sure of it.
pub(crate) fn frozen_matrix(py: Python<'_>, values: Vec<f64>, shape: [usize; 2]) -> PyResult<Bound<'_, PyAny>> {
    let array = PyArray1::from_vec(py, values);
    array.call_method1("setflags", (false,))?;
    Ok(array.reshape(shape)?.into_any())
}

/// `values` as an array of this shape.
pub(crate) fn shaped<'py>(py: Python<'py>, values: Vec<f64>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}
