//! Models on accelerators: the devices that this process has opened, and what they did.

use ns_compute::accel::{AccelError, DeviceSession, GpuSession};
use ns_core::{Data, Inputs, Model};
use ns_device::{Backend, Device, DeviceCounters, DeviceError, DeviceName};
use ns_inference::FitOptions;
use ns_inference::accelerator::{Accelerator, AcceleratorFailure, BatchFitter};
use ns_inference::options::domain_and_start;
use ns_inference::parallel::ExecutionContext;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Devices that this process has opened, whose memory all models share.
static OPEN: LazyLock<Mutex<HashMap<DeviceName, Device>>> = LazyLock::new(Mutex::default);

/// The name of the CPU where a backend could be named.
pub const CPU: &str = "cpu";

/// Returns the name of `backend`, or [`CPU`].
#[must_use]
pub fn name_of(backend: Option<Backend>) -> &'static str {
    backend.map_or(CPU, Backend::name)
}

/// Returns the device; opens it again if it has failed.
fn open(name: DeviceName) -> Result<Device, DeviceError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&name).filter(|device| device.is_sound()) {
        return Ok(device.clone());
    }
    // NVIDIA's driver creates a new context only after the broken one is released.
    open.remove(&name);
    let device = Device::open(name.backend, name.index)?;
    open.insert(name, device.clone());
    Ok(device)
}

/// Loads `model` on a device, for several procedures.
///
/// # Errors
/// A device that is not available, computes wrongly, or cannot hold the model.
pub fn session(device: impl Into<DeviceName>, model: &Model) -> Result<GpuSession, AccelError> {
    Ok(GpuSession::new(DeviceSession::new(&open(device.into())?, model)?))
}

/// Loads `model` with inputs, templates that each element of a batch replaces.
///
/// # Errors
/// As [`session`].
pub fn session_with_inputs(
    device: impl Into<DeviceName>,
    model: &Model,
    inputs: Inputs,
) -> Result<GpuSession, AccelError> {
    Ok(GpuSession::new(DeviceSession::with_inputs(&open(device.into())?, model, inputs)?))
}

/// A device with a model on it.
#[derive(Debug)]
pub struct OnDevice {
    device: Device,
    /// Its counters at the start.
    before: DeviceCounters,
    accelerator: Accelerator,
}

impl OnDevice {
    /// Uses the device of `session`, which has the model.
    #[must_use]
    pub fn of(session: GpuSession) -> Self {
        let device = session.device().clone();
        let before = device.counters();
        Self { device, before, accelerator: Accelerator::new(Box::new(session)) }
    }

    /// Returns the accelerator that fits toys.
    #[must_use]
    pub fn accelerator(&self) -> &Accelerator {
        &self.accelerator
    }

    /// Returns `execution` with the device, which fits `data`.
    #[must_use]
    pub fn assist<'a>(&'a self, execution: ExecutionContext<'a>, data: &'a Data) -> ExecutionContext<'a> {
        ExecutionContext { batch_fitter: Some(BatchFitter { accelerator: &self.accelerator, data }), ..execution }
    }

    /// Returns `options` with the start at the minimum that the device found for `data`.
    #[must_use]
    pub fn started(&self, model: &Model, data: &Data, options: FitOptions) -> FitOptions {
        let (domain, start) = domain_and_start(model, &options);
        let assistant = BatchFitter { accelerator: &self.accelerator, data };
        let found = assistant.free(&domain, &start);
        FitOptions { start: found.or(options.start), ..options }
    }

    /// Returns what the device did since this was made, for all procedures that used it meanwhile.
    ///
    /// # Errors
    /// The failure of the device: results are then not to be used.
    pub fn report(&self) -> Result<Value, AcceleratorFailure> {
        if let Some(failure) = self.accelerator.failure() {
            return Err(failure);
        }
        let (share, counters) = (self.accelerator.share(), self.device.counters());
        Ok(json!({
            "backend": self.device.backend().name(),
            "name": self.device.properties().name,
            "n_fits": share.n_fits,
            "n_fits_left_to_the_cpu": share.n_left,
            "n_launches": counters.launches - self.before.launches,
            "upload_bytes": counters.upload_bytes - self.before.upload_bytes,
            "download_bytes": counters.download_bytes - self.before.download_bytes,
        }))
    }

    /// Returns the name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.device.backend(), self.device.index())
    }

    /// Returns the backend.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.device.backend()
    }
}
