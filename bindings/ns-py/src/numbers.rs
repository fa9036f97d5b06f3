//! Numbers from Python; what is not valid is refused with the name of the argument.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use nextstat::NumberTable;
use nextstat::data_sets::invalid_number;
use ns_core::{Data, Model};
use ns_inference::parallel;
use ns_inference::poisson_interval::poisson_interval;
use ns_inference::toys::number_of_toys;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyString};

use crate::error;
use crate::interrupt::VALUES_OF_A_PART;
use crate::memory::{filled, room};

/// Numbers with their shape, of at most two dimensions.
pub(crate) struct Numbers {
    /// Row by row.
    pub(crate) values: Vec<f64>,
    /// The number of rows, if there are two dimensions.
    pub(crate) rows: Option<usize>,
}

impl Numbers {
    /// Returns the length of a row.
    pub(crate) fn columns(&self) -> usize {
        match self.rows {
            Some(0) => 0,
            Some(rows) => self.values.len() / rows,
            None => self.values.len(),
        }
    }
}

/// Returns what messages show of a value that is not valid.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 60;
    let Ok(text) = value.repr().map(|text| text.to_string()) else { return type_name(value) };
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain("…".chars()).collect() }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
}

/// Returns NumPy's letter for the kind of an array; None for what is not an array.
fn kind(value: &Bound<'_, PyAny>) -> Option<char> {
    value.getattr("dtype").and_then(|dtype| dtype.getattr("kind")).and_then(|kind| kind.extract()).ok()
}

/// Returns whether `value` converts to a number, but is not one.
fn is_not_a_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyComplex>()
        || kind(value).is_some_and(|kind| !matches!(kind, 'f' | 'i' | 'u'))
        || value.getattr("ndim").and_then(|n| n.extract()).is_ok_and(|n: usize| n > 0)
        || is_masked(value)
}

/// Returns whether `value` has masked numbers: NumPy drops the mask when it makes an array.
fn is_masked(value: &Bound<'_, PyAny>) -> bool {
    let hides = |mask: Bound<'_, PyAny>| mask.call_method0("any")?.is_truthy();
    value.getattr("mask").and_then(hides).unwrap_or(false)
}

/// Returns whether an argument, or one of its rows, has masked numbers.
fn has_masked(values: &Bound<'_, PyAny>, n_dimensions: usize) -> bool {
    let mut rows = values.try_iter().into_iter().flatten().flatten();
    is_masked(values) || (n_dimensions > 1 && rows.any(|row| is_masked(&row)))
}

fn masked(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "`{what}` is a masked array, whose masked entries have no value: `.filled(value)` gives them one"
    ))
}

/// Reads a number, of Python or of NumPy; `what` names it in messages.
pub(crate) fn number(value: &Bound<'_, PyAny>, what: impl FnOnce() -> String) -> PyResult<f64> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Ok(number.value());
    }
    let found = if is_not_a_number(value) { None } else { value.extract().ok() };
    found.ok_or_else(|| PyTypeError::new_err(format!("{} must be a number, not `{}`", what(), shown(value))))
}

/// Whether auxiliary data are wanted: True or False, and nothing that converts to them.
#[derive(Clone, Copy)]
pub(crate) struct HasAux(pub(crate) bool);

impl<'a, 'py> FromPyObject<'a, 'py> for HasAux {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let wrong = |_| PyTypeError::new_err(format!("`aux` must be True or False, not `{}`", shown(&value)));
        value.extract().map(Self).map_err(wrong)
    }
}

