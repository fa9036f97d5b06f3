//! The minimum that one starting point leads to, however bad the point is: outside the domain, at
//! its edge, or on the wrong side of a kink.

use super::Candidates;
use super::depth::{is_lower_behind_kink, is_lower_than_point, lowest_of};
use super::nearby::Surroundings;
use crate::hessian::Hessian;
use crate::minimize::{Domain, MinimizeOptions, Minimizer, Minimum, Outcome};
use ns_core::{Parameters, SearchLikelihood};

/// The floor under the expected counts with which a way into the domain is sought.
const ENTRY_FLOOR: f64 = 1e-2;

/// Floors with which a minimum at the edge of the domain is settled: each starts where the one
/// above it led, the lowest that works counts.
const EDGE_FLOORS: [f64; 5] = [1e-2, 1e-4, 1e-6, 1e-8, 1e-9];

/// A minimum with a higher floor than this only leads to the next one: what it costs in -ln L could
/// be seen.
const LOW_FLOOR: f64 = 1e-4;

/// Steps away from a saddle point, in units of the parameters' widths.
const LENGTHS: [f64; 4] = [-1.0, -0.1, 0.1, 1.0];

/// How many saddle points are left, one after the other.
const SADDLES: usize = 10;

/// A likelihood with everything that is needed to minimise it again and again.
#[derive(Debug)]
pub struct Search<'a, L: ?Sized> {
    /// The likelihood.
    pub likelihood: &'a mut L,
    /// Where the parameters may go.
    pub domain: Domain,
    /// What the model indicates about further minima.
    pub candidates: Candidates,
    /// When to stop.
    pub options: MinimizeOptions,
    /// Made when it is first needed.
    pub(super) minimizer: Option<Minimizer>,
    /// The Hessian at the minimum that is explored.
    pub(super) surroundings: Option<Surroundings>,
    /// Whether minimisations stop near what looks like a saddle point.
    stops_at_saddles: bool,
    /// Iterations and evaluations of all minimisations so far.
    pub(super) spent: SearchCost,
    /// Whether an exploration was given up because it cost too much.
    pub(crate) is_cut_short: bool,
}

/// What minimisations have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchCost {
    /// Newton steps.
    pub iterations: usize,
    /// Evaluations of -ln L.
    pub evaluations: usize,
}

impl<'a, L: SearchLikelihood + ?Sized> Search<'a, L> {
    /// Returns a search in `domain`.
    pub fn new(likelihood: &'a mut L, domain: Domain, candidates: Candidates, options: MinimizeOptions) -> Self {
        Self {
            likelihood,
            domain,
            candidates,
            options,
            minimizer: None,
            surroundings: None,
            stops_at_saddles: false,
            spent: SearchCost::default(),
            is_cut_short: false,
        }
    }

    /// Returns what all minimisations so far have cost.
    #[must_use]
    pub fn spent(&self) -> SearchCost {
        self.spent
    }

