//! Interpolation rules, for arrays of templates.

use ns_core::interpolate::{HistoSysInterpolation, NormSysFactor, NormSysInterpolation};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::convert::array;
use crate::error;
use crate::numbers::list;

/// Interpolates from `low` at -1 and `high` at +1 to `alpha` (each N) by the rule `code`.
///
/// Returns factors for code1 and code4, shifts for the others.
#[pyfunction]
fn interpolate<'py>(
    py: Python<'py>,
    code: &str,
    low: &Bound<'py, PyAny>,
    high: &Bound<'py, PyAny>,
    alpha: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let factor = NormSysInterpolation::from_code(code);
    let shift = HistoSysInterpolation::from_code(code);
    let one = |low: f64, high: f64, alpha: f64| match (factor, shift) {
        (Some(rule), _) => NormSysFactor::new(low, high).at(alpha, rule).value,
        (None, Some(rule)) => {
            let (p, q) = rule.weights(alpha);
            p.value * high + q.value * low
        }
        (None, None) => f64::NAN,
    };
    if factor.is_none() && shift.is_none() {
        return Err(error::parameter(py, format!("unknown interpolation rule `{code}`"), None));
    }
    let (low, high, alpha) = (list(low, "low")?, list(high, "high")?, list(alpha, "alpha")?);
    if low.len() != alpha.len() || high.len() != alpha.len() {
        let lengths = format!("{}, {} and {}", low.len(), high.len(), alpha.len());
        return Err(error::data(format!("`low`, `high` and `alpha` have different lengths: {lengths}")));
    }
    let values: Vec<f64> =
        low.iter().zip(&high).zip(&alpha).map(|((&low, &high), &alpha)| one(low, high, alpha)).collect();
    Ok(array(py, &values))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(interpolate, module)?)
}
