//! `nextstat devices`: the devices of every backend, and why those that cannot be used cannot.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, write_result};
use crate::status::Status;
use clap::Args;
use nextstat::document::headed;
use ns_compute::accel;
use ns_device::{Device, DeviceError, ProbedDevice};
use serde_json::{Value, json};

/// Arguments of `devices`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DevicesArgs {
    /// Include the messages of the kernels' compilers, and the time that the self-tests took on the
    /// device
    #[arg(long)]
    log: bool,

    /// Test processors with an OpenCL driver, too, which may take minutes to compile the kernels
    #[arg(long)]
    processors: bool,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for DevicesArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let devices: Vec<Tested> =
            ns_device::probe().into_iter().map(|found| Tested::new(found, self.processors)).collect();
        let document = json!({
            "cpu": {"threads": ns_inference::parallel::all_threads().get()},
            "devices": devices.iter().map(|device| device.document(self.log)).collect::<Vec<Value>>(),
        });
        write_result(&headed("devices", document), &self.output)?;
        Reporter::new(&self.output).summary(|_| devices.iter().map(|device| format!("{}\n", device.line())).collect());
        let is_refused = |device: &Tested| device.refusal.is_some();
        Ok(Status::done_if(!devices.iter().any(is_refused)))
    }
}

/// A device and the result of its self-test.
struct Tested {
    found: ProbedDevice,
    /// Whether it was tested.
    is_tested: bool,
    /// Why the device must not be used although it is available.
    refusal: Option<String>,
    log: Vec<Value>,
    work: Value,
}

impl Tested {
    fn new(found: ProbedDevice, with_processors: bool) -> Self {
        if found.properties.as_ref().is_none_or(|properties| properties.is_processor && !with_processors) {
            return Self { found, is_tested: false, refusal: None, log: Vec::new(), work: Value::Null };
        }
        let opened = Device::open(found.backend, found.index);
        let (refusal, log, work) = match &opened {
            Err(error) => (Some(error.to_string()), Vec::new(), Value::Null),
            Ok(device) => {
                let refusal = accel::self_test(device).err().map(|error| error.to_string());
                (refusal, log_of(device), work_of(device))
            }
        };
        Self { found, is_tested: opened.is_ok(), refusal, log, work }
    }

    fn state(&self) -> &'static str {
        match &self.found.problem {
            _ if self.refusal.is_some() => "refused",
            None => "available",
            Some(DeviceError::NotBuilt { .. }) => "not built in",
            Some(DeviceError::NotHere { .. }) => "not on this platform",
            Some(DeviceError::NoDriver { .. }) => "no driver",
            Some(DeviceError::NoDevice { .. } | DeviceError::NoUsableDevice { .. }) => "no device",
            Some(_) => "refused",
        }
    }

    fn document(&self, with_log: bool) -> Value {
        let ProbedDevice { backend, index, properties, problem } = &self.found;
        let reason = self.refusal.clone().or_else(|| problem.as_ref().map(ToString::to_string));
        let mut document = json!({
            "backend": backend.name(),
            "state": self.state(),
            "reason": reason,
        });
        if let Some(properties) = properties {
            document["index"] = json!(index);
            document["tested"] = json!(self.is_tested);
            document["name"] = json!(properties.name);
            document["precisions"] = json!(properties.precisions.iter().map(ToString::to_string).collect::<Vec<_>>());
            document["memory_bytes"] = json!(properties.memory_bytes);
            document["compute_capability"] = json!(properties.compute_capability.map(|(major, minor)| [major, minor]));
        }
        if with_log {
            document["log"] = json!(self.log);
            document["self_test"] = self.work.clone();
        }
        document
    }

    fn line(&self) -> String {
        match &self.refusal {
            Some(refusal) => format!("{}: {refusal}", self.found),
            None if self.found.is_available() && self.is_tested => format!("{}: passes its self-test", self.found),
            None if self.found.is_available() => format!("{}: not tested; `--processors` tests it", self.found),
            None => self.found.to_string(),
        }
    }
}

fn log_of(device: &Device) -> Vec<Value> {
    device.module_logs().into_iter().map(|log| json!({"kernels": log.module, "compiler": log.log})).collect()
}

/// Returns what a device has done, and the time that it measured; `null` where it measures none.
fn work_of(device: &Device) -> Value {
    let counters = device.counters();
    let milliseconds = counters.kernel_nanoseconds as f64 / 1e6;
    json!({
        "n_launches": counters.launches,
        "kernel_milliseconds": (counters.kernel_nanoseconds > 0).then_some(milliseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::Tested;
    use ns_device::Backend;

    /// The emulated device stands for a processor.
    #[test]
    fn processors_are_tested_only_where_that_is_asked_for() {
        let processor = || {
            let mut found = ns_device::probe().into_iter().find(|found| found.backend == Backend::Emulated);
            let properties = found.as_mut().and_then(|found| found.properties.as_mut());
            properties.expect("tests emulate a device").is_processor = true;
            found.expect("it was found")
        };
        let [skipped, tested] = [false, true].map(|with_processors| Tested::new(processor(), with_processors));
        assert!(skipped.line().ends_with("not tested; `--processors` tests it"), "{}", skipped.line());
        assert!(tested.line().ends_with("passes its self-test"), "{}", tested.line());
        assert_eq!([&skipped, &tested].map(|device| device.document(false)["tested"] == true), [false, true]);
    }
}
