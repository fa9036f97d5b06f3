//! Models on accelerators: the devices that this process has opened, and what they did.

use ns_compute::accel::{AccelError, DeviceSession, GpuSession};
use ns_core::{Data, Inputs, Model};
use ns_device::{Backend, Device, DeviceCounters, DeviceError};
use ns_inference::FitOptions;
use ns_inference::accelerator::{Accelerator, AcceleratorFailure, BatchFitter};
use ns_inference::options::domain_and_start;
use ns_inference::parallel::ExecutionContext;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Devices that this process has opened: one of each kind, whose memory all models share.
static OPEN: LazyLock<Mutex<HashMap<Backend, Device>>> = LazyLock::new(Mutex::default);

/// The first device of `backend`; opened anew if it has failed before.
fn open(backend: Backend) -> Result<Device, DeviceError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&backend).filter(|device| device.is_sound()) {
        return Ok(device.clone());
    }
    // NVIDIA's driver makes a new context only when nobody holds the broken one.
    open.remove(&backend);
    let device = Device::open(backend, 0)?;
    open.insert(backend, device.clone());
    Ok(device)
}

/// `model` on the first device of `backend`, to be used by several procedures.
///
/// # Errors
/// A device that is not there, computes wrongly, or cannot hold the model.
pub fn session(backend: Backend, model: &Model) -> Result<GpuSession, AccelError> {
    Ok(GpuSession::new(DeviceSession::new(&open(backend)?, model)?))
}

/// The same with templates that are replaced, several rows of them at a time.
///
/// # Errors
/// As of [`session`].
pub fn session_with_inputs(backend: Backend, model: &Model, inputs: Inputs) -> Result<GpuSession, AccelError> {
    Ok(GpuSession::new(DeviceSession::with_inputs(&open(backend)?, model, inputs)?))
}

/// A device with a model on it.
#[derive(Debug)]
pub struct OnDevice {
    device: Device,
    /// What the device had done before.
    before: DeviceCounters,
    accelerator: Accelerator,
}

impl OnDevice {
    /// The device of `session`, whose model is there already.
    #[must_use]
    pub fn of(session: GpuSession) -> Self {
        let device = session.device().clone();
        let before = device.counters();
        Self { device, before, accelerator: Accelerator::new(Box::new(session)) }
    }

    /// For toys.
    #[must_use]
    pub fn accelerator(&self) -> &Accelerator {
        &self.accelerator
    }

    /// `execution` with the device's help on `data`.
    #[must_use]
    pub fn assist<'a>(&'a self, execution: ExecutionContext<'a>, data: &'a Data) -> ExecutionContext<'a> {
        ExecutionContext { batch_fitter: Some(BatchFitter { accelerator: &self.accelerator, data }), ..execution }
    }

    /// `options` with fits started where the device's fit of `data` ends.
    #[must_use]
    pub fn started(&self, model: &Model, data: &Data, options: FitOptions) -> FitOptions {
        let (domain, start) = domain_and_start(model, &options);
        let assistant = BatchFitter { accelerator: &self.accelerator, data };
        let found = assistant.free(&domain, &start);
        FitOptions { start: found.or(options.start), ..options }
    }

    /// What the device did since this was made; where several procedures use one device at a time,
    /// what it did for all of them.
    ///
    /// # Errors
    /// How it failed, if it did: results are then not to be used.
    pub fn report(&self) -> Result<Value, AcceleratorFailure> {
        if let Some(failure) = self.accelerator.failure() {
            return Err(failure);
        }
        let (share, counters) = (self.accelerator.share(), self.device.counters());
        Ok(json!({
            "backend": self.device.backend().name(),
            "name": self.device.properties().name,
            "fits": share.n_fits,
            "fits_left_to_the_cpu": share.n_left,
            "launches": counters.launches - self.before.launches,
            "upload_bytes": counters.upload_bytes - self.before.upload_bytes,
            "download_bytes": counters.download_bytes - self.before.download_bytes,
        }))
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.device.backend(), self.device.index())
    }

    /// What kind of device it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.device.backend()
    }
}
