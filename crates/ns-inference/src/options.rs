//! How a fit is done: starting values, ranges, fixed parameters, and what is computed at the
//! minimum.

use crate::minimize::{Domain, MinimizeOptions};
use ns_core::Model;

/// How a fit is done; the default is a free fit from the model's starting values with
/// uncertainties.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Starting values (P) instead of the model's.
    pub start: Option<Vec<f64>>,
    /// Parameters fixed at a value.
    pub fixed: Vec<(usize, f64)>,
    /// Ranges instead of the model's.
    pub bounds: Vec<(usize, [f64; 2])>,
    /// What to compute at the minimum.
    pub uncertainties: Uncertainties,
    /// Parameters whose asymmetric intervals are wanted.
    pub minos: Vec<usize>,
    /// Confidence levels of these intervals, between 0 and 1; empty for one standard deviation.
    pub minos_cls: Vec<f64>,
    /// Further starting points, if there may be several minima.
    pub multi_start: Option<MultiStart>,
    /// When to stop.
    pub minimize: MinimizeOptions,
}

/// What to compute at the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uncertainties {
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
            uncertainties: Uncertainties::Hessian,
            minos: Vec::new(),
            minos_cls: Vec::new(),
            multi_start: None,
            minimize: MinimizeOptions::default(),
        }
    }
}

/// Returns the box and the starting point that the model and the options give.
#[must_use]
pub fn domain_and_start(model: &Model, options: &FitOptions) -> (Domain, Vec<f64>) {
    let parameters = &model.parameters;
    let mut start = options.start.clone().unwrap_or_else(|| parameters.init.clone());
    let mut domain = Domain {
        lower: parameters.lower.clone(),
        upper: parameters.upper.clone(),
        fixed: parameters.fixed.clone(),
        kinked: Vec::new(),
    };
    let kinked = model.kinked();
    if kinked.contains(&true) {
        domain.kinked = kinked;
    }
    for &(i, [lower, upper]) in &options.bounds {
        (domain.lower[i], domain.upper[i]) = (lower, upper);
    }
    for &(i, value) in &options.fixed {
        start[i] = value;
        domain.fixed[i] = true;
    }
    (domain, start)
}
