//! The other minimum of a parameter on which expected counts depend quadratically.
//!
//! Along a parameter, λ_b(θ + t) = λ_b + λ'_b t + ½ λ''_b t². A bin expects the same again at
//! t = -2 λ'_b/λ''_b. All bins together come nearest to what they expect at
//! t = -2 Σ w λ'λ'' / Σ w λ''² with w = 1/λ, and meet it there if their parabolas have one vertex.
//! For expected counts that are not quadratic, the parabola at the minimum takes their place.

use crate::minimize::{Domain, Minimum};
use ns_core::expected::expected_main;
use ns_core::taylor::Taylor;
use ns_core::{Model, SearchLikelihood};
use std::sync::Arc;

use super::explore::HIGHEST_RISE;
use super::{FoundBy, Search};

/// A move that is shorter than this part of the range is too short for another minimum.
const SHORTEST: f64 = 1e-6;

/// The parameters of a model on which formulas depend, but not linearly.
#[derive(Debug, Clone, PartialEq)]
pub struct Mirrors {
    model: Model,
    parameters: Vec<usize>,
}

impl Mirrors {
    /// Returns those of `model`, or `None` if there are none.
    pub(super) fn of(model: &Model) -> Option<Arc<Self>> {
        let parameters: Vec<usize> = curved_by_formulas(model).into_iter().map(|(i, _)| i).collect();
        (!parameters.is_empty()).then(|| Arc::new(Self { model: model.clone(), parameters }))
    }

    /// Returns the parameters that are free in `domain`.
    pub(super) fn free(&self, domain: &Domain) -> impl Iterator<Item = usize> {
        self.parameters.iter().copied().filter(|&i| !domain.fixed[i])
    }

    /// Returns where parameter `i` has nearly the same effect as at `params` (P).
    fn across(&self, params: &[f64], i: usize) -> Option<f64> {
        let line = |(k, &x): (usize, &f64)| Taylor::line(x, f64::from(k == i));
        let line: Vec<Taylor> = params.iter().enumerate().map(line).collect();
        let (mut product, mut square) = (0.0, 0.0);
        for Taylor { value, first, second } in expected_main(&self.model, &line) {
            // Less than one event is counted as one, as for the bend of a systematic.
            let weight = value.max(1.0).recip();
            product += weight * first * second;
            square += weight * second * second;
        }
        let step = -2.0 * product / square;
        step.is_finite().then_some(params[i] + step)
    }
}

/// Returns the parameters on which a formula depends, but not linearly, with the highest degree of
/// such a formula (`Tape::degree`).
pub(super) fn curved_by_formulas(model: &Model) -> Vec<(usize, u8)> {
    let mut degrees = vec![0; model.n_params()];
    for tape in &model.derived.tapes {
        let degree = tape.degree();
        for &i in tape.arguments() {
            degrees[i as usize] = degree.max(degrees[i as usize]);
        }
    }
    degrees.into_iter().enumerate().filter(|(_, degree)| *degree > 1).collect()
}

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Returns `minimum` with one parameter of formulas across the vertex of its effect, where -ln
    /// L is not much higher.
    pub(super) fn mirrored_starts(&mut self, minimum: &Minimum) -> Vec<(Vec<f64>, FoundBy)> {
        let Some(mirrors) = self.candidates.mirrors.clone().filter(|_| minimum.converged()) else { return Vec::new() };
        let mut starts = Vec::new();
        for i in mirrors.free(&self.domain) {
            let (lower, upper) = (self.domain.lower[i], self.domain.upper[i]);
            let Some(value) = mirrors.across(&minimum.params, i).map(|value| value.clamp(lower, upper)) else {
                continue;
            };
            if (value - minimum.params[i]).abs() <= SHORTEST * (upper - lower) {
                continue;
            }
            let mut start = minimum.params.clone();
            start[i] = value;
            if self.likelihood.nll(&start) - minimum.nll < HIGHEST_RISE {
                starts.push((start, FoundBy::Move(i, value)));
            }
        }
        starts
    }
}
