//! Confidence contours of two parameters: where -2 ln λ has risen to the level of a confidence
//! level with two degrees of freedom.
//!
//! Points are found along rays from the best fit, as equally spaced on the ellipse of a parabola as
//! the covariance can make them. Where a parameter's range cuts the region off, the polygon follows
//! the bound, and the exact ends of the cut are among its points.

use crate::crossing::{Crossing, ProfileLine, ProfileRise, crossing};
use crate::minimize::BoundSide;
use crate::minimize::{Domain, Minimum, Outcome};
use crate::options::FitOptions;
use crate::parallel::{self, ExecutionContext};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::response::Response;
use crate::result::{AtBound, BestFit};
use crate::scan::ROUNDS;
use crate::search::{BasinPool, lowest_of};
use ns_core::{Model, SearchLikelihood};
use serde::Serialize;

/// How well √(2 Δ) is met: 1e-7 in 2 Δ at the height of five standard deviations.
const TOLERANCE: f64 = 1e-8;

/// Which contours.
#[derive(Debug, Clone, PartialEq)]
pub struct ContourOptions {
    /// The two parameters, which must be free.
    pub parameters: [usize; 2],
    /// Confidence levels between 0 and 1.
    pub levels: Vec<f64>,
    /// Rays per contour; a multiple of four has them along both axes.
    pub n_points: usize,
}

/// Contours with the minimum that they surround.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contours {
    /// Names of the two parameters.
    pub parameters: [String; 2],
    /// One per confidence level.
    pub contours: Vec<Contour>,
    /// The free fit that they refer to.
    #[serde(rename = "fit")]
    pub best: BestFit,
    /// Whether all points were done.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Whether the free fit and every point converged.
    pub converged: bool,
    /// What a reader should know before using the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// One contour: a polygon, to be closed from its last point to its first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contour {
    /// The confidence level.
    pub cl: f64,
    /// -2 ln λ on the curve.
    pub twice_delta_nll: f64,
    /// Its points, once round the best fit.
    pub points: Vec<ContourPoint>,
}

/// A corner of the polygon.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContourPoint {
    /// The values of the two parameters.
    pub values: [f64; 2],
    /// -2 ln λ there: the contour's, or less where it is cut off; `None` where a fit did not
    /// converge, and the values mean nothing.
    pub twice_delta_nll: Option<f64>,
    /// What cuts the contour off here, if anything does.
    pub cut: Option<ContourCut>,
    /// How the last conditional fit ended.
    pub outcome: Outcome,
}

/// What keeps a contour from reaching its level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ContourCut {
    /// The range of a parameter.
    Range(AtBound),
    /// The likelihood, which is not finite beyond.
    Domain,
}

/// Returns -2 ln λ on the contour of a confidence level, for two degrees of freedom: -2 ln(1 - CL).
///
/// ```
/// let level = ns_inference::contour::level(0.95);
/// assert!((level - 5.991_464_547_107_979).abs() < 1e-14);
/// ```
#[must_use]
pub fn level(confidence: f64) -> f64 {
    -2.0 * (-confidence).ln_1p()
}

/// Returns the contours of `model` that `wanted` asks for.
///
/// Rays see what lies in a straight line from the best fit: of a region that bends round a corner
/// they trace the near part.
pub fn contours<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    wanted: &ContourOptions,
    execution: ExecutionContext<'_>,
) -> Contours {
    let Problem { model, ref likelihood, options } = *problem;
    let likelihood: &L = likelihood;
    let mut own = likelihood.clone();
    let mut profiler = Profiler::new(model, &mut own, options);
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let best = profiler.best_fit();
        if !best.converged {
            break;
        }
        let domain = profiler.domain().clone();
        let response = Response::at(model, profiler.likelihood(), &domain, &best.params, &wanted.parameters);
        let (best, pool) = (profiler.best().clone(), profiler.pool().clone());
        let plane = Plane { model, likelihood, options, wanted, best, pool, domain, response };
        let (traces, lower) = plane.trace(execution);
        profiler.note_cut_short(traces.iter().flatten().any(|trace| trace.is_cut_short));
        found = plane.polygons(traces);
        let Some(lower) = lower else { break };
        let known = profiler.best().nll;
        profiler.try_from_point(&lower.params);
        if profiler.best().nll == known {
            break;
        }
    }
    let mut contours = assemble(model, wanted, profiler.best_fit(), &found);
    contours.warnings.extend(profiler.search_warnings());
    contours
}

