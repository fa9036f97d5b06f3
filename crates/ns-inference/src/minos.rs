//! Asymmetric intervals from the profile likelihood (MINOS): where the conditional minimum has
//! risen by z²/2 above the best fit, z being 1 for an interval of one standard deviation.
//!
//! The profile's derivative is the gradient of -ln L in that parameter at the conditional minimum,
//! so a Newton iteration on √(2 Δ) = z needs two or three conditional fits a side, each started
//! where the last ones point to (F. James and M. Roos, Comput. Phys. Commun. 10 (1975) 343).

use crate::hessian::Hessian;
use crate::minimize::Minimum;
use crate::normal::significance;
use crate::result::{MinosInterval, ONE_SIGMA};
use crate::search::{BasinPool, Search, is_below_best_fit};
use ns_core::{Parameters, SearchLikelihood};

/// What a profile found.
#[derive(Debug, Clone, PartialEq)]
pub enum MinosProfile {
    /// The interval.
    Interval(MinosInterval),
    /// A point below the best fit: the search must start again there.
    LowerMinimum(Vec<f64>),
}

/// The minimum that an interval is of, what is known beside it, and the parameter.
#[derive(Debug, Clone, Copy)]
pub struct MinosRequest<'a> {
    /// The lowest free minimum.
    pub best: &'a Minimum,
    /// Other minima, from which conditional ones are looked for too.
    pub pool: &'a BasinPool,
    /// The parameter whose interval is wanted.
    pub parameter: usize,
    /// The confidence level of the interval.
    pub cl: f64,
}

impl MinosRequest<'_> {
    /// Returns z, the height √(2 Δ) that the ends of the interval have.
    fn height(&self) -> f64 {
        height(self.cl)
    }
}

/// Returns the number of standard deviations on each side of the best fit that an interval at
/// confidence level `cl` has.
pub(crate) fn height(cl: f64) -> f64 {
    // Exact for the usual level.
    if cl == ONE_SIGMA { 1.0 } else { significance(0.5 * (1.0 - cl)) }
}

/// Returns the interval of one parameter around a minimum.
pub fn interval<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    parameters: &Parameters,
    around: MinosRequest<'_>,
    hessian: &mut Hessian,
) -> MinosProfile {
    let MinosRequest { best, parameter: i, .. } = around;
    let mut sides = [None, None];
    for (side, sign) in sides.iter_mut().zip([-1.0, 1.0]) {
        match crossing(search, around, hessian, sign) {
            Crossing::At(value) => *side = Some(value - best.params[i]),
            Crossing::None => {}
            Crossing::LowerMinimum(params) => return MinosProfile::LowerMinimum(params),
        }
    }
    let [down, up] = sides;
    let (parameter, bestfit) = (parameters.names[i].clone(), best.params[i]);
    MinosProfile::Interval(MinosInterval { parameter, cl: around.cl, bestfit, down, up })
}

enum Crossing {
    At(f64),
    None,
    LowerMinimum(Vec<f64>),
}

/// A conditional minimum on the way to the crossing.
struct Point {
    value: f64,
    /// Whether -ln L is finite there.
    is_finite: bool,
    params: Vec<f64>,
}

fn crossing<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    request: MinosRequest<'_>,
    hessian: &mut Hessian,
    sign: f64,
) -> Crossing {
    let (MinosRequest { best, pool, parameter: i, .. }, target) = (request, request.height());
    if search.domain.fixed[i] {
        return Crossing::None;
    }
    let edge = if sign < 0.0 { search.domain.lower[i] } else { search.domain.upper[i] };
    let width = first_width(search, best, hessian, i);
    let mut inner = Point { value: best.params[i], is_finite: true, params: best.params.clone() };
    let mut outer: Option<Point> = None;
    let mut next = clip(best.params[i] + sign * target * width, edge, sign);
    if next == best.params[i] {
        return Crossing::None;
    }
    for _ in 0..60 {
        let start = predict(best, hessian, i, &inner, next);
        search.domain.fixed[i] = true;
        let minimum = search.lowest_from(&start, pool);
        search.domain.fixed[i] = false;
        let rise = minimum.nll - best.nll;
        if is_below_best_fit(rise) && minimum.converged() {
            return Crossing::LowerMinimum(minimum.params);
        }
        // √(2 Δ), which is to become z.
        let height = if minimum.nll.is_finite() { (2.0 * rise.max(0.0)).sqrt() } else { f64::INFINITY };
        let derivative = if height > 0.0 { minimum.gradient[i] / height } else { 0.0 };
        if (height - target).abs() < 1e-9 * target {
            return Crossing::At(next);
        }
        let point = Point { value: next, is_finite: height.is_finite(), params: minimum.params };
        if height < target {
            if next == edge {
                return Crossing::None;
            }
            inner = point;
        } else {
            outer = Some(point);
        }
        let newton = next + (target - height) / derivative;
        next = clip(propose(next, newton, &inner, outer.as_ref(), sign), edge, sign);
        if let Some(outer) = &outer
            && (outer.value - inner.value).abs() < 1e-12 * width
        {
            // Between a finite rise and the end of the domain there is no crossing.
            return if outer.is_finite { Crossing::At(next) } else { Crossing::None };
        }
    }
    Crossing::None
}

/// Returns the Hessian's standard deviation, or a tenth of the range where it has none.
fn first_width<L: ?Sized>(search: &Search<'_, L>, best: &Minimum, hessian: &Hessian, i: usize) -> f64 {
    let sigma = hessian.variance(i).sqrt();
    if sigma > 0.0 && sigma.is_finite() {
        return sigma;
    }
    let range = search.domain.upper[i] - search.domain.lower[i];
    if range.is_finite() { 0.1 * range } else { 0.1 * best.params[i].abs().max(1.0) }
}

/// Returns the next value: `newton` if it is inside the bracket, else its middle, and never more
/// than three times as far outwards as `at`.
fn propose(at: f64, newton: f64, inner: &Point, outer: Option<&Point>, sign: f64) -> f64 {
    match outer {
        Some(outer) => {
            let inside = sign * (newton - inner.value) > 0.0 && sign * (outer.value - newton) > 0.0;
            if inside && newton.is_finite() { newton } else { 0.5 * (inner.value + outer.value) }
        }
        None => {
            let done = (at - inner.value).abs().max(1e-3 * at.abs()).max(f64::MIN_POSITIVE);
            let reach = sign * (newton - at);
            if reach.is_finite() && reach > 0.0 {
                at + sign * reach.min(3.0 * done.max(reach.min(1.0)))
            } else {
                at + sign * 2.0 * done
            }
        }
    }
}

fn clip(value: f64, edge: f64, sign: f64) -> f64 {
    if sign < 0.0 { value.max(edge) } else { value.min(edge) }
}

/// Returns where the conditional minimum at `next` should be: the last one moved along the
/// covariance's direction.
fn predict(best: &Minimum, hessian: &mut Hessian, i: usize, from: &Point, next: f64) -> Vec<f64> {
    let mut start = from.params.clone();
    let variance = hessian.variance(i);
    if variance > 0.0 && variance.is_finite() {
        let mut column = vec![0.0; best.params.len()];
        hessian.covariance_column(i, &mut column);
        let step = (next - from.value) / variance;
        start.iter_mut().zip(&column).for_each(|(s, c)| *s += step * c);
    }
    start[i] = next;
    start
}
