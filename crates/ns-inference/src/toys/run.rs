//! Runs over many toys in batches on several threads. Results are passed on in order, so that
//! memory use does not grow with the number of toys.

use super::prefit::DevicePrefit;
use crate::accelerator::Accelerator;
use crate::monitor::Monitor;
use crate::parallel::{self, ExecutionContext};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

/// The number of batches per thread in a round. Results are passed on after each round.
const BATCHES_PER_THREAD: usize = 8;

/// How a run is executed. Results do not depend on it, except for the last digits of fits on an
/// accelerator.
#[derive(Clone, Copy)]
pub struct ToyRun<'a> {
    /// The number of threads.
    pub threads: NonZeroUsize,
    /// The number of toys that a thread takes at a time.
    pub batch: NonZeroUsize,
    /// Receives the progress in toys, and cancels the run.
    pub monitor: &'a dyn Monitor,
    /// The first toy and the end of a longer run that this run is part of, for the monitor.
    pub whole: Option<[u64; 2]>,
    /// Fits batches of toys; the host fits all toys without one.
    pub accelerator: Option<&'a Accelerator>,
}

impl<'a> ToyRun<'a> {
    /// Creates a run on `threads` threads, watched by `monitor`.
    #[must_use]
    pub fn new(threads: NonZeroUsize, monitor: &'a dyn Monitor) -> Self {
        Self { threads, batch: Self::BATCH, monitor, whole: None, accelerator: None }
    }

    /// The default number of toys that a thread takes at a time.
    pub const BATCH: NonZeroUsize = NonZeroUsize::new(16).unwrap();
}

impl std::fmt::Debug for ToyRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToyRun").field("threads", &self.threads).field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// All units are complete.
    Done,
    /// The sink stopped the run.
    Enough,
    /// The monitor cancelled the run.
    Cancelled,
    /// The accelerator failed; it keeps the error.
    Failed,
}

/// Reports the progress of a round as units of the whole run.
struct Rounds<'a> {
    inner: &'a dyn Monitor,
    before: u64,
    round: u64,
    total: u64,
}

impl Monitor for Rounds<'_> {
    fn progress(&self, done: usize, total: usize) {
        let finished = self.before + self.round * done as u64 / total.max(1) as u64;
        self.inner.progress(count(finished), count(self.total));
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The operations on a batch of toys.
pub(crate) struct BatchWork<P, M, W> {
    /// Fits toys on the accelerator; returns `None` if it fails or the run is cancelled.
    pub(crate) prefit: P,
    /// Creates the state of a thread.
    pub(crate) make: M,
    /// Completes a batch.
    pub(crate) work: W,
}

/// Applies `work` to every unit of `units`, and passes the results to `sink` in order and in
/// batches. Returns how the run ended.
///
/// With an accelerator, `prefit` is called first, for as many units as the accelerator takes at a
/// time.
///
/// # Errors
/// Those of `sink`, which keeps the results passed before.
pub(crate) fn in_batches<S, T, E, P, M, W>(
    units: Range<u64>,
    run: &ToyRun<'_>,
    BatchWork { prefit, make, work }: BatchWork<P, M, W>,
    mut sink: impl FnMut(Vec<T>) -> Result<ControlFlow<()>, E>,
) -> Result<RunStatus, E>
where
    T: Send,
    P: Fn(&Accelerator, Range<u64>) -> Option<DevicePrefit>,
    M: Fn() -> S + Sync,
    W: Fn(&mut S, &DevicePrefit, Range<u64>) -> Vec<T> + Sync,
{
    let batch = run.batch.get() as u64;
    let most = match run.accelerator {
        Some(accelerator) => accelerator.batch_size() as u64,
        None => batch * (run.threads.get() * BATCHES_PER_THREAD) as u64,
    };
    let [first, last] = run.whole.unwrap_or([units.start, units.end]);
    let mut next = units.start;
    while next < units.end {
        let end = units.end.min(next.saturating_add(most));
        let fits = match run.accelerator.map(|accelerator| (prefit(accelerator, next..end), accelerator)) {
            None => DevicePrefit::default(),
            Some((Some(fits), _)) => fits,
            Some((None, accelerator)) => {
                return Ok(if accelerator.has_failed() { RunStatus::Failed } else { RunStatus::Cancelled });
            }
        };
        let n_batches = count((end - next).div_ceil(batch));
        let monitor = Rounds { inner: run.monitor, before: next - first, round: end - next, total: last - first };
        let of = |i: usize| next + i as u64 * batch..end.min(next + (i as u64 + 1) * batch);
        let execution = ExecutionContext::new(run.threads, &monitor);
        let results = parallel::map(n_batches, execution, &make, |state, i| work(state, &fits, of(i)));
        let n_results = results.len();
        let finished: Vec<Vec<T>> = results.into_iter().map_while(|batch| batch).collect();
        let is_whole = finished.len() == n_results;
        if sink(finished.into_iter().flatten().collect())?.is_break() {
            return Ok(RunStatus::Enough);
        }
        if !is_whole {
            return Ok(RunStatus::Cancelled);
        }
        next = end;
    }
    Ok(RunStatus::Done)
}
