//! From the settings that procedures share, as Python has them, to data, a likelihood and how to fit it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ns_compute::CpuLikelihood;
use ns_core::{Data, Model};
use ns_inference::parallel::all_threads;
use ns_inference::{Errors, FitOptions, MultiStart};
use numpy::{AllowTypeChange, PyArrayLike1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::model::PyModel;

/// Floating-point numbers from anything that NumPy makes an array of.
pub(crate) type Floats<'py> = PyArrayLike1<'py, f64, AllowTypeChange>;

/// What a procedure works on.
pub(crate) struct Setup {
    pub(crate) model: Arc<Model>,
    pub(crate) data: Data,
    pub(crate) likelihood: CpuLikelihood,
    pub(crate) options: FitOptions,
    pub(crate) threads: NonZeroUsize,
    pub(crate) seed: u64,
}

impl Setup {
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
fn elements(py: Python<'_>, model: &Model, name: &str) -> PyResult<std::ops::Range<usize>> {
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

/// Reads `settings`: `data`, `init`, `fixed`, `bounds`, `multi_start`, `seed`, `threads`; each may be absent or None.
pub(crate) fn setup(py: Python<'_>, model: &PyModel, settings: &Bound<'_, PyDict>) -> PyResult<Setup> {
    let data = match item(settings, "data")? {
        None => model.model().observed.clone(),
        Some(values) => data(model.model(), &values)?,
    };
    let seed = item(settings, "seed")?.map_or(Ok(0), |seed| seed.extract())?;
    let threads: Option<NonZeroUsize> = item(settings, "threads")?.map(|n| n.extract()).transpose()?;
    let options = options(py, model.model(), settings, seed)?;
    let likelihood = CpuLikelihood::with_plan(model.plan().clone(), &data);
    Ok(Setup { model: model.shared(), data, likelihood, options, threads: threads.unwrap_or_else(all_threads), seed })
}

fn item<'py>(settings: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(settings.get_item(key)?.filter(|value| !value.is_none()))
}

/// Main bins alone, with the model's own auxiliary data, or both.
pub(crate) fn data(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Data> {
    let values: Floats<'_> = values.extract()?;
    let values = values.as_array();
    let (n_bins, n_aux) = (model.n_bins(), model.n_aux());
    let all: Vec<f64> = values.iter().copied().collect();
    if all.len() != n_bins && all.len() != n_bins + n_aux {
        return Err(error::data(format!(
            "{} data, but the model has {n_bins} bins and {n_aux} auxiliary data: give the bins, or both",
            all.len()
        )));
    }
    if let Some(bin) = all[..n_bins].iter().position(|n| !(n.is_finite() && *n >= 0.0)) {
        let place = model.place(bin);
        return Err(error::data(format!(
            "channel `{}`, bin {}: {} is no number of events",
            place.channel, place.bin, all[bin]
        )));
    }
    if let Some(k) = all[n_bins..].iter().position(|a| !a.is_finite()) {
        return Err(error::data(format!("auxiliary datum {k} is {}", all[n_bins + k])));
    }
    let aux = if all.len() == n_bins { model.observed.aux.clone() } else { all[n_bins..].to_vec() };
    Ok(Data { main: all[..n_bins].to_vec(), aux })
}

/// A point (P).
pub(crate) fn point(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let values: Floats<'_> = values.extract()?;
    let point: Vec<f64> = values.as_array().iter().copied().collect();
    if point.len() != model.n_params() {
        return Err(error::data(format!("{} values for {} parameters", point.len(), model.n_params())));
    }
    Ok(point)
}

fn options(py: Python<'_>, model: &Model, settings: &Bound<'_, PyDict>, seed: u64) -> PyResult<FitOptions> {
    let start = item(settings, "init")?.map(|values| start(py, model, &values)).transpose()?;
    let mut fixed = Vec::new();
    if let Some(given) = item(settings, "fixed")? {
        for (name, value) in given.cast_into::<PyDict>()? {
            let name: String = name.extract()?;
            let value: f64 = value.extract()?;
            if !value.is_finite() {
                return Err(error::parameter(py, format!("`{name}` cannot be held at {value}"), None));
            }
            fixed.extend(elements(py, model, &name)?.map(|i| (i, value)));
        }
    }
    let mut bounds = Vec::new();
    if let Some(given) = item(settings, "bounds")? {
        for (name, range) in given.cast_into::<PyDict>()? {
            let name: String = name.extract()?;
            let (lower, upper): (f64, f64) = range.extract()?;
            if !(lower < upper) {
                return Err(error::parameter(py, format!("the range {lower} to {upper} of `{name}` is empty"), None));
            }
            bounds.extend(elements(py, model, &name)?.map(|i| (i, [lower, upper])));
        }
    }
    let n_starts: Option<usize> = item(settings, "multi_start")?.map(|n| n.extract()).transpose()?;
    let multi_start = n_starts.map(|n_starts| MultiStart { n_starts, seed });
    Ok(FitOptions { start, fixed, bounds, multi_start, errors: Errors::None, ..FitOptions::default() })
}

/// Starting values: all of them in order, or those of some parameters by name.
fn start(py: Python<'_>, model: &Model, values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let Ok(named) = values.cast::<PyDict>() else { return point(model, values) };
    let mut point = model.parameters.init.clone();
    for (name, value) in named.iter() {
        let name: String = name.extract()?;
        let value: f64 = value.extract()?;
        elements(py, model, &name)?.for_each(|i| point[i] = value);
    }
    Ok(point)
}
