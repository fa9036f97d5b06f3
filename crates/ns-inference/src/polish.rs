//! The last step of a fit: a Newton step with the exact Hessian at the minimum, where that improves
//! what is reported.
//!
//! A minimisation ends where the estimated distance in -ln L is negligible, with a Hessian of a
//! point nearby. Distances in the parameters go as the square root of that, and where the Hessian
//! changes rapidly the uncertainties feel it. One step with the Hessian at hand makes both exact to
//! rounding.

use crate::hessian::Hessian;
use crate::minimize::Minimum;
use crate::search::{Search, rises};
use ns_core::SearchLikelihood;

/// A shorter step, in standard deviations, changes no printed digit.
const SHORTEST: f64 = 1e-9;

/// The same in a model of more than [`SMALL`] parameters, where a step and its Hessian take a good
/// part of a fit. Over one standard deviation the Hessian changes by its own size at most, or by
/// the bend of the parameters' effects, about.
const SHORTEST_IN_LARGE: f64 = 1e-7;

/// In a model of up to this number of parameters the Hessian costs little.
const SMALL: usize = 100;

/// The longest step: beyond it the minimum is none that the parabola describes.
const LONGEST: f64 = 1e-2;

/// A smaller EDM after a step is rounding, which differs between processors.
const ROUNDING: f64 = 1e-20;

/// The largest number of steps: each doubles the number of correct digits.
const MOST_STEPS: usize = 3;

/// Takes the step from `best`, whose Hessian is `hessian`, makes the Hessian again, and goes on
/// from there while it is worth it.
///
/// Nothing is done at the edge of the domain, where the gradient does not vanish.
pub(crate) fn polish<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    best: &mut Minimum,
    hessian: &mut Hessian,
) {
    if !best.converged() || best.at_edge {
        return;
    }
    let bend = search.candidates.suspects.iter().map(|suspect| suspect.bend).fold(1.0, f64::max);
    let shortest = if best.params.len() > SMALL { SHORTEST_IN_LARGE / bend } else { SHORTEST };
    for _ in 0..MOST_STEPS {
        if !hessian.is_positive_definite() {
            return;
        }
        if !take_step(search, best, hessian, shortest) {
            return;
        }
        *hessian = Hessian::at(search.likelihood, &best.params, &search.domain);
        best.evaluations += 1;
    }
}

/// Moves `best` by the Newton step and returns whether it did. It does if the step is neither too
/// short nor too long, stays on this side of kinks and bounds, does not lead up, and comes closer
/// to the minimum.
fn take_step<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    best: &mut Minimum,
    hessian: &mut Hessian,
    shortest: f64,
) -> bool {
    let n = best.params.len();
    let mut step = vec![0.0; n];
    let length = newton_step(hessian, &best.gradient, &mut step);
    if length.is_nan() || !(shortest..LONGEST).contains(&length) {
        return false;
    }
    let trial: Vec<f64> = best.params.iter().zip(&step).map(|(x, p)| x + p).collect();
    if !stays_inside(search, &best.params, &trial) {
        return false;
    }
    let mut gradient = vec![0.0; n];
    let nll = search.likelihood.nll_and_grad(&trial, &mut gradient);
    best.evaluations += 1;
    let left = newton_step(hessian, &gradient, &mut step);
    if rises(nll, best.nll) || left.is_nan() || left >= length {
        return false;
    }
    *best = Minimum { params: trial, nll, gradient, edm: (0.5 * left * left).max(ROUNDING), ..best.clone() };
    true
}

/// Writes -H⁻¹`gradient` to `step` (P), and returns its length √(pᵀHp): no parameter moves by more
/// than this number of its standard deviations.
fn newton_step(hessian: &mut Hessian, gradient: &[f64], step: &mut [f64]) -> f64 {
    let downhill: Vec<f64> = gradient.iter().zip(&hessian.free).map(|(g, &free)| if free { -g } else { 0.0 }).collect();
    hessian.solve(&downhill, step);
    step.iter().zip(&downhill).map(|(p, g)| p * g).sum::<f64>().sqrt()
}

/// Returns `true` if no parameter that moves leaves its range, reaches a bound, or is on a kink or
/// crosses one.
fn stays_inside<L: ?Sized>(search: &Search<'_, L>, from: &[f64], to: &[f64]) -> bool {
    let domain = &search.domain;
    let is_kinked = |i: usize| domain.kinked.get(i).copied().unwrap_or(false);
    (0..from.len()).all(|i| {
        let crosses = is_kinked(i) && from[i] * to[i] <= 0.0;
        let rests = from[i] == to[i] && !(is_kinked(i) && from[i] == 0.0);
        domain.fixed[i] || rests || (!crosses && domain.bound_at(i, to[i]).is_none())
    })
}
