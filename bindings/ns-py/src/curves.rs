//! Profile scans of one parameter, grids of two, contours.

use ns_core::Model;
use ns_core::likelihood::diagnose;
use ns_inference::contour::{ContourOptions, contours};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::Crew;
use ns_inference::scan::{Axis, GridPart, Scan, Values, grid_of_parts, grid_part, scan};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::depythonize;

use crate::convert::{array, fields, frozen_matrix, matrix, object, optional_array};
use crate::error;
use crate::interrupt::Interruptible;
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::list;
use crate::settings::{Setup, setup};
use crate::watch::{callback, watched};

/// An axis as Python has it: the parameter, values or None for automatic ones, and how many of those.
type PyAxis<'py> = (Option<String>, Option<Bound<'py, PyAny>>, usize);

fn axis(py: Python<'_>, setup: &Setup, (name, values, points): PyAxis<'_>) -> PyResult<Axis> {
    let parameter = setup.parameter(py, name.as_deref(), "profile_scan")?;
    let values = match values {
        Some(values) => Values::Given(scanned(py, list(&values, "mu_values")?)?),
        None => Values::Automatic(points),
    };
    Ok(Axis { parameter, values })
}

/// Values of a scan, in any order.
fn scanned(py: Python<'_>, values: Vec<f64>) -> PyResult<Vec<f64>> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(error::parameter(py, format!("a scan cannot go to {value}"), None)),
        None if values.is_empty() => Err(error::parameter(py, "a scan needs one value or more".to_owned(), None)),
        None => Ok(values),
    }
}

/// The axes of a scan, checked against each other.
fn axes_of(py: Python<'_>, setup: &Setup, axes: Vec<PyAxis<'_>>) -> PyResult<Vec<Axis>> {
    let axes = axes.into_iter().map(|wanted| axis(py, setup, wanted)).collect::<PyResult<Vec<Axis>>>()?;
    if axes.len() == 2 && axes[0].parameter == axes[1].parameter {
        return Err(error::parameter(py, "a parameter is scanned against itself".to_owned(), None));
    }
    let points = |axis: &Axis| match &axis.values {
        Values::Automatic(points) => *points,
        Values::Given(values) => values.len(),
    };
    room::<f64>(axes.iter().map(points).fold(1, usize::saturating_mul) as u64, setup.model.n_params(), "points")?;
    Ok(axes)
}

/// A scan of one or two parameters; what `parts` have of a grid is not done again.
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
    let setup = setup(py, model, settings)?;
    let axes = axes_of(py, &setup, axes)?;
    let parts = parts.into_iter().map(|part| Ok(depythonize(&part)?)).collect::<PyResult<Vec<GridPart>>>()?;
    let Setup { model, data, likelihood, options, threads, .. } = &setup;
    let threads = *threads;
    let work = |likelihood: &Interruptible, monitor: &dyn Monitor| match axes.as_slice() {
        [a, b] => {
            grid_of_parts(model, likelihood, options, [a, b], (&parts, setup.assist(Crew::new(threads, monitor))))
        }
        _ => scan(model, &mut likelihood.clone(), options, &axes[0], setup.assist(Crew::new(threads, monitor))),
    };
    let mut result = watched(py, callback(progress).as_ref(), likelihood, work)?;
    if !result.best.nll.is_finite() {
        result.warnings.extend(diagnose(model, data, &result.best.params).map(|reason| reason.to_string()));
    }
    let document = scan_fields(py, model, result)?;
    setup.sign(&document)?;
    Ok(document)
}

/// Part `part[0]` of `part[1]` parts of a grid, for `scan_model`.
#[pyfunction]
fn grid_part_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    axes: [PyAxis<'py>; 2],
    part: [usize; 2],
) -> PyResult<Bound<'py, PyAny>> {
    let setup = setup(py, model, settings)?;
    let axes = axes_of(py, &setup, axes.into())?;
    let Setup { model, likelihood, options, threads, .. } = &setup;
    let threads = *threads;
    let result = watched(py, None, likelihood, |likelihood, monitor| {
        grid_part(model, likelihood, options, [&axes[0], &axes[1]], (part, Crew::new(threads, monitor)))
    })?;
    object(py, &result)
}

/// Arrays over the points: (N), or (N₁ × N₂) of a grid; parameters of points (points × P), NaN where a point has no value.
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
    // What was not done is only seen by the caller who stopped it.
    document.del_item("is_complete")?;
    document.set_item("complete", result.is_complete)?;
    document.set_item("values", values)?;
    document.set_item("delta_nll", delta)?;
    document.set_item("twice_delta_nll", twice)?;
    document.set_item("params", frozen_matrix(py, params, [n_points, n_params])?)?;
    document.set_item("par_names", &model.parameters.names)?;
    document.set_item("measurement", &model.measurement)?;
    Ok(document)
}

/// Contours of two parameters at confidence levels.
#[pyfunction]
fn contours_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    parameters: (String, String),
    levels: Vec<f64>,
    n_points: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let setup = setup(py, model, settings)?;
    let name = |name: &str| setup.parameter(py, Some(name), "contours");
    if levels.iter().any(|level| !(0.0 < *level && *level < 1.0)) {
        let hint = Some("levels are probabilities, such as 0.68 and 0.95".to_owned());
        return Err(error::parameter(py, "a confidence level is between 0 and 1".to_owned(), hint));
    }
    room::<f64>(n_points as u64, setup.model.n_params(), "points")?;
    let (first, second) = parameters;
    let wanted = ContourOptions { parameters: [name(&first)?, name(&second)?], levels, n_points };
    if wanted.parameters[0] == wanted.parameters[1] {
        return Err(error::parameter(py, format!("a contour of `{first}` and itself is none"), None));
    }
    let Setup { model, likelihood, options, threads, .. } = &setup;
    let threads = *threads;
    let result = watched(py, callback(progress).as_ref(), likelihood, |likelihood, monitor| {
        contours(model, likelihood, options, &wanted, Crew::new(threads, monitor))
    })?;
    let document = fields(py, &result)?;
    document.set_item("par_names", &model.parameters.names)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_model, module)?)?;
    module.add_function(wrap_pyfunction!(grid_part_model, module)?)?;
    module.add_function(wrap_pyfunction!(contours_model, module)?)
}
