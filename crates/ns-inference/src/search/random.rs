//! Random starts: drawn where minima can be, and given up as soon as they fall into a known basin.
//!
//! Starts of three kinds take turns: all parameters drawn from their constraint terms; the best
//! minimum moved along columns of its covariance by a few standard deviations; and the best minimum
//! with a few parameters drawn anew, at bounds too, where no covariance moves them. A start is
//! given up if steps with the factorised Hessian of the best minimum carry it there: each costs a
//! gradient and no new matrix.

use super::Search;
use super::depth::{distinct, is_below};
use super::local::add_cost;
use super::pool::FoundBy;
use crate::hessian::Hessian;
use crate::minimize::Minimum;
use crate::random;
use ns_core::{Model, SearchLikelihood};

/// Columns of the covariance that one start moves along.
const COLUMNS: usize = 3;

/// How far at most, in standard deviations.
const REACH: f64 = 4.0;

/// One in this many parameters is drawn anew.
const RARE: f64 = 5.0;

/// A minimum with a constrained parameter this far from its start, in widths of its constraint
/// term, is strained: the other ones are where nothing is linear any more.
const STRAINED: f64 = 4.0;

/// Starts round a strained minimum, and how often they are repeated from a lower one.
const KICKS: usize = 10;
const KICK_ROUNDS: usize = 3;

/// Steps with the known factor, and by how much each must shrink the distance to the known minimum.
const STEPS: usize = 4;
const SHRINK: f64 = 0.4;

/// A point that is nearer than this to a minimum, in standard deviations, has fallen into its
/// basin.
const IN_BASIN: f64 = 0.3;

