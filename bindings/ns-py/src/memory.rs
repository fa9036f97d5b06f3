//! Room for large results, asked for before they are computed: too much of it is a `MemoryError`, and not the end of the process.

use ns_core::SearchLikelihood;
use ns_core::curvature::CurvatureStructure;
use ns_inference::memory::{ModelTooLarge, require};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Room for `n` rows of `width` values of what is called `what`.
pub(crate) fn room<T>(n: u64, width: usize, what: &str) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    let len = usize::try_from(n).ok().and_then(|n| n.checked_mul(width));
    match len.map(|len| values.try_reserve_exact(len)) {
        Some(Ok(())) => Ok(values),
        _ if width == 1 => Err(PyMemoryError::new_err(format!("{n} {what} do not fit into memory"))),
        _ => Err(PyMemoryError::new_err(format!("{n} {what} of {width} numbers each do not fit into memory"))),
    }
}

/// The same, filled with `value`.
pub(crate) fn filled<T: Copy>(value: T, n: usize, width: usize, what: &str) -> PyResult<Vec<T>> {
    let mut values = room(n as u64, width, what)?;
    values.resize(n * width, value);
    Ok(values)
}

/// Room for the matrices of a fit of `likelihood`.
pub(crate) fn for_fits(likelihood: &impl SearchLikelihood) -> PyResult<()> {
    for_fits_of(&likelihood.structure())
}

/// The same, of a likelihood of this structure.
pub(crate) fn for_fits_of(structure: &CurvatureStructure) -> PyResult<()> {
    require(structure).map_err(|error| too_large(&error))
}

/// A model that is too large for this machine.
pub(crate) fn too_large(error: &ModelTooLarge) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}
