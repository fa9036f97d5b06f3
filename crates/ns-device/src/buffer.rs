//! Typed device memory, which returns to the pool of its device when dropped.

use crate::device::DeviceState;
use crate::driver::{Handle, RawArgument};
use crate::{BufferItem, DeviceError, item};
use std::marker::PhantomData;
use std::sync::Arc;

/// Items in a device's memory.
#[derive(Debug)]
pub struct Buffer<T: BufferItem> {
    device: Arc<DeviceState>,
    block: Handle,
    class: usize,
    length: usize,
    items: PhantomData<T>,
}

impl<T: BufferItem> Buffer<T> {
    pub(crate) fn new(device: Arc<DeviceState>, block: Handle, class: usize, length: usize) -> Buffer<T> {
        Buffer { device, block, class, length, items: PhantomData }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if it has no items.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Overwrites items from `start` on.
    pub fn upload_at(&mut self, start: usize, from: &[T]) -> Result<(), DeviceError> {
        self.in_range(start, from.len())?;
        self.device.upload(item::bytes_of(from), self.block, start * size_of::<T>())
    }

    /// Overwrites the first items.
    pub fn upload(&mut self, from: &[T]) -> Result<(), DeviceError> {
        self.upload_at(0, from)
    }

    /// Sets every item to zero.
    pub fn clear(&mut self) -> Result<(), DeviceError> {
        self.device.zero(self.block, self.length * size_of::<T>())
    }

    /// Copies items from `start` on into all of `to`, after the work submitted so far.
    pub fn download_at(&self, start: usize, to: &mut [T]) -> Result<(), DeviceError> {
        self.in_range(start, to.len())?;
        self.device.download(self.block, start * size_of::<T>(), item::bytes_of_mut(to))
    }

    /// Copies the first items into all of `to`.
    pub fn download_into(&self, to: &mut [T]) -> Result<(), DeviceError> {
        self.download_at(0, to)
    }

    /// Copies all items.
    pub fn download(&self) -> Result<Vec<T>, DeviceError> {
        let mut items = vec![T::default(); self.length];
        self.download_into(&mut items)?;
        Ok(items)
    }

    pub(crate) fn raw(&self, written: bool) -> RawArgument<'static> {
        RawArgument::Buffer { handle: self.block, bytes: self.length * size_of::<T>(), written }
    }

    pub(crate) fn device_id(&self) -> usize {
        Arc::as_ptr(&self.device) as usize
    }

    fn in_range(&self, start: usize, n: usize) -> Result<(), DeviceError> {
        let end = start.saturating_add(n);
        if end <= self.length { Ok(()) } else { Err(DeviceError::Range { start, end, length: self.length }) }
    }
}

impl<T: BufferItem> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.device.release(self.block, self.class);
    }
}
