//! Documents as text: digests, patches, patch sets and what is asked of all their patches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nextstat::alarm::Alarm;
use nextstat::exclusion::{Exclusion, ExclusionRequest};
use nextstat::patchsets::{self, GridFiles, GridRequest, SignalGrid};
use nextstat::schema;
use nextstat::signal_search::SearchRequest;
use nextstat::{Analysis, Face, Hint};
use ns_core::summary::summarize;
use ns_inference::parallel::{ExecutionContext, all_threads};
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::patch::{self, Patch};
use ns_translate::patchset::{PatchEntry, PatchSet, PatchSetError};
use ns_translate::pyhf::{read_value, read_workspace};
use ns_translate::whole_file::{NewFileError, write_all_whole};
use ns_translate::{
    CardOptions, ConversionError, DocumentError, DocumentSource, KeptKeys, ReadDocument, ReadRequest, TargetFormat,
    XmlLayout, convert, convert_to_pyhf_xml, convert_to_xml_at, read_bytes, read_document_with, read_workspace_text,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::card::GivenCardOptions;
use crate::choice::Choice;
use crate::convert::fields;
use crate::error;
use crate::interrupt::Watch;
use crate::model::PyModel;
use crate::settings::{PyProvenance, analysis, of_any_model};
use crate::simplify::{SimplifiedParts, SimplifyWanted, simplify_grid};
use crate::watch::{callback, monitored};

/// Returns the digest of a JSON text, as pyhf computes it.
#[pyfunction]
fn digest_of(py: Python<'_>, text: &[u8], algorithm: &str) -> PyResult<String> {
    let algorithm = DigestAlgorithm::from_word(algorithm)
        .map_err(|problem| error::parameter(py, problem.to_string(), problem.hint()))?;
    py.detach(|| digest(text, algorithm)).map_err(|problem| error::document(py, &problem.into()))
}

/// Returns the bytes of a document, decompressed if need be; of one that is not JSON, those of its
/// workspace as pyhf JSON.
#[pyfunction]
fn read_document<'py>(py: Python<'py>, path: std::path::PathBuf) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py
        .detach(|| read_workspace_text(&DocumentSource::Path(path)))
        .map_err(|problem| error::document(py, &problem))?
        .bytes;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns a document in another format, and the warnings about it. The document is a file, or the
/// text of one.
#[pyfunction]
fn convert_document(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<Vec<u8>>,
    format: &str,
    measurement: Option<&str>,
    card: GivenCardOptions,
) -> PyResult<(String, Vec<String>)> {
    let target = TargetFormat::from_word(format)
        .map_err(|problem| error::parameter(py, problem.to_string(), Some(problem.hint())))?;
    if target == TargetFormat::Xml {
        let hint = Some("`write_xml` writes them".to_owned());
        return Err(error::parameter(py, "HistFactory XML is several files".to_owned(), hint));
    }
    let read = read_given(py, path, text, measurement, card)?;
    let converted = py.detach(|| convert(&read.workspace, &read.kept, target));
    let converted = converted.map_err(|problem| not_converted(py, &problem))?;
    Ok((converted.text, [read.warnings, converted.warnings].concat()))
}

/// Reads a document, which is a file or the text of one.
fn read_given(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<Vec<u8>>,
    measurement: Option<&str>,
    card: GivenCardOptions,
) -> PyResult<ReadDocument> {
    let card = CardOptions::from(card);
    let origin = path.map_or(DocumentSource::Stdin, DocumentSource::Path);
    let read = || -> Result<ReadDocument, DocumentError> {
        let bytes = text.map_or_else(|| read_bytes(&origin), Ok)?;
        let read = read_document_with(&bytes, &ReadRequest { origin: &origin, measurement, card: Some(&card) });
        read.map_err(|error| if origin == DocumentSource::Stdin { error } else { error.in_file(&origin.name()) })
    };
    py.detach(read).map_err(|problem| error::document(py, &problem))
}

fn not_converted(py: Python<'_>, problem: &ConversionError) -> PyErr {
    error::parameter(py, problem.to_string(), problem.hint(Face::Library))
}

/// Writes a document as HistFactory XML: the combination at `target`, and beside it the files that
/// it names. Returns the warnings about it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's argument becomes a value")]
fn write_xml(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<Vec<u8>>,
    target: PathBuf,
    measurement: Option<&str>,
    card: GivenCardOptions,
) -> PyResult<Vec<String>> {
    let read = read_given(py, path.clone(), text, measurement, card)?;
    let made = py.detach(|| convert_to_xml_at(&read.workspace, &read.kept, &target));
    let made = made.map_err(|problem| error::parameter(py, problem.to_string(), problem.hint(Face::Library)))?;
    let inputs: Vec<PathBuf> = path.into_iter().chain(read.files).collect();
    py.detach(|| write_all_whole(&made.files, &inputs)).map_err(|problem| match problem {
        NewFileError::IsInput { .. } | NewFileError::SamePlace { .. } => {
            error::parameter(py, problem.to_string(), Some("write to another file".to_owned()))
        }
        NewFileError::Unwritable { path, source } => {
            PyOSError::new_err((source.raw_os_error(), source.to_string(), path))
        }
    })?;
    Ok([read.warnings, made.warnings].concat())
}

