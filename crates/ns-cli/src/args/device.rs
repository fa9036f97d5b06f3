//! Arguments of verbs that can compute on an accelerator.

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use ns_device::{Backend, DeviceName, Precision};
use std::ffi::OsStr;
use std::sync::LazyLock;

/// Where to compute.
#[derive(Debug, Default, Args)]
pub(crate) struct DeviceArgs {
    /// Find minima on this device; the CPU finishes what the device does not reach. A device that
    /// is not available is an error. `opencl:1` is the second one of its kind
    #[arg(long, value_name = "DEVICE", value_parser = numbered::<DeviceChoice>(), default_value = "auto", help_heading = "Computation")]
    device: DeviceChoice,

    /// Same as `--device`, for GPUs
    #[arg(long, value_name = "GPU", value_parser = numbered::<Gpu>(), conflicts_with = "device", help_heading = "Computation")]
    gpu: Option<Gpu>,
}

impl DeviceArgs {
    /// Returns the device; `None` for the CPU.
    pub(crate) fn name(&self) -> Option<DeviceName> {
        match (&self.gpu, &self.device) {
            (Some(Gpu(name)), _) | (None, DeviceChoice::Named(name)) => Some(*name),
            (None, DeviceChoice::Auto | DeviceChoice::Cpu) => None,
        }
    }
}

/// Reads one of the values of `T`, or the name of a device that is not the first of its backend.
#[derive(Debug, Clone)]
struct NumberedParser<T: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<T>);

fn numbered<T: ValueEnum + Clone + Send + Sync + 'static>() -> NumberedParser<T> {
    NumberedParser(EnumValueParser::new())
}

impl<T: ValueEnum + From<DeviceName> + PartialEq + Clone + Send + Sync + 'static> TypedValueParser
    for NumberedParser<T>
{
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        // What is of no backend that is offered here gets the list of those that are.
        let backend = value.to_str().and_then(|text| text.split_once(':')).and_then(|(name, _)| name.parse().ok());
        if !backend.is_some_and(|backend: Backend| T::value_variants().contains(&T::from(backend.into()))) {
            return self.0.parse_ref(command, argument, value);
        }
        let numbered = |text: &str| {
            let named = text.parse::<DeviceName>().map(T::from);
            named.map_err(|error| format!("{error}; {}", error.hint()))
        };
        numbered.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// A device, or the choice of one by nextstat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum DeviceChoice {
    #[default]
    Auto,
    Cpu,
    Named(DeviceName),
}

impl From<DeviceName> for DeviceChoice {
    fn from(name: DeviceName) -> Self {
        Self::Named(name)
    }
}

impl ValueEnum for DeviceChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<DeviceChoice>> = LazyLock::new(|| {
            let backends = Backend::offered().map(|backend| DeviceChoice::Named(backend.into()));
            [DeviceChoice::Auto, DeviceChoice::Cpu].into_iter().chain(backends).collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Auto => PossibleValue::new("auto")
                .help("The fastest device for the task, by measurements: today always the CPU"),
            Self::Cpu => PossibleValue::new(nextstat::device::CPU).help("The processor"),
            Self::Named(DeviceName { backend, .. }) => {
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

/// A device of a backend for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gpu(DeviceName);

impl From<DeviceName> for Gpu {
    fn from(name: DeviceName) -> Self {
        Self(name)
    }
}

impl ValueEnum for Gpu {
    fn value_variants<'a>() -> &'a [Self] {
        static GPUS: LazyLock<Vec<Gpu>> = LazyLock::new(|| {
            let of_users = Backend::ALL.into_iter().filter(|backend| !backend.is_for_tests());
            of_users.map(|backend| Gpu(backend.into())).collect()
        });
        &GPUS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.backend.name()).help(self.0.backend.devices()))
    }
}
