//! Finding a minimum from a starting point that may be bad: outside the domain, at its edge, or on the wrong side of a kink.
//!
//! A [`Search`] holds what all fits of one model and data set share: the likelihood, the memory of the minimiser, the domain.

use crate::hessian::Hessian;
use crate::minimize::{Domain, MinimizeOptions, Minimizer, Minimum, Outcome};
use crate::profile::DISTINCT;
use crate::random;
use ns_core::{Likelihood, Model};

/// The floor under the expected counts with which a way into the domain is sought.
const ENTRY_FLOOR: f64 = 1e-2;

/// Floors with which a minimum at the edge of the domain is settled: each starts where the one above it led, the lowest that works counts.
const EDGE_FLOORS: [f64; 5] = [1e-2, 1e-4, 1e-6, 1e-8, 1e-9];

/// A minimum with a higher floor than this only leads to the next one: what it costs in -ln L could be seen.
const LOW_FLOOR: f64 = 1e-4;

/// Steps away from a saddle point, in units of the parameters' widths.
const LENGTHS: [f64; 4] = [-1.0, -0.1, 0.1, 1.0];

/// How many saddle points are left, one after the other.
const SADDLES: usize = 10;

/// How often a lower minimum across a fold is gone to.
const FOLDS: usize = 3;

/// Nearer than this to its fold, in standard deviations, a parameter has no minimum of any consequence on the other side.
const NEAR_FOLD: f64 = 0.1;

/// A point across a fold that is higher than this above a minimum in -ln L is not minimised from, if that is not done anyway.
const HIGHEST_RISE: f64 = 8.0;

/// Minimising from every point across a fold is done where their number times the square of that of the parameters is at most this: it costs little then.
const CHEAP: usize = 10_000;

/// A likelihood with everything that is needed to minimise it again and again.
#[derive(Debug)]
pub struct Search<'a, L: ?Sized> {
    /// The likelihood.
    pub likelihood: &'a mut L,
    /// Where the parameters may go.
    pub domain: Domain,
    /// When to stop.
    pub options: MinimizeOptions,
    /// Made when it is first needed.
    minimizer: Option<Minimizer>,
    /// Whether minimisations stop near what looks like a saddle point.
    stops_at_saddles: bool,
}

impl<'a, L: Likelihood + ?Sized> Search<'a, L> {
    /// A search in `domain`.
    pub fn new(likelihood: &'a mut L, domain: Domain, options: MinimizeOptions) -> Self {
        Self { likelihood, domain, options, minimizer: None, stops_at_saddles: false }
    }

    /// The minimum that `start` (P) leads to.
    pub fn run(&mut self, start: &[f64]) -> Minimum {
        let mut minimum = self.descend(start);
        if minimum.outcome == Outcome::NotFinite {
            minimum = self.enter(start, minimum);
        }
        if matches!(minimum.outcome, Outcome::Stalled | Outcome::IterationLimit) {
            minimum = self.approach_edge(minimum);
        }
        if minimum.converged() && self.domain.kinked.contains(&true) {
            minimum = self.try_other_sides(minimum);
        }
        minimum
    }

    fn minimize(&mut self, start: &[f64]) -> Minimum {
        let minimizer = self.minimizer.get_or_insert_with(|| Minimizer::new(&self.likelihood.structure()));
        minimizer.stops_at_saddles = self.stops_at_saddles;
        minimizer.minimize(self.likelihood, start, &self.domain, &self.options)
    }

    /// Exchanges the memory of the minimiser, with the Hessian that was factorised last, for `other`.
    pub(crate) fn lend_minimizer(&mut self, other: &mut Option<Minimizer>) {
        std::mem::swap(&mut self.minimizer, other);
    }

    /// Column `i` of the covariance, written to `out` (P), as the search that ended at `params` (P) knows it; whether the last one did.
    pub(crate) fn covariance_column(&mut self, params: &[f64], i: usize, out: &mut [f64]) -> bool {
        self.minimizer.as_mut().is_some_and(|minimizer| minimizer.covariance_column(params, i, out))
    }