/// Reads a whole number from `at_least` to 2⁶⁴ - 1.
pub(crate) fn count(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, at_least: u64) -> PyResult<u64> {
    let wrong = || PyTypeError::new_err(format!("`{name}` must be a whole number, not `{}`", shown(value)));
    if value.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    let out_of = |limit: String| {
        let message = format!("`{name}` is {}, and must be {limit}", shown(value));
        Err(error::parameter(py, message, None))
    };
    match value.extract::<i128>() {
        Ok(number) if number < i128::from(at_least) => out_of(format!("at least {at_least}")),
        Ok(number) => u64::try_from(number).or_else(|_| out_of("below 2**64".to_owned())),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            let limit = if value.lt(0)? { format!("at least {at_least}") } else { "below 2**64".to_owned() };
            out_of(limit)
        }
        Err(_) => Err(wrong()),
    }
}

/// Reads a number of threads; more than `MOST_THREADS` are that many.
pub(crate) fn threads(py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<NonZeroUsize> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(all_threads()) };
    let number = count(py, "threads", value, 1)?;
    Ok(usize::try_from(number).ok().and_then(NonZeroUsize::new).map_or(MOST_THREADS, |n| n.min(MOST_THREADS)))
}

/// More than machines run at once; a system refuses to start very many.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Returns as many threads as the machine runs at once.
///
/// Asking the system takes longer than a small fit, so it is asked once.
fn all_threads() -> NonZeroUsize {
    static ALL: OnceLock<NonZeroUsize> = OnceLock::new();
    *ALL.get_or_init(parallel::all_threads)
}

/// Reads the argument called `what`.
pub(crate) fn numbers(values: &Bound<'_, PyAny>, what: &str) -> PyResult<Numbers> {
    let py = values.py();
    let array = match values.cast::<PyArrayDyn<f64>>() {
        Ok(array) if !array.is_exact_instance_of::<PyArrayDyn<f64>>() && is_masked(values) => return Err(masked(what)),
        Ok(array) => array.clone(),
        Err(_) => converted(values, what)?,
    };
    let array = array.try_readonly()?;
    let width = size_of::<f64>();
    let is_aligned = (array.data() as usize).is_multiple_of(width)
        && array.strides().iter().all(|stride| stride.unsigned_abs().is_multiple_of(width));
    if !is_aligned {
        // A field of a record, or bytes from a network: a view of such an array would be undefined
        // behaviour.
        return numbers(&array.call_method0("copy")?, what);
    }
    let array = array.as_array();
    let rows = match array.shape() {
        [_] => None,
        [rows, _] => Some(*rows),
        [] => return Err(not_an_array(values, what)),
        shape => {
            return Err(error::data(format!("`{what}` has {} dimensions instead of one or two", shape.len())));
        }
    };
    let mut all_values: Vec<f64> = room(array.len() as u64, 1, "numbers")?;
    match array.as_slice() {
        _ if array.len() <= VALUES_OF_A_PART => all_values.extend(array.iter().copied()),
        // With the interpreter's lock, because other threads may write to the array.
        Some(all) => all.chunks(VALUES_OF_A_PART).try_for_each(|part| {
            all_values.extend_from_slice(part);
            py.check_signals()
        })?,
        None => {
            let mut all = array.iter().copied().peekable();
            while all.peek().is_some() {
                all_values.extend(all.by_ref().take(VALUES_OF_A_PART));
                py.check_signals()?;
            }
        }
    }
    Ok(Numbers { values: all_values, rows })
}

fn not_an_array(values: &Bound<'_, PyAny>, what: &str) -> PyErr {
    PyTypeError::new_err(format!("`{what}` must be an array of numbers, not `{}`", shown(values)))
}

