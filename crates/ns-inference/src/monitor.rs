//! How long work tells how far it is, and is asked to stop.

/// Who watches a long piece of work. Called from any thread.
pub trait Monitor: Sync {
    /// `done` of `total` units are finished.
    fn progress(&self, done: usize, total: usize);

    /// Whether to stop after the units that are under way; what is done is then returned as it is.
    fn is_cancelled(&self) -> bool;
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silent;

impl Monitor for Silent {
    fn progress(&self, _: usize, _: usize) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}
