//! Hypothesis tests, significances and upper limits by asymptotic formulas.

use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::hypothesis::{HypotestRequest, LimitLevel, LimitRequest, SignificanceRequest};
use nextstat::limit_scan::LimitScanRequest;
use ns_inference::monitor::Monitor;
use ns_inference::test_statistic::TestStatistic;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::convert::fields;
use crate::error;
use crate::interrupt::answer;
use crate::model::PyModel;
use crate::numbers::list;
use crate::settings::{analysis, annotate};
use crate::watch::{answer_watched, callback};

/// Returns the fields of `result` with its provenance.
fn annotated<'py>(
    py: Python<'py>,
    analysis: &Analysis,
    result: &(impl Serialize + Alarm),
) -> PyResult<Bound<'py, PyDict>> {
    let document = fields(py, result)?;
    document.set_item("alarm", result.alarm())?;
    annotate(analysis, &document)?;
    Ok(document)
}

/// Returns the test statistic that Python calls `name`.
pub(crate) fn statistic(py: Python<'_>, name: &str) -> PyResult<TestStatistic> {
    TestStatistic::named(name).ok_or_else(|| {
        let hint = Some("choose one of `qtilde`, `q`, `q0`, `t`, `ttilde`".to_owned());
        error::parameter(py, format!("unknown test statistic `{name}`"), hint)
    })
}

/// Tests one value of the parameter of interest.
#[pyfunction]
fn hypotest_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    mu: Option<f64>,
    test_stat: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let statistic = statistic(py, test_stat)?;
    let analysis = analysis(py, model, settings)?;
    let found = answer(py, &analysis, |analysis| analysis.hypotest(&HypotestRequest { mu, statistic }))?;
    annotated(py, &analysis, &found.result)
}

/// Returns the significance of a discovery.
#[pyfunction]
fn significance_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    mu: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let found = answer(py, &analysis, |analysis| analysis.significance(&SignificanceRequest { mu }))?;
    annotated(py, &analysis, &found.result)
}

/// The limits that are wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LimitWanted<'py> {
    /// The confidence level, if it is given instead of `level`.
    cl: Option<f64>,
    /// CLs at the limits.
    level: f64,
    test_stat: String,
    /// Values between which CLs is interpolated, if given.
    grid: Option<Bound<'py, PyAny>>,
}

impl LimitWanted<'_> {
    fn request(self, py: Python<'_>) -> PyResult<LimitRequest> {
        let Self { cl, level, test_stat, grid } = self;
        let statistic = statistic(py, &test_stat)?;
        let grid = grid.map(|grid| list(&grid, "grid")).transpose()?;
        Ok(LimitRequest { level: limit_level(cl, level), statistic, grid })
    }
}

/// Returns the level of limits by a confidence level, or as CLs.
pub(crate) fn limit_level(cl: Option<f64>, level: f64) -> LimitLevel {
    cl.map_or(LimitLevel::Cls(level), LimitLevel::Confidence)
}

/// Finds upper limits.
#[pyfunction]
fn limit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: LimitWanted<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let request = wanted.request(py)?;
    let analysis = analysis(py, model, settings)?;
    annotated(py, &analysis, &answer(py, &analysis, |analysis| analysis.limit(&request))?.result)
}

/// The values that another parameter is fixed at.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FixedValues<'py> {
    parameter: String,
    values: Bound<'py, PyAny>,
}

/// Finds upper limits with another parameter fixed at each of several values.
#[pyfunction]
fn limit_scan_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: LimitWanted<'py>,
    at: FixedValues<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = list(&at.values, "at")?;
    let request = LimitScanRequest { limit: wanted.request(py)?, parameter: at.parameter, values };
    let analysis = analysis(py, model, settings)?;
    let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.limit_scan(&request, monitor);
    let found = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
    let document = fields(py, &found.result_document())?;
    document.set_item("alarm", found.result.alarm())?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// Returns the test statistic that Python calls `name`, if sessions have its derivatives.
pub(crate) fn one_sided(py: Python<'_>, name: &str) -> PyResult<TestStatistic> {
    let found = statistic(py, name)?;
    if found.is_one_sided() {
        return Ok(found);
    }
    let hint = Some("choose one of `qtilde`, `q`, `q0`".to_owned());
    Err(error::parameter(py, format!("the test statistic `{name}` has no derivatives"), hint))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hypotest_model, module)?)?;
    module.add_function(wrap_pyfunction!(significance_model, module)?)?;
    module.add_function(wrap_pyfunction!(limit_model, module)?)?;
    module.add_function(wrap_pyfunction!(limit_scan_model, module)?)
}
