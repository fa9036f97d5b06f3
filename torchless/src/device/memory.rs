//! Memory on a device: tensors, batches of tokens, keys and values, and the pool that all of it
//! comes from.

use ns_device::{Buffer, BufferItem, Device, DeviceCounters, DeviceError, PoolStatistics};

use super::launch::area;
use crate::config::Config;
use crate::error::Error;

/// The pool that a device's memory is taken from, with statistics. Clones share it.
///
/// ```
/// # #[cfg(feature = "emulated")] {
/// use torchless::device::{DeviceMemoryPool, open};
/// let pool = DeviceMemoryPool::new(open(ns_device::Backend::Emulated, 0)?);
/// let tensor = pool.tensor(&[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(tensor.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(pool.statistics().in_use_bytes, 256);
/// drop(tensor);
/// assert_eq!((pool.statistics().in_use_bytes, pool.statistics().pooled_bytes), (0, 256));
/// assert!(pool.tensor(&[usize::MAX, 2], &[]).is_err());
/// # }
/// # Ok::<(), torchless::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DeviceMemoryPool {
    device: Device,
}

impl DeviceMemoryPool {
    /// Returns the pool of an open device.
    pub fn new(device: Device) -> DeviceMemoryPool {
        DeviceMemoryPool { device }
    }

    /// Returns the device whose memory it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns a tensor with a copy of `values`.
    ///
    /// # Errors
    ///
    /// A count of values that is not the shape's; no memory.
    pub fn tensor(&self, shape: &[usize], values: &[f32]) -> Result<DeviceTensor, Error> {
        let expected = area(shape)?;
        if values.len() != expected {
            return Err(Error::Shape { kernel: "tensor", argument: "values", length: values.len(), expected });
        }
        Ok(DeviceTensor { buffer: self.device.upload(values)?, shape: shape.to_vec() })
    }

    /// Returns a tensor of zeros.
    pub fn zeros(&self, shape: &[usize]) -> Result<DeviceTensor, Error> {
        let length = area(shape)?;
        Ok(DeviceTensor { buffer: self.device.zeroed(length)?, shape: shape.to_vec() })
    }

    /// Returns room for `n_batch` tokens of `width` numbers each, which are undefined until a
    /// kernel writes them.
    pub fn batch(&self, n_batch: usize, width: usize) -> Result<DeviceTensorBatch, Error> {
        let buffer = self.device.uninitialised(area(&[n_batch, width])?)?;
        Ok(DeviceTensorBatch { buffer, n_batch, width })
    }

    pub(super) fn items<T: BufferItem>(&self, items: &[T]) -> Result<Buffer<T>, Error> {
        Ok(self.device.upload(items)?)
    }

    /// Returns how much memory is in use, is kept for reuse, and was in use at most.
    pub fn statistics(&self) -> PoolStatistics {
        self.device.pool()
    }

    /// Returns what the device was asked to do: launches, copies, waits.
    pub fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }

    /// Gives memory that is kept for reuse back to the device.
    pub fn trim(&self) {
        self.device.trim();
    }
}

/// Numbers of single precision on a device, with their shape.
#[derive(Debug)]
pub struct DeviceTensor {
    pub(super) buffer: Buffer<f32>,
    shape: Vec<usize>,
}

impl DeviceTensor {
    /// Returns its sizes, the slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the bytes of its numbers.
    pub fn n_bytes(&self) -> u64 {
        self.buffer.len() as u64 * 4
    }

    /// Returns a copy on the host; waits for the work that was asked for.
    pub fn to_vec(&self) -> Result<Vec<f32>, Error> {
        Ok(self.buffer.download()?)
    }
}

/// Numbers of the tokens that are computed at once, on a device: (tokens, width).
#[derive(Debug)]
pub struct DeviceTensorBatch {
    pub(super) buffer: Buffer<f32>,
    n_batch: usize,
    width: usize,
}

impl DeviceTensorBatch {
    /// Returns the number of tokens that there is room for.
    pub fn n_batch(&self) -> usize {
        self.n_batch
    }

    /// Returns how many numbers a token has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the bytes of all tokens.
    pub fn n_bytes(&self) -> u64 {
        self.buffer.len() as u64 * 4
    }

    /// Copies the numbers of the first tokens to the host, as many as fill `to`; waits for the work
    /// that was asked for.
    pub fn download(&self, to: &mut [f32]) -> Result<(), DeviceError> {
        self.buffer.download_into(to)
    }
}

/// Keys and values of the positions of one sequence, on a device: for each layer two tensors
/// (capacity, KV width).
#[derive(Debug)]
pub struct DeviceKvCache {
    pub(super) layers: Vec<KeysAndValues>,
}

/// Keys and values of one layer.
#[derive(Debug)]
pub(super) struct KeysAndValues {
    pub(super) keys: DeviceTensor,
    pub(super) values: DeviceTensor,
}

impl DeviceKvCache {
    /// Returns a cache with room for `capacity` positions.
    ///
    /// # Errors
    ///
    /// More memory than the device has, noticed before any of it is taken.
    pub fn new(pool: &DeviceMemoryPool, config: &Config, capacity: usize) -> Result<DeviceKvCache, Error> {
        pool.device.check_fits(crate::model::memory::estimate_kv_cache_memory(config, capacity))?;
        let tensor = || pool.zeros(&[capacity, config.kv_width()]);
        let layer = |_| Ok(KeysAndValues { keys: tensor()?, values: tensor()? });
        Ok(DeviceKvCache { layers: (0..config.n_layers).map(layer).collect::<Result<_, Error>>()? })
    }

    /// Returns the number of layers that it has room for.
    pub(crate) fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Returns the bytes of all layers.
    pub fn n_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.keys.n_bytes() + layer.values.n_bytes()).sum()
    }
}
