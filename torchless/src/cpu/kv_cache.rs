//! Keys and values of one sequence in the machine's memory.

use crate::config::Config;

/// Keys and values of the positions of one sequence.
#[derive(Debug)]
pub(crate) struct CpuKvCache {
    /// Of each layer: (kv heads, capacity, D), so that a head is read as it lies in memory.
    pub(super) layers: Vec<KeysAndValues>,
    pub(super) capacity: usize,
}

/// Keys and values of one layer.
#[derive(Debug)]
pub(super) struct KeysAndValues {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

impl CpuKvCache {
    /// Returns a cache with room for `capacity` positions.
    pub(crate) fn new(config: &Config, capacity: usize) -> CpuKvCache {
        let length = capacity * config.kv_width();
        let layer = |_| KeysAndValues { keys: vec![0.0; length], values: vec![0.0; length] };
        CpuKvCache { layers: (0..config.n_layers).map(layer).collect(), capacity }
    }

    /// Returns the number of layers that it has room for.
    pub(crate) fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Returns the bytes of all layers.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| 4 * (layer.keys.len() + layer.values.len()) as u64).sum()
    }
}
