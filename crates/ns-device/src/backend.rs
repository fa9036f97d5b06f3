//! Lists the kinds of devices, and what is known about a device before any work is given to it.
//!
//! [`Backend`] is the only list of backends. The command, the Python package, torchless and the
//! benchmarks derive their options and their messages from it.

use std::fmt;
use std::str::FromStr;

/// A way to reach devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// NVIDIA GPUs, through the driver's library, found at run time.
    Cuda,
    /// Apple GPUs.
    Metal,
    /// Devices with an OpenCL driver, found at run time: GPUs of AMD and Intel, processors.
    OpenCl,
    /// The host, lanes as fibers or threads. For tests.
    Emulated,
}

/// What is said of a backend wherever it is offered.
struct Description {
    name: &'static str,
    devices: &'static str,
    requirement: &'static str,
    precision: Precision,
    is_built: bool,
}

impl Backend {
    /// Every backend, in the order in which they are listed and preferred.
    pub const ALL: [Backend; 4] = [Backend::Cuda, Backend::Metal, Backend::OpenCl, Backend::Emulated];

    fn description(self) -> Description {
        match self {
            Backend::Cuda => Description {
                name: "cuda",
                devices: "NVIDIA GPU",
                requirement: "an NVIDIA driver of version 525 or later",
                precision: Precision::Double,
                is_built: cfg!(feature = "cuda"),
            },
            Backend::Metal => Description {
                name: "metal",
                devices: "Apple GPU",
                requirement: "macOS",
                precision: Precision::Single,
                is_built: cfg!(all(feature = "metal", target_os = "macos")),
            },
            Backend::OpenCl => Description {
                name: "opencl",
                devices: "AMD or Intel GPU, or a processor with an OpenCL driver",
                requirement: "an OpenCL driver of version 1.2 or later",
                precision: Precision::Double,
                is_built: cfg!(feature = "opencl"),
            },
            Backend::Emulated => Description {
                name: "emulated",
                devices: "GPU emulated by the processor, for tests: slow",
                requirement: "a build with the feature `emulated`",
                precision: Precision::Double,
                is_built: cfg!(feature = "emulated"),
            },
        }
    }

    /// Returns the backends that a program offers its users: all but those for tests that this
    /// build lacks.
    ///
    /// A backend that is offered can be unavailable still: then opening a device says why.
    pub fn offered() -> impl Iterator<Item = Backend> {
        Backend::ALL.into_iter().filter(|backend| backend.is_built() || !backend.is_for_tests())
    }

    /// Returns the name as a user writes it, which is also the name of the cargo feature.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Returns what its devices are, in the singular and without an article: "NVIDIA GPU".
    pub fn devices(self) -> &'static str {
        self.description().devices
    }

    /// Returns what a machine must have for this backend: "an NVIDIA driver of version 525 or
    /// later".
    pub fn requirement(self) -> &'static str {
        self.description().requirement
    }

    /// Returns the precision in which kernels run if nothing else is asked for: the best of its
    /// devices.
    pub fn precision(self) -> Precision {
        self.description().precision
    }

    /// Returns `true` for a backend that is only for tests, and hidden from lists of choices.
    pub fn is_for_tests(self) -> bool {
        self == Backend::Emulated
    }

    /// Returns `true` if this build contains the backend.
    pub fn is_built(self) -> bool {
        self.description().is_built
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error of a name that no backend has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown backend `{name}`")]
pub struct UnknownBackend {
    /// The name.
    pub name: String,
}

impl UnknownBackend {
    /// Returns a line that lists the backends offered.
    pub fn hint(&self) -> String {
        let names: Vec<String> = Backend::offered().map(|backend| format!("`{backend}`")).collect();
        format!("the backends are {}", names.join(", "))
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    /// Returns the backend called `name`, in lower case.
    ///
    /// ```
    /// use ns_device::{Backend, Precision};
    /// let backend: Backend = "metal".parse()?;
    /// assert_eq!((backend.to_string().as_str(), backend.devices()), ("metal", "Apple GPU"));
    /// assert_eq!(backend.precision(), Precision::Single);
    /// assert_eq!("gpu".parse::<Backend>().unwrap_err().to_string(), "unknown backend `gpu`");
    /// # Ok::<(), ns_device::UnknownBackend>(())
    /// ```
    fn from_str(name: &str) -> Result<Backend, UnknownBackend> {
        let unknown = || UnknownBackend { name: name.to_owned() };
        Backend::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(unknown)
    }
}

/// The type of the kernels' `real`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `double`: f64.
    Double,
    /// `float`: f32. All that Metal has.
    Single,
}

impl Precision {
    /// Returns bytes of one `real`.
    pub fn bytes(self) -> usize {
        match self {
            Precision::Double => 8,
            Precision::Single => 4,
        }
    }

    /// Returns the spacing of reals at 1.
    pub fn epsilon(self) -> f64 {
        match self {
            Precision::Double => f64::EPSILON,
            Precision::Single => f64::from(f32::EPSILON),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Precision::Double => "f64",
            Precision::Single => "f32",
        })
    }
}

/// The limits of one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Lanes of a block. A kernel may allow fewer.
    pub lanes: u32,
    /// Bytes of a block's shared memory.
    pub shared_bytes: usize,
    /// Bytes of one launch's constants.
    pub constants_bytes: usize,
}

/// Bytes of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes not in use.
    pub free: u64,
    /// All bytes.
    pub total: u64,
}

/// The properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The name that its maker gives it.
    pub name: String,
    /// The precisions of its kernels, the preferred one first.
    pub precisions: Vec<Precision>,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// The compute capability of an NVIDIA GPU.
    pub compute_capability: Option<(u32, u32)>,
    /// Sums and products in double precision in a second at its highest clock; `None` for unknown
    /// kinds.
    pub double_flops: Option<u64>,
    /// Whether it is a processor with a driver of OpenCL. Such drivers may take minutes to compile
    /// the kernels.
    pub is_processor: bool,
    /// The limits of one launch.
    pub limits: DeviceLimits,
}