/// What the random starts of one fit have led to.
#[derive(Debug)]
pub struct RandomStarts {
    /// The ends, the lowest one first: where `start` led, and what no known basin took.
    pub minima: Vec<(Minimum, FoundBy)>,
    /// Starts that were given up because they fell into the basin of the first minimum.
    pub n_known: usize,
}

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Minimises from `start` and from `n_starts` random points.
    pub fn run_all(&mut self, model: &Model, start: &[f64], n_starts: usize, seed: u64) -> RandomStarts {
        let first = self.run(start);
        let mut known = Known::of(self, &first);
        let (mut minima, mut n_known) = (vec![(first.clone(), FoundBy::Start)], 0);
        for k in 0..n_starts {
            if self.likelihood.is_stopped() {
                break;
            }
            let point = self.random_start(model, start, &mut known, seed, k);
            match known.as_mut().map(|known| known.takes(self, &point)) {
                Some(Taken { evaluations, is_known: true }) => {
                    n_known += 1;
                    minima[0].0.evaluations += evaluations;
                    self.spent.evaluations += evaluations;
                }
                _ => minima.push((self.run(&point), FoundBy::RandomStart(k))),
            }
        }
        minima.sort_by(|(a, _), (b, _)| (!a.nll.is_finite()).cmp(&!b.nll.is_finite()).then(a.nll.total_cmp(&b.nll)));
        // A point that was reached but is not a minimum counts only if it is lower than every
        // minimum.
        if let Some(first) =
            minima.iter().position(|(m, _)| m.converged() && m.nll <= minima[0].0.nll + distinct(m.nll))
        {
            minima[..=first].rotate_right(1);
        }
        let (lowest, rest) = minima.split_at_mut(1);
        rest.iter().for_each(|(other, _)| add_cost(&mut lowest[0].0, &[other]));
        RandomStarts { minima, n_known }
    }

    /// Draws random start number `k` of `seed`.
    fn random_start(&self, model: &Model, start: &[f64], known: &mut Option<Known>, seed: u64, k: usize) -> Vec<f64> {
        match (known.as_mut(), k % 3) {
            (Some(known), 1) => known.moved_along_columns(self, seed, k),
            (Some(known), 2) => self.partly_drawn(model, &known.params, seed, k),
            _ => self.drawn_from_constraints(model, start, seed, k),
        }
    }

    /// Finds lower minima than `minimum`, the lowest one last, that starts near it with a few
    /// parameters drawn anew lead to; and how they were found.
    pub(crate) fn kicked(&mut self, model: &Model, minimum: &Minimum) -> Vec<(Minimum, FoundBy)> {
        let mut found: Vec<(Minimum, FoundBy)> = Vec::new();
        for round in 0..KICK_ROUNDS {
            let from = found.last().map_or(minimum, |(lower, _)| lower).clone();
            let mut lowest: Option<(Minimum, FoundBy)> = None;
            for k in 0..KICKS {
                if self.likelihood.is_stopped() {
                    return found;
                }
                let start = self.partly_drawn(model, &from.params, round as u64, k);
                if start == from.params {
                    continue;
                }
                let end = self.run(&start);
                let bar = lowest.as_ref().map_or(from.nll - distinct(from.nll), |(lowest, _)| lowest.nll);
                if end.converged() && is_below(end.nll, bar) {
                    lowest = Some((end, FoundBy::NearPulled(k)));
                }
            }
            match lowest {
                Some(lower) => found.push(lower),
                None => break,
            }
        }
        found
    }

    /// Returns `true` if a free constrained parameter of `minimum` is far from its start.
    pub(crate) fn is_strained(&self, model: &Model, minimum: &Minimum) -> bool {
        minimum.nll.is_finite() && self.has_large_pulls(model, &minimum.params)
    }

    /// Returns `true` if a free constrained parameter of `params` (P) is far from its start.
    pub(crate) fn has_large_pulls(&self, model: &Model, params: &[f64]) -> bool {
        let parameters = &model.parameters;
        let is_far = |i: usize| {
            let init = parameters.init[i];
            let width = parameters.constraint[i].map(|constraint| constraint.width(init.abs()));
            width.is_some_and(|width| (params[i] - init).abs() >= STRAINED * width)
        };
        (0..params.len()).any(|i| !self.domain.fixed[i] && is_far(i))
    }

    /// Returns `params` (P) with a few of the constrained parameters drawn anew, within four widths
    /// of their start.
    fn partly_drawn(&self, model: &Model, params: &[f64], seed: u64, k: usize) -> Vec<f64> {
        let parameters = &model.parameters;
        let draw = |(i, &x): (usize, &f64)| {
            let u = |which: u64| random::uniform(seed ^ 0x6b69_636b, k as u64, 2 * i as u64 + which);
            match parameters.constraint[i].filter(|_| !self.domain.fixed[i] && u(0) * RARE < 1.0) {
                Some(constraint) => {
                    let (init, reach) = (parameters.init[i], 8.0 * u(1) - 4.0);
                    let value = init + reach * constraint.width(init.abs());
                    value.clamp(self.domain.lower[i], self.domain.upper[i])
                }
                None => x,
            }
        };
        params.iter().enumerate().map(draw).collect()
    }

    /// Draws constrained parameters within two widths of their start, free ones up to three times
    /// their start.
    fn drawn_from_constraints(&self, model: &Model, start: &[f64], seed: u64, k: usize) -> Vec<f64> {
        let coordinate = |i: usize| {
            if self.domain.fixed[i] {
                return start[i];
            }
            let u = random::uniform(seed, k as u64, i as u64);
            let (lower, upper) = (self.domain.lower[i], self.domain.upper[i]);
            let center = start[i].clamp(lower, upper);
            let value = match model.parameters.constraint[i] {
                Some(constraint) => center + (4.0 * u - 2.0) * constraint.width(model.parameters.init[i].abs()),
                None => {
                    let reach = (3.0 * center.abs()).max(1.0);
                    let (low, high) = (lower.max(-reach), upper.min(reach));
                    low + u * (high - low)
                }
            };
            value.clamp(lower, upper)
        };
        (0..start.len()).map(coordinate).collect()
    }
}

/// A minimum with its factorised Hessian.
struct Known {
    params: Vec<f64>,
    hessian: Hessian,
    deviations: Vec<f64>,
    gradient: Vec<f64>,
    step: Vec<f64>,
}