/// Converts a value to an array of floating-point numbers.
fn converted<'py>(values: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = values.py();
    let wrong = |because: &str| {
        let found = type_name(values);
        PyTypeError::new_err(format!("`{what}` must be an array of numbers, which this `{found}` is not{because}"))
    };
    let array = AS_ARRAY
        .import(py, "numpy", "asarray")?
        .call1((values,))
        .map_err(|error| if error.is_instance_of::<PyMemoryError>(py) { error } else { wrong("") })?;
    let n_dimensions: usize = array.getattr("ndim")?.extract()?;
    if n_dimensions == 0 {
        return Err(not_an_array(values, what));
    }
    if has_masked(values, n_dimensions) {
        return Err(masked(what));
    }
    match kind(&array) {
        Some('f' | 'i' | 'u') => {}
        Some('O') => {
            for value in array.call_method0("ravel")?.try_iter()? {
                let value = value?;
                number(&value, String::new).map_err(|_| wrong(&format!(": it has `{}`", shown(&value))))?;
            }
        }
        Some('U' | 'S') => return Err(wrong(": it has text")),
        Some('c') => return Err(wrong(": it has complex numbers")),
        Some('b') => return Err(wrong(": it has truth values")),
        _ => return Err(wrong("")),
    }
    Ok(array.call_method1("astype", ("float64",))?.cast_into::<PyArrayDyn<f64>>()?)
}

/// Reads a list of numbers.
pub(crate) fn list(values: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    let found = numbers(values, what)?;
    match found.rows {
        None => Ok(found.values),
        Some(_) => Err(error::data(format!("`{what}` has two dimensions instead of one"))),
    }
}

