//! The protocol of accelerators: many fits of one model in one call.
//!
//! A procedure (toys, scans, rankings) asks a [`BatchMinimizer`] for minima, and finishes on the
//! host the fits that did not converge there.
//!
//! Legend: N fits, P parameters.

use crate::model::{Data, Model};

/// The data of N fits.
#[derive(Debug, Clone, Copy)]
pub enum BatchData<'a> {
    /// The same for every fit.
    Shared(&'a Data),
    /// One for each fit (N).
    Each(&'a [Data]),
}

/// Which parameters are fixed in N fits.
#[derive(Debug, Clone, Copy)]
pub enum BatchFixed<'a> {
    /// The same for every fit (P).
    Shared(&'a [bool]),
    /// Those of each fit (N × P), row by row.
    Each(&'a [bool]),
}

/// N fits of one model, which differ in their data, their starting points, or their fixed
/// parameters.
#[derive(Debug, Clone, Copy)]
pub struct BatchTask<'a> {
    /// The data.
    pub data: BatchData<'a>,
    /// Starting points (N × P), row by row; a fixed parameter keeps its value there.
    pub starts: &'a [f64],
    /// Lower bounds of the parameters (P).
    pub lower: &'a [f64],
    /// Upper bounds (P).
    pub upper: &'a [f64],
    /// The fixed parameters.
    pub fixed: BatchFixed<'a>,
    /// Parameters with a kink at zero (P); empty if the model has none.
    pub kinked: &'a [bool],
    /// The parameter whose variance at the minimum is computed, if any.
    pub variance_of: Option<usize>,
}

/// The result of one fit of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchFit {
    /// The parameters (P).
    pub params: Vec<f64>,
    /// -ln L there, with all constants; +∞ if no point of the domain was reached.
    pub nll: f64,
    /// The estimated distance to the minimum (EDM) in -ln L, before the last step.
    pub edm: f64,
    /// Whether the fit ended in a minimum within the bounds, to the precision of the device.
    pub converged: bool,
    /// The requested variance; `None` if it does not exist, as at a bound.
    pub variance: Option<f64>,
    /// Steps taken or tried.
    pub iterations: usize,
}

/// Why a batch failed as a whole: no fit of it has a result.
pub type BatchError = Box<dyn std::error::Error + Send + Sync>;

/// Minimises -ln L of one model for many data sets, starting points or sets of fixed parameters at
/// once.
pub trait BatchMinimizer: Send {
    /// Returns the preferred number of fits in one call.
    fn batch_size(&self) -> usize;

    /// Returns `true` if the device computes in double precision. Otherwise its minima are only
    /// good starting points.
    fn is_exact(&self) -> bool;

    /// Returns the results of all fits of `task`, in order.
    ///
    /// # Errors
    /// The error of the device.
    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError>;
}

/// A [`BatchMinimizer`] of a model whose templates are replaced between fits.
pub trait TemplateMinimizer: BatchMinimizer {
    /// Replaces the templates by those of `model`, which must be the same model otherwise.
    ///
    /// # Errors
    /// The error of the device.
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError>;
}

/// A [`BatchMinimizer`] of a batch of R sets of templates: fit i, and point i, uses set i modulo R.
pub trait TemplateBatchMinimizer: BatchMinimizer {
    /// Returns R.
    fn n_batch(&self) -> usize;

    /// Returns -ln L of `data` at `points` (N × P), one value for each point (N; +∞ outside the
    /// domain), and its gradients with respect to the parameters (N × P).
    ///
    /// # Errors
    /// The error of the device.
    fn batch_gradients(&mut self, data: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError>;
}
