//! An accelerator as the procedures use it: many starting points in, minima out.
//!
//! Fits that do not converge there are finished on the CPU. The first failure of the device is kept
//! and no further fit is sent to it; the procedure stops and reports the failure.

use crate::minimize::{Domain, Minimum, Outcome};
use crate::monitor::Monitor;
use ns_core::Data;
use ns_core::batch::{BatchData, BatchFit, BatchFixed, BatchMinimizer, BatchTask};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`BatchMinimizer`] shared by the parts of a procedure.
pub struct Accelerator {
    minimizer: Mutex<Box<dyn BatchMinimizer>>,
    batch_size: usize,
    is_exact: bool,
    failure: Mutex<Option<AcceleratorFailure>>,
    n_fits: AtomicU64,
    n_left: AtomicU64,
}

/// The error with which a device failed.
pub type AcceleratorFailure = Arc<dyn std::error::Error + Send + Sync>;

/// Numbers of fits on a device, and of those that the CPU finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FitCounts {
    /// Fits on the device.
    pub n_fits: u64,
    /// Fits finished on the CPU: not converged, possibly not the global minimum, polished from
    /// single precision, or without the variance that was asked for.
    pub n_left: u64,
}

impl Accelerator {
    /// Returns an accelerator that fits on `minimizer`.
    pub fn new(minimizer: Box<dyn BatchMinimizer>) -> Self {
        let (batch_size, is_exact) = (minimizer.batch_size().max(1), minimizer.is_exact());
        Self {
            minimizer: Mutex::new(minimizer),
            batch_size,
            is_exact,
            failure: Mutex::new(None),
            n_fits: AtomicU64::new(0),
            n_left: AtomicU64::new(0),
        }
    }

    /// Returns the number of fits that one call should request.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Returns the numbers of fits so far.
    #[must_use]
    pub fn share(&self) -> FitCounts {
        FitCounts { n_fits: self.n_fits.load(Ordering::Relaxed), n_left: self.n_left.load(Ordering::Relaxed) }
    }

    /// Returns the error after which the device is no longer used, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<AcceleratorFailure> {
        lock(&self.failure).clone()
    }

    /// Returns `true` if the device failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    /// Counts `n` fits that the CPU finishes.
    pub(crate) fn leave(&self, n: u64) {
        self.n_left.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the minima that `task` asks for; `None` once the device has failed.
    ///
    /// All are fitted at once; a caller with more than [`Accelerator::batch_size`] splits them.
    pub fn fit(&self, task: &BatchTask<'_>) -> Option<Vec<BatchFit>> {
        if self.has_failed() {
            return None;
        }
        let found = lock(&self.minimizer).minimize(task);
        match found {
            Ok(fits) => {
                self.n_fits.fetch_add(fits.len() as u64, Ordering::Relaxed);
                Some(fits)
            }
            Err(error) => {
                *lock(&self.failure) = Some(error.into());
                None
            }
        }
    }

    /// Returns `fit` as a minimum that needs no more work; `None` if the host has to go on from
    /// there.
    #[must_use]
    pub fn minimum(&self, fit: &BatchFit) -> Option<Minimum> {
        (self.is_exact && fit.converged).then(|| Minimum {
            params: fit.params.clone(),
            nll: fit.nll,
            // The device does not hand it over.
            gradient: Vec::new(),
            edm: fit.edm,
            outcome: Outcome::Converged,
            iterations: fit.iterations,
            evaluations: fit.iterations,
            at_edge: false,
        })
    }
}

/// Returns the fits of `data` inside `domain` from `starts` (N × P).
pub(crate) fn task_in<'a>(domain: &'a Domain, data: BatchData<'a>, starts: &'a [f64]) -> BatchTask<'a> {
    let Domain { lower, upper, fixed, kinked, .. } = domain;
    BatchTask { data, starts, lower, upper, fixed: BatchFixed::Shared(fixed), kinked, variance_of: None }
}

/// An accelerator, and the data of the procedure that it helps.
#[derive(Debug, Clone, Copy)]
pub struct BatchFitter<'a> {
    /// The accelerator.
    pub accelerator: &'a Accelerator,
    /// The data to fit.
    pub data: &'a Data,
}

impl BatchFitter<'_> {
    /// Returns the minimum that the fit from `start` (P) leads to, for the host to go on from;
    /// `None` if it leads to none, or once the device has failed.
    #[must_use]
    pub fn free(&self, domain: &Domain, start: &[f64]) -> Option<Vec<f64>> {
        let fits = self.accelerator.fit(&task_in(domain, BatchData::Shared(self.data), start))?;
        self.accelerator.leave(1);
        fits.into_iter().next().filter(|fit| fit.converged).map(|fit| fit.params)
    }

    /// Returns the minima that `points` lead to: each fixes some parameters, and
    /// starts from a point of its own (P).
    pub(crate) fn conditional(
        &self,
        domain: &Domain,
        points: impl IntoIterator<Item = (FixedValues, Vec<f64>)>,
        monitor: &dyn Monitor,
    ) -> WarmStarts {
        let mut warm_starts = WarmStarts::default();
        let mut points = points.into_iter().peekable();
        while points.peek().is_some() && !monitor.is_cancelled() && !self.accelerator.has_failed() {
            self.add(domain, points.by_ref().take(self.accelerator.batch_size()).collect(), &mut warm_starts);
        }
        warm_starts
    }

    /// Adds the minima of one batch to `warm_starts`.
    fn add(&self, domain: &Domain, points: Vec<(FixedValues, Vec<f64>)>, warm_starts: &mut WarmStarts) {
        let (mut starts, mut is_fixed) = (Vec::new(), Vec::new());
        for (fixed, start) in &points {
            let (first_start, first_fixed) = (starts.len(), is_fixed.len());
            starts.extend_from_slice(start);
            is_fixed.extend_from_slice(&domain.fixed);
            for &(i, value) in fixed {
                (starts[first_start + i], is_fixed[first_fixed + i]) = (value, true);
            }
        }
        let task = task_in(domain, BatchData::Shared(self.data), &starts);
        let found = self.accelerator.fit(&BatchTask { fixed: BatchFixed::Each(&is_fixed), ..task });
        for ((fixed, _), fit) in points.into_iter().zip(found.unwrap_or_default()) {
            self.accelerator.leave(1);
            if fit.converged {
                warm_starts.params.insert(key(&fixed), fit.params);
            }
        }
    }
}

/// Parameters that are fixed, each at its value.
pub(crate) type FixedValues = Vec<(usize, f64)>;

/// The same to the bit.
pub(crate) type FixedKey = Vec<(usize, u64)>;

/// Where conditional minima are, by what is fixed: starting points close to the minima.
#[derive(Debug, Clone, Default)]
pub(crate) struct WarmStarts {
    params: HashMap<FixedKey, Vec<f64>>,
}

impl WarmStarts {
    /// Returns the minimum (P) with the parameters of `fixed` at their values, if it is known.
    pub(crate) fn of(&self, fixed: &[(usize, f64)]) -> Option<&Vec<f64>> {
        if self.params.is_empty() { None } else { self.params.get(&key(fixed)) }
    }
}

/// Returns the key of `fixed`, its values to the bit.
pub(crate) fn key(fixed: &[(usize, f64)]) -> FixedKey {
    fixed.iter().map(|&(i, value)| (i, value.to_bits())).collect()
}

impl std::fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accelerator").field("share", &self.share()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
