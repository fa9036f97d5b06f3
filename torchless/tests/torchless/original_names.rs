//! The names of the original interface, which served Metal alone, still exist.

use std::any::TypeId;

use torchless::device::*;

/// Asserts that a name is an alias of a type.
macro_rules! alias {
    ($name:ty, $of:ty) => {
        assert_eq!(TypeId::of::<$name>(), TypeId::of::<$of>(), stringify!($name));
    };
}

#[test]
fn the_original_names_are_aliases_of_the_device_types() {
    alias!(MetalBackend, DeviceBackend);
    alias!(MetalTensor, DeviceTensor);
    alias!(MetalTensorBatch, DeviceTensorBatch);
    alias!(MetalKVCache, DeviceKvCache);
    alias!(MetalMemoryPool, DeviceMemoryPool);
    alias!(MetalMemoryPoolStats, ns_device::PoolStatistics);
}

#[test]
fn the_memory_of_weights_and_of_a_cache_is_estimated() {
    use torchless::config::{Architecture, Biases, Config, Rope, RopePairs, RopeScaling, Windows};
    use torchless::memory::{estimate_kv_cache_memory, estimate_model_memory};
    let rope = Rope { theta: 1e4, scaling: RopeScaling::None, pairs: RopePairs::Halves };
    let config = Config {
        architecture: Architecture::Llama,
        hidden: 64,
        n_layers: 2,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 16,
        intermediate: 192,
        vocabulary: 512,
        context: 256,
        epsilon: 1e-5,
        windows: Windows::None,
        biases: Biases::default(),
        rope,
        is_tied: false,
        bos: None,
        eos: Vec::new(),
    };
    // Queries, output, keys, values; gate, up, down; the embedding and the head.
    let layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 192;
    assert_eq!(estimate_model_memory(&config, 2.0), 2 * (2 * layer + 2 * 64 * 512));
    assert_eq!(estimate_kv_cache_memory(&config, 100), 2 * 2 * 2 * 16 * 4 * 100);
}
