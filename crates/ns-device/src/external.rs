//! Memory of a device that another library owns, such as a tensor: kernels work in it where it is.

use crate::device::DeviceState;
use crate::driver::{Handle, RawArgument};
use crate::{BufferItem, Device, DeviceError};
use std::marker::PhantomData;
use std::sync::Arc;

/// Items in a device's memory that somebody else owns. Dropped, it is left alone.
#[derive(Debug)]
pub struct ExternalBuffer<T: BufferItem> {
    device: Arc<DeviceState>,
    address: Handle,
    length: usize,
    items: PhantomData<T>,
}

impl Device {
    /// The `length` items at `address`, held to what the driver knows of it: an address that is not this device's, in another context, or in too small an
    /// allocation is an error, where the driver can tell. On the emulated device, addresses are the host's and nothing is known of them.
    ///
    /// # Errors
    /// What is wrong with the address; devices that are not reached by address.
    ///
    /// # Safety
    /// Until it is dropped and the work that it was given to has been waited for, `address` has to stay an allocation of `length` items on this device, which nobody
    /// writes meanwhile, and which nobody reads either where a kernel writes it.
    #[expect(unsafe_code, reason = "who calls has to vouch for memory that is not ours")]
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
            return Err(DeviceError::ExternalBuffer { address, problem: "it is no address" });
        }
        if !address.is_multiple_of(size_of::<T>() as u64) {
            return Err(DeviceError::ExternalBuffer { address, problem: "it is not aligned" });
        }
        if bytes > 0 {
            shared.check_external(address, bytes)?;
        }
        Ok(ExternalBuffer { device: shared, address, length, items: PhantomData })
    }

    /// Makes the work that is asked for from now on wait for what `stream`, another library's, has been given so far; 0 is CUDA's default stream. Devices without streams
    /// have nothing to wait for.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// `stream` has to be a stream of this device's context, or 0.
    #[expect(unsafe_code, reason = "who calls has to vouch for a stream that is not ours")]
    pub unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), DeviceError> {
        self.shared().wait_for_stream(stream)
    }
}

impl<T: BufferItem> ExternalBuffer<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds nothing.
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
