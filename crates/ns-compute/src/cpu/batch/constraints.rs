//! The constraint terms of eight points: deviances and derivatives, each lane against its own
//! auxiliary data.

use super::lanes::{LANES, Lanes};
use super::poisson;
use crate::cpu::isa::Isa;
use crate::cpu::plan::ConstraintTerm;
use ns_core::Constraint;
use ns_core::double_double::DoubleDouble;
use ns_core::poisson::LARGE_COUNT;

/// Eight points with their auxiliary data.
#[derive(Clone, Copy)]
pub(crate) struct ConstrainedPoint<'a> {
    /// The auxiliary data (K).
    pub(crate) aux: &'a [Lanes],
    /// The points (P).
    pub(crate) params: &'a [Lanes],
}

/// Returns the sum of `rest` (the other terms) and of the constraint terms without their
/// normalisations, rounded once at the end. With `GRADIENT`, adds their derivatives to `gradient`
/// (P).
#[inline(always)]
pub(crate) fn add<I: Isa, const GRADIENT: bool>(
    isa: I,
    terms: &[ConstraintTerm],
    point: ConstrainedPoint<'_>,
    gradient: &mut [Lanes],
    rest: Lanes,
) -> Lanes {
    let ConstrainedPoint { aux, params } = point;
    let (mut small, mut large) = (Lanes::ZERO, [DoubleDouble::default(); LANES]);
    for (term, &aux) in terms.iter().zip(aux) {
        let theta = params[term.param as usize];
        let (deviance, derivative) = match term.constraint {
            Constraint::Gaussian { sigma } => gaussian(sigma, aux, theta),
            Constraint::Poisson { tau } => {
                let lambda = Lanes::all(tau) * theta;
                let derivative = Lanes::all(tau) * poisson::derivative(aux, lambda);
                let mut deviance = poisson::half_deviance(isa, aux, lambda);
                move_large(term.constraint, aux, theta, &mut deviance, &mut large);
                (deviance, derivative)
            }
            Constraint::AsymmetricGaussian { .. } | Constraint::Gamma { .. } | Constraint::LogNormal { .. } => {
                lane_by_lane(term.constraint, aux, theta, &mut large)
            }
        };
        small = small + deviance;
        if GRADIENT {
            let gradient = &mut gradient[term.param as usize];
            *gradient = *gradient + derivative;
        }
    }
    let mut total = Lanes::ZERO;
    for lane in 0..LANES {
        total.0[lane] = (large[lane] + DoubleDouble::sum(small.0[lane], rest.0[lane])).round();
    }
    total
}

/// Returns ½ ((a - θ)/σ)² and its derivative.
#[inline(always)]
fn gaussian(sigma: f64, aux: Lanes, theta: Lanes) -> (Lanes, Lanes) {
    let inverse = 1.0 / sigma;
    let (mut deviance, mut derivative) = (Lanes::ZERO, Lanes::ZERO);
    for lane in 0..LANES {
        let pull = (theta.0[lane] - aux.0[lane]) * inverse;
        deviance.0[lane] = 0.5 * pull * pull;
        derivative.0[lane] = pull * inverse;
    }
    (deviance, derivative)
}

/// Returns the deviance and its derivative of terms that few models have; all deviances go to
/// `large`.
#[inline(never)]
fn lane_by_lane(constraint: Constraint, aux: Lanes, theta: Lanes, large: &mut [DoubleDouble; LANES]) -> (Lanes, Lanes) {
    let mut derivative = Lanes::ZERO;
    for lane in 0..LANES {
        let (aux, theta) = (aux.0[lane], theta.0[lane]);
        large[lane] = large[lane] + constraint.deviance(aux, theta);
        derivative.0[lane] = constraint.derivatives(aux, theta).0;
    }
    (Lanes::ZERO, derivative)
}

/// Moves terms of large counts, whose digits do not fit into an f64, to `large` as double-doubles.
#[inline(always)]
fn move_large(
    constraint: Constraint,
    aux: Lanes,
    theta: Lanes,
    deviance: &mut Lanes,
    large: &mut [DoubleDouble; LANES],
) {
    for lane in 0..LANES {
        if aux.0[lane] >= LARGE_COUNT {
            deviance.0[lane] = 0.0;
            large[lane] = large[lane] + constraint.deviance(aux.0[lane], theta.0[lane]);
        }
    }
}
