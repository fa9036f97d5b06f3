//! Compiled models: a workspace with one of its measurements, ready for every procedure.

use crate::Error;
use crate::device;
use crate::freed_memory::return_freed_memory;
use ns_compute::accel::{AccelError, GpuSession};
use ns_compute::cpu::ModelPlan;
use ns_core::spec::{Measurement, Workspace};
use ns_core::{CompileOptions, Model, WorkspaceOutline, compile};
use ns_device::DeviceName;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::pyhf::{from_value, read_value, write_workspace};
use ns_translate::{DocumentDigest, DocumentText, LoadRequest, LoadedWorkspace, load_document};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The text of a document with more bytes is given up before the model is compiled, and the
/// memory of a workspace with more of them in its templates once that is done.
const LARGE: usize = 1 << 25;

/// A compiled model with the workspace that it was made of. Clones share everything.
///
/// ```
/// use nextstat::{CompiledModel, DocumentSource, LoadRequest};
///
/// let path = DocumentSource::Path("../../examples/simple.json".into());
/// let model = CompiledModel::load(&LoadRequest::new(path), &Default::default())?;
/// assert_eq!(model.model().parameters.names[0], "mu");
/// assert!(model.workspace_sha256().starts_with("0c1184a8"));
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CompiledModel {
    workspace: Arc<KeptWorkspace>,
    /// The digest of the workspace's text, patches applied, if the model was read from one.
    document: Option<DocumentDigest>,
    /// The files that it was read from, if it was read from files.
    origin: Option<Arc<LoadRequest>>,
    /// Further files that the document names and that were read.
    files: Arc<[PathBuf]>,
    written_sha256: Arc<OnceLock<String>>,
    model: Arc<Model>,
    plan: Arc<ModelPlan>,
    /// The model on devices, uploaded when a procedure first uses one.
    sessions: Arc<Mutex<Vec<(DeviceName, GpuSession)>>>,
}

/// A workspace in little memory: without the templates that its model has.
#[derive(Debug)]
struct KeptWorkspace {
    outline: WorkspaceOutline,
    /// The model with all bins.
    model: Arc<Model>,
}

impl CompiledModel {
    /// Compiles `workspace`.
    ///
    /// # Errors
    /// What makes the workspace impossible as a model, with its place.
    pub fn new(workspace: Workspace, options: &CompileOptions) -> Result<Self, ns_core::CompileError> {
        let model = Arc::new(compile(&workspace, options)?);
        let outline = WorkspaceOutline::new(workspace, &model);
        if size_of_val(&*model.shifts.up) > LARGE {
            return_freed_memory();
        }
        let plan = Arc::new(ModelPlan::new(&model));
        Ok(Self {
            workspace: Arc::new(KeptWorkspace { outline, model: Arc::clone(&model) }),
            document: None,
            origin: None,
            files: Arc::default(),
            written_sha256: Arc::default(),
            model,
            plan,
            sessions: Arc::default(),
        })
    }

    /// Compiles a workspace that was read from a document, and keeps the document's digest.
    ///
    /// # Errors
    /// As [`CompiledModel::new`].
    pub fn from_loaded(loaded: LoadedWorkspace, options: &CompileOptions) -> Result<Self, ns_core::CompileError> {
        if loaded.document.bytes().len() > LARGE {
            // The model needs as much memory again: the text is given up before.
            let _ = loaded.document.sha256();
        }
        let (document, origin) = (Some(loaded.document.into_digest()), loaded.origin.map(Arc::new));
        Ok(Self { document, origin, files: loaded.files.into(), ..Self::new(loaded.workspace, options)? })
    }

    /// Reads a file or standard input, applies its patches and compiles the result.
    ///
    /// # Errors
    /// A document that cannot be read or is not a model.
    pub fn load(request: &LoadRequest, options: &CompileOptions) -> Result<Self, Error> {
        Ok(Self::from_loaded(load_document(request)?, options)?)
    }

