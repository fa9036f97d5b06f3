//! From `--device` to an accelerator that holds the model, and what it did in the end.

use ns_compute::accel::{AccelError, Session};
use ns_core::{Data, Model};
use ns_device::{Backend, Device};
use ns_inference::accelerator::{Accelerator, Assistant};
use ns_inference::fit::domain_and_start;
use ns_inference::{FitOptions, parallel::Crew};
use serde_json::{Value, json};

use crate::args::{DeviceArgs, DeviceChoice};
use crate::error::CliError;

/// A device with the model on it.
#[derive(Debug)]
pub(super) struct Chosen {
    device: Device,
    accelerator: Accelerator,
}

/// The device that `args` ask for, with `model` on it; `None` for the CPU.
pub(super) fn choose(args: &DeviceArgs, model: &Model) -> Result<Option<Chosen>, CliError> {
    let backend = match args.choice() {
        DeviceChoice::Auto | DeviceChoice::Cpu => return Ok(None),
        DeviceChoice::Cuda => Backend::Cuda,
        DeviceChoice::Metal => Backend::Metal,
        #[cfg(feature = "emulated")]
        DeviceChoice::Emulated => Backend::Emulated,
    };
    let device = Device::open(backend, 0).map_err(AccelError::from)?;
    let session = Session::new(&device, model)?;
    device.reset_counters();
    Ok(Some(Chosen { device, accelerator: Accelerator::new(Box::new(session)) }))
}

impl Chosen {
    /// For toys.
    pub(super) fn accelerator(&self) -> &Accelerator {
        &self.accelerator
    }

    /// For procedures on `data`.
    pub(super) fn assistant<'a>(&'a self, data: &'a Data) -> Assistant<'a> {
        Assistant { accelerator: &self.accelerator, data }
    }

    /// `options` with fits started where the device's fit of `data` ends.
    pub(super) fn started(&self, model: &Model, data: &Data, options: FitOptions) -> FitOptions {
        let (domain, start) = domain_and_start(model, &options);
        let found = self.assistant(data).free(&domain, &start);
        FitOptions { start: found.or(options.start), ..options }
    }

    /// What it did, for the document; or how it failed.
    pub(super) fn report(&self) -> Result<Value, CliError> {
        if let Some(error) = self.accelerator.take_failure() {
            return Err(CliError::DeviceFailed { device: self.name(), error });
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

    fn name(&self) -> String {
        format!("{} {}", self.device.backend(), self.device.index())
    }
}

/// `document` with what the device did, if one was asked for; or how it failed.
pub(super) fn with_device(document: impl serde::Serialize, chosen: Option<&Chosen>) -> Result<Value, CliError> {
    let mut document = crate::report::to_document(&document);
    if let (Some(chosen), Value::Object(entries)) = (chosen, &mut document) {
        entries.insert("device".to_owned(), chosen.report()?);
    }
    Ok(document)
}

/// `crew` with the device's help, if one was asked for.
pub(super) fn assisted<'a>(crew: Crew<'a>, chosen: Option<&'a Chosen>, data: &'a Data) -> Crew<'a> {
    Crew { assistant: chosen.map(|chosen| chosen.assistant(data)), ..crew }
}