/// The files of a combination: their names and contents.
type FileContents<'py> = Vec<(PathBuf, Bound<'py, PyBytes>)>;

/// Returns a workspace as HistFactory XML for pyhf: the text of the combination, the files that it
/// names, and warnings. `folders` are those of channels and of histograms, and `prefix` is what
/// names of files begin with.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's argument becomes a value")]
fn xml_for_pyhf<'py>(
    py: Python<'py>,
    text: &[u8],
    folders: [String; 2],
    prefix: &str,
) -> PyResult<(String, FileContents<'py>, Vec<String>)> {
    let workspace = py.detach(|| read_workspace(text)).map_err(|problem| error::document(py, &problem.into()))?;
    // The combination belongs beside the folder of channels.
    let top = Path::new(&folders[0]).parent().map(|top| top.to_string_lossy().into_owned()).unwrap_or_default();
    let layout = XmlLayout::in_folders(&top, &folders[0], &folders[1], prefix);
    let converted = py.detach(|| convert_to_pyhf_xml(&workspace, &KeptKeys::default(), &layout));
    let converted = converted.map_err(|problem| not_converted(py, &problem))?;
    let files = converted.files.into_iter().map(|file| (file.path, PyBytes::new(py, &file.bytes)));
    Ok((converted.text, files.collect(), converted.warnings))
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

/// Returns the JSON schema called `name`, as text.
#[pyfunction]
fn json_schema(py: Python<'_>, name: &str) -> PyResult<String> {
    schema::text(name).map_err(|problem| error::parameter(py, problem.to_string(), Some(problem.hint())))
}

/// Returns the identifier of the JSON schema called `name`, which documents have as `$schema`.
#[pyfunction]
fn schema_urn(name: &str) -> String {
    schema::urn(name)
}

/// Returns the findings of `nextstat check`, under settings that say what is hidden.
#[pyfunction]
fn check_model<'py>(py: Python<'py>, model: &PyModel, settings: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let watch = Arc::new(Watch::asking()?);
    let analysis = analysis(py, model, settings)?;
    let found = py.detach(|| analysis.check(Some(watch.clone())));
    if let Some(error) = watch.raised() {
        return Err(error);
    }
    watch.check_stopper()?;
    let findings = found.map_err(|problem| error::library(py, &problem))?;
    fields(py, &analysis.compiled().findings_document(&findings))
}

/// Returns what a workspace contains.
#[pyfunction]
fn inspect_workspace<'py>(py: Python<'py>, text: &[u8], measurement: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let workspace = py.detach(|| read_workspace(text)).map_err(|problem| error::document(py, &problem.into()))?;
    fields(py, &summarize(&workspace, measurement).map_err(|problem| error::compile(py, &problem))?)
}

/// A set of patches: many signals for one background-only workspace.
#[pyclass(name = "RawPatchSet", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyPatchSet(Arc<PatchSet>);

#[pymethods]
impl PyPatchSet {
    #[new]
    fn new(py: Python<'_>, text: &[u8]) -> PyResult<Self> {
        let set = py.detach(|| PatchSet::from_bytes(text));
        set.map(|set| Self(Arc::new(set))).map_err(|problem| error::document(py, &problem.into()))
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

    /// Refuses a workspace that the set was not made for.
    fn require(&self, py: Python<'_>, workspace: &[u8]) -> PyResult<()> {
        let checks = py.detach(|| self.0.require(workspace));
        checks.map(drop).map_err(|problem| error::document(py, &problem.into()))
    }

    /// Returns the set with the workspace that it was made for; `files` are the names of both in
    /// provenance, if they were read from files.
    #[pyo3(signature = (workspace, files=[None, None]))]
    fn grid(&self, py: Python<'_>, workspace: &[u8], files: [Option<String>; 2]) -> PyResult<PyGrid> {
        let [workspace_file, patchset] = files;
        let files = GridFiles { workspace: workspace_file, patchset };
        let grid = py.detach(|| SignalGrid::new(Arc::clone(&self.0), workspace, files));
        Ok(PyGrid(Arc::new(grid.map_err(|problem| error::document(py, &problem.into()))?)))
    }

    /// Returns a workspace with the patch `name`, as JSON text.
    fn apply(&self, py: Python<'_>, workspace: &[u8], name: &str) -> PyResult<String> {
        let patched = py.detach(|| self.0.apply(workspace, name).map(|patched| patched.to_string()));
        patched.map_err(|problem| error::document(py, &problem.into()))
    }
}

/// A background-only workspace with a set of patches for it.
#[pyclass(name = "RawGrid", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyGrid(Arc<SignalGrid>);

impl PyGrid {
    fn entry(&self, py: Python<'_>, name: &str) -> PyResult<&PatchEntry> {
        self.0.set().by_name(name).map_err(|problem| error::document(py, &problem.into()))
    }
}

#[pymethods]
impl PyGrid {
    /// Returns the model with the patch `name`.
    fn model(&self, py: Python<'_>, name: &str, choice: Choice) -> PyResult<PyModel> {
        let entry = self.entry(py, name)?;
        PyModel::compile(py, choice, |options| self.0.model(entry, options))
    }

