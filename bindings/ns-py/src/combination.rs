//! Combinations of workspaces, and parameters that are split.

use std::path::PathBuf;

use nextstat::combination::{self, Combination, CombinationInput, CombinationMap, CombineRequest};
use ns_translate::workspace::{ChannelJoin, DecorrelateRequest, SplitBy, WorkspaceJoin};
use ns_translate::{DocumentError, DocumentSource, python_json};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::card::GivenCardOptions;
use crate::convert::fields;
use crate::error;

/// A document: a path, or the JSON text.
#[derive(FromPyObject)]
enum Given {
    #[pyo3(transparent)]
    Text(Vec<u8>),
    #[pyo3(transparent)]
    Path(PathBuf),
}

impl Given {
    fn workspace(self, label: Option<String>) -> Result<CombinationInput, DocumentError> {
        let input = match self {
            Self::Text(text) => CombinationInput::from_json(&text)?,
            Self::Path(path) => CombinationInput::load(&DocumentSource::Path(path))?,
        };
        Ok(match label {
            Some(label) => input.labelled_as(label),
            None => input,
        })
    }

    fn map(self) -> Result<CombinationMap, DocumentError> {
        match self {
            Self::Text(text) => CombinationMap::from_json(&text),
            Self::Path(path) => CombinationMap::load(&DocumentSource::Path(path)),
        }
    }
}

/// Returns the workspace as JSON text, and the report.
fn answer<'py>(py: Python<'py>, made: Result<Combination, nextstat::Error>) -> PyResult<(String, Bound<'py, PyDict>)> {
    let made = made.map_err(|problem| error::library(py, &problem))?;
    let text = python_json(&made.workspace).map_err(|problem| error::data(problem.to_string()))?;
    Ok((text, fields(py, &made.document())?))
}

/// Combines workspaces, each with its label or None, as a map or as their names and a join say.
#[pyfunction]
fn combine<'py>(
    py: Python<'py>,
    workspaces: Vec<(Option<String>, Given)>,
    map: Option<Given>,
    join: Option<&str>,
    merge_channels: bool,
    card: GivenCardOptions,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let join = match join {
        None => WorkspaceJoin::Distinct,
        Some("none") => WorkspaceJoin::None,
        Some("outer") => WorkspaceJoin::Outer,
        Some("left outer") => WorkspaceJoin::LeftOuter,
        Some("right outer") => WorkspaceJoin::RightOuter,
        Some(other) => {
            let hint = Some("choose one of `none`, `outer`, `left outer`, `right outer`".to_owned());
            return Err(error::parameter(py, format!("unknown join `{other}`"), hint));
        }
    };
    let channels = if merge_channels { ChannelJoin::Merged } else { ChannelJoin::Whole };
    let made = py.detach(|| {
        let inputs = workspaces.into_iter().map(|(label, given)| given.workspace(label));
        let inputs = inputs.collect::<Result<_, _>>()?;
        let map = map.map(Given::map).transpose()?;
        combination::combine(inputs, &CombineRequest { map, join, channels, card: card.into() })
    });
    answer(py, made)
}

/// Splits parameters of a workspace; `wanted` has the fields of the request.
#[pyfunction]
fn decorrelate<'py>(
    py: Python<'py>,
    workspace: Given,
    wanted: &Bound<'py, PyDict>,
    card: GivenCardOptions,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let names = |key: &str| -> PyResult<Vec<String>> {
        wanted.get_item(key)?.map_or_else(|| Ok(Vec::new()), |found| found.extract())
    };
    let by = match wanted.get_item("by")?.map(|found| found.extract::<String>()).transpose()?.as_deref() {
        None | Some("channel") => SplitBy::Channel,
        Some("sample") => SplitBy::Sample,
        Some(other) => {
            let hint = Some("choose one of `channel`, `sample`".to_owned());
            return Err(error::parameter(py, format!("parameters cannot be split by `{other}`"), hint));
        }
    };
    let request = DecorrelateRequest {
        parameters: names("parameters")?,
        by,
        channels: names("channels")?,
        samples: names("samples")?,
        parts: wanted.get_item("parts")?.map_or_else(|| Ok(Vec::new()), |found| found.extract())?,
        poi: wanted.get_item("poi")?.map(|found| found.extract()).transpose()?,
    };
    let made = py.detach(|| combination::decorrelate(workspace.workspace(None)?, &request, &card.into()));
    answer(py, made)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(combine, module)?)?;
    module.add_function(wrap_pyfunction!(decorrelate, module)?)
}
