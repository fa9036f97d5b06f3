//! Intervals, regions, limits and significances by toys, which are thrown until errors are small,
//! and the coverage of intervals.

use nextstat::alarm::Alarm;
use nextstat::coverage::CoverageRequest;
use nextstat::intervals::{IntervalRequest, RegionRequest};
use nextstat::toy_limits::{ToyLimitRequest, ToySignificanceRequest};
use nextstat::toys::ToyOptions;
use nextstat::{Analysis, Answer, Document, Error};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{Construction, CoverageMethod, LimitCriterion};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::fields;
use crate::error;
use crate::model::PyModel;
use crate::numbers::list;
use crate::settings::{analysis, annotate};
use crate::tests_of_mu::{limit_level, statistic};
use crate::toys::aux;
use crate::watch::{answer_watched, callback};

/// How long toys are thrown.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct ToysWanted {
    tolerance: f64,
    max_toys: u64,
    is_aux_fixed: bool,
}

impl ToysWanted {
    fn options(self) -> ToyOptions {
        ToyOptions { aux: aux(self.is_aux_fixed), ..ToyOptions::default() }
    }
}

/// Returns the document of what `question` finds.
fn document<'py, T: Document + Alarm + Send>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    progress: Option<Bound<'py, PyAny>>,
    question: impl Fn(&Analysis, &dyn Monitor) -> Result<Answer<T>, Error> + Send + Sync,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, question)?;
    let document = fields(py, &answer.result_document())?;
    document.set_item("alarm", answer.result.alarm())?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// The interval by toys that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct IntervalWanted {
    construction: String,
    cl: f64,
    toys: ToysWanted,
}

/// Returns a confidence interval by toys.
#[pyfunction]
fn interval_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: IntervalWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let IntervalWanted { construction: name, cl, toys } = wanted;
    let construction = Construction::named(&name).ok_or_else(|| {
        let hint = Some("choose one of `fc`, `central`, `upper`".to_owned());
        error::parameter(py, format!("unknown construction `{name}`"), hint)
    })?;
    let ToysWanted { tolerance, max_toys, .. } = toys;
    let request = IntervalRequest { construction, cl, tolerance, max_toys, options: toys.options() };
    document(py, model, settings, progress, |analysis, monitor| analysis.interval(&request, monitor))
}

/// The region by toys that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RegionWanted<'py> {
    parameters: [String; 2],
    values: [Bound<'py, PyAny>; 2],
    cls: Vec<f64>,
    toys: ToysWanted,
}

/// Returns a confidence region of two parameters by toys.
#[pyfunction]
fn region_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: RegionWanted<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let RegionWanted { parameters: [a, b], values, cls, toys } = wanted;
    let axes = [(a, list(&values[0], "grid")?), (b, list(&values[1], "grid")?)];
    let ToysWanted { tolerance, max_toys, .. } = toys;
    let request = RegionRequest { axes, cls, tolerance, max_toys, options: toys.options() };
    document(py, model, settings, progress, |analysis, monitor| analysis.region(&request, monitor))
}

/// The limits by toys that are wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LimitWanted {
    /// The confidence level, if it is given instead of `level`.
    cl: Option<f64>,
    /// CLs or CLs+b at the limits.
    level: f64,
    test_stat: String,
    criterion: String,
    expected: bool,
    toys: ToysWanted,
}

/// Finds upper limits by toys.
#[pyfunction]
fn limit_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: LimitWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let LimitWanted { cl, level, test_stat, criterion: name, expected, toys } = wanted;
    let criterion = LimitCriterion::named(&name).ok_or_else(|| {
        error::parameter(py, format!("unknown criterion `{name}`"), Some("choose `CLs` or `CLsb`".to_owned()))
    })?;
    let (statistic, ToysWanted { tolerance, max_toys, .. }) = (statistic(py, &test_stat)?, toys);
    let options = toys.options();
    let level = limit_level(cl, level);
    let request = ToyLimitRequest { level, statistic, criterion, expected, tolerance, max_toys, options };
    document(py, model, settings, progress, |analysis, monitor| analysis.toy_limit(&request, monitor))
}

/// The significance by toys that is wanted.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct SignificanceWanted {
    importance_sampling: bool,
    toys: ToysWanted,
}

/// Returns the significance of a discovery by toys.
#[pyfunction]
fn significance_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: SignificanceWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let SignificanceWanted { importance_sampling, toys } = wanted;
    let ToysWanted { tolerance, max_toys, .. } = toys;
    let request = ToySignificanceRequest { tolerance, max_toys, importance_sampling, options: toys.options() };
    document(py, model, settings, progress, |analysis, monitor| analysis.toy_significance(&request, monitor))
}

/// The coverage that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CoverageWanted<'py> {
    true_values: Bound<'py, PyAny>,
    methods: Vec<String>,
    cl: f64,
    n_toys: u64,
    max_inner_toys: u64,
    tolerance: f64,
    is_aux_fixed: bool,
}

/// Determines the coverage of intervals by toys.
#[pyfunction]
fn coverage_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: CoverageWanted<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let CoverageWanted { true_values, methods, cl, n_toys, max_inner_toys, tolerance, is_aux_fixed } = wanted;
    let method = |name: &String| {
        CoverageMethod::named(name).ok_or_else(|| {
            let known = CoverageMethod::ALL.map(|method| format!("`{}`", method.name())).join(", ");
            error::parameter(py, format!("unknown method `{name}`"), Some(format!("choose one of {known}")))
        })
    };
    let request = CoverageRequest {
        true_values: list(&true_values, "true_values")?,
        methods: methods.iter().map(method).collect::<PyResult<_>>()?,
        cl,
        n_toys,
        max_inner_toys,
        tolerance,
        options: ToyOptions { aux: aux(is_aux_fixed), ..ToyOptions::default() },
    };
    document(py, model, settings, progress, |analysis, monitor| analysis.coverage(&request, monitor))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(interval_model, module)?)?;
    module.add_function(wrap_pyfunction!(region_model, module)?)?;
    module.add_function(wrap_pyfunction!(limit_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(coverage_model, module)?)?;
    module.add_function(wrap_pyfunction!(significance_toys_model, module)?)
}
