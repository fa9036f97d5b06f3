//! How much memory a model needs, before any of it is taken.

use crate::config::Config;
use crate::error::Error;

/// Returns the bytes of the keys and values of `positions` positions, in single precision.
///
/// ```
/// # use torchless::config::*;
/// # let config = Config { architecture: Architecture::Llama, hidden: 64, n_layers: 2, n_heads: 4, n_kv_heads: 2, head_dim: 16,
/// #     intermediate: 192, vocabulary: 512, context: 256, epsilon: 1e-5, windows: Windows::None, biases: Biases::default(),
/// #     rope: Rope { theta: 1e4, scaling: RopeScaling::None, pairs: RopePairs::Halves }, is_tied: false, bos: None, eos: vec![] };
/// // two layers, keys and values, two heads of 16 numbers
/// assert_eq!(torchless::memory::estimate_kv_cache_memory(&config, 100), 2 * 2 * 2 * 16 * 4 * 100);
/// ```
pub fn estimate_kv_cache_memory(config: &Config, positions: usize) -> u64 {
    // A file can claim any sizes, and its tensors have not been looked at yet.
    let sizes = [config.n_layers, 2, config.n_kv_heads, config.head_dim, 4, positions];
    sizes.iter().fold(1_u64, |bytes, &size| bytes.saturating_mul(size as u64))
}

/// Returns the bytes of a model's weights if all of them take `bytes_per_weight`, without norms and
/// biases.
pub fn estimate_model_memory(config: &Config, bytes_per_weight: f64) -> u64 {
    let hidden = config.hidden as f64;
    let attention = 2.0 * hidden * (config.query_width() as f64 + config.kv_width() as f64);
    let layer = attention + 3.0 * hidden * config.intermediate as f64;
    let ends = if config.is_tied { 1.0 } else { 2.0 } * hidden * config.vocabulary as f64;
    ((config.n_layers as f64 * layer + ends) * bytes_per_weight) as u64
}

/// Returns the bytes of memory that are available on this machine, if the system reports it.
pub fn available_memory() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemAvailable:")
}

/// Returns the limit of a model's memory if none is given: the bytes that are available or, on a
/// system that does not report that, all that the machine has. None if the system reports neither.
pub fn memory_of_machine() -> Option<u64> {
    available_memory().or_else(ns_device::physical_memory)
}

/// Returns the peak of this process's memory in bytes, mapped files included, if the system reports
/// it.
pub fn peak_memory() -> Option<u64> {
    kibibytes("/proc/self/status", "VmHWM:")
}

/// Returns the number after `name` in a file of the system.
fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses more than `limit`, or than the machine has if no limit is given.
pub(crate) fn check(weights: u64, cache: u64, limit: Option<u64>) -> Result<(), Error> {
    let Some(available) = limit.or_else(memory_of_machine) else { return Ok(()) };
    let needed = weights.saturating_add(cache);
    if needed <= available { Ok(()) } else { Err(Error::Memory { needed, weights, cache, available }) }
}
