//! A workspace with one measurement of it chosen and compiled, ready for every procedure.

use crate::Error;
use crate::device;
use ns_compute::accel::{AccelError, GpuSession};
use ns_compute::cpu::ModelPlan;
use ns_core::spec::Workspace;
use ns_core::{CompileOptions, Model, compile};
use ns_device::Backend;
use ns_translate::pyhf::{from_value, read_value};
use ns_translate::{LoadRequest, load};
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled model with the workspace that it was made of. Clones share everything.
#[derive(Debug, Clone)]
pub struct CompiledModel {
    workspace: Arc<Workspace>,
    model: Arc<Model>,
    plan: Arc<ModelPlan>,
    /// The model on devices, uploaded when one is first asked for.
    sessions: Arc<Mutex<Vec<(Backend, GpuSession)>>>,
}

impl CompiledModel {
    /// Compiles `workspace`.
    ///
    /// # Errors
    /// What makes the workspace impossible as a model, with its place.
    pub fn new(workspace: Workspace, options: &CompileOptions) -> Result<Self, ns_core::CompileError> {
        let model = compile(&workspace, options)?;
        let plan = Arc::new(ModelPlan::new(&model));
        Ok(Self { workspace: Arc::new(workspace), model: Arc::new(model), plan, sessions: Arc::default() })
    }

    /// Reads a file or standard input, applies its patches and compiles the result.
    ///
    /// # Errors
    /// A document that cannot be read or is not a model.
    pub fn load(request: &LoadRequest, options: &CompileOptions) -> Result<Self, Error> {
        Ok(Self::new(load(request)?, options)?)
    }

    /// Compiles a workspace given as JSON text.
    ///
    /// # Errors
    /// As [`CompiledModel::load`].
    pub fn from_json(text: &[u8], options: &CompileOptions) -> Result<Self, Error> {
        Ok(Self::new(from_value(&read_value(text)?)?, options)?)
    }

    /// Returns the same model without what it has on devices: what is kept must not keep a device.
    #[must_use]
    pub(crate) fn without_devices(&self) -> Self {
        Self { sessions: Arc::default(), ..self.clone() }
    }

    /// Returns the workspace as written.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
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

    /// Returns the model on the first device of `backend`, uploading it the first time. Further
    /// callers wait for the upload.
    ///
    /// # Errors
    /// A device that is not available, computes wrongly, or cannot hold the model.
    pub fn session(&self, backend: Backend) -> Result<GpuSession, AccelError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(_, session)| session.device().is_sound());
        if let Some((_, session)) = sessions.iter().find(|(known, _)| *known == backend) {
            return Ok(session.clone());
        }
        let session = device::session(backend, &self.model)?;
        sessions.push((backend, session.clone()));
        Ok(session)
    }
}
