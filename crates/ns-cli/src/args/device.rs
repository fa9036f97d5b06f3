//! Arguments of verbs that can compute on an accelerator, and of `devices`.

use clap::{Args, ValueEnum};
use ns_device::Backend;

use super::{EXIT_CODES, OutputArgs};

/// Where to compute.
#[derive(Debug, Default, Args)]
pub(crate) struct DeviceArgs {
    /// Find minima on this device; the CPU finishes what it does not reach. A device that is not there is an error
    #[arg(long, value_name = "DEVICE", value_enum, default_value_t)]
    pub(crate) device: DeviceChoice,

    /// The same as `--device` with a GPU
    #[arg(long, value_name = "GPU", value_enum, conflicts_with = "device")]
    pub(crate) gpu: Option<Gpu>,
}

impl DeviceArgs {
    /// What `--device` and `--gpu` say together.
    fn choice(&self) -> DeviceChoice {
        match self.gpu {
            None => self.device,
            Some(Gpu::Cuda) => DeviceChoice::Cuda,
            Some(Gpu::Metal) => DeviceChoice::Metal,
        }
    }

    /// The device that is asked for, if it is not the CPU.
    pub(crate) fn backend(&self) -> Option<Backend> {
        match self.choice() {
            DeviceChoice::Auto | DeviceChoice::Cpu => None,
            DeviceChoice::Cuda => Some(Backend::Cuda),
            DeviceChoice::Metal => Some(Backend::Metal),
            #[cfg(feature = "emulated")]
            DeviceChoice::Emulated => Some(Backend::Emulated),
        }
    }

    /// Where minima are found, in one word.
    pub(crate) fn name(&self) -> &'static str {
        self.backend().map_or("cpu", Backend::name)
    }
}

/// A device, or leave to choose one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// The fastest for the task, as far as that was measured: today always the CPU
    #[default]
    Auto,
    /// The processor
    Cpu,
    /// An NVIDIA GPU, in double precision
    Cuda,
    /// An Apple GPU, in single precision; the CPU polishes its minima
    Metal,
    /// The kernels of the GPUs on the CPU, for tests of them: slow
    #[cfg(feature = "emulated")]
    #[value(hide = true)]
    Emulated,
}

/// A kind of GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gpu {
    /// NVIDIA
    Cuda,
    /// Apple
    Metal,
}

/// Arguments of `devices`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DevicesArgs {
    /// Include what the compilers of the kernels said
    #[arg(long)]
    pub(crate) log: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