/// Reads one set of data: main bins alone, with the model's own auxiliary data, or both; or the
/// bins of each channel, by its name. An analysis checks the numbers.
pub(crate) fn unchecked_data(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Data> {
    match values.cast::<PyDict>() {
        Ok(by_channel) => data_by_channel(model, by_channel),
        Err(_) => split(model, &one_data_set(values)?),
    }
}

/// Reads one set of data likewise, for an evaluation of all bins.
pub(crate) fn data(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Data> {
    checked(model, unchecked_data(model, values)?)
}

/// Reads the numbers of one data set.
fn one_data_set(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let found = numbers(values, "data")?;
    match found.rows {
        None => Ok(found.values),
        Some(_) => {
            let error = error::data("`data` has two dimensions instead of one".to_owned());
            let hint = "`nextstat.fits` fits a data set for each row".to_owned();
            Err(error::with_hint(values.py(), error, Some(hint)))
        }
    }
}

/// Returns what `by_channel` has for each channel, in the order of the model.
fn channels_of<'py>(model: &Model, by_channel: &Bound<'py, PyDict>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    for name in by_channel.keys() {
        if !model.channels.iter().any(|channel| name.eq(channel).unwrap_or(false)) {
            let name = shown(&name);
            return Err(error::data(format!("`data` names the channel `{name}`, which the model does not have")));
        }
    }
    let values = |channel: &String| {
        let found = by_channel.get_item(channel)?;
        found.ok_or_else(|| error::data(format!("`data` has no channel `{channel}`")))
    };
    model.channels.iter().map(values).collect()
}

/// Reads the bins of every channel.
fn data_by_channel(model: &Model, by_channel: &Bound<'_, PyDict>) -> PyResult<Data> {
    let mut all = Vec::with_capacity(model.n_bins());
    let channels = model.channels.iter().zip(channels_of(model, by_channel)?);
    for (c, (channel, values)) in channels.enumerate() {
        let (found, n_bins) = (one_data_set(&values)?, model.channel_bins(c).len());
        if found.len() != n_bins {
            let found = found.len();
            return Err(error::data(format!("channel `{channel}`: {found} data, but the model has {n_bins} bins")));
        }
        all.extend(found);
    }
    split(model, &all)
}

/// Reads a table, the argument called `what`.
pub(crate) fn table(values: &Bound<'_, PyAny>, what: &str) -> PyResult<NumberTable> {
    let found = numbers(values, what)?;
    let (n_rows, n_columns) = match found.rows {
        Some(0) => (0, 0),
        Some(n_rows) => (n_rows, found.values.len() / n_rows),
        None => {
            let error = error::data(format!("`{what}` has one dimension instead of two"));
            let hint = format!("`{what}` has a data set in each row; `nextstat.fit` fits one data set");
            return Err(error::with_hint(values.py(), error, Some(hint)));
        }
    };
    Ok(NumberTable { values: found.values, n_rows, n_columns })
}

/// Reads many data sets: a row for each (N × B or N × (B + K)), or the rows of each channel by its
/// name.
pub(crate) fn number_table(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<NumberTable> {
    let Ok(by_channel) = values.cast::<PyDict>() else { return table(values, "data") };
    let mut all = NumberTable::default();
    let n_columns = model.n_bins();
    for (c, values) in channels_of(model, by_channel)?.iter().enumerate() {
        let (channel, bins) = (&model.channels[c], model.channel_bins(c));
        let found = table(values, "data")?;
        if c == 0 {
            let values = filled(0.0, found.n_rows, n_columns, "data sets")?;
            all = NumberTable { values, n_rows: found.n_rows, n_columns };
        }
        if found.n_rows != all.n_rows || (found.n_columns != bins.len() && found.n_rows > 0) {
            return Err(error::data(format!(
                "channel `{channel}`: the data have the shape {} × {}, and {} data sets of {} bins have {} × {}",
                found.n_rows,
                found.n_columns,
                all.n_rows,
                bins.len(),
                all.n_rows,
                bins.len()
            )));
        }
        let rows = all.values.chunks_exact_mut(n_columns.max(1));
        rows.zip(found.values.chunks_exact(bins.len().max(1))).for_each(|(row, bins_of_row)| {
            row[bins.clone()].copy_from_slice(bins_of_row);
        });
    }
    Ok(all)
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
    checked(model, split(model, all)?)
}

/// Splits event counts (B), or these and auxiliary data (B + K).
fn split(model: &Model, all: &[f64]) -> PyResult<Data> {
    let (n_bins, n_aux) = (model.n_bins(), model.n_aux());
    if all.len() != n_bins && all.len() != n_bins + n_aux {
        return Err(error::data(format!(
            "{} data, but the model has {n_bins} bins and {n_aux} auxiliary data: give the bins, or both",
            all.len()
        )));
    }
    let aux = if all.len() == n_bins { model.observed.aux.clone() } else { all[n_bins..].to_vec() };
    Ok(Data { main: all[..n_bins].to_vec(), aux })
}

/// Refuses numbers that no evaluation takes.
fn checked(model: &Model, data: Data) -> PyResult<Data> {
    match invalid_number(model, &data.main, &data.aux, None) {
        None => Ok(data),
        Some(problem) => Err(error::data(problem.to_string())),
    }
}

/// Returns `value` as a Python number; `what` names it in messages.
#[pyfunction]
#[pyo3(name = "number")]
fn py_number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<f64> {
    number(value, || what.to_owned())
}

/// Returns `value` as a whole number of at least `at_least`; `name` is for messages.
#[pyfunction]
#[pyo3(name = "count")]
fn py_count(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, at_least: u64) -> PyResult<u64> {
    count(py, name, value, at_least)
}

/// Returns `value` as a number of toys within the limits of the command.
#[pyfunction]
fn count_of_toys(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = match count(py, name, value, 0) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(error),
        number => number.ok(),
    };
    number_of_toys(number, &shown(value)).map_err(|problem| error::parameter(py, format!("`{name}`: {problem}"), None))
}

/// Returns the lower and the upper end of the Poisson interval of each of `counts`.
#[pyfunction]
fn poisson_intervals(counts: Vec<f64>) -> Vec<[f64; 2]> {
    counts.into_iter().map(poisson_interval).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MOST_TOYS", ns_inference::toys::MOST_TOYS)?;
    module.add_function(wrap_pyfunction!(py_number, module)?)?;
    module.add_function(wrap_pyfunction!(py_count, module)?)?;
    module.add_function(wrap_pyfunction!(poisson_intervals, module)?)?;
    module.add_function(wrap_pyfunction!(count_of_toys, module)?)
}