fn assemble(model: &Model, wanted: &ContourOptions, best: BestFit, found: &[Option<Vec<ContourPoint>>]) -> Contours {
    let n_done = found.iter().flatten().count();
    let is_complete = best.converged && n_done == found.len();
    let per_level = found.len() / wanted.levels.len().max(1);
    let mut contours = Vec::with_capacity(wanted.levels.len());
    for (k, &cl) in wanted.levels.iter().enumerate() {
        let part = found.iter().skip(k * per_level).take(per_level).flatten();
        let points = part.flatten().cloned().collect();
        contours.push(Contour { cl, twice_delta_nll: level(cl), points });
    }
    let points = || contours.iter().flat_map(|contour: &Contour| &contour.points);
    let failed = points().filter(|point| point.twice_delta_nll.is_none()).count();
    let cut = points().filter(|point| point.cut.is_some()).count();
    let mut warnings = Vec::new();
    if !best.converged {
        warnings.push("the free fit did not converge, so there is nothing to refer to".to_owned());
    }
    if best.converged && !is_complete {
        warnings.push(format!("stopped after {n_done} of {} rays", found.len()));
    }
    if failed > 0 {
        warnings.push(format!("{failed} points did not converge; they are null"));
    }
    if cut > 0 {
        warnings.push(format!("{cut} points lie where a range or the end of the likelihood cuts the contour off"));
    }
    let converged = best.converged && failed == 0;
    let parameters = wanted.parameters.map(|i| model.parameters.names[i].clone());
    Contours { parameters, contours, best, is_complete, converged, warnings }
}

/// What all rays share.
struct Plane<'a, L> {
    model: &'a Model,
    likelihood: &'a L,
    options: &'a FitOptions,
    wanted: &'a ContourOptions,
    best: Minimum,
    /// Minima beside the lowest, from which every ray starts too.
    pool: BasinPool,
    domain: Domain,
    response: Response,
}

/// The points that one ray, or one edge of the ranges, has on a contour.
struct Trace {
    points: Vec<ContourPoint>,
    lower: Option<Minimum>,
    is_cut_short: bool,
}

/// A straight way through the plane, in one direction.
struct Ray {
    from: [f64; 2],
    direction: [f64; 2],
    /// How far the ranges allow to go, and what ends the way there.
    end: f64,
    cut: Option<AtBound>,
}

/// The four edges of the ranges: which parameter is at a bound, and at which.
const EDGES: [(usize, BoundSide); 4] =
    [(0, BoundSide::Lower), (0, BoundSide::Upper), (1, BoundSide::Lower), (1, BoundSide::Upper)];

