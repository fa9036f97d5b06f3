//! Buffers of numbers in the precision of a device, to which doubles are rounded.

use ns_device::{Buffer, Device, DeviceError, KernelArgument, Precision};

/// A buffer in the precision of its device.
#[derive(Debug)]
pub(crate) enum RealBuffer {
    Double(Buffer<f64>),
    Single(Buffer<f32>),
}

impl RealBuffer {
    pub(crate) fn upload(device: &Device, numbers: &[f64]) -> Result<Self, DeviceError> {
        Ok(match device.precision() {
            Precision::Double => Self::Double(device.upload(numbers)?),
            Precision::Single => Self::Single(device.upload(&rounded(numbers))?),
        })
    }

    /// Allocates memory that a kernel writes before it reads it.
    pub(crate) fn uninitialised(device: &Device, len: usize) -> Result<Self, DeviceError> {
        Ok(match device.precision() {
            Precision::Double => Self::Double(device.uninitialised(len)?),
            Precision::Single => Self::Single(device.uninitialised(len)?),
        })
    }

    pub(crate) fn download(&self) -> Result<Vec<f64>, DeviceError> {
        match self {
            Self::Double(buffer) => buffer.download(),
            Self::Single(buffer) => Ok(buffer.download()?.into_iter().map(f64::from).collect()),
        }
    }

    pub(crate) fn read(&self) -> KernelArgument<'_> {
        match self {
            Self::Double(buffer) => KernelArgument::read(buffer),
            Self::Single(buffer) => KernelArgument::read(buffer),
        }
    }

    pub(crate) fn write(&mut self) -> KernelArgument<'_> {
        match self {
            Self::Double(buffer) => KernelArgument::write(buffer),
            Self::Single(buffer) => KernelArgument::write(buffer),
        }
    }
}

fn rounded(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}
