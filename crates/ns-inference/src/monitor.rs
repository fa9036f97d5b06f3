//! How long work tells how far it is, and is asked to stop.

use std::fmt;

/// Watches a long computation. Its methods are called from any thread.
pub trait Monitor: Sync {
    /// Reports that `done` of `total` units are finished.
    fn progress(&self, done: usize, total: usize);

    /// Returns `true` to stop after the units that are under way; what is done is then returned as
    /// it is.
    fn is_cancelled(&self) -> bool;
}

/// A monitor that does nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoMonitor;

impl Monitor for NoMonitor {
    fn progress(&self, _: usize, _: usize) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Hands on whether to stop, and keeps to itself how far the work is: for work that is not counted
/// in the units of the whole.
#[derive(Clone, Copy)]
pub struct WithoutProgress<'a>(pub &'a dyn Monitor);

impl Monitor for WithoutProgress<'_> {
    fn progress(&self, _: usize, _: usize) {}

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl fmt::Debug for WithoutProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithoutProgress")
    }
}
