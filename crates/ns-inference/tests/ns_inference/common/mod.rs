//! A monitor that cancels a run, shared by several tests.

pub(crate) mod on_off;

use ns_inference::monitor::Monitor;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cancels a run after this many progress reports.
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
