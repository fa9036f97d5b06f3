//! From `--device` to an accelerator that holds the model, and what it did to the document.

use ns_core::{Data, Model};
use ns_device::Backend;
use ns_inference::FitOptions;
use ns_inference::parallel::Crew;
use serde_json::Value;

use crate::args::{DeviceArgs, DeviceChoice};
use crate::error::CliError;
use crate::on_device::OnDevice;

/// What `--device` asks for: a device, or nothing but the CPU.
#[derive(Debug)]
pub(super) struct Chosen(Option<OnDevice>);

/// The device that `args` ask for, with `model` on it.
pub(super) fn choose(args: &DeviceArgs, model: &Model) -> Result<Chosen, CliError> {
    let backend = match args.choice() {
        DeviceChoice::Auto | DeviceChoice::Cpu => return Ok(Chosen(None)),
        DeviceChoice::Cuda => Backend::Cuda,
        DeviceChoice::Metal => Backend::Metal,
        #[cfg(feature = "emulated")]
        DeviceChoice::Emulated => Backend::Emulated,
    };
    Ok(Chosen(Some(OnDevice::new(backend, model)?)))
}

impl Chosen {
    /// Whether no device was asked for.
    pub(super) fn is_cpu(&self) -> bool {
        self.0.is_none()
    }

    /// For toys.
    pub(super) fn accelerator(&self) -> Option<&ns_inference::Accelerator> {
        self.0.as_ref().map(OnDevice::accelerator)
    }

    /// `crew`, helped on `data`.
    pub(super) fn assist<'a>(&'a self, crew: Crew<'a>, data: &'a Data) -> Crew<'a> {
        self.0.as_ref().map_or(crew, |device| device.assist(crew, data))
    }

    /// `options` with fits started where the device's fit of `data` ends.
    pub(super) fn started(&self, model: &Model, data: &Data, options: FitOptions) -> FitOptions {
        match &self.0 {
            None => options,
            Some(device) => device.started(model, data, options),
        }
    }

    /// What the device did, if there is one; an error if it failed.
    pub(super) fn report(&self) -> Result<Option<Value>, CliError> {
        let failed = |device: &OnDevice, error| CliError::DeviceFailed { device: device.name(), error };
        self.0.as_ref().map(|device| device.report().map_err(|error| failed(device, error))).transpose()
    }

    /// `document` with what the device did.
    pub(super) fn sign(&self, document: impl serde::Serialize) -> Result<Value, CliError> {
        let mut document = crate::report::to_document(&document);
        if let Some(report) = self.report()? {
            document["device"] = report;
        }
        Ok(document)
    }
}
