//! An analysis, made of the settings that procedures share as Python passes them.

use nextstat::blinding::{Blinding, BlindingThreshold, UnknownMeasure};
use nextstat::error::{Setting, SettingsError};
use nextstat::regions::Regions;
use nextstat::settings::Start;
use nextstat::{Analysis, DataSource, Settings, YieldPropagation};
use ns_core::Model;
use ns_device::DeviceName;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::asimov::source;
use crate::by_name::ByName;
use crate::convert::{fields, object};
use crate::error;
use crate::model::PyModel;
use crate::numbers::{count, number, shown, threads};
use crate::points::point;

/// How a result was computed, read when it is asked for: the digest of a workspace takes longer
/// than a small fit.
#[pyclass(name = "RawProvenance", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyProvenance(pub(crate) Analysis);

#[pymethods]
impl PyProvenance {
    /// Returns the provenance by the names of the command's JSON.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let provenance = py.detach(|| self.0.provenance());
        fields(py, &provenance)
    }

    /// Returns what tables say before their numbers: the conditions of the analysis, the label of
    /// numbers that the data give, and that of event counts.
    fn about(&self) -> (Vec<String>, &'static str, &'static str) {
        let data = &self.0.settings().data;
        (self.0.conditions(), data.label(), data.counts_label())
    }

    /// Returns the provenance itself in a pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyDict>,))> {
        Ok((py.get_type::<PyDict>(), (self.read(py)?,)))
    }
}

/// Adds the measurement and the provenance of `analysis` to `document`, and what its device did if
/// there is one.
///
/// # Errors
/// `DeviceError` if the device failed: the document must not be used then.
pub(crate) fn annotate(analysis: &Analysis, document: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = document.py();
    document.set_item("measurement", &analysis.model().measurement)?;
    document.set_item("provenance", Bound::new(py, PyProvenance(analysis.on_cpu()))?)?;
    match analysis.device_report().map_err(|problem| error::library(py, &problem))? {
        Some(report) => document.set_item("device", object(py, &report)?),
        None => Ok(()),
    }
}

/// Reads the settings in `given`, of which each may be absent or None.
///
/// They are `poi`, `data`, `init`, `fixed`, `bounds`, `fit_channels`, `mask`, `blind`,
/// `blind_above`, `blind_by`, `fit_blinded`, `may_hide_all`, `groups`, `uncertainty`,
/// `multi_start`, `seed`, `threads` and `device`.
pub(crate) fn analysis(py: Python<'_>, model: &PyModel, given: &Bound<'_, PyDict>) -> PyResult<Analysis> {
    let settings = read(py, model.model(), given)?;
    // An upload takes long enough to let other threads of the interpreter run.
    let made = match settings.device {
        None => Analysis::new(model.compiled(), &settings),
        Some(_) => py.detach(|| Analysis::new(model.compiled(), &settings)),
    };
    let made = made.map_err(|problem| error::library(py, &problem))?;
    let Some(poi) = item(given, "poi")? else { return Ok(made) };
    made.with_poi(&poi.extract::<String>()?).map_err(|problem| error::poi(py, &problem))
}

fn read(py: Python<'_>, model: &Model, settings: &Bound<'_, PyDict>) -> PyResult<Settings> {
    Ok(Settings {
        data: match item(settings, "data")? {
            None => DataSource::Observed,
            Some(values) => source(model, &values)?,
        },
        start: item(settings, "init")?.map_or(Ok(Start::Model), |values| start(model, &values))?,
        ..of_any_model(py, settings)?
    })
}

/// Reads the settings that are not values of one model.
pub(crate) fn of_any_model(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let multi_start = item(settings, "multi_start")?.map(|n| count(py, "multi_start", &n, 0)).transpose()?;
    Ok(Settings {
        data: DataSource::Observed,
        fit_channels: names(settings, "fit_channels")?,
        mask: names(settings, "mask")?,
        blind: blinding(py, settings)?,
        sample_groups: item(settings, "groups")?.map_or(Ok(Vec::new()), |groups| groups.extract())?,
        propagation: propagation(py, settings)?,
        start: Start::Model,
        fixed: FIXED.read(item(settings, "fixed")?, |name, value| {
            number(value, || format!("`fixed`: the value of `{name}`"))
        })?,
        bounds: BOUNDS.read(item(settings, "bounds")?, range)?,
        multi_start: multi_start.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        seed: item(settings, "seed")?.map_or(Ok(0), |value| seed(&value))?,
        threads: Some(threads(py, item(settings, "threads")?.as_ref())?),
        device: item(settings, "device")?.map(|name| device(&name)).transpose()?,
    })
}

