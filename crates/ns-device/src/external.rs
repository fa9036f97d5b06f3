//! Memory of a device that another library owns, such as a tensor, in which kernels work without a
//! copy.

use crate::device::DeviceState;
use crate::driver::{Handle, RawArgument};
use crate::{BufferItem, Device, DeviceError};
use std::marker::PhantomData;
use std::sync::Arc;

/// Items in memory of a device that another library owns, and frees.
#[derive(Debug)]
pub struct ExternalBuffer<T: BufferItem> {
    device: Arc<DeviceState>,
    address: Handle,
    length: usize,
    items: PhantomData<T>,
}

impl Device {
    /// Returns the `length` items at `address`. An address that is not on this device, in another
    /// context, or in too small an allocation is an error if the driver can detect it. On the
    /// emulated device, addresses are the host's and cannot be checked.
    ///
    /// # Errors
    /// An invalid address, or a device whose memory has no addresses.
    ///
    /// # Safety
    /// Until the result is dropped and the work that uses it has been waited for, `address` must
    /// stay an allocation of `length` items on this device that no other code writes, and that no
    /// other code reads while a kernel writes it.
    #[expect(unsafe_code, reason = "the caller guarantees memory of another library")]
    pub unsafe fn external_buffer<T: BufferItem>(
        &self,
        address: u64,
        length: usize,
    ) -> Result<ExternalBuffer<T>, DeviceError> {
        let shared = self.shared();
        let bytes = length.checked_mul(size_of::<T>()).filter(|bytes| address.checked_add(*bytes as u64).is_some());
        let bytes =
            bytes.ok_or(DeviceError::ExternalBuffer { address, problem: "it reaches past the end of all memory" })?;
        if address == 0 && bytes > 0 {
            return Err(DeviceError::ExternalBuffer { address, problem: "it is null" });
        }
        if !address.is_multiple_of(size_of::<T>() as u64) {
            return Err(DeviceError::ExternalBuffer { address, problem: "it is not aligned" });
        }
        if bytes > 0 {
            shared.check_external(address, bytes)?;
        }
        Ok(ExternalBuffer { device: shared, address, length, items: PhantomData })
    }

    /// Makes later work wait for the work that `stream` of another library has been given so far; 0
    /// is CUDA's default stream. On devices without streams it does nothing.
    ///
    /// # Errors
    /// The error of the driver.
    ///
    /// # Safety
    /// `stream` must be a stream of this device's context, or 0.
    #[expect(unsafe_code, reason = "the caller guarantees a stream of another library")]
    pub unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), DeviceError> {
        self.shared().wait_for_stream(stream)
    }
}

impl<T: BufferItem> ExternalBuffer<T> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if it has no items.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn raw(&self, written: bool) -> RawArgument<'static> {
        RawArgument::Buffer { handle: self.address, bytes: self.length * size_of::<T>(), written }
    }

    pub(crate) fn device_id(&self) -> usize {
        Arc::as_ptr(&self.device) as usize
    }
}
