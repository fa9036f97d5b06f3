//! Kernels one by one, on a backend of choice, with every shape checked.
//!
//! The engine calls the kernels of its processor directly; this module is for programs that build
//! something else from them. A backend that is named and not available is an error: nothing else
//! computes instead.

pub use ns_device::Backend;
use ns_device::Device;

pub use crate::cpu::backend::{CpuBackend, Heads, KernelBackend};
use crate::cpu::threads::Threads;
use crate::device::{self, DeviceBackend};
use crate::error::Error;
pub use crate::preference::BackendPreference;

/// Opens the backend that `preference` names.
///
/// ```
/// use torchless::backend::{BackendPreference, init_backend};
/// let mut backend = init_backend(BackendPreference::Cpu)?;
/// let mut x = [0.0, 0.0];
/// backend.softmax(&mut x)?;
/// assert_eq!(x, [0.5, 0.5]);
/// # Ok::<(), torchless::Error>(())
/// ```
///
/// # Errors
///
/// A device that is not there, or that computes something else than the CPU.
pub fn init_backend(preference: BackendPreference) -> Result<Box<dyn KernelBackend>, Error> {
    Ok(match open_device(preference)? {
        Some(device) => Box::new(DeviceBackend::new(device)?),
        None => Box::new(CpuBackend::new(Threads::new(0))),
    })
}

/// Opens the device that `preference` names; `None` is the processor. A device that is named and
/// cannot compute here is an error.
pub fn open_device(preference: BackendPreference) -> Result<Option<Device>, Error> {
    let Some(backend) = preference.backend() else { return Ok(None) };
    let device = device::open(backend, 0);
    device.map(Some).map_err(|error| Error::NoBackend { preference, why: error.to_string() })
}
