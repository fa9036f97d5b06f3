//! Lower minima where the model indicates them: starts made from a minimum, and what they lead to.

use super::depth::{is_below, is_distinctly_lower, lowest_of};
use super::local::add_cost;
use super::nearby::Condition;
use super::pool::{BasinPool, FoundBy};
use super::suspects::SuspectKind;
use super::{Search, Suspect};
use crate::minimize::{Domain, Minimum};
use ns_core::SearchLikelihood;

/// How many minima are explored, the lowest ones first.
const ROUNDS: usize = 5;

/// A same-sign systematic that is nearer to zero than this, in standard deviations, has no minimum
/// of any consequence on the other side.
const NEAR_ZERO: f64 = 0.1;

/// A parameter is not moved to a value that is nearer than this.
const NEAR: f64 = 0.3;

/// The largest rise of -ln L above a minimum at which the search starts a minimisation. Starts that
/// are minimised in any case may be higher.
pub(super) const HIGHEST_RISE: f64 = 8.0;

/// Minimising from every reflected point is done where their number times the square of that of the
/// parameters is at most this: it costs little then.
const CHEAP: usize = 10_000;

/// Every suspect is moved where their number times the square of that of the parameters is at most
/// this.
pub(super) const THOROUGH: usize = 8_000;

/// In large models only suspects with this bend or more are screened, and warned of.
const BENT_IN_LARGE: f64 = 1.0;

/// In models of up to this number of parameters weak suspects are moved too, in larger ones strong
/// suspects.
pub(super) const MIDDLE: usize = 60;

/// The largest number of suspects that are moved in a large model.
const MOST_MOVED: usize = 12;

/// The largest number of parameters that a warning names.
const NAMED: usize = 5;

/// Exploring a model of [`MIDDLE`] parameters or more ends after this number of evaluations, which
/// is a hundred fits or more. Smaller ones, whose evaluations cost less, have more by the square of
/// how much smaller they are.
const MOST_EVALUATIONS: usize = 3_000;

/// The same for a small model, where every suspect is moved.
const MOST_EVALUATIONS_OF_SMALL: usize = 300_000;

/// Estimated distance in -ln L at which the minimisation with a suspect moved stops: only the basin
/// matters.
const ROUGH: f64 = 1e-2;

/// The other parameters have moved with a suspect if one of them did by this, in units of 1 or of
/// itself.
const MOVED_ALONG: f64 = 0.5;

/// How much of what the model indicates is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchBreadth {
    /// All of it.
    Full,
    /// In large models, only same-sign systematics with the other sign: for fits near ones that
    /// looked at all. In small models, all but the moves of parameters of quadratic formulas: for
    /// minima that are not the lowest one.
    Reflections,
}

