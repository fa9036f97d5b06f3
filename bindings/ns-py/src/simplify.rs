//! Simplified models.

use nextstat::patchsets::{GridRequest, SignalGrid};
use nextstat::simplify::{Simplified, SimplifiedForm, SimplifyRequest};
use nextstat::{Error, Face};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{ExecutionContext, all_threads};
use ns_translate::pyhf::write_workspace;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::choice::Choice;
use crate::convert::fields;
use crate::error;
use crate::model::PyModel;
use crate::settings::{analysis, of_any_model};
use crate::watch::{callback, monitored};

/// What to simplify.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SimplifyWanted {
    channels: Vec<String>,
    form: String,
    compare: bool,
}

impl SimplifyWanted {
    fn request(self, py: Python<'_>) -> PyResult<SimplifyRequest> {
        let form = SimplifiedForm::named(&self.form).ok_or_else(|| {
            let hint = Some("choose one of `linear`, `third_moments`".to_owned());
            error::parameter(py, format!("unknown form `{}`", self.form), hint)
        })?;
        Ok(SimplifyRequest { channels: self.channels, form, compare: self.compare })
    }
}

/// Returns the document of a simplified model, and its workspace.
pub(crate) type SimplifiedParts<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

fn shown<'py>(py: Python<'py>, found: Result<Simplified, Error>) -> PyResult<SimplifiedParts<'py>> {
    let found = found.map_err(|problem| error::library(py, &problem))?;
    let document = fields(py, &found.document())?;
    document.set_item("alarm", found.alarm())?;
    Ok((document, fields(py, &write_workspace(&found.workspace()))?))
}

/// Simplifies a model, as `nextstat.simplify` says.
#[pyfunction]
fn simplify_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: SimplifyWanted,
) -> PyResult<SimplifiedParts<'py>> {
    let (request, analysis) = (wanted.request(py)?, analysis(py, model, settings)?);
    let found = monitored(py, None, |_| analysis.simplify(&request))?;
    shown(py, found)
}

/// Simplifies the background of `grid`, and compares every signal if that is wanted.
pub(crate) fn simplify_grid<'py>(
    py: Python<'py>,
    grid: &SignalGrid,
    choice: Choice,
    settings: &Bound<'_, PyDict>,
    wanted: SimplifyWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<SimplifiedParts<'py>> {
    let simplify = wanted.request(py)?;
    let (options, settings) = ({ choice }.options(py)?, of_any_model(py, settings)?);
    let request = GridRequest { options: &options, settings: &settings, face: Face::Library };
    let threads = settings.threads.unwrap_or_else(all_threads);
    let found = monitored(py, callback(progress).as_ref(), |monitor: &dyn Monitor| {
        grid.simplify(&request, &simplify, ExecutionContext::new(threads, monitor))
    })?;
    shown(py, found)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simplify_model, module)?)
}
