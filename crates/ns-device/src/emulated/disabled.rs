//! A build without the emulation: says so.

use crate::driver::Opened;
use crate::{Backend, DeviceError, Facts, OpenOptions};

pub(crate) fn found() -> Result<Vec<Facts>, DeviceError> {
    Err(DeviceError::NotBuilt { backend: Backend::Emulated })
}

pub(crate) fn open(_index: usize, _options: &OpenOptions) -> Result<Opened, DeviceError> {
    Err(DeviceError::NotBuilt { backend: Backend::Emulated })
}
