//! Keeps device memory for reuse, in classes of sizes, and counts where it is.
//!
//! There are 4 classes per power of two, from 256 bytes on, so that a block wastes at most a fifth
//! of its size. A dropped block returns to its class; an allocation takes one from there (a hit) or
//! from the driver (a miss). A device works in one order, so a block can be reused before the
//! kernel that used it has ended.

use crate::driver::Handle;
use std::collections::BTreeMap;

/// The memory of a device by its use, in bytes of whole blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Allocated from the driver: in use and pooled.
    pub total_bytes: u64,
    /// In live buffers.
    pub in_use_bytes: u64,
    /// Kept for reuse.
    pub pooled_bytes: u64,
    /// The largest use at one time.
    pub high_water_bytes: u64,
    /// Allocations met from the pool.
    pub hits: u64,
    /// Allocations met by the driver.
    pub misses: u64,
}

/// Blocks by class, free ones only: those in use are in their buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<Handle>>,
    statistics: PoolStatistics,
}

/// Returns the size of the block that holds `bytes`.
pub(crate) fn class_of(bytes: usize) -> usize {
    let bytes = bytes.max(256);
    let step = (bytes.next_power_of_two() / 8).max(64);
    bytes.next_multiple_of(step)
}

impl Pool {
    /// Takes a block of this class, or `None`.
    pub(crate) fn take(&mut self, class: usize) -> Option<Handle> {
        let handle = self.free.get_mut(&class)?.pop()?;
        self.statistics.hits += 1;
        self.statistics.pooled_bytes -= class as u64;
        self.used(class);
        Some(handle)
    }

    /// Counts a block from the driver.
    pub(crate) fn add(&mut self, class: usize) {
        self.statistics.misses += 1;
        self.statistics.total_bytes += class as u64;
        self.used(class);
    }

    fn used(&mut self, class: usize) {
        self.statistics.in_use_bytes += class as u64;
        self.statistics.high_water_bytes = self.statistics.high_water_bytes.max(self.statistics.in_use_bytes);
    }

    /// Takes a block back.
    pub(crate) fn give(&mut self, class: usize, handle: Handle) {
        self.statistics.in_use_bytes -= class as u64;
        self.statistics.pooled_bytes += class as u64;
        self.free.entry(class).or_default().push(handle);
    }

    /// Removes all free blocks, for the driver to free.
    pub(crate) fn drain(&mut self) -> Vec<(usize, Handle)> {
        self.statistics.total_bytes -= self.statistics.pooled_bytes;
        self.statistics.pooled_bytes = 0;
        let classes = std::mem::take(&mut self.free);
        classes
            .into_iter()
            .flat_map(|(class, handles)| handles.into_iter().map(move |handle| (class, handle)))
            .collect()
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_its_bytes_and_wastes_a_fifth_at_most() {
        for bytes in (1..20_000).chain([1 << 30, (1 << 30) + 1, 3_000_000_000]) {
            let class = class_of(bytes);
            assert!(class >= bytes, "{bytes} in {class}");
            assert_eq!(class_of(class), class);
            assert!(bytes < 256 || (class - bytes) as f64 <= 0.2 * class as f64, "{bytes} in {class}");
        }
    }
}