/// Reads how uncertainties of yields are propagated.
fn propagation(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<YieldPropagation> {
    let Some(name) = item(settings, "uncertainty")? else { return Ok(YieldPropagation::default()) };
    match name.extract::<String>()?.as_str() {
        "derivative" => Ok(YieldPropagation::Derivative),
        "half-difference" => Ok(YieldPropagation::HalfDifference),
        other => {
            let hint = Some("choose one of `derivative`, `half-difference`".to_owned());
            Err(error::parameter(py, format!("`uncertainty` is not `{other}`"), hint))
        }
    }
}

/// Reads a seed.
fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = value.py();
    count(py, "seed", value, 0).map_err(|error| {
        let is_number = error.is_instance_of::<error::ParameterError>(py);
        if is_number { error::settings(py, &SettingsError::BadSeed { found: shown(value) }) } else { error }
    })
}

/// Reads what is hidden.
fn blinding(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Blinding> {
    let measure = item(settings, "blind_by")?.map(|name| name.extract::<String>()).transpose()?;
    let measure = measure.map(|name| name.parse()).transpose();
    let measure = measure.map_err(|problem: UnknownMeasure| error::parameter(py, problem.to_string(), None))?;
    let above =
        item(settings, "blind_above")?.map(|value| number(&value, || "`blind_above`".to_owned())).transpose()?;
    Ok(Blinding {
        bins: names(settings, "blind")?,
        above: above.map(|value| BlindingThreshold { value, measure: measure.unwrap_or_default() }),
        is_fitted: item(settings, "fit_blinded")?.map_or(Ok(false), |flag| flag.extract())?,
        may_hide_all: item(settings, "may_hide_all")?.map_or(Ok(false), |flag| flag.extract())?,
    })
}

/// Channels, and which of their bins are hidden.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HiddenWanted {
    channels: Vec<String>,
    /// The number of bins of each.
    n_bins: Vec<usize>,
    /// Names, patterns and bins.
    blind: Vec<String>,
}

/// Returns whether each bin is one that `blind` names.
#[pyfunction]
fn hidden_bins(py: Python<'_>, wanted: HiddenWanted) -> PyResult<Vec<bool>> {
    let HiddenWanted { channels, n_bins, blind } = wanted;
    let names: Vec<&str> = channels.iter().map(String::as_str).collect();
    let found = Regions::new(&names, &n_bins).selected(Setting::Blind, &blind);
    found.map_err(|problem| error::settings(py, &problem))
}

fn device(name: &Bound<'_, PyAny>) -> PyResult<DeviceName> {
    error::device_name(name.py(), name.extract()?)
}

fn item<'py>(settings: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(settings.get_item(key)?.filter(|value| !value.is_none()))
}

/// Reads a list of names.
fn names(settings: &Bound<'_, PyDict>, key: &str) -> PyResult<Vec<String>> {
    item(settings, key)?.map_or(Ok(Vec::new()), |names| names.extract())
}

/// Reads the two ends of the range of the parameter `name`.
fn range(name: &str, value: &Bound<'_, PyAny>) -> PyResult<[f64; 2]> {
    let wrong =
        || PyTypeError::new_err(format!("`bounds`: the range of `{name}` must be two numbers, not `{}`", shown(value)));
    let ends: Vec<Bound<'_, PyAny>> = value.try_iter().and_then(|ends| ends.take(3).collect()).map_err(|_| wrong())?;
    match ends.as_slice() {
        _ if value.is_instance_of::<PyString>() => Err(wrong()),
        [lower, upper] => {
            let end = |end| number(end, || format!("`bounds`: an end of the range of `{name}`"));
            Ok([end(lower)?, end(upper)?])
        }
        _ => Err(wrong()),
    }
}

const FIXED: ByName = ByName { setting: "fixed", form: "a value" };
const BOUNDS: ByName = ByName { setting: "bounds", form: "two numbers" };
const INIT: ByName = ByName { setting: "init", form: "a value" };

/// Reads starting values: all of them in order, or those of some parameters by name.
fn start(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Start> {
    if !values.is_instance_of::<PyDict>() {
        return Ok(Start::All(point(model, values, "init")?));
    }
    let read = |name: &str, value: &Bound<'_, PyAny>| number(value, || format!("`init`: the value of `{name}`"));
    Ok(Start::Named(INIT.read(Some(values.clone()), read)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProvenance>()?;
    module.add_function(wrap_pyfunction!(hidden_bins, module)?)
}
