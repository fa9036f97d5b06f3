//! What can go wrong with a device. Absent, not built in, refused and broken are different messages.

use crate::{Backend, Precision, SelfTestFailure};
use thiserror::Error;

/// Why a device can't be had, or can't do what it was asked to.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The feature is off.
    #[error("this build has no {backend} backend")]
    NotBuilt {
        /// Which.
        backend: Backend,
    },
    /// The backend exists on other platforms only.
    #[error("{backend} devices exist on macOS only")]
    NotHere {
        /// Which.
        backend: Backend,
    },
    /// The backend is built in, its driver isn't installed.
    #[error("no NVIDIA driver was found{}", .detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default())]
    NoDriver {
        /// What the driver's library said, if there is one.
        detail: Option<String>,
    },
    /// The driver is there, the device isn't.
    #[error("{}", no_device(*backend, *index, *n_devices))]
    NoDevice {
        /// Which backend.
        backend: Backend,
        /// The number asked for.
        index: usize,
        /// How many there are.
        n_devices: usize,
    },
    /// An NVIDIA GPU from before what the kernels are compiled for.
    #[error("cuda device {index} has compute capability {}.{}, the kernels need {}.{}", .has.0, .has.1, .needs.0, .needs.1)]
    TooOld {
        /// Which device.
        index: usize,
        /// Its compute capability.
        has: (u32, u32),
        /// The least that will do.
        needs: (u32, u32),
    },
    /// The device computed something else than the host.
    #[error("{backend} device {index} is refused, for it failed its self-test: {failure}")]
    Refused {
        /// Which backend.
        backend: Backend,
        /// Which device.
        index: usize,
        /// What it got wrong.
        failure: SelfTestFailure,
    },
    /// Kernels of this precision can't run there.
    #[error("{backend} devices don't compute in {precision}")]
    NoPrecision {
        /// Which backend.
        backend: Backend,
        /// The precision asked for.
        precision: Precision,
    },
    /// More memory than the device has left.
    #[error("{asked} bytes of device memory were asked for, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes free, memory that is kept for reuse included.
        free: u64,
        /// Bytes there are.
        total: u64,
    },
    /// A module without kernels for this backend and precision.
    #[error("the kernels `{module}` were not made for {backend} in {precision}")]
    NoKernels {
        /// The module.
        module: &'static str,
        /// The device's backend.
        backend: Backend,
        /// The device's precision.
        precision: Precision,
    },
    /// The driver's compiler refused a module.
    #[error("the kernels `{module}` did not compile: {detail}\n{log}")]
    Compile {
        /// The module.
        module: &'static str,
        /// The driver's error.
        detail: String,
        /// The compiler's log.
        log: String,
    },
    /// A kernel that its module does not contain.
    #[error("there is no kernel `{kernel}` in `{module}`")]
    NoKernel {
        /// The module.
        module: &'static str,
        /// The kernel.
        kernel: &'static str,
    },
    /// A launch that asks for more than the device or the kernel allows.
    #[error("kernel `{kernel}` was launched with {asked} {limit}, {allowed} are allowed")]
    LaunchDims {
        /// The kernel.
        kernel: &'static str,
        /// What was asked for.
        limit: LaunchLimit,
        /// How much.
        asked: u64,
        /// How much may be.
        allowed: u64,
    },
    /// More or fewer arguments than the kernel takes.
    #[error("kernel `{kernel}` takes {taken} arguments, {passed} were passed")]
    ArgumentCount {
        /// The kernel.
        kernel: &'static str,
        /// Its parameters.
        taken: usize,
        /// The launch's arguments.
        passed: usize,
    },
    /// A buffer in the place of constants, or the other way round, or constants of another size.
    #[error("argument {index} of kernel `{kernel}` has {taken} bytes of constants (0: a buffer), {passed} were passed")]
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
    /// A slice outside of a buffer.
    #[error("items {start} to {end} were asked for of a buffer of {length}")]
    Range {
        /// First item.
        start: usize,
        /// One past the last item.
        end: usize,
        /// The buffer's items.
        length: usize,
    },
    /// An address of somebody else's memory that kernels cannot work in.
    #[error("the memory at {address:#x} cannot be used: {problem}")]
    ExternalBuffer {
        /// The address.
        address: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A buffer, or an event, of another device.
    #[error("what is given to a device must be its own")]
    OtherDevice,
    /// The driver refused.
    #[error("{operation} failed: {detail}")]
    Driver {
        /// What was tried.
        operation: &'static str,
        /// What the driver said.
        detail: String,
    },
    /// A kernel crashed; the device object is of no more use.
    #[error("the device stopped: {detail} (in or before kernel `{kernel}`)")]
    Poisoned {
        /// The kernel launched last.
        kernel: String,
        /// What the driver said.
        detail: String,
    },
}

fn no_device(backend: Backend, index: usize, n_devices: usize) -> String {
    match n_devices {
        0 => format!("no {backend} device was found"),
        1 => format!("no {backend} device has the number {index}; the only one has 0"),
        _ => format!("no {backend} device has the number {index}; there are 0 to {}", n_devices - 1),
    }
}

impl DeviceError {
    /// What to do about it, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            DeviceError::NotBuilt { backend } => Some(format!("rebuild with `--features {backend}`")),
            DeviceError::NotHere { .. } => Some("the backend of NVIDIA's GPUs is `cuda`".to_owned()),
            DeviceError::NoDriver { .. } => Some("`nvidia-smi` should list the GPU".to_owned()),
            DeviceError::Compile { detail, .. } if detail.contains("UNSUPPORTED_PTX_VERSION") => {
                Some("the kernels need an NVIDIA driver of version 525 or later".to_owned())
            }
            DeviceError::OutOfMemory { .. } => Some("give the device less at a time".to_owned()),
            DeviceError::Poisoned { .. } => {
                Some("start a new process: what the crash left of the device stays with this one".to_owned())
            }
            _ => None,
        }
    }
}

/// What a launch can ask too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchLimit {
    /// Blocks.
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