/// A starting point, and what it was made by.
type Start = (Vec<f64>, FoundBy);

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Returns the lowest minimum among those `known`, at least one, and those that the model's
    /// indications lead to; and all minima met, that one first, each with how it was found.
    pub fn explore(
        &mut self,
        known: Vec<(Minimum, FoundBy)>,
        breadth: SearchBreadth,
    ) -> (Minimum, Vec<(Minimum, FoundBy)>) {
        let (mut met, mut explored, mut cost) = (Vec::<(Minimum, FoundBy)>::new(), Vec::new(), Vec::new());
        let smaller = MIDDLE as f64 / self.domain.lower.len().clamp(1, MIDDLE) as f64;
        let of_large = (MOST_EVALUATIONS as f64 * smaller.powi(2)) as usize;
        let most = if self.is_thorough() { MOST_EVALUATIONS_OF_SMALL } else { of_large.min(MOST_EVALUATIONS_OF_SMALL) };
        let last = self.spent.evaluations + most;
        for (minimum, by) in known {
            let is_new = minimum.converged() && met.iter().all(|(other, _)| self.are_distinct(other, &minimum));
            if is_new || met.is_empty() {
                met.push((minimum, by));
            } else {
                cost.push(minimum);
            }
        }
        while let Some(from) = self.next_to_explore(&met, &explored) {
            explored.push(from);
            let minimum = met[from].0.clone();
            let breadth = if from == lowest_met(&met) { breadth } else { SearchBreadth::Reflections };
            for (start, by) in self.indicated_starts(&minimum, breadth, last) {
                if self.is_spent(last) {
                    break;
                }
                let found = self.run(&start);
                if found.converged() && met.iter().all(|(known, _)| self.are_distinct(known, &found)) {
                    met.push((found, by));
                } else {
                    cost.push(found);
                }
            }
        }
        let lowest = lowest_met(&met);
        met.swap(0, lowest);
        let (first, rest) = met.split_at_mut(1);
        add_cost(&mut first[0].0, &rest.iter().map(|(other, _)| other).chain(&cost).collect::<Vec<_>>());
        (met[0].0.clone(), met)
    }

    /// Returns `true` if more than `last` evaluations were made: then the search is cut short, and
    /// remembers it.
    fn is_spent(&mut self, last: usize) -> bool {
        let is_spent = self.spent.evaluations > last;
        self.is_cut_short |= is_spent;
        is_spent
    }

    /// Returns which of the minima `met` is explored next: the lowest one, and in small models,
    /// where there are several, the others too, because more may lie beyond them.
    fn next_to_explore(&self, met: &[(Minimum, FoundBy)], explored: &[usize]) -> Option<usize> {
        if explored.len() == ROUNDS {
            return None;
        }
        let lowest = lowest_met(met);
        if !explored.contains(&lowest) {
            return Some(lowest);
        }
        let others = (0..met.len()).filter(|k| !explored.contains(k) && met[*k].0.converged());
        lowest_of(others, |&k| met[k].0.nll).filter(|_| self.is_thorough())
    }

    /// Returns the lowest minimum that `start` (P) and the basins of `pool` lead to, explored if
    /// that costs little. What is fixed has the value that it has in `start`.
    pub(crate) fn lowest_from(&mut self, start: &[f64], pool: &BasinPool) -> Minimum {
        let mut lowest = self.run(start);
        for basin in pool.basins() {
            let value = |i: usize| if self.domain.fixed[i] { start[i] } else { basin.minimum.params[i] };
            let from: Vec<f64> = (0..start.len()).map(value).collect();
            let other = self.run(&from);
            if other.converged() && (!lowest.converged() || is_below(other.nll, lowest.nll)) {
                lowest = other;
            }
        }
        if self.is_thorough() { self.explore(vec![(lowest, FoundBy::Start)], SearchBreadth::Full).0 } else { lowest }
    }

    /// Returns `true` if every fit of this model explores, because that costs little.
    pub(crate) fn is_thorough(&self) -> bool {
        self.candidates.are_few(&self.domain)
    }

    /// Returns `true` if the model indicates hidden minima at all.
    pub(crate) fn has_suspects(&self) -> bool {
        self.free_suspects().next().is_some()
    }

    /// Returns `true` if a free parameter has a normsys that multiplies a yield several times.
    pub(crate) fn has_explosive_suspects(&self) -> bool {
        self.free_suspects().any(|suspect| suspect.kind == SuspectKind::Explosive)
    }

    /// Returns `true` if exploring costs many fits, so that a procedure of many fits should explore
    /// few of them.
    pub(crate) fn explores_widely(&self) -> bool {
        self.candidates.explore_widely(&self.domain)
    }

    /// Returns a warning if not all was looked at that should have been, because it costs too much;
    /// `names` are those of the parameters. Suspects that were left out are not named where there
    /// were random starts.
    pub(crate) fn not_searched(&self, names: &[String], has_random_starts: bool) -> Option<String> {
        let more = if has_random_starts { "" } else { "; multi-start looks for more" };
        if self.is_cut_short {
            return Some(format!(
                "the search for lower minima was cut short because it took too many evaluations{more}"
            ));
        }
        if self.is_thorough() || has_random_starts {
            return None;
        }
        let single = |suspect: &&Suspect| {
            suspect.parameters.len() == 1 && (suspect.is_strong() || suspect.bend >= BENT_IN_LARGE)
        };
        let left = self.candidates.moved_in_large(&self.domain).into_iter().skip(MOST_MOVED).filter(single);
        let left: Vec<String> = left.map(|suspect| format!("`{}`", names[suspect.parameters[0]])).collect();
        let named = left.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let others = if left.len() > NAMED { format!(" and {} more", left.len() - NAMED) } else { String::new() };
        (!left.is_empty()).then(|| {
            format!("lower minima were not looked for along some strongly nonlinear systematics: {named}{others}{more}")
        })
    }

    fn free_suspects(&self) -> impl Iterator<Item = &Suspect> {
        self.candidates.free(&self.domain)
    }

    /// Returns where lower minima than `minimum` may be reached from.
    fn indicated_starts(&mut self, minimum: &Minimum, breadth: SearchBreadth, last: usize) -> Vec<Start> {
        if self.likelihood.is_stopped() {
            return Vec::new();
        }
        if self.is_thorough() {
            let is_moved = |kind: SuspectKind| match kind {
                SuspectKind::Growth => false,
                SuspectKind::Quadratic => breadth == SearchBreadth::Full,
                _ => true,
            };
            let all: Vec<Suspect> = self.free_suspects().filter(|s| is_moved(s.kind)).cloned().collect();
            let mut starts = self.reflected_starts(minimum);
            starts.extend(self.mirrored_starts(minimum));
            starts.extend(self.moved_starts(minimum, &all, last));
            return starts;
        }
        if breadth == SearchBreadth::Reflections || !self.has_suspects() || !minimum.converged() {
            let mut starts = self.reflected_starts(minimum);
            starts.extend(self.mirrored_starts(minimum));
            return starts;
        }
        let mut starts = self.screened_starts(minimum);
        starts.extend(self.mirrored_starts(minimum));
        let moved: Vec<Suspect> =
            self.candidates.moved_in_large(&self.domain).into_iter().take(MOST_MOVED).cloned().collect();
        starts.extend(self.moved_starts(minimum, &moved, last));
        starts
    }

    /// Returns `minimum` with the sign of one same-sign systematic changed: everywhere if that
    /// costs little, and else where -ln L says that there may be another minimum.
    fn reflected_starts(&mut self, minimum: &Minimum) -> Vec<Start> {
        let which = self.candidates.to_reflect(&self.domain, minimum);
        let moves = reflections(minimum, &which);
        let is_cheap = is_cheap(moves.len(), minimum.params.len());
        let chosen = if is_cheap { moves } else { self.promising(minimum, &moves) };
        chosen.into_iter().map(|(i, value)| (with(&minimum.params, i, value), FoundBy::Reflection(i))).collect()
    }

    /// Returns `minimum` with one suspect at ±1 standard deviation, or with the sign of a same-sign
    /// systematic changed, where -ln L says that there may be another minimum. Signs are changed in
    /// any case where that costs little and of strong suspects.
    fn screened_starts(&mut self, minimum: &Minimum) -> Vec<Start> {
        let bent = self.free_suspects().filter(|s| s.bend >= BENT_IN_LARGE && s.parameters.len() == 1);
        let bent: Vec<usize> = bent.map(|s| s.parameters[0]).collect();
        let side = |side: f64| {
            let far = bent.iter().filter(move |&&i| (minimum.params[i] - side).abs() >= NEAR);
            far.map(move |&i| (i, side))
        };
        let which = self.candidates.to_reflect(&self.domain, minimum);
        let reflections = reflections(minimum, &which);
        let by = |moved @ (i, value): (usize, f64)| {
            if reflections.contains(&moved) { FoundBy::Reflection(i) } else { FoundBy::Move(i, value) }
        };
        // Different parameters together, so that one pass does for both.
        let moves: Vec<(usize, f64)> = side(-1.0).chain(reflections.iter().copied()).chain(side(1.0)).collect();
        let mut chosen = self.promising(minimum, &moves);
        let is_cheap = is_cheap(which.len(), minimum.params.len());
        let strong: Vec<usize> =
            self.free_suspects().filter(|s| s.is_strong()).flat_map(|s| &s.parameters).copied().collect();
        let unscreened = reflections.iter().filter(|(i, _)| is_cheap || strong.contains(i));
        for moved in unscreened {
            if !chosen.contains(moved) {
                chosen.push(*moved);
            }
        }
        chosen.into_iter().map(|(i, value)| (with(&minimum.params, i, value), by((i, value)))).collect()
    }

    /// Returns `true` if there is a lower minimum than `minimum` across zero of a same-sign
    /// systematic, or, where it would cost too much to know, whether there may be one.
    pub(crate) fn may_be_lower_reflected(&mut self, minimum: &Minimum) -> bool {
        let which = self.candidates.to_reflect(&self.domain, minimum);
        let starts = self.reflected_starts(minimum);
        if !is_cheap(which.len(), minimum.params.len()) {
            return !starts.is_empty();
        }
        starts.into_iter().any(|(start, _)| {
            let other = self.run(&start);
            other.converged() && is_distinctly_lower(other.nll, minimum.nll)
        })
    }

    /// Returns those of `moves` of one parameter after which -ln L has risen less than that of one
    /// convex valley.
    fn promising(&mut self, minimum: &Minimum, moves: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let mut found = Vec::with_capacity(moves.len());
        self.likelihood.nll_and_derivative_moved(&minimum.params, moves, &mut found);
        let is_promising = |&(&(i, value), [nll, derivative]): &(&(usize, f64), [f64; 2])| {
            may_hide_minimum(value - minimum.params[i], nll - minimum.nll, derivative)
        };
        moves.iter().zip(found).filter(is_promising).map(|(&moved, _)| moved).collect()
    }

    /// Returns conditional minima with one of `suspects` moved, from which the search may go on
    /// elsewhere than back to `minimum`.
    fn moved_starts(&mut self, minimum: &Minimum, suspects: &[Suspect], last: usize) -> Vec<Start> {
        let tolerance = std::mem::replace(&mut self.options.tolerance, ROUGH);
        if !self.is_thorough() {
            self.keep_factor(minimum);
        }
        // The other half is for where they lead.
        let half = self.spent.evaluations + last.saturating_sub(self.spent.evaluations) / 2;
        let starts = self.moved_roughly(minimum, suspects, half);
        self.return_factor();
        self.options.tolerance = tolerance;
        starts
    }

    fn moved_roughly(&mut self, minimum: &Minimum, suspects: &[Suspect], last: usize) -> Vec<Start> {
        let mut starts = Vec::new();
        let is_large = !self.is_thorough();
        for suspect in suspects {
            if suspect.kind == SuspectKind::Quadratic && !is_large {
                // Descents from there lead to as many minima as from conditional ones.
                let points = self.ways(minimum, suspect).into_iter().flatten();
                let start = |(i, value)| (with(&minimum.params, i, value), FoundBy::Move(i, value));
                starts.extend(points.map(|point| start((suspect.parameters[0], point[0]))));
                continue;
            }
            // In a large model each point is reached from the one before, until -ln L has risen too
            // high.
            let walks = is_large && suspect.kind != SuspectKind::Growth;
            for way in self.ways(minimum, suspect) {
                let mut from = minimum.params.clone();
                for point in way {
                    if self.likelihood.is_stopped() || self.is_spent(last) {
                        return starts;
                    }
                    let Some(at) = self.run_with(&suspect.parameters, &point, &from) else {
                        if walks {
                            break;
                        }
                        continue;
                    };
                    if walks {
                        from.clone_from(&at.params);
                    }
                    let rises_on = rise_ahead(minimum, &at, &suspect.parameters) > 0.0;
                    let is_too_high = at.nll - minimum.nll > HIGHEST_RISE;
                    let is_start =
                        matches!(suspect.kind, SuspectKind::Growth | SuspectKind::Formula | SuspectKind::Quadratic);
                    if is_start || leads_elsewhere(minimum, &at, &suspect.parameters) {
                        starts.push((at.params, FoundBy::Move(suspect.parameters[0], point[0])));
                    }
                    // The other side of zero may be as low again.
                    let is_before_zero = point.iter().zip(&suspect.parameters).any(|(x, &i)| {
                        let value = minimum.params[i];
                        x * value > 0.0 && x.abs() < value.abs()
                    });
                    if walks && minimum.converged() && is_too_high && rises_on && !is_before_zero {
                        break;
                    }
                }
            }
        }
        starts
    }

    /// Returns the conditional minimum with the parameters `which` at `point` that `from` (P) leads
    /// to, if the likelihood is finite there.
    fn run_with(&mut self, which: &[usize], point: &[f64], from: &[f64]) -> Option<Minimum> {
        if let Some(nearby) = self.conditional_nearby(Condition { which, values: point }, from) {
            return Some(nearby);
        }
        let mut start = from.to_vec();
        which.iter().zip(point).for_each(|(&i, &value)| start[i] = value);
        which.iter().for_each(|&i| self.domain.fixed[i] = true);
        let at = self.run(&start);
        which.iter().for_each(|&i| self.domain.fixed[i] = false);
        at.nll.is_finite().then_some(at)
    }

    /// Returns the points of `suspect` inside the ranges that are not near `minimum`, from there
    /// outwards: below and above; for a pair, also the point where the two have exchanged their
    /// values.
    fn ways(&self, minimum: &Minimum, suspect: &Suspect) -> Vec<Vec<Vec<f64>>> {
        let which = &suspect.parameters;
        let inside = |point: &Vec<f64>| -> Vec<f64> {
            let (lower, upper) = (&self.domain.lower, &self.domain.upper);
            which.iter().zip(point).map(|(&i, value)| value.clamp(lower[i], upper[i])).collect()
        };
        let is_far =
            |point: &Vec<f64>| which.iter().zip(point).any(|(&i, value)| (value - minimum.params[i]).abs() >= NEAR);
        let points: Vec<Vec<f64>> = suspect.points.iter().map(inside).filter(is_far).collect();
        let (mut below, above): (Vec<_>, Vec<_>) =
            points.into_iter().partition(|point| point[0] < minimum.params[which[0]]);
        below.reverse();
        // Against each other the effects cancel with the opposite of the sign that the points have.
        let exchanged = (suspect.kind == SuspectKind::Pair).then(|| {
            let sign = -(suspect.points[0][0] * suspect.points[0][1]).signum();
            vec![sign * minimum.params[which[1]], sign * minimum.params[which[0]]]
        });
        let exchanged = exchanged.map(|point| inside(&point)).filter(is_far).into_iter().collect();
        vec![below, above, exchanged]
    }
}

