//! A model on a device, for the command and the Python package: what procedures ask of it, and what it did in the end.

use ns_compute::accel::{AccelError, Session, SharedSession};
use ns_core::batch::BatchError;
use ns_core::{Data, Model};
use ns_device::{Backend, Device};
use ns_inference::FitOptions;
use ns_inference::accelerator::{Accelerator, Assistant};
use ns_inference::fit::domain_and_start;
use ns_inference::parallel::Crew;
use serde_json::{Value, json};

/// A device with a model on it.
#[derive(Debug)]
pub struct OnDevice {
    device: Device,
    accelerator: Accelerator,
}

impl OnDevice {
    /// `model` on the first device of `backend`.
    ///
    /// # Errors
    /// A device that is not there, computes wrongly, or cannot hold the model.
    pub fn new(backend: Backend, model: &Model) -> Result<Self, AccelError> {
        let session = Session::new(&Device::open(backend, 0)?, model)?;
        Ok(Self::of(SharedSession::new(session)))
    }

    /// The device of `session`, whose model is there already. Counting starts anew.
    #[must_use]
    pub fn of(session: SharedSession) -> Self {
        let device = session.lock().device().clone();
        device.reset_counters();
        Self { device, accelerator: Accelerator::new(Box::new(session)) }
    }

    /// For toys.
    #[must_use]
    pub fn accelerator(&self) -> &Accelerator {
        &self.accelerator
    }

    /// `crew` with the device's help on `data`.
    #[must_use]
    pub fn assist<'a>(&'a self, crew: Crew<'a>, data: &'a Data) -> Crew<'a> {
        Crew { assistant: Some(Assistant { accelerator: &self.accelerator, data }), ..crew }
    }

    /// `options` with fits started where the device's fit of `data` ends.
    #[must_use]
    pub fn started(&self, model: &Model, data: &Data, options: FitOptions) -> FitOptions {
        let (domain, start) = domain_and_start(model, &options);
        let assistant = Assistant { accelerator: &self.accelerator, data };
        let found = assistant.free(&domain, &start);
        FitOptions { start: found.or(options.start), ..options }
    }

    /// What the device did.
    ///
    /// # Errors
    /// How it failed, if it did: results are then not to be used.
    pub fn report(&self) -> Result<Value, BatchError> {
        if let Some(error) = self.accelerator.take_failure() {
            return Err(error);
        }
        let (share, counters) = (self.accelerator.share(), self.device.counters());
        Ok(json!({
            "backend": self.device.backend().name(),
            "name": self.device.facts().name,
            "fits": share.n_fits,
            "fits_left_to_the_cpu": share.n_left,
            "launches": counters.launches,
            "upload_bytes": counters.upload_bytes,
            "download_bytes": counters.download_bytes,
        }))
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.device.backend(), self.device.index())
    }
}
