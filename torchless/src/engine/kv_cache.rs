//! Keys and values of one sequence, where its engine computes: in the machine's memory, or on a device.

use crate::config::{Config, KvShape};
use crate::device::{MetalKVCache, MetalMemoryPool};
use crate::error::Error;
use crate::model::memory;

/// Keys and values of the positions that were computed so far, for one sequence.
#[derive(Debug)]
pub struct KvCache {
    /// Of each layer: (kv heads, capacity, D), so that a head is read as it lies in memory. None where a device has them.
    pub(crate) layers: Vec<KeysAndValues>,
    pub(crate) on_device: Option<MetalKVCache>,
    pub(crate) length: usize,
    pub(crate) capacity: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
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
        KvCache::within(config, capacity, None)
    }

    /// The same, beside weights within the limit that both may take.
    pub(crate) fn within(config: &Config, capacity: usize, limit: Option<(u64, u64)>) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        let cache = memory::estimate_kv_cache_memory(config, capacity);
        match limit {
            Some((weights, limit)) => memory::check(weights, cache, Some(limit))?,
            None => memory::check(0, cache, None)?,
        }
        let width = config.kv_width();
        let layer = || KeysAndValues { keys: vec![0.0; capacity * width], values: vec![0.0; capacity * width] };
        let layers = (0..config.n_layers).map(|_| layer()).collect();
        Ok(KvCache { layers, ..KvCache::empty(config, capacity) })
    }

    pub(crate) fn on_device(pool: &MetalMemoryPool, config: &Config, capacity: usize) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        let on_device = Some(MetalKVCache::new(pool, config, capacity)?);
        Ok(KvCache { on_device, ..KvCache::empty(config, capacity) })
    }

    /// Without its layers.
    fn empty(config: &Config, capacity: usize) -> KvCache {
        let &Config { n_kv_heads, head_dim, .. } = config;
        KvCache { layers: Vec::new(), on_device: None, length: 0, capacity, n_kv_heads, head_dim }
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

    /// Does `work`; if it fails, no position was added.
    pub(crate) fn attempt<T>(&mut self, work: impl FnOnce(&mut KvCache) -> Result<T, Error>) -> Result<T, Error> {
        let before = self.length;
        work(self).inspect_err(|_| self.length = before)
    }

    /// Refuses to go on for a model of other sizes, or where the keys and values are not.
    pub(crate) fn check(&self, config: &Config, is_on_device: bool) -> Result<(), Error> {
        if self.on_device.is_some() != is_on_device {
            return Err(Error::CacheElsewhere);
        }
        let layers = self.on_device.as_ref().map_or(self.layers.len(), MetalKVCache::n_layers);
        let found = KvShape { layers, heads: self.n_kv_heads, head_dim: self.head_dim };
        let needed = KvShape { layers: config.n_layers, heads: config.n_kv_heads, head_dim: config.head_dim };
        if found == needed { Ok(()) } else { Err(Error::CacheOfAnother { found, needed }) }
    }

    /// Bytes that it takes.
    pub fn n_bytes(&self) -> u64 {
        let here = self.layers.len() as u64 * 2 * (self.capacity * self.n_kv_heads * self.head_dim) as u64 * 4;
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

#[cfg(test)]
mod tests {
    use super::{Error, KvCache};

    #[test]
    fn what_fails_adds_no_position() {
        let mut cache =
            KvCache { layers: Vec::new(), on_device: None, length: 2, capacity: 9, n_kv_heads: 1, head_dim: 1 };
        let failed: Result<(), Error> = cache.attempt(|cache| {
            cache.length += 4;
            Err(Error::NoTokens)
        });
        assert!(failed.is_err() && cache.len() == 2);
        let done = cache.attempt(|cache| {
            cache.length += 4;
            Ok(cache.length)
        });
        assert_eq!(done.expect("done"), 6);
        assert_eq!(cache.len(), 6);
    }
}