    /// Minimises, and goes on downwards from saddle points; kinks are for others to leave.
    fn descend(&mut self, start: &[f64]) -> Minimum {
        self.stops_at_saddles = self.domain.kinked.is_empty();
        let mut minimum = self.minimize(start);
        for _ in 0..SADDLES {
            if minimum.outcome != Outcome::Saddle {
                break;
            }
            let Some(lower) = self.below_saddle(&minimum) else { break };
            minimum = lower;
        }
        self.stops_at_saddles = false;
        if minimum.outcome == Outcome::Saddle {
            // No way down was found: what looked like a saddle point may have been none.
            let mut end = self.minimize(&minimum.params);
            add_cost(&mut end, &[&minimum]);
            return end;
        }
        minimum
    }

    /// The lowest of the minima along the direction in which -ln L curves down most.
    fn below_saddle(&mut self, saddle: &Minimum) -> Option<Minimum> {
        let mut hessian = Hessian::at(self.likelihood, &saddle.params, &self.domain);
        if hessian.is_positive_definite() {
            return None;
        }
        let direction = hessian.downward_direction();
        let found = LENGTHS.map(|length| self.minimize(&along(&saddle.params, &direction, length)));
        let bar = saddle.nll - 1e-12 * saddle.nll.abs().max(1.0);
        let lowest = found.iter().filter(|m| m.nll < bar).min_by(|a, b| a.nll.total_cmp(&b.nll));
        lowest.map(|lowest| {
            let mut lower = lowest.clone();
            add_cost(&mut lower, &[saddle]);
            lower
        })
    }

    /// The lowest minimum among `best` and those that lie across a fold from it, and the others of them, which are not as low.
    pub fn try_across_folds(&mut self, best: Minimum) -> (Minimum, Vec<Minimum>) {
        let (mut lowest, mut others) = (best, Vec::new());
        for _ in 0..FOLDS {
            let starts = self.starts_across_folds(&lowest);
            let mut found: Vec<Minimum> = starts.iter().map(|start| self.run(start)).collect();
            found.retain(|m| m.converged() && (m.nll - lowest.nll).abs() > DISTINCT);
            let lower = (0..found.len()).min_by(|&a, &b| found[a].nll.total_cmp(&found[b].nll));
            let Some(lower) = lower.filter(|&i| found[i].nll < lowest.nll) else {
                others.append(&mut found);
                break;
            };
            let mut lower = found.swap_remove(lower);
            add_cost(&mut lower, &[&lowest]);
            others.append(&mut found);
            others.push(std::mem::replace(&mut lowest, lower));
        }
        (lowest, others)
    }

    /// Where minima across folds are looked for: where -ln L says that there may be one, and everywhere if that costs little.
    fn starts_across_folds(&mut self, minimum: &Minimum) -> Vec<Vec<f64>> {
        let which = folds_to_cross(&self.domain, minimum);
        if is_cheap(which.len(), minimum.params.len()) {
            mirrored(minimum, &which)
        } else {
            across_folds(self.likelihood, &self.domain, minimum)
        }
    }

    /// Whether there is a lower minimum than `minimum` across a fold, or, where it would cost too much to know, whether there may be one.
    pub(crate) fn may_be_lower_across_folds(&mut self, minimum: &Minimum) -> bool {
        let which = folds_to_cross(&self.domain, minimum);
        if !is_cheap(which.len(), minimum.params.len()) {
            return !across_folds(self.likelihood, &self.domain, minimum).is_empty();
        }
        mirrored(minimum, &which).iter().any(|start| {
            let other = self.run(start);
            other.converged() && other.nll < minimum.nll - DISTINCT
        })
    }

    /// Finds a point of the domain by minimising with a floor under the expected counts, and goes on from there without.
    fn enter(&mut self, start: &[f64], failed: Minimum) -> Minimum {
        if !self.likelihood.set_floor(Some(ENTRY_FLOOR)) {
            return failed;
        }
        let entered = self.minimize(start);
        self.likelihood.set_floor(None);
        let mut minimum = self.descend(&entered.params);
        add_cost(&mut minimum, &[&failed, &entered]);
        minimum
    }

