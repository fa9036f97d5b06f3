//! Many fits of one model at once, as an accelerator does them: what is asked for, and what comes back.
//!
//! Whoever runs toys, scans or rankings asks a [`BatchMinimizer`] for minima and finishes by itself those that it did not reach.
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

/// Which parameters N fits hold.
#[derive(Debug, Clone, Copy)]
pub enum BatchFixed<'a> {
    /// The same for every fit (P).
    Shared(&'a [bool]),
    /// Those of each fit (N × P), row by row.
    Each(&'a [bool]),
}

/// N fits of one model, which differ in their data, in where they start, or in what they hold.
#[derive(Debug, Clone, Copy)]
pub struct BatchTask<'a> {
    /// The data.
    pub data: BatchData<'a>,
    /// Starting points (N × P), row by row; what is held is held at its value there.
    pub starts: &'a [f64],
    /// Lower ends of the parameters' ranges (P).
    pub lower: &'a [f64],
    /// Upper ends (P).
    pub upper: &'a [f64],
    /// Parameters that are held.
    pub fixed: BatchFixed<'a>,
    /// Parameters with a kink at zero (P); may be empty if there are none.
    pub kinked: &'a [bool],
    /// A parameter whose variance at the minimum is wanted.
    pub variance_of: Option<usize>,
}

/// Where one fit ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchFit {
    /// The parameters (P).
    pub params: Vec<f64>,
    /// -ln L there, with all constants; +∞ where nothing was reached.
    pub nll: f64,
    /// The estimated distance to the minimum in -ln L, before the last step.
    pub edm: f64,
    /// Whether it is a minimum inside the box, as far as the device's numbers tell.
    pub converged: bool,
    /// The variance that was asked for; `None` where there is none, as at the end of a range.
    pub variance: Option<f64>,
    /// Steps taken or tried.
    pub iterations: usize,
}

/// Why a batch could not be done; nothing is known about any of its fits.
pub type BatchError = Box<dyn std::error::Error + Send + Sync>;

/// Whoever minimises -ln L of one model for many data sets at once.
pub trait BatchMinimizer: Send {
    /// How many fits should be asked for at a time.
    fn batch_size(&self) -> usize;

    /// Whether its numbers are as exact as the host's: else minima are only good starting points.
    fn is_exact(&self) -> bool;

    /// Does all fits of `task`, in order.
    ///
    /// # Errors
    /// Whatever the device says.
    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError>;
}

/// A [`BatchMinimizer`] of a model whose templates are replaced between fits.
pub trait TemplateMinimizer: BatchMinimizer {
    /// Takes the templates of `model`, which is the same model otherwise.
    ///
    /// # Errors
    /// Whatever the device says.
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError>;
}

/// A [`BatchMinimizer`] of R rows of templates, which stay where they are: fit i, and point i, is of row i modulo R.
pub trait TemplateBatchMinimizer: BatchMinimizer {
    /// R.
    fn n_batch(&self) -> usize;

    /// -ln L of `data` at `points` (N × P) of the rows (N; +∞ outside the domain), and its gradient by the parameters (N × P).
    ///
    /// # Errors
    /// Whatever the device says.
    fn batch_gradients(&mut self, data: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError>;
}
