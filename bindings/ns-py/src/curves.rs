//! Profile scans of one parameter, grids of two, contours.

use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::curves::{AxisRequest, ContourLevels, ContourRequest, ScanRequest};
use ns_core::Model;
use ns_inference::monitor::Monitor;
use ns_inference::parallel::WorkPart;
use ns_inference::scan::{GridPart, Scan, ScanValues};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::depythonize;

use crate::convert::{array, fields, frozen_matrix, matrix, object, optional_array};
use crate::error;
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::list;
use crate::settings::{analysis, annotate};
use crate::watch::{answer_watched, callback};

/// An axis as Python passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PyAxis<'py> {
    /// The parameter of interest if None.
    parameter: Option<String>,
    /// Automatic ones if None.
    values: Option<Bound<'py, PyAny>>,
    /// The number of automatic values.
    points: usize,
}

/// Returns the axes of a scan, checked against each other and against memory.
fn axes_of(py: Python<'_>, analysis: &Analysis, axes: Vec<PyAxis<'_>>) -> PyResult<Vec<AxisRequest>> {
    let axis = |PyAxis { parameter, values, points }: PyAxis<'_>| {
        let values = match values {
            Some(values) => ScanValues::Given(list(&values, "mu_values")?),
            None => ScanValues::Automatic(points),
        };
        Ok(AxisRequest { parameter, values })
    };
    let axes = axes.into_iter().map(axis).collect::<PyResult<Vec<AxisRequest>>>()?;
    analysis.axes(&axes).map_err(|problem| error::settings(py, &problem))?;
    let points = |axis: &AxisRequest| match &axis.values {
        ScanValues::Automatic(points) => *points,
        ScanValues::Given(values) => values.len(),
    };
    room::<f64>(axes.iter().map(points).fold(1, usize::saturating_mul) as u64, analysis.model().n_params(), "points")?;
    Ok(axes)
}

/// Scans one or two parameters; the fits in `parts` of a grid are not done again.
#[pyfunction]
#[pyo3(signature = (model, settings, axes, progress, parts=Vec::new()))]
fn scan_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    axes: Vec<PyAxis<'py>>,
    progress: Option<Bound<'py, PyAny>>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let axes = axes_of(py, &analysis, axes)?;
    let parts = parts.into_iter().map(|part| Ok(depythonize(&part)?)).collect::<PyResult<Vec<GridPart>>>()?;
    let request = ScanRequest { axes, parts, ..ScanRequest::default() };
    let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.scan(&request, monitor);
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
    let alarm = answer.result.alarm();
    let intervals = answer.result.intervals;
    let document = scan_fields(py, analysis.model(), answer.result.scan)?;
    document.set_item("intervals", object(py, &intervals)?)?;
    document.set_item("alarm", alarm)?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// Computes part `part[0]` of `part[1]` parts of a grid, for `scan_model`.
#[pyfunction]
fn grid_part_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    axes: [PyAxis<'py>; 2],
    part: [usize; 2],
) -> PyResult<Bound<'py, PyAny>> {
    let analysis = analysis(py, model, settings)?;
    let axes = axes_of(py, &analysis, axes.into())?;
    let request = ScanRequest { axes, ..ScanRequest::default() };
    let work = |analysis: &Analysis, monitor: &dyn Monitor| {
        analysis.grid_part(&request, WorkPart { index: part[0], n_parts: part[1] }, monitor)
    };
    object(py, &answer_watched(py, None, &analysis, work)?)
}

/// Returns a scan with arrays over its points: (N), or (N₁ × N₂) of a grid.
///
/// Parameters are (points × P), NaN where a point has no value.
fn scan_fields<'py>(py: Python<'py>, model: &Model, mut result: Scan) -> PyResult<Bound<'py, PyDict>> {
    let (n_points, n_params) = (result.params.len(), result.best.params.len());
    let columns = match result.values.as_slice() {
        [_, second] => Some(second.len()),
        _ => None,
    };
    let shaped = |values: &[Option<f64>]| match columns {
        None => Ok(optional_array(py, values).into_any()),
        Some(n) => {
            let values: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
            let n_rows = values.len() / n.max(1);
            matrix(py, values, [n_rows, n])
        }
    };
    let (delta, twice) = (shaped(&result.delta_nll)?, shaped(&result.twice_delta_nll)?);
    let unknown = vec![f64::NAN; n_params];
    let params: Vec<f64> =
        result.params.iter().flat_map(|params| params.as_ref().unwrap_or(&unknown).iter().copied()).collect();
    result.params.clear();
    let values: Vec<_> = result.values.iter().map(|values| array(py, values)).collect();
    let document = fields(py, &result)?;
    document.set_item("values", values)?;
    document.set_item("delta_nll", delta)?;
    document.set_item("twice_delta_nll", twice)?;
    document.set_item("conditional_bestfit", frozen_matrix(py, params, [n_points, n_params])?)?;
    document.set_item("par_names", &model.parameters.names)?;
    Ok(document)
}

/// The contours that are wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ContoursWanted {
    parameters: [String; 2],
    levels: Vec<f64>,
    n_points: usize,
}

/// Finds contours of two parameters at confidence levels.
#[pyfunction]
fn contours_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: ContoursWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ContoursWanted { parameters, levels, n_points } = wanted;
    let analysis = analysis(py, model, settings)?;
    room::<f64>(n_points as u64, analysis.model().n_params(), "points")?;
    let request = ContourRequest { parameters, levels: ContourLevels { levels, n_points } };
    let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.contours(&request, monitor);
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
    let document = fields(py, &answer.result)?;
    document.set_item("par_names", &analysis.model().parameters.names)?;
    document.set_item("alarm", answer.result.alarm())?;
    annotate(&analysis, &document)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_model, module)?)?;
    module.add_function(wrap_pyfunction!(grid_part_model, module)?)?;
    module.add_function(wrap_pyfunction!(contours_model, module)?)
}
