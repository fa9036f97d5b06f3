//! Keys and values of one sequence, where its engine computes: in the machine's memory or on a
//! device.

use crate::config::{Config, KvShape};
use crate::cpu::CpuKvCache;
use crate::device::{DeviceKvCache, DeviceMemoryPool};
use crate::error::Error;
use crate::model::memory;

/// Keys and values of the positions that were computed so far, for one sequence.
#[derive(Debug)]
pub struct KvCache {
    pub(super) storage: Storage,
    length: usize,
    capacity: usize,
    n_kv_heads: usize,
    head_dim: usize,
}

/// Where the keys and values are.
#[derive(Debug)]
pub(super) enum Storage {
    Cpu(CpuKvCache),
    Device(DeviceKvCache),
}

impl KvCache {
    /// Returns a cache in the machine's memory with room for `capacity` positions.
    ///
    /// # Errors
    ///
    /// More positions than the model's context, or more memory than is available.
    pub fn new(config: &Config, capacity: usize) -> Result<KvCache, Error> {
        KvCache::within(config, capacity, None)
    }

    /// Returns a cache as [`KvCache::new`] does, beside weights within the limit for both: the
    /// bytes of the weights and the limit.
    pub(super) fn within(config: &Config, capacity: usize, limit: Option<(u64, u64)>) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        let cache = memory::estimate_kv_cache_memory(config, capacity);
        match limit {
            Some((weights, limit)) => memory::check(weights, cache, Some(limit))?,
            None => memory::check(0, cache, None)?,
        }
        Ok(KvCache::empty(Storage::Cpu(CpuKvCache::new(config, capacity)), config, capacity))
    }

    /// Returns a cache on a device.
    pub(super) fn on_device(pool: &DeviceMemoryPool, config: &Config, capacity: usize) -> Result<KvCache, Error> {
        check_context(config, capacity)?;
        let storage = Storage::Device(DeviceKvCache::new(pool, config, capacity)?);
        Ok(KvCache::empty(storage, config, capacity))
    }

    fn empty(storage: Storage, config: &Config, capacity: usize) -> KvCache {
        let &Config { n_kv_heads, head_dim, .. } = config;
        KvCache { storage, length: 0, capacity, n_kv_heads, head_dim }
    }

    /// Returns the number of positions that were computed.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether no position was computed.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the number of positions that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all positions from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Counts `n` more positions as computed.
    pub(super) fn extend(&mut self, n: usize) {
        self.length += n;
    }

    /// Does `work`; if it fails, no position was added.
    pub(super) fn attempt<T>(&mut self, work: impl FnOnce(&mut KvCache) -> Result<T, Error>) -> Result<T, Error> {
        let before = self.length;
        work(self).inspect_err(|_| self.length = before)
    }

    /// Refuses a model of other sizes.
    pub(super) fn check(&self, config: &Config) -> Result<(), Error> {
        let layers = match &self.storage {
            Storage::Cpu(cache) => cache.n_layers(),
            Storage::Device(cache) => cache.n_layers(),
        };
        let found = KvShape { layers, heads: self.n_kv_heads, head_dim: self.head_dim };
        let needed = KvShape { layers: config.n_layers, heads: config.n_kv_heads, head_dim: config.head_dim };
        if found == needed { Ok(()) } else { Err(Error::CacheOfAnother { found, needed }) }
    }

    /// Returns the bytes that it takes.
    pub fn n_bytes(&self) -> u64 {
        match &self.storage {
            Storage::Cpu(cache) => cache.n_bytes(),
            Storage::Device(cache) => cache.n_bytes(),
        }
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
    use crate::config::{Architecture, Biases, Config, Rope, RopePairs, RopeScaling, Windows};

    #[test]
    fn failed_work_adds_no_position() {
        let rope = Rope { theta: 1e4, scaling: RopeScaling::None, pairs: RopePairs::Halves };
        let config = Config {
            architecture: Architecture::Llama,
            hidden: 2,
            n_layers: 0,
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: 2,
            intermediate: 1,
            vocabulary: 1,
            context: 9,
            epsilon: 1e-5,
            rope,
            windows: Windows::None,
            biases: Biases::default(),
            is_tied: true,
            bos: None,
            eos: Vec::new(),
        };
        let mut cache = KvCache::new(&config, 9).expect("room");
        cache.extend(2);
        let failed: Result<(), Error> = cache.attempt(|cache| {
            cache.extend(4);
            Err(Error::NoTokens)
        });
        assert!(failed.is_err() && cache.len() == 2);
        let done = cache.attempt(|cache| {
            cache.extend(4);
            Ok(cache.len())
        });
        assert_eq!(done.expect("done"), 6);
        assert_eq!(cache.len(), 6);
    }
}
