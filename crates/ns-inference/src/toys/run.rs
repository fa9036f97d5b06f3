//! Long runs over toys: batches on several threads, handed over in order, so that memory does not grow with the number of toys.

use super::prefit::DevicePrefit;
use crate::accelerator::Accelerator;
use crate::monitor::Monitor;
use crate::parallel::{self, ExecutionContext};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

/// Batches of one round per thread; after a round results are handed over.
const BATCHES_PER_THREAD: usize = 8;

/// How to run. No result depends on it, but for the last digits of fits that an accelerator did.
#[derive(Clone, Copy)]
pub struct ToyRun<'a> {
    /// Threads to use.
    pub threads: NonZeroUsize,
    /// Toys that a thread takes at a time.
    pub batch: NonZeroUsize,
    /// Who watches; counts toys.
    pub monitor: &'a dyn Monitor,
    /// First toy and end of the whole, of which only a part may be asked for at a time; for the monitor.
    pub whole: Option<[u64; 2]>,
    /// Who fits many toys at a time; the host alone if nobody.
    pub accelerator: Option<&'a Accelerator>,
}

impl<'a> ToyRun<'a> {
    /// On so many threads, watched by `monitor`.
    #[must_use]
    pub fn new(threads: NonZeroUsize, monitor: &'a dyn Monitor) -> Self {
        Self { threads, batch: Self::BATCH, monitor, whole: None, accelerator: None }
    }

    /// Toys that a thread takes at a time, unless something else is wanted.
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
    /// With the last unit.
    Done,
    /// Where the receiver wanted no more.
    Enough,
    /// Cancelled by the monitor.
    Cancelled,
    /// Stopped because the accelerator failed, which knows why.
    Failed,
}

/// Counts a round's batches as units of the whole run.
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

/// What is done with each batch of toys.
pub(super) struct BatchWork<P, M, W> {
    /// Fits toys on the accelerator; returns `None` if it fails or the run is cancelled.
    pub(super) prefit: P,
    /// Makes the state of a thread.
    pub(super) make: M,
    /// Finishes a batch.
    pub(super) work: W,
}

/// `work` on every unit of `units`, whose results `sink` gets in order, many at a time.
///
/// With an accelerator, `prefit` is asked to do what it can for as many units as the accelerator takes at a time.
///
/// # Errors
/// Those of `sink`; what it was given before stays with it.
pub(super) fn in_batches<S, T, E, P, M, W>(
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
        let known = match run.accelerator.map(|accelerator| (prefit(accelerator, next..end), accelerator)) {
            None => DevicePrefit::default(),
            Some((Some(known), _)) => known,
            Some((None, accelerator)) => {
                return Ok(if accelerator.has_failed() { RunStatus::Failed } else { RunStatus::Cancelled });
            }
        };
        let n_batches = count((end - next).div_ceil(batch));
        let monitor = Rounds { inner: run.monitor, before: next - first, round: end - next, total: last - first };
        let of = |i: usize| next + i as u64 * batch..end.min(next + (i as u64 + 1) * batch);
        let execution = ExecutionContext::new(run.threads, &monitor);
        let results = parallel::map(n_batches, execution, &make, |state, i| work(state, &known, of(i)));
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