/// Returns the change of -ln L ahead, to first order, if the move of the parameters `which` from
/// `minimum` to `at` goes on.
fn rise_ahead(minimum: &Minimum, at: &Minimum, which: &[usize]) -> f64 {
    which.iter().map(|&i| at.gradient[i] * (at.params[i] - minimum.params[i])).sum()
}

/// Returns `true` if the conditional minimum `at`, with the parameters `which` moved, may lead
/// elsewhere than back to `minimum`.
fn leads_elsewhere(minimum: &Minimum, at: &Minimum, which: &[usize]) -> bool {
    let is_lower = is_below(at.nll, minimum.nll) || !minimum.converged() || !at.converged();
    let moved = |j: usize| {
        let (x, y) = (at.params[j], minimum.params[j]);
        !which.contains(&j) && (x - y).abs() > MOVED_ALONG * y.abs().max(1.0)
    };
    is_lower || rise_ahead(minimum, at, which) <= 0.0 || (0..at.params.len()).any(moved)
}

/// Returns `params` (P) with parameter `i` at `value`.
fn with(params: &[f64], i: usize, value: f64) -> Vec<f64> {
    let mut params = params.to_vec();
    params[i] = value;
    params
}

/// Returns `true` if it costs little to minimise `n` times.
pub(crate) fn is_cheap(n: usize, n_params: usize) -> bool {
    n * n_params * n_params <= CHEAP
}

