//! What an accelerator is: which there are, their memory, the kernels they run, and proof that they ran them.
//!
//! A client writes kernels in the dialect of `kernels/dialect.h`, describes them in a [`KernelModule`], names them by an enum that
//! implements [`Kernel`], and launches them on a [`Device`] with [`Buffer`]s. The same text runs on CUDA, on Metal, and on the
//! host, where tests emulate a device with strict rules. Nothing here knows what the numbers mean.
//!
//! ```
//! use ns_device::{Backend, Device, DeviceError};
//! # fn main() -> Result<(), DeviceError> {
//! for found in ns_device::probe() {
//!     println!("{found}"); // cuda: no NVIDIA driver was found
//! }
//! # #[cfg(feature = "emulated")] {
//! let device = Device::open(Backend::Emulated, 0)?;
//! let numbers = device.upload(&[1.0, 2.0, 3.0])?;
//! assert_eq!(numbers.download()?, [1.0, 2.0, 3.0]);
//! assert_eq!(device.counters().upload_bytes, 24);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Adding kernels
//!
//! 1. Write `kernels/fit.h` in the dialect: `KERNEL(fit)(CONSTANTS(FitLayout, layout, 0), IN(real, reals, 1), OUT(real, results,
//!    2) LANES) { ENTER(shared); … }`.
//! 2. Write `kernels/emulated.cpp`, ten lines that include it and `EXPORT(fit)`, and call `ns_device_build::Emulation` from the
//!    build script under the crate's own feature `emulated = ["ns-device/emulated", "dep:ns-device-build"]`.
//! 3. Name the module, its headers and precisions in `scripts/kernel_modules.py`, and run `make ptx`, which writes
//!    `kernels/fit.f64.ptx` to be committed; a test of this crate says when it is out of date.
//! 4. Describe it: a `static` [`KernelModule`] with the PTX, the text for Metal (the dialect and the headers, by
//!    `concat!` of `include_str!`s) and [`emulated_kernels!`]`[fit]`; and an enum that implements [`Kernel`].
//! 5. Name tests that launch it in `scripts/kernel_modules.py`, and run `make kernels-check kernels-sanitize`.
//!
//! # Features
//!
//! Backends are features: `cuda`, `metal` (macOS only) and `emulated` (tests). A build without one says so; it never takes
//! another device than the one that was asked for.

mod backend;
mod buffer;
mod counters;
mod cuda;
mod device;
mod driver;
mod emulated;
mod error;
mod external;
mod item;
mod kernel;
mod metal;
mod pool;
mod probe;
mod self_test;

pub use backend::{Backend, DeviceLimits, DeviceMemory, DeviceProperties, Precision, UnknownBackend};
pub use buffer::Buffer;
pub use counters::DeviceCounters;
pub use device::{Device, DeviceEvent, EmulationOptions, LaneSchedule, ModuleLog, OpenOptions};
pub use error::{DeviceError, LaunchLimit};
pub use external::ExternalBuffer;
pub use item::BufferItem;
pub use kernel::{
    EmulatedFunction, EmulatedKernel, EmulatedLaunch, Kernel, KernelArgument, KernelConstants, KernelModule,
    LaunchDims, WARP,
};
pub use pool::PoolStatistics;
pub use probe::{ProbedDevice, probe};
pub use self_test::SelfTestFailure;

/// Bytes of memory that this machine has in all, where the system is asked: macOS, in builds with the feature `metal`. Elsewhere none.
pub fn physical_memory() -> Option<u64> {
    metal::physical_memory()
}
