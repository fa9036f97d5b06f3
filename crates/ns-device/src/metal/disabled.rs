//! A build or a platform without Metal: every call is an error.

use crate::driver::OpenedDevice;
use crate::{Backend, DeviceError, DeviceProperties, OpenOptions};

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    Err(absent())
}

pub(crate) fn open(_index: usize, _options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    Err(absent())
}

pub(crate) fn physical_memory() -> Option<u64> {
    None
}

fn absent() -> DeviceError {
    let backend = Backend::Metal;
    if cfg!(target_os = "macos") { DeviceError::NotBuilt { backend } } else { DeviceError::NotHere { backend } }
}
