//! A build without OpenCL: every call is an error.

use crate::driver::OpenedDevice;
use crate::{Backend, DeviceError, DeviceProperties, OpenOptions};

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    Err(DeviceError::NotBuilt { backend: Backend::OpenCl })
}

pub(crate) fn open(_index: usize, _options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    Err(DeviceError::NotBuilt { backend: Backend::OpenCl })
}
