//! From the settings that procedures share, as Python has them, to data, a likelihood and how to fit it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ns_cli::on_device::OnDevice;
use ns_compute::CpuLikelihood;
use ns_core::{Data, Model};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::Crew;
use ns_inference::toys::Run;
use ns_inference::{Errors, FitOptions, MultiStart};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::convert::object;
use crate::error;
use crate::model::PyModel;
use crate::numbers::{count, data, number, point, shown, threads};

/// What a procedure works on.
pub(crate) struct Setup {
    pub(crate) model: Arc<Model>,
    pub(crate) data: Data,
    pub(crate) likelihood: CpuLikelihood,
    pub(crate) options: FitOptions,
    pub(crate) threads: NonZeroUsize,
    pub(crate) seed: u64,
    /// The model on the device that was asked for; None for the CPU.
    pub(crate) device: Option<OnDevice>,
}

impl Setup {
    /// Writes what the device did into `document`.
    ///
    /// # Errors
    /// `DeviceError` if it failed: the document is then not to be used.
    pub(crate) fn sign(&self, document: &Bound<'_, PyDict>) -> PyResult<()> {
        sign(self.device.as_ref(), document)
    }

    /// `crew` with the device's help.
    pub(crate) fn assist<'a>(&'a self, crew: Crew<'a>) -> Crew<'a> {
        self.device.as_ref().map_or(crew, |device| device.assist(crew, &self.data))
    }

    /// What toys run on: so many threads, and the device.
    pub(crate) fn run<'a>(&'a self, monitor: &'a dyn Monitor) -> Run<'a> {
        let accelerator = self.device.as_ref().map(OnDevice::accelerator);
        Run { accelerator, ..Run::new(self.threads, monitor) }
    }

    /// The parameter called `name`, or the model's parameter of interest.
    pub(crate) fn parameter(&self, py: Python<'_>, name: Option<&str>, verb: &str) -> PyResult<usize> {
        let index = match name {
            Some(name) => index_of(py, &self.model, name)?,
            None => self.model.poi().ok_or_else(|| {
                let hint = "name one: `load_workspace(..., poi=...)`".to_owned();
                error::parameter(
                    py,
                    format!("`{verb}` needs a parameter of interest, and the model has none"),
                    Some(hint),
                )
            })?,
        };
        let (domain, _) = ns_inference::fit::domain_and_start(&self.model, &self.options);
        if domain.fixed[index] {
            let name = &self.model.parameters.names[index];
            return Err(error::parameter(
                py,
                format!("`{verb}` varies the parameter `{name}`, which is held fixed"),
                None,
            ));
        }
        Ok(index)
    }
}

/// Writes what `device` did into `document`, if there is one; an error if it failed.
pub(crate) fn sign(device: Option<&OnDevice>, document: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(device) = device else { return Ok(()) };
    let report = device.report().map_err(|error| error::device_failed(document.py(), device, &error))?;
    document.set_item("device", object(document.py(), &report)?)
}

/// The index of one parameter.
pub(crate) fn index_of(py: Python<'_>, model: &Model, name: &str) -> PyResult<usize> {
    let range = elements(py, model, name)?;
    if range.len() == 1 {
        return Ok(range.start);
    }
    let message = format!("`{name}` is a vector of {} parameters", range.len());
    Err(error::parameter(py, message, Some(format!("name one element, such as `{name}[0]`"))))
}

/// The elements that `name` means: one, or all of a vector.
pub(crate) fn elements(py: Python<'_>, model: &Model, name: &str) -> PyResult<std::ops::Range<usize>> {
    let parameters = &model.parameters;
    if let Some(index) = parameters.index_of(name) {
        return Ok(index..index + 1);
    }
    if let Some(set) = parameters.set(name) {
        return Ok(set.range());
    }
    let hint = parameters
        .similar(name)
        .map(|similar| format!("parameter names are case sensitive; did you mean `{similar}`?"));
    Err(error::parameter(py, format!("the model has no parameter `{name}`"), hint))
}

/// Reads `settings`: `data`, `init`, `fixed`, `bounds`, `multi_start`, `seed`, `threads`, `device`; each may be absent or None.
pub(crate) fn setup(py: Python<'_>, model: &PyModel, settings: &Bound<'_, PyDict>) -> PyResult<Setup> {
    let data = match item(settings, "data")? {
        None => model.model().observed.clone(),
        Some(values) => data(model.model(), &values)?,
    };
    let seed = item(settings, "seed")?.map_or(Ok(0), |seed| count(py, "seed", &seed, 0))?;
    let threads = threads(py, item(settings, "threads")?.as_ref())?;
    let options = options(py, model.model(), settings, seed)?;
    let likelihood = CpuLikelihood::with_plan(model.plan().clone(), &data);
    let device = item(settings, "device")?.map(|name| on_device(py, model, &name)).transpose()?;
    Ok(Setup { model: model.shared(), data, likelihood, options, threads, seed, device })
}

