//! Documents as text: digests, patches, patch sets.

use nextstat::patchsets;
use ns_core::summary::summarize;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::patch::{self, Patch};
use ns_translate::patchset::{PatchSet, PatchSetError};
use ns_translate::pyhf::{read_value, read_workspace};
use ns_translate::{DocumentError, DocumentSource, read_bytes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;

use crate::choice::Choice;
use crate::convert::fields;
use crate::error;
use crate::model::PyModel;

/// Returns the digest of a JSON text, as pyhf computes it.
#[pyfunction]
fn digest_of(py: Python<'_>, text: &[u8], algorithm: &str) -> PyResult<String> {
    let algorithm = match algorithm {
        "sha256" => DigestAlgorithm::Sha256,
        "md5" => DigestAlgorithm::Md5,
        other => {
            let hint = Some("choose one of `sha256`, `md5`".to_owned());
            return Err(error::parameter(py, format!("unknown digest algorithm `{other}`"), hint));
        }
    };
    py.detach(|| digest(text, algorithm)).map_err(|problem| error::document(py, &problem.into()))
}

/// Returns the bytes of a document, decompressed if need be.
#[pyfunction]
fn read_document<'py>(py: Python<'py>, path: std::path::PathBuf) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py
        .detach(|| read_bytes(&DocumentSource::Path(path)))
        .map_err(|problem| error::document(py, &problem.into()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns a JSON text with a JSON patch applied.
#[pyfunction]
fn apply_patch(py: Python<'_>, text: &[u8], operations: &[u8]) -> PyResult<String> {
    let done = || -> Result<String, DocumentError> {
        let mut document = read_value(text)?;
        patch::apply(&mut document, &Patch::from_bytes(operations)?)?;
        Ok(document.to_string())
    };
    py.detach(done).map_err(|problem| error::document(py, &problem))
}

/// Returns what a workspace contains.
#[pyfunction]
fn inspect_workspace<'py>(py: Python<'py>, text: &[u8], measurement: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let workspace = py.detach(|| read_workspace(text)).map_err(|problem| error::document(py, &problem.into()))?;
    fields(py, &summarize(&workspace, measurement).map_err(|problem| error::compile(py, &problem))?)
}

/// A set of patches: many signals for one background-only workspace.
#[pyclass(name = "RawPatchSet", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyPatchSet(PatchSet);

#[pymethods]
impl PyPatchSet {
    #[new]
    fn new(py: Python<'_>, text: &[u8]) -> PyResult<Self> {
        py.detach(|| PatchSet::from_bytes(text)).map(Self).map_err(|problem| error::document(py, &problem.into()))
    }

    /// Returns description, labels, digests, references, and the name and values of every patch.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fields(py, &patchsets::patchset(&self.0))
    }

    /// Returns the operations of the patch `name`, as JSON text.
    fn patch(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let text =
            || -> Result<String, PatchSetError> { Ok(self.0.read(self.0.by_name(name)?)?.to_value().to_string()) };
        py.detach(text).map_err(|problem| error::document(py, &problem.into()))
    }

    /// Compares every digest with that of a workspace.
    fn verify<'py>(&self, py: Python<'py>, workspace: &[u8]) -> PyResult<Bound<'py, PyDict>> {
        let checks = py.detach(|| self.0.verify(workspace)).map_err(|problem| error::document(py, &problem.into()))?;
        fields(py, &patchsets::verification(&checks))
    }

    /// Returns the set with the workspace that it was made for.
    fn grid(slf: &Bound<'_, Self>, py: Python<'_>, workspace: &[u8]) -> PyResult<PyGrid> {
        let set = &slf.get().0;
        let background = py.detach(|| set.require(workspace).and_then(|()| Ok(read_value(workspace)?)));
        let background = background.map_err(|problem| error::document(py, &problem.into()))?;
        Ok(PyGrid { set: slf.clone().unbind(), background })
    }

    /// Returns a workspace with the patch `name`, as JSON text.
    fn apply(&self, py: Python<'_>, workspace: &[u8], name: &str) -> PyResult<String> {
        let patched = py.detach(|| self.0.apply(workspace, name).map(|patched| patched.to_string()));
        patched.map_err(|problem| error::document(py, &problem.into()))
    }
}

/// A background-only workspace with a set of patches for it.
#[pyclass(name = "RawGrid", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyGrid {
    set: Py<PyPatchSet>,
    background: Value,
}

#[pymethods]
impl PyGrid {
    /// Returns the model with the patch `name`.
    fn model(&self, py: Python<'_>, name: &str, choice: Choice) -> PyResult<PyModel> {
        let set = &self.set.get().0;
        let workspace = py.detach(|| set.by_name(name).and_then(|entry| set.workspace(&self.background, entry)));
        PyModel::of(py, workspace.map_err(|problem| error::document(py, &problem.into()))?, choice)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPatchSet>()?;
    module.add_class::<PyGrid>()?;
    module.add_function(wrap_pyfunction!(digest_of, module)?)?;
    module.add_function(wrap_pyfunction!(read_document, module)?)?;
    module.add_function(wrap_pyfunction!(inspect_workspace, module)?)?;
    module.add_function(wrap_pyfunction!(apply_patch, module)?)
}
