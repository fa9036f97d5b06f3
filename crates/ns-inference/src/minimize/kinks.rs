//! Kinks at zero: each step stays on one side of them, and between steps it is decided on which.
//!
//! Piecewise linear and exponential interpolation have different derivatives on the two sides of
//! α = 0. On either side -ln L is smooth, so a step treats zero as a bound; a parameter that was
//! put there goes on through if the derivative of the other side leads downhill. The sign of a zero
//! says which side is meant.

use super::Domain;

/// Writes to `out` the part of the domain in which no kink is crossed from `x`.
pub(super) fn orthant(domain: &Domain, x: &[f64], out: &mut Domain) {
    out.clone_from(domain);
    for i in (0..x.len()).filter(|&i| is_kinked(domain, i)) {
        if x[i].is_sign_positive() {
            out.lower[i] = out.lower[i].max(0.0);
        } else {
            out.upper[i] = out.upper[i].min(-0.0);
        }
    }
}

/// Gives zeros in `trial` the side that `x` is on.
pub(super) fn keep_sides(domain: &Domain, x: &[f64], trial: &mut [f64]) {
    for i in (0..x.len()).filter(|&i| is_kinked(domain, i)) {
        if trial[i] == 0.0 {
            trial[i] = 0.0_f64.copysign(x[i]);
        }
    }
}

/// Puts parameters at zero whose own side leads uphill on the other side in `trial`. Returns
/// whether there are any.
pub(super) fn flip_uphill(domain: &Domain, x: &[f64], gradient: &[f64], trial: &mut [f64]) -> bool {
    trial.copy_from_slice(x);
    let mut any = false;
    for i in (0..x.len()).filter(|&i| is_kinked(domain, i)) {
        if x[i] == 0.0 && gradient[i] * 1.0_f64.copysign(x[i]) > 0.0 {
            trial[i] = -x[i];
            any = true;
        }
    }
    any
}

/// Keeps the flips in `trial` after which `gradient` leads downhill, away from zero, and takes the
/// others back. Returns whether any were kept.
pub(super) fn keep_downhill(x: &[f64], gradient: &[f64], trial: &mut [f64]) -> bool {
    let mut any = false;
    for i in 0..x.len() {
        if trial[i].to_bits() != x[i].to_bits() {
            let downhill = gradient[i] * 1.0_f64.copysign(trial[i]) < 0.0;
            trial[i] = if downhill { trial[i] } else { x[i] };
            any |= downhill;
        }
    }
    any
}

fn is_kinked(domain: &Domain, i: usize) -> bool {
    domain.kinked.get(i).copied().unwrap_or(false) && !domain.fixed[i] && domain.lower[i] < 0.0 && domain.upper[i] > 0.0
}
