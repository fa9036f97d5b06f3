//! Maximum-likelihood fits: free, conditional, from one or several starting points.
//!
//! [`fit`] minimises, takes the exact Hessian at the minimum for the uncertainties, and writes the verdict. It knows a likelihood by the
//! trait and the model for names, ranges and diagnosis.

use crate::minimize::MinimizeOptions;
use crate::result::FitResult;
use ns_core::{Data, Likelihood, Model};

/// How a fit is done; the default is a free fit from the model's starting values with uncertainties.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Starting values (P) instead of the model's.
    pub start: Option<Vec<f64>>,
    /// Parameters held at a value.
    pub fixed: Vec<(usize, f64)>,
    /// Ranges instead of the model's.
    pub bounds: Vec<(usize, [f64; 2])>,
    /// What to compute at the minimum.
    pub errors: Errors,
    /// Parameters whose asymmetric intervals are wanted.
    pub minos: Vec<usize>,
    /// Further starting points, if there may be several minima.
    pub multi_start: Option<MultiStart>,
    /// When to stop.
    pub minimize: MinimizeOptions,
}

/// What to compute at the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Errors {
    /// Nothing: for fits in a loop.
    None,
    /// Standard deviations.
    #[default]
    Hessian,
    /// Standard deviations and the full covariance.
    Covariance,
}

/// How to look for further minima.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiStart {
    /// How many random starting points, beside the usual one.
    pub n_starts: usize,
    /// Seed of the starting points.
    pub seed: u64,
}

impl Default for MultiStart {
    fn default() -> Self {
        Self { n_starts: 40, seed: 0 }
    }
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            start: None,
            fixed: Vec::new(),
            bounds: Vec::new(),
            errors: Errors::Hessian,
            minos: Vec::new(),
            multi_start: None,
            minimize: MinimizeOptions::default(),
        }
    }
}

/// Fits `model` to `data`, whose likelihood is `likelihood`.
pub fn fit<L: Likelihood + ?Sized>(model: &Model, data: &Data, likelihood: &mut L, options: &FitOptions) -> FitResult {
    let _ = (model, data, likelihood, options);
    unimplemented!()
}