/// Returns which of `met` is the lowest minimum. A point that did not converge counts only if it is
/// lower than every minimum.
fn lowest_met(met: &[(Minimum, FoundBy)]) -> usize {
    let minima = (0..met.len()).filter(|&k| met[k].0.converged());
    let lowest = lowest_of(minima, |&k| met[k].0.nll);
    lowest.filter(|&k| !is_distinctly_lower(met[0].0.nll, met[k].0.nll)).unwrap_or(0)
}

/// Returns the moves that change the sign of each of the parameters `which`.
fn reflections(minimum: &Minimum, which: &[usize]) -> Vec<(usize, f64)> {
    which.iter().map(|&i| (i, -minimum.params[i])).collect()
}

/// Returns `true` if parameter `i`, which is at `value`, could have the other sign.
pub(crate) fn has_other_side(domain: &Domain, i: usize, value: f64) -> bool {
    let is_inside = (domain.lower[i]..=domain.upper[i]).contains(&-value);
    !domain.fixed[i] && is_inside && value.abs() >= NEAR_ZERO
}

/// Returns `true` if there may be another minimum beyond a move by `distance` from a minimum, after
/// which -ln L is higher by `rise` and has the derivative `derivative`. For a parabola, derivative
/// times distance is twice the rise.
pub(crate) fn may_hide_minimum(distance: f64, rise: f64, derivative: f64) -> bool {
    rise < HIGHEST_RISE && derivative * distance < rise.max(0.0)
}
