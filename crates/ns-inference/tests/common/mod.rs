//! Work that is stopped on its way.

use ns_inference::monitor::Monitor;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks to stop after as many units, counted by how often it hears of one.
pub(crate) struct StopAfter(usize, AtomicUsize);

impl StopAfter {
    pub(crate) fn new(n: usize) -> Self {
        Self(n, AtomicUsize::new(0))
    }
}

impl Monitor for StopAfter {
    fn progress(&self, _: usize, _: usize) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}