/// Whether a point fell into a known basin, and what it cost to know.
struct Taken {
    evaluations: usize,
    is_known: bool,
}

impl Known {
    /// Returns what is known of `minimum`, if it is one and its Hessian is positive definite.
    fn of<L: SearchLikelihood + ?Sized>(search: &mut Search<'_, L>, minimum: &Minimum) -> Option<Self> {
        if !minimum.converged() || minimum.at_edge || !search.domain.kinked.is_empty() {
            return None;
        }
        let hessian = Hessian::at(search.likelihood, &minimum.params, &search.domain);
        let n = minimum.params.len();
        let deviations: Vec<f64> = (0..n).map(|i| hessian.variance(i).max(0.0).sqrt()).collect();
        let is_usable = hessian.is_positive_definite();
        is_usable.then(|| Self {
            params: minimum.params.clone(),
            hessian,
            deviations,
            gradient: vec![0.0; n],
            step: vec![0.0; n],
        })
    }

    /// Returns the minimum moved along random columns of its covariance.
    fn moved_along_columns<L: ?Sized>(&mut self, search: &Search<'_, L>, seed: u64, k: usize) -> Vec<f64> {
        let free: Vec<usize> = (0..self.params.len()).filter(|&i| self.deviations[i] > 0.0).collect();
        let mut point = self.params.clone();
        for c in 0..COLUMNS.min(free.len()) {
            let u = |which: u64| random::uniform(seed ^ 0x5eed, k as u64, 2 * c as u64 + which);
            let i = free[((u(0) * free.len() as f64) as usize).min(free.len() - 1)];
            self.hessian.covariance_column(i, &mut self.step);
            let length = REACH * (2.0 * u(1) - 1.0) / self.deviations[i];
            point.iter_mut().zip(&self.step).for_each(|(x, column)| *x += length * column);
        }
        for (i, x) in point.iter_mut().enumerate() {
            *x = x.clamp(search.domain.lower[i], search.domain.upper[i]);
            if search.domain.fixed[i] {
                *x = self.params[i];
            }
        }
        point
    }

    /// Returns `true` if steps with the factor lead from `point` to the minimum, each shrinking the
    /// distance.
    fn takes<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, point: &[f64]) -> Taken {
        let mut x = point.to_vec();
        let mut distance = self.distance(&x);
        for evaluations in 1..=STEPS {
            let nll = search.likelihood.nll_and_grad(&x, &mut self.gradient);
            if !nll.is_finite() {
                return Taken { evaluations, is_known: false };
            }
            self.hessian.solve(&self.gradient, &mut self.step);
            for i in 0..x.len() {
                if self.hessian.free[i] {
                    x[i] = (x[i] - self.step[i]).clamp(search.domain.lower[i], search.domain.upper[i]);
                } else {
                    // At a bound in the known minimum; a gradient that points away from it leads
                    // elsewhere.
                    let leaves = !search.domain.fixed[i]
                        && match search.domain.bound_at(i, self.params[i]) {
                            Some(crate::minimize::BoundSide::Lower) => self.gradient[i] < 0.0,
                            Some(crate::minimize::BoundSide::Upper) => self.gradient[i] > 0.0,
                            None => false,
                        };
                    if leaves {
                        return Taken { evaluations, is_known: false };
                    }
                    x[i] = self.params[i];
                }
            }
            let next = self.distance(&x);
            if next <= IN_BASIN {
                return Taken { evaluations, is_known: true };
            }
            if next > SHRINK * distance {
                return Taken { evaluations, is_known: false };
            }
            distance = next;
        }
        Taken { evaluations: STEPS, is_known: false }
    }

    /// Returns the largest distance of a parameter to the minimum, in its standard deviations.
    fn distance(&self, x: &[f64]) -> f64 {
        let each = x.iter().zip(&self.params).zip(&self.deviations);
        each.filter(|(_, deviation)| **deviation > 0.0).map(|((x, m), d)| (x - m).abs() / d).fold(0.0, f64::max)
    }
}