    /// Returns the minimum that `start` (P) leads to.
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
        let minimum = minimizer.minimize(self.likelihood, start, &self.domain, &self.options);
        self.spent.iterations += minimum.iterations;
        self.spent.evaluations += minimum.evaluations;
        minimum
    }

    /// Exchanges the memory of the minimiser, with the Hessian that was factorised last, for
    /// `other`.
    pub(crate) fn lend_minimizer(&mut self, other: &mut Option<Minimizer>) {
        std::mem::swap(&mut self.minimizer, other);
    }

    /// Writes column `i` of the covariance to `out` (P), as the search that ended at `params` (P)
    /// knows it. Returns whether the last one did.
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

    /// Returns the lowest of the minima along the direction in which -ln L curves down most.
    fn below_saddle(&mut self, saddle: &Minimum) -> Option<Minimum> {
        let mut hessian = Hessian::at(self.likelihood, &saddle.params, &self.domain);
        if hessian.is_positive_definite() {
            return None;
        }
        let direction = hessian.downward_direction();
        let found = LENGTHS.map(|length| self.minimize(&along(&saddle.params, &direction, length)));
        let lower = found.iter().filter(|m| is_lower_than_point(m.nll, saddle.nll));
        let lowest = lowest_of(lower, |m| m.nll);
        lowest.map(|lowest| {
            let mut lower = lowest.clone();
            add_cost(&mut lower, &[saddle]);
            lower
        })
    }

    /// Finds a point of the domain by minimising with a floor under the expected counts, and goes
    /// on from there without.
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

    /// Settles a minimum at the edge of the domain, where a bin that saw nothing is to expect
    /// nothing: there -ln L still falls towards the edge, so that no step inside it can end. With a
    /// floor under the expected counts, lowered bit by bit, the edge becomes a minimum like any
    /// other; where several bins are at their edges, the higher floors also lead out of the corner
    /// in which steps inside the domain got stuck.
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
            // The floor costs about its own size; a point that is lower than this by more is not
            // given up for it.
            if floor <= LOW_FLOOR && at.nll.is_finite() && at.nll <= failed.nll + floor {
                settled = Some(Minimum { at_edge: true, ..at });
            }
        }
        match settled {
            None => failed,
            Some(settled) => Minimum { iterations: failed.iterations, evaluations: failed.evaluations, ..settled },
        }
    }

    /// Tries the other side of each kink that is near enough to hide a lower minimum, until none
    /// does.
    fn try_other_sides(&mut self, mut best: Minimum) -> Minimum {
        for _ in 0..20 {
            let Some(better) = self.other_side(&best) else { break };
            best = better;
        }
        best
    }

    /// Returns the first lower minimum behind a kink, most promising first.
    ///
    /// For parameter i the quadratic model gives the cost of going to zero, ½ θ_i²/C_ii, and with
    /// the derivative g on the other side the gain there, ½ g² C_ii.
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
            if minimum.converged() && is_lower_behind_kink(minimum.nll, best.nll) {
                add_cost(&mut minimum, &[best]);
                return Some(minimum);
            }
        }
        None
    }

    /// Continues from a lower point along the direction in which -ln L curves down, if the
    /// derivative vanishes at a point that is not a minimum, or says so.
    ///
    /// Flat directions, kinks and the edge of the domain have other explanations for such a
    /// Hessian, and are left to those.
    pub(crate) fn leave_saddle(&mut self, parameters: &Parameters, best: &mut Minimum, hessian: &mut Hessian) {
        for _ in 0..10 {
            let is_candidate = best.converged() || best.outcome == Outcome::Saddle;
            let explained = best.at_edge || !is_candidate || !self.domain.kinked.is_empty();
            if hessian.is_positive_definite() || explained {
                return;
            }
            if !hessian.flat_directions(self.likelihood, &best.params, parameters).is_empty() {
                return;
            }
            match self.lower_along(best, &hessian.downward_direction()) {
                Some(lower) => *best = lower,
                None => {
                    best.outcome = Outcome::Saddle;
                    return;
                }
            }
            *hessian = Hessian::at(self.likelihood, &best.params, &self.domain);
        }
    }

    /// Returns the lowest minimum that steps of growing length along ±`direction` (P) lead to, if
    /// it is lower than `best`.
    pub fn lower_along(&mut self, best: &Minimum, direction: &[f64]) -> Option<Minimum> {
        let mut lowest: Option<Minimum> = None;
        for length in LENGTHS {
            let mut minimum = self.run(&along(&best.params, direction, length));
            add_cost(&mut minimum, &[best]);
            let bar = lowest.as_ref().map_or(best.nll, |m| m.nll);
            if minimum.converged() && is_lower_than_point(minimum.nll, bar) {
                lowest = Some(minimum);
            }
        }
        lowest
    }
}

pub(super) fn along(params: &[f64], direction: &[f64], length: f64) -> Vec<f64> {
    params.iter().zip(direction).map(|(x, d)| x + length * d).collect()
}

pub(super) fn add_cost(minimum: &mut Minimum, others: &[&Minimum]) {
    for other in others {
        minimum.iterations += other.iterations;
        minimum.evaluations += other.evaluations;
    }
}