/// The model on the device of that name.
fn on_device(py: Python<'_>, model: &PyModel, name: &Bound<'_, PyAny>) -> PyResult<OnDevice> {
    let name: String = name.extract()?;
    let unknown = || error::unknown_device(&name);
    model.on_device(py, name.parse().map_err(|()| unknown())?)
}

fn item<'py>(settings: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(settings.get_item(key)?.filter(|value| !value.is_none()))
}

fn options(py: Python<'_>, model: &Model, settings: &Bound<'_, PyDict>, seed: u64) -> PyResult<FitOptions> {
    let start = item(settings, "init")?.map(|values| start(py, model, &values)).transpose()?;
    let fixed = named(py, model, settings, ("fixed", "a value"), |name, value| {
        let value = number(value, || format!("`fixed`: the value of `{name}`"))?;
        let problem = || error::parameter(py, format!("`{name}` cannot be held at {value}"), None);
        if value.is_finite() { Ok(value) } else { Err(problem()) }
    })?;
    let bounds = named(py, model, settings, ("bounds", "two numbers"), |name, value| {
        let [lower, upper] = range(name, value)?;
        let problem = || error::parameter(py, format!("the range {lower} to {upper} of `{name}` is empty"), None);
        if lower < upper { Ok([lower, upper]) } else { Err(problem()) }
    })?;
    let n_starts = item(settings, "multi_start")?.map(|n| count(py, "multi_start", &n, 0)).transpose()?;
    let multi_start =
        n_starts.map(|n_starts| MultiStart { n_starts: usize::try_from(n_starts).unwrap_or(usize::MAX), seed });
    Ok(FitOptions { start, fixed, bounds, multi_start, errors: Errors::None, ..FitOptions::default() })
}

/// The two ends of the range of the parameter `name`.
fn range(name: &str, value: &Bound<'_, PyAny>) -> PyResult<[f64; 2]> {
    let wrong = || {
        PyTypeError::new_err(format!("`bounds`: the range of `{name}` is to be two numbers, not `{}`", shown(value)))
    };
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

/// The setting `what`, a dictionary of values by name, as values by index; none may be given twice.
fn named<'py, V: Copy>(
    py: Python<'py>,
    model: &Model,
    settings: &Bound<'py, PyDict>,
    (what, form): (&str, &str),
    read: impl Fn(&str, &Bound<'py, PyAny>) -> PyResult<V>,
) -> PyResult<Vec<(usize, V)>> {
    let Some(given) = item(settings, what)? else { return Ok(Vec::new()) };
    let Ok(given) = given.cast::<PyDict>() else {
        let found = shown(&given);
        let message = format!("`{what}` is to be a dictionary of names with {form}, not `{found}`");
        return Err(PyTypeError::new_err(message));
    };
    let mut found: Vec<(usize, V)> = Vec::new();
    for (name, value) in given {
        let name: String = name.extract().map_err(|_| {
            PyTypeError::new_err(format!("`{what}` is by names of parameters, and `{}` is none", shown(&name)))
        })?;
        let indices = elements(py, model, &name)?;
        let value = read(&name, &value)?;
        for i in indices {
            if found.iter().any(|(known, _)| *known == i) {
                let message = format!("`{what}` sets `{}` twice", model.parameters.names[i]);
                return Err(error::parameter(py, message, None));
            }
            found.push((i, value));
        }
    }
    Ok(found)
}

/// Starting values: all of them in order, or those of some parameters by name.
fn start<'py>(py: Python<'py>, model: &Model, values: &Bound<'py, PyAny>) -> PyResult<Vec<f64>> {
    let start = if values.is_instance_of::<PyDict>() {
        let settings = PyDict::new(py);
        settings.set_item("init", values)?;
        let mut point = model.parameters.init.clone();
        let read = |name: &str, value: &Bound<'py, PyAny>| number(value, || format!("`init`: the value of `{name}`"));
        let given = named(py, model, &settings, ("init", "a value"), read)?;
        given.into_iter().for_each(|(i, value)| point[i] = value);
        point
    } else {
        point(model, values, "init")?
    };
    match start.iter().position(|value| !value.is_finite()) {
        Some(i) => {
            let name = &model.parameters.names[i];
            Err(error::parameter(py, format!("`{name}` cannot start at {}", start[i]), None))
        }
        None => Ok(start),
    }
}
