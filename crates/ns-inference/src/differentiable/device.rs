//! Runs the fits of a session on a device. The host continues from their minima in its own
//! arithmetic, and computes the gradients.
//!
//! Templates are uploaded before the first fit after they changed. A minimum of the device is a
//! warm start for the host, subject to the same checks as any other (`warm_start`). The host
//! repeats a fit that did not converge on the device from the starting values.

use super::error::DifferentiableError;
use crate::accelerator::task_in;
use crate::minimize::Domain;
use ns_core::batch::{BatchData, BatchError, TemplateMinimizer};
use ns_core::{Data, Model};

/// The device of a session, and the data that it fits.
pub(super) struct SessionDevice {
    minimizer: Box<dyn TemplateMinimizer>,
    pub(super) observed: Data,
    /// The most recent Asimov data set.
    pub(super) asimov: Option<Data>,
    /// Whether the device has the session's current templates.
    pub(super) is_current: bool,
    /// The number of fits that converged on the device.
    pub(super) n_fits: u64,
}

impl SessionDevice {
    pub(super) fn new(minimizer: Box<dyn TemplateMinimizer>, observed: Data) -> Self {
        Self { minimizer, observed, asimov: None, is_current: false, n_fits: 0 }
    }

    /// Fits the Asimov data set or the observed data in `domain` from `start` (P). Returns the
    /// minimum (P), or `None` if the fit did not converge.
    pub(super) fn fit(
        &mut self,
        model: &Model,
        of_asimov: bool,
        domain: &Domain,
        start: &[f64],
    ) -> Result<Option<Vec<f64>>, DifferentiableError> {
        if !self.is_current {
            self.minimizer.replace_templates(model).map_err(|error| failed(&error))?;
            self.is_current = true;
        }
        let Some(data) = (if of_asimov { self.asimov.as_ref() } else { Some(&self.observed) }) else { return Ok(None) };
        let task = task_in(domain, BatchData::Shared(data), start);
        let fits = self.minimizer.minimize(&task).map_err(|error| failed(&error))?;
        let found = fits.into_iter().next().filter(|fit| fit.converged).map(|fit| fit.params);
        self.n_fits += u64::from(found.is_some());
        Ok(found)
    }
}

pub(super) fn failed(error: &BatchError) -> DifferentiableError {
    DifferentiableError::Device { reason: error.to_string() }
}

impl std::fmt::Debug for SessionDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionDevice").field("n_fits", &self.n_fits).finish_non_exhaustive()
    }
}