    /// Returns the name of the patch and its values by label, as the command's JSON has them.
    fn head<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        fields(py, &self.0.head(self.entry(py, name)?))
    }

    /// Searches for every signal, as `nextstat.search` says.
    fn search<'py>(
        &self,
        py: Python<'py>,
        choice: Choice,
        settings: &Bound<'_, PyDict>,
        wanted: SearchWanted,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let SearchWanted { toys, samples, limits, correlations, along } = wanted;
        let search = SearchRequest { n_samples: samples, n_toys: toys, limits, correlations, label: along };
        let (options, settings) = ({ choice }.options(py)?, of_any_model(py, settings)?);
        let request = GridRequest { options: &options, settings: &settings, face: Face::Library };
        let threads = settings.threads.unwrap_or_else(all_threads);
        let found = monitored(py, callback(progress).as_ref(), |monitor| {
            self.0.search(&request, &search, ExecutionContext::new(threads, monitor))
        })?;
        let found = found.map_err(|problem| error::library(py, &problem))?;
        let document = fields(py, &found.document())?;
        document.set_item("alarm", found.alarm())?;
        Ok(document)
    }

    /// Simplifies the background, as `nextstat.simplify` says.
    fn simplify<'py>(
        &self,
        py: Python<'py>,
        choice: Choice,
        settings: &Bound<'_, PyDict>,
        wanted: SimplifyWanted,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<SimplifiedParts<'py>> {
        simplify_grid(py, &self.0, choice, settings, wanted, progress)
    }

    /// Returns how the results of the grid were computed; `of_patch` is the provenance of one of
    /// them.
    fn provenance(&self, of_patch: Option<&Bound<'_, PyProvenance>>) -> PyGridProvenance {
        PyGridProvenance { grid: Arc::clone(&self.0), analysis: of_patch.map(|found| found.get().0.clone()) }
    }
}

/// How to search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SearchWanted {
    toys: u64,
    samples: usize,
    limits: bool,
    correlations: bool,
    along: Option<String>,
}

/// How the results of a grid were computed, read when it is asked for.
#[pyclass(name = "RawGridProvenance", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyGridProvenance {
    grid: Arc<SignalGrid>,
    analysis: Option<Analysis>,
}

#[pymethods]
impl PyGridProvenance {
    /// Returns the provenance by the names of the command's JSON.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let provenance = py.detach(|| self.grid.provenance(self.analysis.as_ref()));
        fields(py, &provenance)
    }
}

/// Returns the warning about `n_failed` of `n_done` patches; None if there are none.
#[pyfunction]
fn failed_patches(n_failed: usize, n_done: usize) -> Option<String> {
    patchsets::failed_patches(n_failed, n_done)
}

/// Returns the exclusion contours of the results of every patch, in their JSON text.
///
/// `axes` are the labels of the axes, `at` the values of other labels, and `file` is the name of
/// the text in provenance, if it was read from a file.
#[pyfunction]
fn exclusion_of<'py>(
    py: Python<'py>,
    grid: &[u8],
    axes: [Option<String>; 2],
    at: Vec<(String, String)>,
    cl: Option<f64>,
    mass_splitting: bool,
    file: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let [x, y] = axes;
    let request = ExclusionRequest { x, y, at, cl, mass_splitting };
    let found = py.detach(|| Exclusion::from_json(grid, &request));
    let found = found.map_err(|problem| error::exclusion(py, &problem))?;
    let found = match file {
        Some(file) => found.from_file(file),
        None => found,
    };
    let document = fields(py, &found.document())?;
    document.set_item("alarm", found.alarm())?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPatchSet>()?;
    module.add_class::<PyGrid>()?;
    module.add_class::<PyGridProvenance>()?;
    module.add_function(wrap_pyfunction!(failed_patches, module)?)?;
    module.add("SCHEMAS", PyTuple::new(module.py(), schema::names().collect::<Vec<_>>())?)?;
    module.add_function(wrap_pyfunction!(json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(schema_urn, module)?)?;
    module.add_function(wrap_pyfunction!(check_model, module)?)?;
    module.add_function(wrap_pyfunction!(exclusion_of, module)?)?;
    module.add_function(wrap_pyfunction!(digest_of, module)?)?;
    module.add_function(wrap_pyfunction!(convert_document, module)?)?;
    module.add_function(wrap_pyfunction!(write_xml, module)?)?;
    module.add_function(wrap_pyfunction!(xml_for_pyhf, module)?)?;
    module.add_function(wrap_pyfunction!(read_document, module)?)?;
    module.add_function(wrap_pyfunction!(inspect_workspace, module)?)?;
    module.add_function(wrap_pyfunction!(apply_patch, module)?)
}
