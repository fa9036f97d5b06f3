//! A likelihood that Ctrl-C ends: between two evaluations it looks whether the interpreter has a signal to handle.
//!
//! Once it has, every point is outside the domain, so that whatever is minimising gives up at once; its result is dropped. Work that is counted in units
//! has a monitor instead (`watch`).

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ns_compute::CpuLikelihood;
use ns_core::curvature::{Curvature, Structure};
use ns_core::{Data, DataLikelihood, Likelihood};
use pyo3::prelude::*;

/// How often the interpreter is asked. Less than this costs nothing to wait for.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Watch {
    start: Instant,
    /// Nanoseconds from `start` to the next question.
    next: AtomicU64,
    is_stopped: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

/// A likelihood under the interpreter's signals; its clones are under the same.
#[derive(Debug, Clone)]
pub(crate) struct Interruptible {
    inner: CpuLikelihood,
    watch: Arc<Watch>,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Interruptible {
    fn new(inner: CpuLikelihood) -> Self {
        let watch = Watch {
            start: Instant::now(),
            next: AtomicU64::new(nanoseconds(INTERVAL)),
            is_stopped: AtomicBool::new(false),
            raised: Mutex::new(None),
        };
        Self { inner, watch: Arc::new(watch) }
    }

    fn is_stopped(&self) -> bool {
        let watch = &*self.watch;
        if watch.is_stopped.load(Ordering::Relaxed) {
            return true;
        }
        let now = nanoseconds(watch.start.elapsed());
        if now < watch.next.load(Ordering::Relaxed) {
            return false;
        }
        watch.next.store(now.saturating_add(nanoseconds(INTERVAL)), Ordering::Relaxed);
        let Err(error) = Python::attach(check_signals) else { return false };
        *watch.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
        watch.is_stopped.store(true, Ordering::Relaxed);
        true
    }
}

/// A method's type is of one lifetime only, and `Python::attach` wants any.
fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// What `work` makes of a likelihood, computed without the interpreter's lock.
///
/// # Errors
/// What a signal's handler raises, such as `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    likelihood: CpuLikelihood,
    work: impl FnOnce(&mut Interruptible) -> T + Send,
) -> PyResult<T> {
    let mut likelihood = Interruptible::new(likelihood);
    let watch = Arc::clone(&likelihood.watch);
    let result = py.detach(|| work(&mut likelihood));
    let raised = watch.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    raised.map_or(Ok(result), Err)
}

impl Likelihood for Interruptible {
    fn n_params(&self) -> usize {
        self.inner.n_params()
    }

    fn structure(&self) -> Structure {
        self.inner.structure()
    }

    fn nll(&mut self, params: &[f64]) -> f64 {
        if self.is_stopped() { f64::INFINITY } else { self.inner.nll(params) }
    }

    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64 {
        if self.is_stopped() {
            gradient.fill(0.0);
            return f64::INFINITY;
        }
        self.inner.nll_and_grad(params, gradient)
    }

    fn set_floor(&mut self, floor: Option<f64>) -> bool {
        self.inner.set_floor(floor)
    }

    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
        if self.is_stopped() {
            gradient.fill(0.0);
            return f64::INFINITY;
        }
        self.inner.nll_and_curvature(params, gradient, curvature)
    }
}

impl DataLikelihood for Interruptible {
    fn set_data(&mut self, data: &Data) {
        self.inner.set_data(data);
    }
}
