//! Independent units of work on several threads, with results that do not depend on how many.

use crate::accelerator::BatchFitter;
use crate::monitor::{Monitor, NoMonitor};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns as many threads as the machine runs at once.
#[must_use]
pub fn all_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Threads, monitor and accelerator of a long computation.
#[derive(Clone, Copy)]
pub struct ExecutionContext<'a> {
    /// Threads to use at most.
    pub threads: NonZeroUsize,
    /// Told how far the work is; may stop it.
    pub monitor: &'a dyn Monitor,
    /// Finds many minima at a time, from which the fits start.
    pub batch_fitter: Option<BatchFitter<'a>>,
}

impl ExecutionContext<'_> {
    /// One thread without a monitor.
    pub const SINGLE_THREADED: ExecutionContext<'static> = ExecutionContext::with_threads(NonZeroUsize::MIN);

    /// Returns a context of `threads` threads, watched by `monitor`.
    #[must_use]
    pub fn new(threads: NonZeroUsize, monitor: &dyn Monitor) -> ExecutionContext<'_> {
        ExecutionContext { threads, monitor, batch_fitter: None }
    }

    /// Returns a context of `threads` threads without a monitor.
    #[must_use]
    pub const fn with_threads(threads: NonZeroUsize) -> ExecutionContext<'static> {
        ExecutionContext { threads, monitor: &NoMonitor, batch_fitter: None }
    }
}

impl std::fmt::Debug for ExecutionContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutionContext").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// One of several parts of a procedure, which are done apart and joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPart {
    /// Its number, from 0.
    pub index: usize,
    /// How many parts there are.
    pub n_parts: usize,
}

impl WorkPart {
    /// Returns the share of this part of `n` units of work.
    #[must_use]
    pub fn of(self, n: usize) -> Range<usize> {
        self.index * n / self.n_parts..(self.index + 1) * n / self.n_parts
    }
}

/// Calls `work` on each of `0..n` and returns its results, in order; `None` for units that a
/// cancelled run left undone.
///
/// Each thread makes a state of its own with `make` and keeps it from unit to unit. For the result
/// to be the same for any number of threads, `work` must not let anything that matters pass from
/// one unit to the next through that state.
pub fn map<S, T: Send>(
    n: usize,
    ExecutionContext { threads, monitor, .. }: ExecutionContext<'_>,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<Option<T>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..n).map(|_| None).collect());
    let run = || {
        let mut state = make();
        while !monitor.is_cancelled() {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                break;
            }
            let result = work(&mut state, i);
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[i] = Some(result);
            monitor.progress(done.fetch_add(1, Ordering::Relaxed) + 1, n);
        }
    };
    on_threads(threads.get().min(n), run);
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs `work` on `n_threads` threads at once, this one included; on fewer where the system grants
/// no more.
pub fn on_threads(n_threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            if std::thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Runs every job, each on a thread of its own as long as the system grants threads.
pub fn run_all(jobs: Vec<impl FnOnce() + Send>) {
    let n_jobs = jobs.len();
    let queue = Mutex::new(jobs.into_iter());
    let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    on_threads(n_jobs, || {
        while let Some(job) = next() {
            job();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        let squares: Vec<Option<usize>> = (0..100).map(|i| Some(i * i)).collect();
        for threads in [1, 2, 7, 200] {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            assert_eq!(map(100, ExecutionContext::with_threads(threads), || (), |(), i| i * i), squares);
        }
    }

    #[test]
    fn every_job_is_run_once() {
        let done: Vec<AtomicUsize> = (0..20).map(|_| AtomicUsize::new(0)).collect();
        let job = |counter| {
            move || {
                AtomicUsize::fetch_add(counter, 1, Ordering::Relaxed);
            }
        };
        run_all(done.iter().map(job).collect());
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }

    /// Stops as soon as five units are done.
    struct AfterFive(AtomicBool);

    impl Monitor for AfterFive {
        fn progress(&self, done: usize, _: usize) {
            if done >= 5 {
                self.0.store(true, Ordering::Relaxed);
            }
        }

        fn is_cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_cancelled_run_returns_what_is_done() {
        let monitor = AfterFive(AtomicBool::new(false));
        let results =
            map(100, ExecutionContext { monitor: &monitor, ..ExecutionContext::SINGLE_THREADED }, || (), |(), i| i);
        assert_eq!(results.iter().flatten().count(), 5);
        assert_eq!(results[4], Some(4));
    }
}
