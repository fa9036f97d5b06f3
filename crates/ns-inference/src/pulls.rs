//! Pulls and constraints: where a fit left the constrained parameters, in units of what was known
//! before.

use crate::result::FitResult;
use ns_core::{Data, Model};
use serde::Serialize;

/// What a fit made of one constrained parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pull {
    /// Its name.
    pub parameter: String,
    /// Its index among the parameters.
    pub index: usize,
    /// Its value at the minimum.
    pub bestfit: f64,
    /// Its standard deviation after the fit; `None` if fixed, at a bound, or not determined.
    pub uncertainty: Option<f64>,
    /// Where its auxiliary datum puts it, θ₀.
    pub prefit: f64,
    /// The width of its constraint term, the mean of both sides for an asymmetric Gaussian.
    pub prefit_uncertainty: f64,
    /// (θ̂ - θ₀) / `prefit_uncertainty`; with the width on the side of θ̂ for an asymmetric
    /// Gaussian, and of logarithms for a log-normal term.
    pub pull: f64,
    /// `uncertainty` / `prefit_uncertainty`: 1 where the data add nothing.
    pub constraint: Option<f64>,
}

/// Returns the pulls of all constrained parameters that are not fixed at a value by `fixed` (P), in
/// the order of the parameters.
#[must_use]
pub fn pulls(model: &Model, data: &Data, result: &FitResult, fixed: &[bool]) -> Vec<Pull> {
    let free = (0..model.n_params()).filter(|&i| !fixed[i]);
    free.filter_map(|i| {
        let constraint = model.parameters.constraint[i]?;
        let prefit = prefit_center(model, data, i)?;
        let prefit_uncertainty = constraint.width(prefit);
        let (bestfit, uncertainty) = (result.bestfit[i], result.uncertainties[i]);
        Some(Pull {
            parameter: result.par_names[i].clone(),
            index: i,
            bestfit,
            uncertainty,
            prefit,
            prefit_uncertainty,
            pull: constraint.pull(prefit, bestfit),
            constraint: uncertainty.map(|after| after / prefit_uncertainty),
        })
    })
    .collect()
}

/// Returns where the auxiliary datum puts parameter `i`; `None` if it has no constraint term.
#[must_use]
pub fn prefit_center(model: &Model, data: &Data, i: usize) -> Option<f64> {
    Some(model.parameters.constraint[i]?.center(data.aux[model.parameters.aux_index[i]?]))
}

/// Returns how far the constraint term of parameter `i` lets it go down and up; `None` if it has
/// none.
#[must_use]
pub fn prefit_widths(model: &Model, data: &Data, i: usize) -> Option<[f64; 2]> {
    Some(model.parameters.constraint[i]?.widths(prefit_center(model, data, i)?))
}

/// Returns the width of the constraint term of parameter `i`; `None` if it has none.
#[must_use]
pub fn prefit_width(model: &Model, data: &Data, i: usize) -> Option<f64> {
    let center = prefit_center(model, data, i)?;
    model.parameters.constraint[i].map(|constraint| constraint.width(center))
}