    /// Compiles a workspace given as JSON text.
    ///
    /// # Errors
    /// As [`CompiledModel::load`].
    pub fn from_json(text: &[u8], options: &CompileOptions) -> Result<Self, Error> {
        let workspace = from_value(&read_value(text)?)?;
        let document = DocumentText::new(text.to_vec());
        Ok(Self::from_loaded(LoadedWorkspace::from_memory(workspace, document), options)?)
    }

    /// Returns the SHA-256 digest of the workspace with its patches applied: the one that
    /// `nextstat digest` prints for the same document. A model that was not read from a document
    /// has the digest of the document that nextstat writes for it. Computed once.
    #[must_use]
    pub fn workspace_sha256(&self) -> &str {
        let of_document = self.document.as_ref().and_then(DocumentDigest::sha256);
        of_document.unwrap_or_else(|| self.written_sha256())
    }

    /// Returns the files that the workspace was read from; `None` if it was not read from files.
    #[must_use]
    pub fn origin(&self) -> Option<&LoadRequest> {
        self.origin.as_deref()
    }

    /// Returns the further files that the workspace was read from: those that a combination in
    /// HistFactory XML names.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the digest of the document that nextstat writes for the workspace, which does not
    /// depend on how numbers were spelled. Computed once.
    pub(crate) fn written_sha256(&self) -> &str {
        self.written_sha256.get_or_init(|| {
            let text = write_workspace(&self.workspace()).to_string();
            // The text is valid JSON, and nothing else can fail.
            digest(text.as_bytes(), DigestAlgorithm::Sha256).unwrap_or_default()
        })
    }

    /// Returns the model of the same workspace without the bins that `masked` (B) marks.
    ///
    /// # Errors
    /// As [`Model::without_bins`].
    pub(crate) fn without_bins(&self, masked: &[bool]) -> Result<Self, ns_core::CompileError> {
        let model = self.model.without_bins(masked)?;
        let plan = Arc::new(ModelPlan::new(&model));
        Ok(Self { model: Arc::new(model), plan, sessions: Arc::default(), ..self.clone() })
    }

    /// Returns the same model with parameter `poi` as its only one of interest, which nothing else
    /// of it depends on.
    #[must_use]
    pub fn with_poi(&self, poi: usize) -> Self {
        Self { model: Arc::new(Model { pois: vec![poi], ..Model::clone(&self.model) }), ..self.clone() }
    }

    /// Returns the same model without its sessions on devices.
    #[must_use]
    pub(crate) fn without_devices(&self) -> Self {
        Self { sessions: Arc::default(), ..self.clone() }
    }

    /// Returns the workspace as written. The templates of histosys are made of the model's, to the
    /// bit, by each call.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        self.workspace.outline.complete(&self.workspace.model)
    }

    /// Returns the workspace without the templates of histosys that the model has: for names, kinds
    /// of modifiers and settings, at no cost.
    #[must_use]
    pub fn workspace_outline(&self) -> &Workspace {
        self.workspace.outline.incomplete()
    }

    /// Returns the measurement of the workspace that the model is of; `None` if the model has none.
    #[must_use]
    pub fn measurement(&self) -> Option<&Measurement> {
        let name = &self.model().measurement;
        self.workspace_outline().measurements.iter().find(|measurement| measurement.name == *name)
    }

    /// Returns the model that the engine works on.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Returns the layout that evaluators share.
    #[must_use]
    pub fn plan(&self) -> &Arc<ModelPlan> {
        &self.plan
    }

    /// Returns the model on a device, uploading it the first time. Further callers wait for the
    /// upload.
    ///
    /// # Errors
    /// A device that is not available, computes wrongly, or cannot hold the model.
    pub fn session(&self, device: impl Into<DeviceName>) -> Result<GpuSession, AccelError> {
        let name = device.into();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(_, session)| session.device().is_sound());
        if let Some((_, session)) = sessions.iter().find(|(known, _)| *known == name) {
            return Ok(session.clone());
        }
        let session = device::session(name, &self.model)?;
        sessions.push((name, session.clone()));
        Ok(session)
    }
}
