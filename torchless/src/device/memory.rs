//! Memory on a device: tensors, rows of tokens, keys and values, and the pool that all of it comes from.

use ns_device::{Buffer, Counters, Device, DeviceError, Item, PoolStatistics};

use super::launch::area;
use crate::config::Config;
use crate::error::Error;

/// Where a device's memory comes from, with statistics. Copies are the same pool.
///
/// ```
/// # #[cfg(feature = "emulated")] {
/// use torchless::device::{MetalMemoryPool, open};
/// let pool = MetalMemoryPool::new(open(ns_device::Backend::Emulated, 0)?);
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
pub struct MetalMemoryPool {
    device: Device,
}

impl MetalMemoryPool {
    /// The pool of an open device.
    pub fn new(device: Device) -> MetalMemoryPool {
        MetalMemoryPool { device }
    }

    /// Whose memory it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A tensor with a copy of `values`.
    ///
    /// # Errors
    ///
    /// Values of another number than the shape's; no memory.
    pub fn tensor(&self, shape: &[usize], values: &[f32]) -> Result<MetalTensor, Error> {
        let expected = area(shape)?;
        if values.len() != expected {
            return Err(Error::Shape { kernel: "tensor", argument: "values", length: values.len(), expected });
        }
        Ok(MetalTensor { buffer: self.device.upload(values)?, shape: shape.to_vec() })
    }

    /// A tensor of zeros.
    pub fn zeros(&self, shape: &[usize]) -> Result<MetalTensor, Error> {
        let length = area(shape)?;
        Ok(MetalTensor { buffer: self.device.zeroed(length)?, shape: shape.to_vec() })
    }

    /// Room for `rows` rows of `width` numbers, which hold garbage until a kernel writes them.
    pub fn batch(&self, rows: usize, width: usize) -> Result<MetalTensorBatch, Error> {
        let buffer = self.device.uninitialised(area(&[rows, width])?)?;
        Ok(MetalTensorBatch { buffer, rows, width })
    }

    pub(super) fn items<T: Item>(&self, items: &[T]) -> Result<Buffer<T>, Error> {
        Ok(self.device.upload(items)?)
    }

    /// How much memory is in use, kept for reuse, and was in use at most.
    pub fn statistics(&self) -> PoolStatistics {
        self.device.pool()
    }

    /// What the device was asked to do: launches, copies, waits.
    pub fn counters(&self) -> Counters {
        self.device.counters()
    }

    /// Gives memory that is kept for reuse back.
    pub fn trim(&self) {
        self.device.trim();
    }
}

/// Numbers of single precision on a device, with their shape.
#[derive(Debug)]
pub struct MetalTensor {
    pub(super) buffer: Buffer<f32>,
    shape: Vec<usize>,
}

impl MetalTensor {
    /// Its sizes, the slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Bytes of its numbers.
    pub fn n_bytes(&self) -> u64 {
        self.buffer.len() as u64 * 4
    }

    /// A copy on the host; waits for the work that was asked for.
    pub fn to_vec(&self) -> Result<Vec<f32>, Error> {
        Ok(self.buffer.download()?)
    }
}

/// Rows of one width on a device, one for each token that is computed at once.
#[derive(Debug)]
pub struct MetalTensorBatch {
    pub(super) buffer: Buffer<f32>,
    rows: usize,
    width: usize,
}

impl MetalTensorBatch {
    /// Rows that there is room for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of all rows.
    pub fn n_bytes(&self) -> u64 {
        self.buffer.len() as u64 * 4
    }

    /// Copies of the first rows on the host, as many as fill `to`; waits for the work that was asked for.
    pub fn download(&self, to: &mut [f32]) -> Result<(), DeviceError> {
        self.buffer.download_into(to)
    }
}

/// Keys and values of the positions of one sequence, on a device: for each layer two tensors (capacity, KV width).
#[derive(Debug)]
pub struct MetalKVCache {
    pub(super) layers: Vec<KeysAndValues>,
}

/// Keys and values of one layer.
#[derive(Debug)]
pub(super) struct KeysAndValues {
    pub(super) keys: MetalTensor,
    pub(super) values: MetalTensor,
}

impl MetalKVCache {
    /// Room for `capacity` positions.
    ///
    /// # Errors
    ///
    /// More memory than the device has, noticed before any of it is taken.
    pub fn new(pool: &MetalMemoryPool, config: &Config, capacity: usize) -> Result<MetalKVCache, Error> {
        pool.device.check_fits(crate::model::memory::estimate_kv_cache_memory(config, capacity))?;
        let tensor = || pool.zeros(&[capacity, config.kv_width()]);
        let layer = |_| Ok(KeysAndValues { keys: tensor()?, values: tensor()? });
        Ok(MetalKVCache { layers: (0..config.n_layers).map(layer).collect::<Result<_, Error>>()? })
    }

    /// Layers that it has room for.
    pub(crate) fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Bytes of all layers.
    pub fn n_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.keys.n_bytes() + layer.values.n_bytes()).sum()
    }
}
