//! The constraint terms of eight points: deviances and slopes, each lane against its own auxiliary data.

use super::lanes::{LANES, Lanes};
use super::poisson;
use crate::cpu::isa::Isa;
use crate::cpu::plan::ConstraintTerm;
use ns_core::likelihood::constraint_deviance;
use ns_core::parameters::Constraint;
use ns_core::poisson::LARGE_COUNT;
use ns_core::twofold::Twofold;

/// `rest` (the other terms) and the constraint terms without their normalisations, rounded once at the end; with `GRADIENT`, their slopes are added to
/// `gradient` (P).
#[inline(always)]
pub(crate) fn add<I: Isa, const GRADIENT: bool>(
    isa: I,
    terms: &[ConstraintTerm],
    aux: &[Lanes],
    params: &[Lanes],
    gradient: &mut [Lanes],
    rest: Lanes,
) -> Lanes {
    let (mut small, mut large) = (Lanes::ZERO, [Twofold::default(); LANES]);
    for (term, &aux) in terms.iter().zip(aux) {
        let theta = params[term.param as usize];
        let (deviance, slope) = match term.constraint {
            Constraint::Gaussian { sigma } => gaussian(sigma, aux, theta),
            Constraint::Poisson { tau } => {
                let lambda = Lanes::all(tau) * theta;
                let slope = Lanes::all(tau) * poisson::slope(aux, lambda);
                let mut deviance = poisson::half_deviance(isa, aux, lambda);
                move_large(term.constraint, aux, theta, &mut deviance, &mut large);
                (deviance, slope)
            }
        };
        small = small + deviance;
        if GRADIENT {
            let gradient = &mut gradient[term.param as usize];
            *gradient = *gradient + slope;
        }
    }
    let mut total = Lanes::ZERO;
    for lane in 0..LANES {
        total.0[lane] = (large[lane] + Twofold::sum(small.0[lane], rest.0[lane])).round();
    }
    total
}

/// ½ ((a - θ)/σ)² and its slope.
#[inline(always)]
fn gaussian(sigma: f64, aux: Lanes, theta: Lanes) -> (Lanes, Lanes) {
    let inverse = 1.0 / sigma;
    let (mut deviance, mut slope) = (Lanes::ZERO, Lanes::ZERO);
    for lane in 0..LANES {
        let pull = (theta.0[lane] - aux.0[lane]) * inverse;
        deviance.0[lane] = 0.5 * pull * pull;
        slope.0[lane] = pull * inverse;
    }
    (deviance, slope)
}

/// Replaces terms of large counts, whose digits an f64 cannot hold, by their twofold values in `large`.
#[inline(always)]
fn move_large(constraint: Constraint, aux: Lanes, theta: Lanes, deviance: &mut Lanes, large: &mut [Twofold; LANES]) {
    for lane in 0..LANES {
        if aux.0[lane] >= LARGE_COUNT {
            deviance.0[lane] = 0.0;
            large[lane] = large[lane] + constraint_deviance(constraint, aux.0[lane], theta.0[lane]);
        }
    }
}
