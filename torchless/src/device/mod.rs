//! Transformers on an accelerator: one kernel text for CUDA, Metal, OpenCL and the emulation on the
//! host, in single precision on all of them.
//!
//! [`DeviceBackend`] has the kernels one by one; the engine keeps weights, keys and values on the
//! device, and only token ids and logits cross.

mod backend;
mod engine;
mod kernels;
mod launch;
pub(crate) mod layout;
mod memory;
mod original_names;
mod self_test;
mod weights;

pub use backend::DeviceBackend;
pub(crate) use engine::{DeviceCache, DeviceEngine};
pub(crate) use kernels::text_of;
pub use memory::{DeviceKvCache, DeviceMemoryPool, DeviceTensor, DeviceTensorBatch};
pub use original_names::*;
pub use self_test::self_test;
pub(crate) use self_test::{Failure, Verdicts, differs, numbers};
pub use weights::{DeviceMemory, estimate_device_memory};

use ns_device::{Backend, Device, DeviceError, OpenOptions, Precision};

use crate::error::Error;

/// Opens a device for transformers: in single precision, and after its kernels have been compared
/// with the CPU's, once in a process.
///
/// # Errors
///
/// A device that is not there, is broken, or computes something else than the CPU.
pub fn open(backend: Backend, index: usize) -> Result<Device, Error> {
    let device = open_untested(backend, index)?;
    self_test::once(&device)?;
    Ok(device)
}

/// Opens a device whose kernels for transformers are not compared with the CPU's.
pub(crate) fn open_untested(backend: Backend, index: usize) -> Result<Device, DeviceError> {
    let options = OpenOptions { precision: Some(Precision::Single), ..OpenOptions::default() };
    Device::open_with(backend, index, &options)
}
