//! Keys and values of one sequence, where its engine computes: in the machine's memory, or on a device.

use crate::config::Config;
use crate::device::{MetalKVCache, MetalMemoryPool};
use crate::error::Error;
use crate::memory;

/// Keys and values of the positions that were computed so far, for one sequence.
#[derive(Debug)]
pub struct KvCache {
    /// Of each layer: (capacity, kv width). None where a device has them.
    pub(crate) layers: Vec<KeysAndValues>,
    pub(crate) on_device: Option<MetalKVCache>,
    pub(crate) length: usize,
    pub(crate) capacity: usize,
    pub(crate) width: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct KeysAndValues {
    pub(crate) keys: Vec<f32>,
    pub(crate) values: Vec<f32>,
}

impl KvCache {
    /// Room for `capacity` positions.
    ///
    /// # Errors
    ///
    /// More positions than the model's context, or more memory than there is.
    pub fn new(config: &Config, capacity: usize) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        memory::check(0, memory::estimate_kv_cache_memory(config, capacity), None)?;
        let width = config.kv_width();
        let layer = || KeysAndValues { keys: vec![0.0; capacity * width], values: vec![0.0; capacity * width] };
        let layers = (0..config.n_layers).map(|_| layer()).collect();
        Ok(KvCache { layers, on_device: None, length: 0, capacity, width })
    }

    pub(crate) fn on_device(pool: &MetalMemoryPool, config: &Config, capacity: usize) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        let on_device = Some(MetalKVCache::new(pool, config, capacity)?);
        Ok(KvCache { layers: Vec::new(), on_device, length: 0, capacity, width: config.kv_width() })
    }

    /// Positions that were computed.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was computed.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Positions that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all positions from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Bytes that it takes.
    pub fn n_bytes(&self) -> u64 {
        let here = self.layers.len() as u64 * 2 * (self.capacity * self.width) as u64 * 4;
        self.on_device.as_ref().map_or(here, MetalKVCache::n_bytes)
    }
}

fn check_context(config: &Config, positions: usize) -> Result<(), Error> {
    if positions <= config.context {
        Ok(())
    } else {
        Err(Error::ContextOverflow { asked: positions, limit: config.context })
    }
}