    /// Settles a minimum at the edge of the domain, where a bin that saw nothing is to expect nothing: there -ln L still falls towards the edge, so that
    /// no step inside it can end. With a floor under the expected counts, lowered bit by bit, the edge becomes a minimum like any other; where several bins
    /// are at their edges, the higher floors also lead out of the corner in which steps inside the domain got stuck.
    fn approach_edge(&mut self, mut failed: Minimum) -> Minimum {
        let (mut settled, mut from) = (None, failed.params.clone());
        for floor in EDGE_FLOORS {
            if !self.likelihood.set_floor(Some(floor)) {
                return failed;
            }
            let mut at = self.minimize(&from);
            self.likelihood.set_floor(None);
            at.nll = self.likelihood.nll(&at.params);
            add_cost(&mut failed, &[&at]);
            if !at.converged() {
                break;
            }
            from.clone_from(&at.params);
            // The floor costs about its own size; a point that is lower than this by more is not given up for it.
            if floor <= LOW_FLOOR && at.nll.is_finite() && at.nll <= failed.nll + floor {
                settled = Some(Minimum { at_edge: true, ..at });
            }
        }
        match settled {
            None => failed,
            Some(settled) => Minimum { iterations: failed.iterations, evaluations: failed.evaluations, ..settled },
        }
    }

    /// Tries the other side of each kink that is near enough to hide a lower minimum, until none does.
    fn try_other_sides(&mut self, mut best: Minimum) -> Minimum {
        for _ in 0..20 {
            let Some(better) = self.other_side(&best) else { break };
            best = better;
        }
        best
    }

