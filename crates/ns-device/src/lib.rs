//! What an accelerator is: which there are, their memory, the kernels they run, and proof that they ran them.
//!
//! A client writes kernels in the dialect of `kernels/dialect.h`, describes them in a [`Module`], names them by an enum that
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
mod item;
mod kernel;
mod metal;
mod pool;
mod probe;
mod self_test;

pub use backend::{Backend, Facts, Limits, Memory, Precision};
pub use buffer::Buffer;
pub use counters::Counters;
pub use device::{Device, EmulationOptions, Event, ModuleLog, OpenOptions, Schedule};
pub use error::{DeviceError, Limit};
pub use item::Item;
pub use kernel::{Argument, Constants, EmulatedFunction, EmulatedKernel, EmulatedLaunch, Grid, Kernel, Module, WARP};
pub use pool::PoolStatistics;
pub use probe::{Found, probe};
pub use self_test::SelfTestFailure;
