//! An accelerator as procedures use it: many starting points in, minima out; what it does not reach is left to the host.
//!
//! The first failure of the device is kept, and nothing more is asked of it: a procedure then stops where it is and says so.

use crate::minimize::{Domain, Minimum, Outcome};
use crate::monitor::Monitor;
use ns_core::Data;
use ns_core::batch::{Arrival, BatchData, BatchFixed, BatchMinimizer, BatchTask};
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

/// What a device said when it failed.
pub type AcceleratorFailure = Arc<dyn std::error::Error + Send + Sync>;

/// How many fits were asked for, and how many of them the host had to take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FitCounts {
    /// Fits that the device did.
    pub n_fits: u64,
    /// Fits that the host went on with: for they had not arrived, for a lower minimum may be hidden, or to polish single precision.
    pub n_left: u64,
}

impl Accelerator {
    /// Fits on `minimizer` from now on.
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

    /// How many fits should be asked for at a time.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// What it did so far.
    #[must_use]
    pub fn share(&self) -> FitCounts {
        FitCounts { n_fits: self.n_fits.load(Ordering::Relaxed), n_left: self.n_left.load(Ordering::Relaxed) }
    }

    /// Why it does nothing any more, if so.
    #[must_use]
    pub fn failure(&self) -> Option<AcceleratorFailure> {
        lock(&self.failure).clone()
    }

    /// Whether the device failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    /// Notes that the host takes over `n` fits.
    pub(crate) fn leave(&self, n: u64) {
        self.n_left.fetch_add(n, Ordering::Relaxed);
    }

    /// The minima that `task` asks for; `None` once the device has failed.
    ///
    /// All at once: whoever has more than [`Accelerator::batch_size`] asks again.
    pub fn fit(&self, task: &BatchTask<'_>) -> Option<Vec<Arrival>> {
        if self.has_failed() {
            return None;
        }
        let found = lock(&self.minimizer).minimize(task);
        match found {
            Ok(arrivals) => {
                self.n_fits.fetch_add(arrivals.len() as u64, Ordering::Relaxed);
                Some(arrivals)
            }
            Err(error) => {
                *lock(&self.failure) = Some(error.into());
                None
            }
        }
    }

    /// `arrival` as a minimum that needs no more work; `None` if the host has to go on from there.
    #[must_use]
    pub fn minimum(&self, arrival: &Arrival) -> Option<Minimum> {
        (self.is_exact && arrival.has_arrived).then(|| Minimum {
            params: arrival.params.clone(),
            nll: arrival.nll,
            // The device does not hand it over.
            gradient: Vec::new(),
            edm: arrival.edm,
            outcome: Outcome::Converged,
            iterations: arrival.iterations,
            evaluations: arrival.iterations,
            at_edge: false,
        })
    }
}

/// The fits of `data` inside `domain` from `starts` (N × P).
pub(crate) fn task_in<'a>(domain: &'a Domain, data: BatchData<'a>, starts: &'a [f64]) -> BatchTask<'a> {
    let Domain { lower, upper, fixed, kinked, .. } = domain;
    BatchTask { data, starts, lower, upper, fixed: BatchFixed::Shared(fixed), kinked, variance_of: None }
}

/// An accelerator, and the data of the procedure that it helps.
#[derive(Debug, Clone, Copy)]
pub struct BatchFitter<'a> {
    /// Who fits.
    pub accelerator: &'a Accelerator,
    /// What.
    pub data: &'a Data,
}

impl BatchFitter<'_> {
    /// The minimum that the fit from `start` (P) leads to, for the host to go on from; `None` if it leads to none, or once the device has failed.
    #[must_use]
    pub fn free(&self, domain: &Domain, start: &[f64]) -> Option<Vec<f64>> {
        let arrivals = self.accelerator.fit(&task_in(domain, BatchData::Shared(self.data), start))?;
        self.accelerator.leave(1);
        arrivals.into_iter().next().filter(|arrival| arrival.has_arrived).map(|arrival| arrival.params)
    }

    /// The minima that `points` lead to: each holds some parameters at their values, and starts from a point of its own (P).
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
        for ((fixed, _), arrival) in points.into_iter().zip(found.unwrap_or_default()) {
            self.accelerator.leave(1);
            if arrival.has_arrived {
                warm_starts.params.insert(key(&fixed), arrival.params);
            }
        }
    }
}

/// Parameters that are fixed, each at its value.
pub(crate) type FixedValues = Vec<(usize, f64)>;

/// The same to the bit.
pub(crate) type FixedKey = Vec<(usize, u64)>;

/// Where conditional minima are, by what is fixed: starting points that are nearly arrivals.
#[derive(Debug, Clone, Default)]
pub(crate) struct WarmStarts {
    params: HashMap<FixedKey, Vec<f64>>,
}

impl WarmStarts {
    /// The minimum (P) with the parameters of `fixed` at their values, if it is known.
    pub(crate) fn of(&self, fixed: &[(usize, f64)]) -> Option<&Vec<f64>> {
        if self.params.is_empty() { None } else { self.params.get(&key(fixed)) }
    }
}

/// `fixed` to the bit.
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
