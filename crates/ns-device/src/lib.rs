//! Accelerators: which there are, their memory, the kernels that they run, and a self-test before
//! use.
//!
//! A client writes kernels once, in the dialect of `kernels/dialect.h`, describes them in a
//! [`KernelModule`], names them by an enum that implements [`Kernel`], and launches them on a
//! [`Device`] with [`Buffer`]s. The same text runs on CUDA, on Metal, on OpenCL, and on the host,
//! where tests emulate a device that enforces the rules of the dialect. The obvious alternatives
//! are one library per vendor, which would mean writing every kernel several times, or a portable
//! layer such as WebGPU, which has no double precision. This crate is small because it knows
//! nothing of the meaning of the numbers.
//!
//! ```
//! use ns_device::{Backend, Device, DeviceError};
//! # fn main() -> Result<(), DeviceError> {
//! for device in ns_device::probe() {
//!     println!("{device}"); // cuda: no NVIDIA driver was found
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
//! # Types
//!
//! * Devices: [`Backend`] (the only list of backends), [`DeviceName`] (one of its devices),
//!   [`probe()`] and [`ProbedDevice`] (what exists), [`Device`], [`DeviceProperties`],
//!   [`OpenOptions`].
//! * Memory: [`Buffer`] (returns to a pool when dropped), [`ExternalBuffer`] (owned by another
//!   library).
//! * Kernels: [`KernelModule`], [`Kernel`], [`KernelArgument`], [`KernelConstants`],
//!   [`LaunchDims`].
//! * Evidence: [`DeviceCounters`] (that the device computed), [`DeviceError`], [`SelfTestFailure`].
//!
//! # Adding kernels
//!
//! 1. Write `kernels/fit.h` in the dialect: `KERNEL(fit)(CONSTANTS(FitLayout, layout, 0), IN(real,
//!    reals, 1), OUT(real, results, 2) LANES) { ENTER(shared); … }`.
//! 2. Write `kernels/emulated.cpp`, ten lines that include it and `EXPORT(fit)`, and call
//!    `ns_device_build::Emulation` from the build script under the crate's own feature
//!    `emulated = ["ns-device/emulated", "dep:ns-device-build"]`.
//! 3. Name the module, its headers and precisions in `scripts/kernel_modules.py`, and run `make
//!    ptx`, which writes `kernels/fit.f64.ptx` to be committed; a test of this crate fails when it
//!    is out of date.
//! 4. Describe it: a `static` [`KernelModule`] with the PTX, the text for Metal (the dialect and
//!    the headers, by `concat!` of `include_str!`s) and [`emulated_kernels!`]`[fit]`; and an enum
//!    that implements [`Kernel`].
//! 5. Name tests that launch it in `scripts/kernel_modules.py`, and run
//!    `make kernels-check kernels-sanitize`.
//!
//! # Adding a backend
//!
//! 1. Add a variant to [`Backend`], with its name, devices, requirement and precision. Programs
//!    derive their options from [`Backend::offered`].
//! 2. Write a module with `enabled.rs` and `disabled.rs`, which have the same functions: `found`
//!    lists devices, `open` returns one with its driver. The matches over `Backend` in `device.rs`
//!    and `probe.rs` name them.
//! 3. Add a branch to the dialect. A backend that compiles kernels at run time takes
//!    [`KernelModule::source`]; another form of kernels is a new field there.
//! 4. Add its cargo feature to `gpu`, which other crates forward.
//!
//! # Features
//!
//! Backends are features: `cuda`, `metal` (macOS only), `opencl` and `emulated` (tests). A build
//! without a backend reports that, and never uses another device than the requested one.

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
mod name;
mod opencl;
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
pub use name::{DeviceName, DeviceNameError};
pub use pool::PoolStatistics;
pub use probe::{ProbedDevice, probe};
pub use self_test::SelfTestFailure;

/// Returns the bytes of memory of this machine on macOS, in builds with the feature `metal`;
/// elsewhere `None`.
pub fn physical_memory() -> Option<u64> {
    metal::physical_memory()
}
