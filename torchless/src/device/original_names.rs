//! The names that the interface had when it served Metal alone: aliases, for programs that use
//! them.

/// The original name of [`DeviceBackend`](super::DeviceBackend).
pub type MetalBackend = super::DeviceBackend;
/// The original name of [`DeviceTensor`](super::DeviceTensor).
pub type MetalTensor = super::DeviceTensor;
/// The original name of [`DeviceTensorBatch`](super::DeviceTensorBatch).
pub type MetalTensorBatch = super::DeviceTensorBatch;
/// The original name of [`DeviceKvCache`](super::DeviceKvCache).
pub type MetalKVCache = super::DeviceKvCache;
/// The original name of [`DeviceMemoryPool`](super::DeviceMemoryPool).
pub type MetalMemoryPool = super::DeviceMemoryPool;
/// The original name of [`PoolStatistics`](ns_device::PoolStatistics).
pub type MetalMemoryPoolStats = ns_device::PoolStatistics;
