//! Settings resolved against a model: what every procedure starts from.

use crate::cancel::{CancellableLikelihood, Cancellation};
use crate::device::OnDevice;
use crate::document::to_document;
use crate::error::{NeedsPoi, Procedure, SettingsError};
use crate::settings::{Settings, index_of};
use crate::{CompiledModel, Error};
use ns_compute::CpuLikelihood;
use ns_core::likelihood::diagnose;
use ns_core::{Data, Likelihood, Model};
use ns_inference::minimize::Domain;
use ns_inference::monitor::Monitor;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::{ExecutionContext, all_threads};
use ns_inference::toys::ToyRun;
use ns_inference::{FitOptions, Problem, memory};
use serde::Serialize;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

/// A model, its data and how to fit them, with one method per procedure. Clones share everything.
#[derive(Debug, Clone)]
pub struct Analysis {
    model: CompiledModel,
    data: Arc<Data>,
    options: Arc<FitOptions>,
    threads: NonZeroUsize,
    seed: u64,
    device: Option<Arc<OnDevice>>,
    cancellation: Option<Arc<dyn Cancellation>>,
}

/// A result, with the analysis that it is of.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// What was computed.
    pub result: T,
    /// The analysis.
    pub analysis: Analysis,
    /// What the device did; `None` on the CPU.
    pub device: Option<Value>,
}

impl<T> Answer<T> {
    /// Adds what the device did to `document`.
    pub(crate) fn sign(&self, mut document: Value) -> Value {
        if let Some(device) = &self.device {
            document["device"] = device.clone();
        }
        document
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.analysis.model()
    }
}

impl<T: Serialize> Answer<T> {
    /// Returns the result as a document, field by field.
    pub(crate) fn plain_document(&self) -> Value {
        self.sign(to_document(&self.result))
    }
}

impl Analysis {
    /// Resolves `settings` for `model` and opens the device.
    ///
    /// # Errors
    /// Settings that do not fit the model, or a device that is not available.
    pub fn new(model: &CompiledModel, settings: &Settings) -> Result<Self, Error> {
        let options = settings.options(model.model())?;
        let data = settings.data(model.model())?;
        let device = settings.device.map(|backend| model.session(backend).map(OnDevice::of)).transpose()?;
        Ok(Self {
            model: model.clone(),
            data: Arc::new(data),
            options: Arc::new(options),
            threads: settings.threads.unwrap_or_else(every_thread),
            seed: settings.seed,
            device: device.map(Arc::new),
            cancellation: None,
        })
    }

    /// Makes every procedure end early once `cancellation` says so; the caller then drops the
    /// result.
    #[must_use]
    pub fn cancelled_by(self, cancellation: Arc<dyn Cancellation>) -> Self {
        Self { cancellation: Some(cancellation), ..self }
    }

    /// Returns the same analysis on the CPU, without cancellation: results that are kept must keep
    /// neither a device nor what stopped them.
    #[must_use]
    pub fn on_cpu(&self) -> Self {
        Self { model: self.model.without_devices(), device: None, cancellation: None, ..self.clone() }
    }

