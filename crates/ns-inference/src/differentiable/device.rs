//! A device that does the whole fits of a session; the host goes on from where they end, with its own numbers, and has the gradients.
//!
//! The templates are uploaded when they have changed and a fit is asked for. What the device finds is where a fit goes on from, fixed to the same checks as a fit that
//! follows another (`follow`); a fit that has not arrived there is done by the host.

use super::error::DifferentiableError;
use crate::accelerator::task_in;
use crate::minimize::Domain;
use ns_core::batch::{BatchData, BatchError, TemplateMinimizer};
use ns_core::{Data, Model};

/// The device of a session, and the data that it fits.
pub(super) struct SessionDevice {
    minimizer: Box<dyn TemplateMinimizer>,
    pub(super) observed: Data,
    /// The Asimov data set that was made last.
    pub(super) asimov: Option<Data>,
    /// Whether the device has the templates of the session.
    pub(super) is_current: bool,
    /// Fits that ended in a minimum there.
    pub(super) n_fits: u64,
}

impl SessionDevice {
    pub(super) fn new(minimizer: Box<dyn TemplateMinimizer>, observed: Data) -> Self {
        Self { minimizer, observed, asimov: None, is_current: false, n_fits: 0 }
    }

    /// Where the fit in `domain` from `start` (P) ends, if it arrives: to the Asimov data set, or to the observed data.
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
        let arrivals = self.minimizer.minimize(&task).map_err(|error| failed(&error))?;
        let found = arrivals.into_iter().next().filter(|arrival| arrival.converged).map(|arrival| arrival.params);
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
