//! Numbers and names in tables and messages, as every interface of the library writes them.

use nextstat::error::SettingsError;
use nextstat::number;
use ns_core::similar_name as most_similar;
use ns_inference::minimize::BoundSide;
use ns_inference::result::{AtBound, MinosInterval};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error;

/// Returns a number that may be missing as tables show it.
#[pyfunction]
fn significant(value: Option<f64>, digits: usize) -> String {
    number::optional(known(value), digits)
}

/// Returns `value ± uncertainty` with two digits of the uncertainty.
#[pyfunction]
fn measured(value: f64, uncertainty: Option<f64>) -> String {
    number::measured(value, known(uncertainty))
}

/// What a fit found about a parameter.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Fitted {
    bestfit: f64,
    uncertainty: Option<f64>,
    /// The parts of the uncertainty; None where they are not known.
    statistical: Option<f64>,
    systematic: Option<f64>,
    /// `lower` or `upper`, and the bound, of a parameter at one.
    bound: Option<(String, f64)>,
    /// Confidence level, and distances to both ends, of MINOS intervals.
    intervals: Vec<(f64, Option<f64>, Option<f64>)>,
}

/// Returns the value of a parameter with its uncertainty and intervals.
#[pyfunction]
fn fitted(found: Fitted) -> String {
    let Fitted { bestfit, uncertainty, statistical, systematic, bound, intervals } = found;
    let bound = bound.map(|(side, bound)| {
        let side = if side == "lower" { BoundSide::Lower } else { BoundSide::Upper };
        AtBound { parameter: String::new(), side, bound }
    });
    let interval = |(cl, down, up)| MinosInterval { parameter: String::new(), cl, bestfit, down, up };
    let intervals: String = intervals.into_iter().map(interval).map(|found| number::interval(&found)).collect();
    number::fitted(bestfit, known(uncertainty), bound.as_ref()) + &number::parts(statistical, systematic) + &intervals
}

/// Returns an impact with its sign.
#[pyfunction]
fn impact(change: Option<f64>) -> String {
    number::impact(known(change))
}

/// Returns a pull with its sign and two decimals.
#[pyfunction]
fn pull(pull: Option<f64>) -> String {
    number::pull(known(pull))
}

/// Returns a number unless it is NaN.
fn known(value: Option<f64>) -> Option<f64> {
    value.filter(|value| !value.is_nan())
}

/// Returns the name among `known` that is most similar to `name`; None if none is similar.
#[pyfunction]
fn similar_name(name: &str, known: &Bound<'_, PyList>) -> PyResult<Option<String>> {
    let known: Vec<String> = known.extract()?;
    Ok(most_similar(name, known.iter().map(String::as_str)).map(str::to_owned))
}

/// Raises the error of a parameter that is not among `known`.
#[pyfunction]
fn refuse_parameter(py: Python<'_>, name: &str, known: &Bound<'_, PyList>) -> PyResult<()> {
    let similar = similar_name(name, known)?;
    Err(error::settings(py, &SettingsError::UnknownParameter { setting: None, name: name.to_owned(), similar }))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(significant, module)?)?;
    module.add_function(wrap_pyfunction!(measured, module)?)?;
    module.add_function(wrap_pyfunction!(fitted, module)?)?;
    module.add_function(wrap_pyfunction!(impact, module)?)?;
    module.add_function(wrap_pyfunction!(pull, module)?)?;
    module.add_function(wrap_pyfunction!(similar_name, module)?)?;
    module.add_function(wrap_pyfunction!(refuse_parameter, module)?)
}