    /// The first lower minimum behind a kink, most promising first.
    ///
    /// For parameter i the quadratic model gives the cost of going to zero, ½ θ_i²/C_ii, and with the slope g on the other side the gain there, ½ g² C_ii.
    fn other_side(&mut self, best: &Minimum) -> Option<Minimum> {
        let n = best.params.len();
        let mut hessian = Hessian::at(self.likelihood, &best.params, &self.domain);
        let (mut column, mut gradient) = (vec![0.0; n], vec![0.0; n]);
        let mut candidates: Vec<(f64, Vec<f64>)> = Vec::new();
        for i in 0..n {
            if !self.domain.kinked[i] || !hessian.free[i] || hessian.variance(i) <= 0.0 {
                continue;
            }
            let (theta, variance) = (best.params[i], hessian.variance(i));
            let cost = 0.5 * theta * theta / variance;
            if cost > 2.0 {
                continue;
            }
            hessian.covariance_column(i, &mut column);
            let mut at: Vec<f64> = (0..n).map(|j| best.params[j] - theta * column[j] / variance).collect();
            at[i] = 0.0_f64.copysign(-theta);
            for j in 0..n {
                at[j] = if j == i { at[j] } else { at[j].clamp(self.domain.lower[j], self.domain.upper[j]) };
            }
            let value = self.likelihood.nll_and_grad(&at, &mut gradient);
            let downhill = gradient[i] * 1.0_f64.copysign(at[i]) < 0.0;
            let gain = 0.5 * gradient[i] * gradient[i] * variance;
            if value.is_finite() && downhill && gain > 0.3 * cost {
                // A step to the other side, so that the minimiser starts there.
                at[i] -= (gradient[i] * variance).clamp(-1.0, 1.0) * 0.5;
                candidates.push((gain - cost, at));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, start) in candidates {
            let mut minimum = self.minimize(&start);
            if minimum.converged() && minimum.nll < best.nll - 1e-10 * best.nll.abs().max(1.0) {
                add_cost(&mut minimum, &[best]);
                return Some(minimum);
            }
        }
        None
    }

    /// The lowest minimum that steps of growing length along ±`direction` (P) lead to, if it is lower than `best`.
    pub fn lower_along(&mut self, best: &Minimum, direction: &[f64]) -> Option<Minimum> {
        let mut lowest: Option<Minimum> = None;
        for length in LENGTHS {
            let mut minimum = self.run(&along(&best.params, direction, length));
            add_cost(&mut minimum, &[best]);
            let bar = lowest.as_ref().map_or(best.nll, |m| m.nll);
            if minimum.converged() && minimum.nll < bar - 1e-12 * bar.abs().max(1.0) {
                lowest = Some(minimum);
            }
        }
        lowest
    }

    /// Minimises from `start` and from `n_starts` random points; all points where that ended, lowest first.
    pub fn run_all(&mut self, model: &Model, start: &[f64], n_starts: usize, seed: u64) -> Vec<Minimum> {
        let mut minima = vec![self.run(start)];
        for k in 0..n_starts {
            if self.likelihood.is_stopped() {
                break;
            }
            let point = self.random_start(model, start, seed, k);
            minima.push(self.run(&point));
        }
        minima.sort_by(|a, b| (!a.nll.is_finite()).cmp(&!b.nll.is_finite()).then(a.nll.total_cmp(&b.nll)));
        // A point that was reached but is no minimum counts only if it is lower than every minimum.
        if let Some(first) = minima.iter().position(|m| m.converged() && m.nll <= minima[0].nll + 1e-7) {
            minima[..=first].rotate_right(1);
        }
        minima
    }

    /// A random point: constrained parameters within two widths of their start, free ones up to three times their start.
    fn random_start(&self, model: &Model, start: &[f64], seed: u64, k: usize) -> Vec<f64> {
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

/// Points across the folds of parameters from `minimum`, one parameter at a time, where -ln L has risen less than a parabola would have.
fn across_folds<L: Likelihood + ?Sized>(likelihood: &mut L, domain: &Domain, minimum: &Minimum) -> Vec<Vec<f64>> {
    let (params, which) = (&minimum.params, folds_to_cross(domain, minimum));
    let mut found = Vec::with_capacity(which.len());
    likelihood.nll_and_slope_mirrored(params, &which, &mut found);
    let is_promising = |&(&i, [nll, slope]): &(&usize, [f64; 2])| may_hide_minimum(params[i], nll - minimum.nll, slope);
    let promising: Vec<usize> = which.iter().zip(found).filter(is_promising).map(|(&i, _)| i).collect();
    mirrored(minimum, &promising)
}

/// Whether it costs little to minimise `n` times.
pub(crate) fn is_cheap(n: usize, n_params: usize) -> bool {
    n * n_params * n_params <= CHEAP
}

/// The parameters across whose folds there may be another minimum than `minimum`.
fn folds_to_cross(domain: &Domain, minimum: &Minimum) -> Vec<usize> {
    let is_one = |&i: &usize| domain.folded[i] && has_other_side(domain, i, minimum.params[i]);
    if minimum.converged() { (0..domain.folded.len()).filter(is_one).collect() } else { Vec::new() }
}

/// `minimum` with each of the parameters `which` across its fold, one at a time.
fn mirrored(minimum: &Minimum, which: &[usize]) -> Vec<Vec<f64>> {
    let across = |&i: &usize| {
        let mut start = minimum.params.clone();
        start[i] = -start[i];
        start
    };
    which.iter().map(across).collect()
}

/// Whether parameter `i`, which is at `value`, could be on the other side of its fold.
pub(crate) fn has_other_side(domain: &Domain, i: usize, value: f64) -> bool {
    let is_inside = (domain.lower[i]..=domain.upper[i]).contains(&-value);
    !domain.fixed[i] && is_inside && value.abs() >= NEAR_FOLD
}

/// Whether there may be another minimum across the fold of a parameter that is at `value` in this one, where -ln L is higher by `rise` and has `slope` at `-value`.
pub(crate) fn may_hide_minimum(value: f64, rise: f64, slope: f64) -> bool {
    // Of a parabola the slope there times the distance is twice the rise.
    rise < HIGHEST_RISE && slope * -2.0 * value < rise.max(0.0)
}

fn along(params: &[f64], direction: &[f64], length: f64) -> Vec<f64> {
    params.iter().zip(direction).map(|(x, d)| x + length * d).collect()
}

fn add_cost(minimum: &mut Minimum, others: &[&Minimum]) {
    for other in others {
        minimum.iterations += other.iterations;
        minimum.evaluations += other.evaluations;
    }
}
