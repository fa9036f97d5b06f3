//! Hypothesis tests, significances and upper limits by asymptotic formulas.

use ns_inference::hypotest::{hypotest, significance};
use ns_inference::limit::{LimitOptions, limit, limit_from_grid};
use ns_inference::test_statistic::TestStatistic;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::fields;
use crate::error;
use crate::interrupt::interruptible;
use crate::model::PyModel;
use crate::numbers::list;
use crate::settings::{Setup, setup};

/// The statistic that Python calls `name`.
pub(crate) fn statistic(py: Python<'_>, name: &str) -> PyResult<TestStatistic> {
    match name {
        "qtilde" => Ok(TestStatistic::QTilde),
        "q" => Ok(TestStatistic::Q),
        "q0" => Ok(TestStatistic::Q0),
        "t" => Ok(TestStatistic::T),
        "ttilde" => Ok(TestStatistic::TTilde),
        other => {
            let hint = Some("there are `qtilde`, `q`, `q0`, `t` and `ttilde`".to_owned());
            Err(error::parameter(py, format!("`{other}` is no test statistic"), hint))
        }
    }
}

#[pyfunction]
fn hypotest_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    mu: f64,
    test_stat: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let statistic = statistic(py, test_stat)?;
    // As the command has it: a discovery is a test of 0.
    let mu = if statistic == TestStatistic::Q0 { 0.0 } else { tested(py, mu)? };
    let setup = setup(py, model, settings)?;
    let poi = setup.parameter(py, None, "hypotest")?;
    let Setup { model, likelihood, options, .. } = setup;
    let wanted = (statistic, mu);
    let result = interruptible(py, likelihood, |likelihood| hypotest(&model, likelihood, &options, poi, wanted))?;
    fields(py, &result)
}

#[pyfunction]
fn significance_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    mu: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let mu = tested(py, mu)?;
    let setup = setup(py, model, settings)?;
    let poi = setup.parameter(py, None, "significance")?;
    let Setup { model, likelihood, options, .. } = setup;
    let result = interruptible(py, likelihood, |likelihood| significance(&model, likelihood, &options, poi, mu))?;
    fields(py, &result)
}

/// Upper limits; from the values of `grid` if there is one.
#[pyfunction]
fn limit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    level: f64,
    test_stat: &str,
    grid: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = LimitOptions { level, statistic: statistic(py, test_stat)? };
    if !(0.0 < level && level < 1.0) {
        return Err(error::parameter(py, format!("a level of {level} is not between 0 and 1"), None));
    }
    if !matches!(wanted.statistic, TestStatistic::Q | TestStatistic::QTilde) {
        let hint = Some("there are `qtilde` and `q`".to_owned());
        return Err(error::parameter(py, format!("`{test_stat}` gives no upper limits"), hint));
    }
    let setup = setup(py, model, settings)?;
    let poi = setup.parameter(py, None, "upper_limit")?;
    let grid = grid.map(|grid| list(&grid, "grid")).transpose()?;
    if grid.as_ref().is_some_and(|grid| grid.len() < 2 || !grid.is_sorted_by(|a, b| a < b)) {
        return Err(error::parameter(py, "a grid has two values or more, ascending".to_owned(), None));
    }
    let Setup { model, likelihood, options, .. } = setup;
    let result = interruptible(py, likelihood, |likelihood| match &grid {
        None => limit(&model, likelihood, &options, poi, wanted),
        Some(grid) => limit_from_grid(&model, likelihood, &options, poi, (wanted, grid)),
    })?;
    fields(py, &result)
}

/// `mu` if it can be tested.
pub(crate) fn tested(py: Python<'_>, mu: f64) -> PyResult<f64> {
    if mu.is_finite() { Ok(mu) } else { Err(error::parameter(py, format!("{mu} cannot be tested"), None)) }
}

/// The statistic that Python calls `name`, if it has derivatives here.
pub(crate) fn one_sided(py: Python<'_>, name: &str) -> PyResult<TestStatistic> {
    let found = statistic(py, name)?;
    if found.is_one_sided() {
        return Ok(found);
    }
    let hint = Some("there are `qtilde`, `q` and `q0`".to_owned());
    Err(error::parameter(py, format!("`{name}` has no derivatives here"), hint))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hypotest_model, module)?)?;
    module.add_function(wrap_pyfunction!(significance_model, module)?)?;
    module.add_function(wrap_pyfunction!(limit_model, module)?)
}
