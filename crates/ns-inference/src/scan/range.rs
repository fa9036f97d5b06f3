//! The default range of a scan: as far as the profile has risen enough.

use super::{ROUNDS, ScanAxis, ScanValues};
use crate::crossing::{Crossing, ProfileLine, ProfileRise, crossing};
use crate::profile::Profiler;
use crate::response::Response;
use crate::result::BestFit;
use ns_core::SearchLikelihood;

/// √(2 Δ) at the ends of a scan, and how well it is met.
const HEIGHT: f64 = 3.0;
const TOLERANCE: f64 = 0.05;

/// Returns the values of `axis`.
pub(super) fn resolve<L: SearchLikelihood + ?Sized>(
    profiler: &mut Profiler<'_, L>,
    axis: &ScanAxis,
    best: &BestFit,
) -> Vec<f64> {
    let points = match &axis.values {
        ScanValues::Given(values) => return values.clone(),
        ScanValues::Automatic(points) => *points,
    };
    if !best.nll.is_finite() {
        return Vec::new();
    }
    for _ in 0..ROUNDS {
        let best = profiler.best_fit();
        let [start, stop] = ends(profiler, axis.parameter, &best);
        if profiler.best().nll == best.nll {
            return match ScanValues::between(start, stop, points) {
                ScanValues::Given(values) => values,
                ScanValues::Automatic(_) => Vec::new(),
            };
        }
    }
    Vec::new()
}

fn ends<L: SearchLikelihood + ?Sized>(profiler: &mut Profiler<'_, L>, parameter: usize, best: &BestFit) -> [f64; 2] {
    let domain = profiler.domain().clone();
    let (model, middle) = (profiler.model(), best.params[parameter]);
    let response = Response::at(model, profiler.likelihood(), &domain, &best.params, &[parameter]);
    [-1.0, 1.0].map(|sign| {
        let end = if sign < 0.0 { middle - domain.lower[parameter] } else { domain.upper[parameter] - middle };
        let line = ProfileLine { target: HEIGHT, tolerance: TOLERANCE, first: HEIGHT * response.width(0), end };
        let mut last = best.params.clone();
        let found = crossing(&line, |t| {
            let value = middle + sign * t;
            let at = profiler.at_from(&[(parameter, value)], &[response.moved(&last, &[value])]);
            if at.converged() {
                last.clone_from(&at.params);
            }
            let derivative = at.gradient.get(parameter).map_or(f64::NAN, |gradient| sign * gradient);
            ProfileRise::of(&at, best.nll, derivative)
        });
        match found {
            // At the end of the range it is the bound to the last bit.
            Crossing::Open(t) if t == end => [&domain.lower, &domain.upper][usize::from(sign > 0.0)][parameter],
            Crossing::At(t) | Crossing::Open(t) | Crossing::EndOfDomain(t) => middle + sign * t,
            Crossing::Failed(_) => middle + sign * line.first.min(end),
        }
    })
}
