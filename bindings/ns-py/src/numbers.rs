//! Numbers from Python, read with their name at hand: what is wrong with an argument is said in its own terms.

use ns_core::{Data, Model};
use numpy::{AllowTypeChange, PyArrayLikeDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error;

/// Numbers with their shape, of at most two dimensions.
pub(crate) struct Numbers {
    /// Row by row.
    pub(crate) values: Vec<f64>,
    /// The number of rows, if there are two dimensions.
    pub(crate) rows: Option<usize>,
}

impl Numbers {
    /// Length of a row.
    fn columns(&self) -> usize {
        match self.rows {
            Some(0) => 0,
            Some(rows) => self.values.len() / rows,
            None => self.values.len(),
        }
    }
}

/// Reads the argument called `what`.
pub(crate) fn numbers(values: &Bound<'_, PyAny>, what: &str) -> PyResult<Numbers> {
    let array: PyArrayLikeDyn<'_, f64, AllowTypeChange> = values.extract().map_err(|_| {
        let found = values.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("`{what}` is to be an array of numbers, which this `{found}` is not"))
    })?;
    let width = size_of::<f64>();
    let is_aligned = (array.data() as usize).is_multiple_of(width)
        && array.strides().iter().all(|stride| stride.unsigned_abs().is_multiple_of(width));
    if !is_aligned {
        // A field of a record, or bytes that came over a network: views of such arrays would be undefined behaviour.
        return numbers(&array.call_method0("copy")?, what);
    }
    let array = array.as_array();
    let rows = match array.shape() {
        [_] => None,
        [rows, _] => Some(*rows),
        shape => {
            return Err(error::data(format!("`{what}` has {} dimensions instead of one or two", shape.len())));
        }
    };
    Ok(Numbers { values: array.iter().copied().collect(), rows })
}

/// Reads a list of numbers.
pub(crate) fn list(values: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    let found = numbers(values, what)?;
    match found.rows {
        None => Ok(found.values),
        Some(_) => Err(error::data(format!("`{what}` has two dimensions instead of one"))),
    }
}

/// Reads points of the model's parameters: (P), or (N, P).
pub(crate) fn points(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    let found = numbers(values, "params")?;
    let (wanted, columns) = (model.n_params(), found.columns());
    if columns != wanted && found.rows != Some(0) {
        return Err(error::data(format!("{columns} values for {wanted} parameters")));
    }
    Ok(found)
}

/// Reads one point (P).
pub(crate) fn point(model: &Model, values: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    let point = list(values, what)?;
    if point.len() != model.n_params() {
        return Err(error::data(format!("`{what}` has {} values for {} parameters", point.len(), model.n_params())));
    }
    Ok(point)
}

/// Reads one set of data: main bins alone, with the model's own auxiliary data, or both.
pub(crate) fn data(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Data> {
    let all = list(values, "data")?;
    data_of(model, &all)
}

/// Reads data of several points: one set for all (B or B + K), or one row for each.
pub(crate) fn data_sets(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<(Vec<Data>, Option<usize>)> {
    let found = numbers(values, "data")?;
    let columns = found.columns();
    let Some(rows) = found.rows else { return Ok((vec![data_of(model, &found.values)?], None)) };
    let sets = (0..rows).map(|row| data_of(model, &found.values[row * columns..(row + 1) * columns]));
    Ok((sets.collect::<PyResult<Vec<Data>>>()?, Some(rows)))
}

fn data_of(model: &Model, all: &[f64]) -> PyResult<Data> {
    let (n_bins, n_aux) = (model.n_bins(), model.n_aux());
    if all.len() != n_bins && all.len() != n_bins + n_aux {
        return Err(error::data(format!(
            "{} data, but the model has {n_bins} bins and {n_aux} auxiliary data: give the bins, or both",
            all.len()
        )));
    }
    if let Some(bin) = all[..n_bins].iter().position(|n| !(n.is_finite() && *n >= 0.0)) {
        let place = model.place(bin);
        return Err(error::data(format!(
            "channel `{}`, bin {}: {} is no number of events",
            place.channel, place.bin, all[bin]
        )));
    }
    if let Some(k) = all[n_bins..].iter().position(|a| !a.is_finite()) {
        return Err(error::data(format!("auxiliary datum {k} is {}", all[n_bins + k])));
    }
    let aux = if all.len() == n_bins { model.observed.aux.clone() } else { all[n_bins..].to_vec() };
    Ok(Data { main: all[..n_bins].to_vec(), aux })
}
