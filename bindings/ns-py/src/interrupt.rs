//! Likelihoods that Ctrl-C stops: between two evaluations they check whether to go on.
//!
//! Once stopped, every point is outside the domain, so that a minimiser gives up at once; its
//! result is dropped. Work that is counted in units has a monitor too (`watch`).

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use nextstat::Analysis;
use nextstat::cancel::{CancellableLikelihood, Cancellation};
use ns_compute::CpuLikelihood;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error;

/// How often the interpreter is asked. Less than this costs nothing to wait for.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The stopper of what this thread computes: the interpreter delivers signals to its main
    /// thread only.
    static STOPPER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Ends what other threads compute: their calls raise `KeyboardInterrupt`.
#[pyclass(name = "Stopper", module = "nextstat._nextstat", frozen)]
#[derive(Default)]
pub(crate) struct PyStopper(Arc<AtomicBool>);

#[pymethods]
impl PyStopper {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops what runs under the stopper, now and later.
    fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Calls `function` with `argument`, under this stopper.
    fn call<'py>(&self, function: &Bound<'py, PyAny>, argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let before = STOPPER.replace(Some(Arc::clone(&self.0)));
        let result = function.call1((argument,));
        STOPPER.set(before);
        result
    }
}

/// Whether to stop: by the caller, a stopper, or a signal.
#[derive(Debug)]
pub(crate) struct Watch {
    is_stopped: AtomicBool,
    stopper: Option<Arc<AtomicBool>>,
    questions: Option<Questions>,
}

/// When the work itself asks the interpreter for signals, and what that raised.
#[derive(Debug)]
struct Questions {
    /// The caller's thread, the only one that the interpreter answers.
    asker: ThreadId,
    start: Instant,
    /// Nanoseconds from `start` to the next one.
    next: AtomicU64,
    raised: Mutex<Option<PyErr>>,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Questions {
    fn new() -> Self {
        Self {
            asker: std::thread::current().id(),
            start: Instant::now(),
            next: AtomicU64::new(nanoseconds(INTERVAL)),
            raised: Mutex::new(None),
        }
    }

    /// Asks the interpreter if it is time to; returns whether it raised something.
    fn ask(&self) -> bool {
        let now = nanoseconds(self.start.elapsed());
        if now < self.next.load(Ordering::Relaxed) || std::thread::current().id() != self.asker {
            return false;
        }
        self.next.store(now.saturating_add(nanoseconds(INTERVAL)), Ordering::Relaxed);
        let Err(error) = Python::attach(check_signals) else { return false };
        *self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
        true
    }

    fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// Runs Python's signal handlers. A function, because a method's type has one lifetime and
/// `Python::attach` needs any.
fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

impl Watch {
    /// Makes a watch that its owner or this thread's stopper stops.
    ///
    /// # Errors
    /// `KeyboardInterrupt` under a stopper that has stopped.
    pub(crate) fn new() -> PyResult<Self> {
        let watch =
            Self { is_stopped: AtomicBool::new(false), stopper: STOPPER.with_borrow(Clone::clone), questions: None };
        watch.check_stopper().map(|()| watch)
    }

    /// Makes a watch that also asks the interpreter, for work on this thread.
    pub(crate) fn asking() -> PyResult<Self> {
        Ok(Self { questions: Some(Questions::new()), ..Self::new()? })
    }

    /// Takes what the interpreter raised when it was asked.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.questions.as_ref().and_then(Questions::take)
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        if self.is_stopped.load(Ordering::Relaxed) {
            return true;
        }
        let is_stopped = self.stopper_has_stopped() || self.questions.as_ref().is_some_and(Questions::ask);
        if is_stopped {
            self.stop();
        }
        is_stopped
    }

    fn stopper_has_stopped(&self) -> bool {
        self.stopper.as_ref().is_some_and(|stopper| stopper.load(Ordering::Relaxed))
    }

    /// Returns `KeyboardInterrupt` if the stopper has stopped.
    pub(crate) fn check_stopper(&self) -> PyResult<()> {
        if self.stopper_has_stopped() { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(()) }
    }
}

impl Cancellation for Watch {
    fn is_cancelled(&self) -> bool {
        self.is_stopped()
    }
}

/// A likelihood under a watch, as are its clones.
pub(crate) type Interruptible = CancellableLikelihood;

/// Computes an answer without the interpreter's lock.
///
/// # Errors
/// What a signal's handler raises, such as `KeyboardInterrupt`; the library's errors as exceptions.
pub(crate) fn answer<T: Send>(
    py: Python<'_>,
    analysis: &Analysis,
    work: impl FnOnce(&Analysis) -> Result<T, nextstat::Error> + Send,
) -> PyResult<T> {
    let watch = Arc::new(Watch::asking()?);
    let analysis = analysis.clone().cancelled_by(watch.clone());
    let result = py.detach(|| work(&analysis));
    if let Some(error) = watch.raised() {
        return Err(error);
    }
    watch.check_stopper()?;
    result.map_err(|problem| error::library(py, &problem))
}

/// Does `work` on a likelihood without the interpreter's lock.
///
/// # Errors
/// What a signal's handler raises, such as `KeyboardInterrupt`; `MemoryError` if the matrices of a
/// fit do not fit into memory.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    likelihood: CpuLikelihood,
    work: impl FnOnce(&mut Interruptible) -> T + Send,
) -> PyResult<T> {
    crate::memory::for_fits(&likelihood)?;
    let watch = Arc::new(Watch::asking()?);
    let mut likelihood = Interruptible::new(likelihood, Some(watch.clone()));
    let result = py.detach(|| work(&mut likelihood));
    if let Some(error) = watch.raised() {
        return Err(error);
    }
    watch.check_stopper().map(|()| result)
}

/// The number of values that are computed between two checks for signals.
pub(crate) const VALUES_OF_A_PART: usize = 1 << 17;

/// Does `work` on consecutive parts of `0..n` without the interpreter's lock.
///
/// Each unit has `width` values.
///
/// # Errors
/// What a signal's handler raises; later parts are not done.
pub(crate) fn in_parts(
    py: Python<'_>,
    n: usize,
    width: usize,
    mut work: impl FnMut(Range<usize>) + Send,
) -> PyResult<()> {
    let watch = Watch::new()?;
    let len = (VALUES_OF_A_PART / width.max(1)).max(1);
    for first in (0..n).step_by(len) {
        py.detach(|| work(first..n.min(first + len)));
        py.check_signals()?;
        watch.check_stopper()?;
    }
    Ok(())
}