impl<L: SearchLikelihood + Clone + Sync> Plane<'_, L> {
    /// Traces rays and edges of all levels, one level after the other. Returns them and the lowest
    /// free minimum met that is lower than the known one.
    fn trace(&self, execution: ExecutionContext<'_>) -> (Vec<Option<Trace>>, Option<Minimum>) {
        let per_level = self.wanted.n_points + EDGES.len();
        let n = self.wanted.levels.len() * per_level;
        let make = || self.likelihood.clone();
        let traces = parallel::map(n, execution, make, |likelihood, at| {
            let around = Profiler::around(self.model, likelihood, self.options, &self.best);
            let mut profiler = around.with_pool(&self.pool);
            let target = level(self.wanted.levels[at / per_level]).sqrt();
            let points = match EDGES.get((at % per_level).wrapping_sub(self.wanted.n_points)) {
                None => self.along_ray(&mut profiler, at % per_level, target),
                Some(&(k, side)) => self.along_edge(&mut profiler, k, side, target),
            };
            let lower = profiler.lower_than(&self.best);
            Trace { points, lower, is_cut_short: profiler.is_cut_short() }
        });
        let lower = traces.iter().flatten().filter_map(|trace| trace.lower.as_ref());
        let lower = lowest_of(lower, |minimum| minimum.nll).cloned();
        (traces, lower)
    }

    /// Returns the points of each level, sorted once round the best fit.
    fn polygons(&self, traces: Vec<Option<Trace>>) -> Vec<Option<Vec<ContourPoint>>> {
        let per_level = self.wanted.n_points + EDGES.len();
        let mut found: Vec<Option<Vec<ContourPoint>>> =
            traces.into_iter().map(|trace| trace.map(|trace| trace.points)).collect();
        for level in found.chunks_mut(per_level) {
            let mut points: Vec<ContourPoint> = level.iter_mut().flatten().flat_map(std::mem::take).collect();
            points.sort_by(|a, b| self.angle(a.values).total_cmp(&self.angle(b.values)));
            // A ray that meets the end of a cut repeats it.
            points.dedup_by(|next, kept| {
                let is_same = self.is_same(next.values, kept.values);
                if is_same {
                    kept.cut = kept.cut.take().or_else(|| next.cut.take());
                }
                is_same
            });
            if let Some(first) = level.iter_mut().flatten().next() {
                *first = points;
            }
        }
        found
    }

    /// Returns the angle at which the best fit sees a point, from 0 to 2π, where the covariance is
    /// a circle.
    fn angle(&self, values: [f64; 2]) -> f64 {
        let [l00, l10, l11] = self.response.triangle();
        let [a, b] = self.center();
        let x = (values[0] - a) / l00;
        let angle = (((values[1] - b) - l10 * x) / l11).atan2(x);
        // Rounding must not move the first ray to the end.
        if angle < -1e-9 { angle + std::f64::consts::TAU } else { angle.max(0.0) }
    }

    /// Returns whether two points are one, to within rounding.
    fn is_same(&self, a: [f64; 2], b: [f64; 2]) -> bool {
        (0..2).all(|k| (a[k] - b[k]).abs() <= 1e-9 * self.response.width(k))
    }

    fn center(&self) -> [f64; 2] {
        self.wanted.parameters.map(|i| self.best.params[i])
    }

    fn along_ray(&self, profiler: &mut Profiler<'_, L>, k: usize, target: f64) -> Vec<ContourPoint> {
        let angle = std::f64::consts::TAU * k as f64 / self.wanted.n_points as f64;
        let exact = |x: f64| if x.abs() < 1e-14 { 0.0 } else { x };
        let (x, y) = (exact(angle.cos()), exact(angle.sin()));
        let [l00, l10, l11] = self.response.triangle();
        let ray = self.ray(self.center(), [l00 * x, l10 * x + l11 * y]);
        // Best fits at a bound have nothing behind it.
        if ray.end <= 0.0 {
            return Vec::new();
        }
        vec![self.crossing_on(profiler, &ray, &self.best, target, target)]
    }

    /// Returns the ends of the part of an edge that lies inside the contour, if there is one.
    fn along_edge(&self, profiler: &mut Profiler<'_, L>, k: usize, side: BoundSide, target: f64) -> Vec<ContourPoint> {
        let i = self.wanted.parameters[k];
        let bound = if side == BoundSide::Lower { self.domain.lower[i] } else { self.domain.upper[i] };
        if !bound.is_finite() {
            return Vec::new();
        }
        let middle = profiler.at(&[(i, bound)]);
        let rise = 2.0 * (middle.nll - self.best.nll).max(0.0);
        if !middle.converged() || rise >= target * target {
            return Vec::new();
        }
        let cut = AtBound { parameter: self.model.parameters.names[i].clone(), side, bound };
        let from = self.wanted.parameters.map(|i| middle.params[i]);
        let [l00, l10, l11] = self.response.triangle();
        // The width of the other parameter while this one is fixed.
        let width = if k == 0 { l11 } else { l00 * l11 / l10.hypot(l11) };
        let ends = [-1.0, 1.0].map(|sign| {
            let mut direction = [0.0; 2];
            direction[1 - k] = sign * width;
            let ray = self.ray(from, direction);
            (ray.end > 0.0).then(|| self.crossing_on(profiler, &ray, &middle, target, (target * target - rise).sqrt()))
        });
        let with_cut = |point: ContourPoint| ContourPoint { cut: Some(ContourCut::Range(cut.clone())), ..point };
        ends.into_iter().flatten().map(with_cut).collect()
    }

    /// Returns the way from `from` in `direction` to the end of the ranges.
    fn ray(&self, from: [f64; 2], direction: [f64; 2]) -> Ray {
        let mut ray = Ray { from, direction, end: f64::INFINITY, cut: None };
        for (k, side) in EDGES {
            let i = self.wanted.parameters[k];
            let bound = if side == BoundSide::Lower { self.domain.lower[i] } else { self.domain.upper[i] };
            let is_ahead = if side == BoundSide::Lower { direction[k] < 0.0 } else { direction[k] > 0.0 };
            let end = (bound - from[k]) / direction[k];
            if is_ahead && end < ray.end {
                ray.end = end.max(0.0);
                ray.cut = Some(AtBound { parameter: self.model.parameters.names[i].clone(), side, bound });
            }
        }
        ray
    }

    /// Returns the point of `ray` at which the profile reaches the height `target`. The first fit
    /// is at `first` on the ray, and starts at the conditional minimum `start`.
    fn crossing_on(
        &self,
        profiler: &mut Profiler<'_, L>,
        ray: &Ray,
        start: &Minimum,
        target: f64,
        first: f64,
    ) -> ContourPoint {
        let parameters = self.wanted.parameters;
        let values_at = |t: f64| self.place(ray, t);
        let mut last = start.clone();
        let mut seen: Option<(f64, f64)> = None;
        let line = ProfileLine { target, tolerance: TOLERANCE, first, end: ray.end };
        let found = crossing(&line, |t| {
            let values = values_at(t);
            let fixed = [(parameters[0], values[0]), (parameters[1], values[1])];
            let at = profiler.at_from(&fixed, &[self.response.moved(&last.params, &values)]);
            let derivative =
                (0..2).map(|k| at.gradient.get(parameters[k]).map_or(f64::NAN, |g| g * ray.direction[k])).sum();
            let height = ProfileRise::of(&at, self.best.nll, derivative);
            if at.converged() {
                seen = Some((t, 2.0 * (at.nll - self.best.nll)));
                last = at;
            }
            height
        });
        let (t, cut, outcome) = match found {
            Crossing::At(t) => (t, None, Outcome::Converged),
            Crossing::Open(t) => (t, ray.cut.clone().map(ContourCut::Range), Outcome::Converged),
            Crossing::EndOfDomain(t) => (t, Some(ContourCut::Domain), Outcome::Converged),
            Crossing::Failed(outcome) => (0.0, None, outcome),
        };
        let twice_delta_nll = seen.filter(|(at, _)| *at == t && outcome == Outcome::Converged).map(|(_, twice)| twice);
        ContourPoint { values: values_at(t), twice_delta_nll, cut, outcome }
    }

    /// Returns where the ray is at `t`: at its end exactly on the bound.
    fn place(&self, ray: &Ray, t: f64) -> [f64; 2] {
        let mut values = [0, 1].map(|k| ray.from[k] + t * ray.direction[k]);
        for k in 0..2 {
            let i = self.wanted.parameters[k];
            let (lower, upper) = (self.domain.lower[i], self.domain.upper[i]);
            let near = |bound: f64| t == ray.end && (values[k] - bound).abs() <= 1e-12 * bound.abs().max(1.0);
            values[k] = if near(lower) {
                lower
            } else if near(upper) {
                upper
            } else {
                values[k]
            };
        }
        values
    }
}
