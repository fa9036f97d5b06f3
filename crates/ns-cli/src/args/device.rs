//! Arguments of verbs that can compute on an accelerator.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use ns_device::{Backend, Precision};
use std::sync::LazyLock;

/// Where to compute.
#[derive(Debug, Default, Args)]
pub(crate) struct DeviceArgs {
    /// Find minima on this device; the CPU finishes what the device does not reach. A device that
    /// is not available is an error
    #[arg(long, value_name = "DEVICE", value_enum, default_value_t, help_heading = "Computation")]
    device: DeviceChoice,

    /// Same as `--device`, for GPUs
    #[arg(long, value_name = "GPU", value_enum, conflicts_with = "device", help_heading = "Computation")]
    gpu: Option<Gpu>,
}

impl DeviceArgs {
    /// Returns the backend; `None` for the CPU.
    pub(crate) fn backend(&self) -> Option<Backend> {
        match (&self.gpu, &self.device) {
            (Some(Gpu(backend)), _) | (None, DeviceChoice::Backend(backend)) => Some(*backend),
            (None, DeviceChoice::Auto | DeviceChoice::Cpu) => None,
        }
    }
}

/// A device, or the choice of one by nextstat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum DeviceChoice {
    #[default]
    Auto,
    Cpu,
    Backend(Backend),
}

impl ValueEnum for DeviceChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<DeviceChoice>> = LazyLock::new(|| {
            let backends = Backend::offered().map(DeviceChoice::Backend);
            [DeviceChoice::Auto, DeviceChoice::Cpu].into_iter().chain(backends).collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Auto => PossibleValue::new("auto")
                .help("The fastest device for the task, by measurements: today always the CPU"),
            Self::Cpu => PossibleValue::new(nextstat::device::CPU).help("The processor"),
            Self::Backend(backend) => {
                let precision = match backend.precision() {
                    Precision::Double => "in double precision",
                    Precision::Single => "in single precision; the CPU polishes its minima",
                };
                let help = format!("{}, {precision}", backend.devices());
                PossibleValue::new(backend.name()).help(help).hide(backend.is_for_tests())
            }
        })
    }
}

/// A backend for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gpu(Backend);

impl ValueEnum for Gpu {
    fn value_variants<'a>() -> &'a [Self] {
        static GPUS: LazyLock<Vec<Gpu>> =
            LazyLock::new(|| Backend::ALL.into_iter().filter(|backend| !backend.is_for_tests()).map(Gpu).collect());
        &GPUS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.devices()))
    }
}
