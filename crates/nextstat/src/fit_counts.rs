//! How the fits of many data sets ended.

use ns_inference::toys::RunStatus;
use ns_translate::toys::ToyFitStatus;
use serde_json::{Map, Value, json};

/// Counts of fits by their status, and how the run ended.
#[derive(Debug, Clone)]
pub(crate) struct FitCounts {
    pub(crate) n_wanted: u64,
    by_status: [u64; ToyFitStatus::ALL.len()],
    pub(crate) ended: RunStatus,
}

impl FitCounts {
    /// Starts the counts of a run of `n_wanted` fits.
    pub(crate) fn new(n_wanted: u64) -> Self {
        Self { n_wanted, by_status: [0; ToyFitStatus::ALL.len()], ended: RunStatus::Done }
    }

    pub(crate) fn add(&mut self, status: ToyFitStatus) {
        self.by_status[usize::from(status.code())] += 1;
    }

    pub(crate) fn n_done(&self) -> u64 {
        self.by_status.iter().sum()
    }

    pub(crate) fn n_converged(&self) -> u64 {
        self.by_status[0]
    }

    pub(crate) fn n_failed(&self) -> u64 {
        self.n_done() - self.n_converged()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.n_done() >= self.n_wanted
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.ended == RunStatus::Cancelled
    }

    /// Returns the number of fits that failed by the reason, for each that occurred.
    pub(crate) fn failures(&self) -> Value {
        let failed = ToyFitStatus::ALL.into_iter().zip(self.by_status).skip(1).filter(|(_, n)| *n > 0);
        Value::Object(failed.map(|(status, n)| (status.as_str().to_owned(), json!(n))).collect::<Map<_, _>>())
    }

    /// Returns the warning about a run that stopped early; `things` are what is fitted.
    pub(crate) fn interrupted(&self, things: &str) -> Option<String> {
        let (n_done, n_wanted) = (self.n_done(), self.n_wanted);
        (!self.is_complete()).then(|| format!("interrupted after {n_done} of {n_wanted} {things}"))
    }
}
