//! Memory for large results, requested before they are computed: too much is a `MemoryError`.

use ns_core::SearchLikelihood;
use ns_core::curvature::CurvatureStructure;
use ns_inference::memory::{ModelTooLarge, require};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Returns a vector with room for `n` rows of `width` values; `what` is for the message.
pub(crate) fn room<T>(n: u64, width: usize, what: &str) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    let len = usize::try_from(n).ok().and_then(|n| n.checked_mul(width));
    match len.map(|len| values.try_reserve_exact(len)) {
        Some(Ok(())) => Ok(values),
        _ if width == 1 => Err(PyMemoryError::new_err(format!("{n} {what} do not fit into memory"))),
        _ => Err(PyMemoryError::new_err(format!("{n} {what} of {width} numbers each do not fit into memory"))),
    }
}

/// Returns a vector of `n` rows of `width` values, filled with `value`.
pub(crate) fn filled<T: Copy>(value: T, n: usize, width: usize, what: &str) -> PyResult<Vec<T>> {
    let mut values = room(n as u64, width, what)?;
    values.resize(n * width, value);
    Ok(values)
}

/// Checks that the matrices of a fit of `likelihood` fit into memory.
pub(crate) fn for_fits(likelihood: &impl SearchLikelihood) -> PyResult<()> {
    for_fits_of(&likelihood.structure())
}

/// Checks that the matrices of a fit of a likelihood of this structure fit into memory.
pub(crate) fn for_fits_of(structure: &CurvatureStructure) -> PyResult<()> {
    require(structure).map_err(|error| too_large(&error))
}

/// Returns the exception of a model that is too large for this machine.
pub(crate) fn too_large(error: &ModelTooLarge) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}
