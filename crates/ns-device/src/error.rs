//! The errors of devices. Absent, not built in, refused and broken are different messages.

use crate::{Backend, Precision, SelfTestFailure};
use thiserror::Error;

/// Why a device cannot be opened or used.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The feature is off.
    #[error("this build has no {backend} backend")]
    NotBuilt {
        /// The backend.
        backend: Backend,
    },
    /// The backend exists on other platforms only.
    #[error("{backend} devices exist on macOS only")]
    NotHere {
        /// The backend.
        backend: Backend,
    },
    /// The backend is built in, but its driver is not installed.
    #[error("no {} driver was found{}", maker(*backend), .detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default())]
    NoDriver {
        /// The backend.
        backend: Backend,
        /// The message of the driver's library, if any.
        detail: Option<String>,
    },
    /// There is no device with this number.
    #[error("{}", no_device(*backend, *index, *n_devices))]
    NoDevice {
        /// The backend.
        backend: Backend,
        /// The requested number.
        index: usize,
        /// The number of devices.
        n_devices: usize,
    },
    /// There are devices, none of which can be used.
    #[error("no {backend} device can be used: {reasons}")]
    NoUsableDevice {
        /// The backend.
        backend: Backend,
        /// The name of each device, and why it cannot be used.
        reasons: String,
    },
    /// An NVIDIA GPU that is older than the kernels need.
    #[error("cuda device {index} has compute capability {}.{}, the kernels need {}.{}", .has.0, .has.1, .needs.0, .needs.1)]
    TooOld {
        /// Its number.
        index: usize,
        /// Its compute capability.
        has: (u32, u32),
        /// The lowest compute capability that the kernels run on.
        needs: (u32, u32),
    },
    /// The results of the device differ from those of the host.
    #[error("{backend} device {index} failed its self-test: {failure}")]
    Refused {
        /// The backend.
        backend: Backend,
        /// Its number.
        index: usize,
        /// The failed check.
        failure: SelfTestFailure,
    },
    /// The device has no kernels of this precision.
    #[error("{backend} devices do not compute in {precision}")]
    NoPrecision {
        /// The backend.
        backend: Backend,
        /// The requested precision.
        precision: Precision,
    },
    /// This device, unlike others of its backend, does not compute in this precision.
    #[error("{backend} device {index} ({name}) does not compute in {precision}")]
    DeviceLacksPrecision {
        /// The backend.
        backend: Backend,
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
        /// The requested precision.
        precision: Precision,
    },
    /// The device has too little free memory.
    #[error("cannot allocate {asked} bytes of device memory: {free} of {total} are free")]
    OutOfMemory {
        /// Requested bytes.
        asked: u64,
        /// Free bytes, including memory that is kept for reuse.
        free: u64,
        /// Bytes in total.
        total: u64,
    },
    /// A module without kernels for this backend and precision.
    #[error("the kernels `{module}` are not compiled for {backend} in {precision}")]
    NoKernels {
        /// The module.
        module: &'static str,
        /// The device's backend.
        backend: Backend,
        /// The device's precision.
        precision: Precision,
    },
    /// The compiler of the driver rejected a module.
    #[error("the kernels `{module}` did not compile: {detail}\n{log}")]
    Compile {
        /// The module.
        module: &'static str,
        /// The driver's error.
        detail: String,
        /// The compiler's log.
        log: String,
    },
    /// A module without the kernel.
    #[error("the kernels `{module}` have no kernel `{kernel}`")]
    NoKernel {
        /// The module.
        module: &'static str,
        /// The kernel.
        kernel: &'static str,
    },
    /// A launch beyond the limits of the device or of the kernel.
    #[error("kernel `{kernel}` was launched with {asked} {limit}, {allowed} are allowed")]
    LaunchDims {
        /// The kernel.
        kernel: &'static str,
        /// The limit.
        limit: LaunchLimit,
        /// The requested number.
        asked: u64,
        /// The largest allowed number.
        allowed: u64,
    },
    /// The wrong number of arguments.
    #[error("kernel `{kernel}` takes {taken} arguments, {passed} were passed")]
    ArgumentCount {
        /// The kernel.
        kernel: &'static str,
        /// The number of its parameters.
        taken: usize,
        /// The number of arguments.
        passed: usize,
    },
    /// A buffer instead of constants, constants instead of a buffer, or constants of another size.
    #[error(
        "argument {index} of kernel `{kernel}` takes {taken} bytes of constants (0: a buffer), {passed} were passed"
    )]
    ArgumentSize {
        /// The kernel.
        kernel: &'static str,
        /// The argument, from 0.
        index: usize,
        /// Bytes of the kernel's struct; 0 for a buffer.
        taken: usize,
        /// Bytes passed.
        passed: usize,
    },
    /// A range outside of a buffer.
    #[error("items {start} to {end} are outside of a buffer of {length}")]
    Range {
        /// First item.
        start: usize,
        /// One past the last item.
        end: usize,
        /// The buffer's items.
        length: usize,
    },
    /// Memory of another library that kernels cannot use.
    #[error("the memory at {address:#x} cannot be used: {problem}")]
    ExternalBuffer {
        /// The address.
        address: u64,
        /// The reason, a clause without a subject.
        problem: &'static str,
    },
    /// A buffer, or an event, of another device.
    #[error("buffers and events must belong to the device that they are used with")]
    OtherDevice,
    /// A call of the driver failed.
    #[error("{operation} failed: {detail}")]
    Driver {
        /// What the call does.
        operation: &'static str,
        /// The message of the driver.
        detail: String,
    },
    /// A kernel crashed, and the device object cannot be used any more.
    #[error("the device stopped: {detail} (in or before kernel `{kernel}`)")]
    Poisoned {
        /// The last kernel launched.
        kernel: String,
        /// The message of the driver.
        detail: String,
    },
}