    /// Returns the model that the engine works on.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.model.model()
    }

    /// Returns the model with its workspace.
    #[must_use]
    pub fn compiled(&self) -> &CompiledModel {
        &self.model
    }

    /// Returns the data that are fitted.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Returns how fits are made; without uncertainties.
    #[must_use]
    pub fn options(&self) -> &FitOptions {
        &self.options
    }

    /// Returns how many threads are used at most.
    #[must_use]
    pub fn threads(&self) -> NonZeroUsize {
        self.threads
    }

    /// Returns the seed of everything random.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the device; `None` for the CPU.
    #[must_use]
    pub fn device(&self) -> Option<&OnDevice> {
        self.device.as_deref()
    }

    /// Returns the likelihood of the data.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn likelihood(&self) -> Result<CancellableLikelihood, Error> {
        let likelihood = CpuLikelihood::with_plan(Arc::clone(self.model.plan()), &self.data);
        memory::require(&likelihood.structure())?;
        Ok(CancellableLikelihood::new(likelihood, self.cancellation.clone()))
    }

    /// Returns the ranges of the parameters and which of them are fixed.
    #[must_use]
    pub fn domain(&self) -> Domain {
        domain_and_start(self.model(), &self.options).0
    }

    /// Returns the parameter of interest, which `what` needs.
    ///
    /// # Errors
    /// [`SettingsError::NoPoi`]
    pub fn poi(&self, what: NeedsPoi) -> Result<usize, SettingsError> {
        self.model().poi().ok_or(SettingsError::NoPoi(what))
    }

    /// Returns the parameter of interest, whose uncertainty is wanted of every toy.
    ///
    /// # Errors
    /// [`SettingsError::NoPoi`], or [`SettingsError::UncertaintyOfFixed`].
    pub fn poi_with_uncertainty(&self) -> Result<usize, SettingsError> {
        let index = self.poi(NeedsPoi::Setting(crate::error::Setting::PoiUncertainty))?;
        if self.is_fixed(index) {
            return Err(SettingsError::UncertaintyOfFixed { name: self.model().parameters.names[index].clone() });
        }
        Ok(index)
    }

    /// Returns the parameter that `procedure` varies: the one called `name`, or the parameter of
    /// interest.
    ///
    /// # Errors
    /// A name that the model does not have, no parameter of interest, or a fixed parameter.
    pub fn varied(&self, name: Option<&str>, procedure: Procedure) -> Result<usize, SettingsError> {
        let index = match name {
            Some(name) => index_of(&self.model().parameters, crate::error::Setting::Parameter, name)?,
            None => self.poi(NeedsPoi::Procedure(procedure))?,
        };
        if self.is_fixed(index) {
            let name = self.model().parameters.names[index].clone();
            return Err(SettingsError::VariesFixed { procedure, name });
        }
        Ok(index)
    }

    /// Whether the measurement or the settings fix parameter `i`.
    #[must_use]
    pub fn is_fixed(&self, i: usize) -> bool {
        self.model().parameters.fixed[i] || self.options.fixed.iter().any(|(fixed, _)| *fixed == i)
    }

    /// Returns the problem that procedures solve: the model, `likelihood` and the fit options.
    pub(crate) fn problem<'a>(
        &'a self,
        likelihood: &'a mut CancellableLikelihood,
    ) -> Problem<'a, CancellableLikelihood> {
        Problem::new(self.model(), likelihood, self.options())
    }

    /// Returns the threads, with the device's help, under `monitor`.
    #[must_use]
    pub fn execution<'a>(&'a self, monitor: &'a dyn Monitor) -> ExecutionContext<'a> {
        let execution = ExecutionContext::new(self.threads, monitor);
        self.device().map_or(execution, |device| device.assist(execution, &self.data))
    }

    /// Returns what toys run on: the threads and the device.
    #[must_use]
    pub fn run<'a>(&'a self, monitor: &'a dyn Monitor) -> ToyRun<'a> {
        let accelerator = self.device().map(OnDevice::accelerator);
        ToyRun { accelerator, ..ToyRun::new(self.threads, monitor) }
    }

    /// Returns `options` with the start moved to where the device's fit ends.
    #[must_use]
    pub fn started(&self, options: FitOptions) -> FitOptions {
        match self.device() {
            None => options,
            Some(device) => device.started(self.model(), &self.data, options),
        }
    }

    /// Refuses a device for `what`.
    ///
    /// # Errors
    /// [`Error::OnCpuOnly`]
    pub fn require_cpu(&self, what: &'static str) -> Result<(), Error> {
        if self.device.is_some() { Err(Error::OnCpuOnly { what }) } else { Ok(()) }
    }

    /// Returns what the device did; `None` on the CPU.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`]: results are then not to be used.
    pub fn device_report(&self) -> Result<Option<Value>, Error> {
        let failed = |device: &OnDevice, error| Error::DeviceFailed { device: device.name(), error };
        self.device().map(|device| device.report().map_err(|error| failed(device, error))).transpose()
    }

    /// Returns why the data are impossible at `params` (P), if they are.
    pub(crate) fn impossible_at(&self, params: &[f64]) -> Option<String> {
        diagnose(self.model(), &self.data, params).map(|reason| reason.to_string())
    }

    /// Wraps up `result`.
    pub(crate) fn answer<T>(&self, result: T) -> Result<Answer<T>, Error> {
        Ok(Answer { result, device: self.device_report()?, analysis: self.clone() })
    }
}

/// Returns as many threads as the machine runs at once. Asking it takes longer than a small fit, so
/// it is asked once.
fn every_thread() -> NonZeroUsize {
    static ALL: OnceLock<NonZeroUsize> = OnceLock::new();
    *ALL.get_or_init(all_threads)
}
