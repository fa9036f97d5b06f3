//! Long work on a thread of its own, so that Ctrl-C and progress callbacks reach the caller's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nextstat::Analysis;
use ns_compute::CpuLikelihood;
use ns_inference::monitor::Monitor;
use pyo3::prelude::*;

use crate::error;
use crate::interrupt::{Interruptible, Watch};

/// How often the interpreter is asked for signals and told of progress.
const INTERVAL: Duration = Duration::from_millis(50);

struct Shared {
    done: AtomicUsize,
    total: AtomicUsize,
    watch: Arc<Watch>,
}

impl Monitor for Shared {
    fn progress(&self, done: usize, total: usize) {
        self.done.fetch_max(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.watch.is_stopped()
    }
}

impl Shared {
    /// Asks the interpreter for signals, and calls `callback` with (done, total).
    fn tell(&self, callback: Option<&Py<PyAny>>) -> PyResult<()> {
        self.watch.check_stopper()?;
        Python::attach(|py| {
            py.check_signals()?;
            let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
            match callback {
                Some(callback) if total > 0 => callback.call1(py, (done, total)).map(|_| ()),
                _ => Ok(()),
            }
        })
    }
}

/// Returns a progress function that any thread may call.
pub(crate) fn callback(progress: Option<Bound<'_, PyAny>>) -> Option<Py<PyAny>> {
    progress.map(Bound::unbind)
}

/// Computes an answer without the interpreter's lock, telling `callback` how far it is.
///
/// # Errors
/// `KeyboardInterrupt`, and what `callback` raises: the work stops at its next evaluation and its
/// result is dropped; the library's errors as exceptions.
pub(crate) fn answer_watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    analysis: &Analysis,
    work: impl FnOnce(&Analysis, &dyn Monitor) -> Result<T, nextstat::Error> + Send,
) -> PyResult<T> {
    let watch = Arc::new(Watch::asking()?);
    let analysis = analysis.clone().cancelled_by(watch.clone());
    let result = on_own_thread(py, callback, watch, |monitor| work(&analysis, monitor))?;
    result.map_err(|problem| error::library(py, &problem))
}

/// Does `work` on a likelihood without the interpreter's lock.
///
/// # Errors
/// As of [`answer_watched`].
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    likelihood: &CpuLikelihood,
    work: impl FnOnce(&Interruptible, &dyn Monitor) -> T + Send,
) -> PyResult<T> {
    crate::memory::for_fits(likelihood)?;
    let watch = Arc::new(Watch::asking()?);
    let likelihood = Interruptible::new(likelihood.clone(), Some(watch.clone()));
    on_own_thread(py, callback, watch, |monitor| work(&likelihood, monitor))
}

/// Does `work` without the interpreter's lock.
///
/// # Errors
/// As of [`answer_watched`].
pub(crate) fn monitored<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    work: impl FnOnce(&dyn Monitor) -> T + Send,
) -> PyResult<T> {
    on_own_thread(py, callback, Arc::new(Watch::asking()?), work)
}

/// Does `work` on a thread of its own while this one asks for signals and tells `callback` how far
/// it is.
fn on_own_thread<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    watch: Arc<Watch>,
    work: impl FnOnce(&dyn Monitor) -> T + Send,
) -> PyResult<T> {
    let shared = Shared { done: AtomicUsize::new(0), total: AtomicUsize::new(0), watch };
    py.detach(|| {
        let (sender, receiver) = channel::<()>();
        // A thread that cannot be started must not take the work with it.
        let job = Mutex::new(Some((work, sender)));
        let run = || {
            let taken = job.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (work, sender) = taken.expect("the work is taken once");
            let result = work(&shared);
            drop(sender);
            result
        };
        std::thread::scope(|scope| {
            let Ok(worker) = std::thread::Builder::new().spawn_scoped(scope, run) else {
                // This thread works instead, asks for signals between evaluations, and reports
                // progress at the end.
                let result = run();
                shared.watch.raised().map_or(Ok(()), Err)?;
                return shared.tell(callback).map(|()| result);
            };
            let mut raised = None;
            // Nothing is ever sent: the channel closes when the work is done, and also when it
            // panics.
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(INTERVAL) {
                if raised.is_none()
                    && let Err(error) = shared.tell(callback)
                {
                    shared.watch.stop();
                    raised = Some(error);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Some(error) = raised {
                return Err(error);
            }
            shared.tell(callback)?;
            Ok(result)
        })
    })
}