/// Returns the word for a backend's drivers.
fn maker(backend: Backend) -> &'static str {
    if backend == Backend::OpenCl { "OpenCL" } else { "NVIDIA" }
}

fn no_device(backend: Backend, index: usize, n_devices: usize) -> String {
    match n_devices {
        0 => format!("no {backend} device was found"),
        1 => format!("no {backend} device has the number {index}; the only one has 0"),
        _ => format!("no {backend} device has the number {index}; there are 0 to {}", n_devices - 1),
    }
}

impl DeviceError {
    /// Returns one line of advice, or `None`.
    pub fn hint(&self) -> Option<String> {
        match self {
            DeviceError::NotBuilt { backend: Backend::OpenCl } => Some("rebuild with `--features gpu`".to_owned()),
            DeviceError::NotBuilt { backend } => Some(format!("rebuild with `--features {backend}`")),
            DeviceError::NotHere { .. } => Some("the backend of NVIDIA's GPUs is `cuda`".to_owned()),
            DeviceError::NoDriver { backend: Backend::OpenCl, .. } => {
                Some("`clinfo` should list the device; Debian has `ocl-icd-libopencl1` and drivers".to_owned())
            }
            DeviceError::NoDriver { .. } => Some("`nvidia-smi` should list the GPU".to_owned()),
            DeviceError::NoDevice { backend: Backend::OpenCl, n_devices: 0, .. } => Some(
                "`clinfo` should list the device; on Linux the user may have to be in the group `render`".to_owned(),
            ),
            DeviceError::NoDevice { n_devices, .. } if *n_devices > 0 => {
                Some("`nextstat devices` lists them".to_owned())
            }
            DeviceError::Compile { detail, .. } if detail.contains("UNSUPPORTED_PTX_VERSION") => {
                Some("the kernels need an NVIDIA driver of version 525 or later".to_owned())
            }
            DeviceError::OutOfMemory { .. } => Some("use smaller batches".to_owned()),
            DeviceError::Poisoned { .. } => Some("start a new process: this one cannot recover the device".to_owned()),
            _ => None,
        }
    }
}

/// A limit of launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchLimit {
    /// The number of blocks.
    Blocks,
    /// Lanes of a block.
    Lanes,
    /// Lanes of a block, which come in whole warps.
    LanesOfWholeWarps,
    /// Bytes of shared memory.
    SharedBytes,
    /// Bytes of constants.
    ConstantsBytes,
}

impl std::fmt::Display for LaunchLimit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            LaunchLimit::Blocks => "blocks",
            LaunchLimit::Lanes => "lanes",
            LaunchLimit::LanesOfWholeWarps => "lanes (they come in 32s)",
            LaunchLimit::SharedBytes => "bytes of shared memory",
            LaunchLimit::ConstantsBytes => "bytes of constants",
        })
    }
}
