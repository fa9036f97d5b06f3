//! The minima of one model and data set that are known: the lowest free one, which further fits may
//! replace, and the others that were met.

use super::depth::{differs, is_as_deep, is_at_most, is_below, is_below_free, is_distinctly_lower};
use super::{Basin, BasinPool, FoundBy, RandomStarts, Search, SearchBreadth};
use crate::minimize::{Minimum, Outcome};
use ns_core::{Model, SearchLikelihood};

/// Random points from which a fit that did not converge is tried again.
const RESCUE_STARTS: usize = 8;

/// How often a minimum at the edge of the domain is tried to be lowered.
const EDGE_ROUNDS: usize = 5;

/// The lowest free minimum that was found, and other minima, as starting points.
#[derive(Debug)]
pub(crate) struct KnownMinima {
    /// The lowest free minimum; [`unknown`] if there is none yet.
    pub(crate) best: Minimum,
    /// Whether different starting points have ended in different minima.
    pub(crate) has_several: bool,
    /// Free minima, the lowest one included.
    free: BasinPool,
    /// Every minimum met that was not the lowest, free or conditional: with parameters fixed it may
    /// be.
    pub(crate) pool: BasinPool,
}

/// The conditional minima that one fit has met beside the lowest.
pub(crate) struct MetMinima {
    /// Those from the basins of the pool, in their order.
    pub(crate) from_basins: Vec<Minimum>,
    /// The others; the last one is where the main branch led.
    pub(crate) others: Vec<(Minimum, FoundBy)>,
}

impl KnownMinima {
    /// Returns the minima of data of which nothing is known.
    pub(crate) fn none() -> Self {
        Self { best: unknown(), has_several: false, free: BasinPool::default(), pool: BasinPool::default() }
    }

    /// Forgets everything about data that have changed.
    pub(crate) fn forget(&mut self) {
        *self = Self::none();
    }

    /// Forgets all but the lowest minimum and the pool: basins of other data remain useful starting
    /// points.
    pub(crate) fn forget_others(&mut self) {
        self.free.clear();
        self.has_several = false;
    }

    /// Returns the better one of two ends: of two alike the lower one, else the one that converged,
    /// unless `a`, which was there first, is lower without having converged. Notes whether two
    /// minima differ.
    pub(crate) fn better_of(&mut self, a: Minimum, b: Minimum) -> Minimum {
        if a.converged() && b.converged() && differs(b.nll, a.nll) {
            self.has_several = true;
        }
        let is_better = match (a.converged(), b.converged()) {
            // A point that is lower than a minimum shows that the minimum is not the lowest, also
            // where it is none itself.
            (true, false) => is_distinctly_lower(b.nll, a.nll),
            (false, true) => is_at_most(b.nll, a.nll) || !a.nll.is_finite(),
            _ => is_below(b.nll, a.nll) || (!a.nll.is_finite() && b.nll.is_finite()),
        };
        let evaluations = a.evaluations + b.evaluations;
        Minimum { evaluations, ..if is_better { b } else { a } }
    }

    /// Makes `minimum` the lowest one if there is none yet or if it is lower.
    pub(crate) fn take(&mut self, minimum: Minimum) {
        let best = std::mem::replace(&mut self.best, unknown());
        self.best = if best.params.is_empty() { minimum } else { self.better_of(best, minimum) };
    }

    /// Makes the free minimum that the point `params` (P) leads to the lowest one if it is lower.
    /// Returns whether it is.
    pub(crate) fn try_from_point<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        params: &[f64],
    ) -> bool {
        let other = search.run(params);
        let best = std::mem::replace(&mut self.best, unknown());
        let met = [best.clone(), other.clone()];
        let old = best.nll;
        self.best = self.better_of(best, other);
        // The one that was given up for the other is a start for further fits.
        for minimum in met {
            if minimum.converged() && self.best.converged() && search.are_distinct(&self.best, &minimum) {
                self.free.add(search.likelihood, &minimum, FoundBy::Conditional);
                self.pool.add(search.likelihood, &minimum, FoundBy::Conditional);
            }
        }
        self.best.nll != old
    }

    /// Settles a minimum at the edge of the domain from where it was sought, and takes a lower one
    /// if it is found from there.
    pub(crate) fn settle_at_edge<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>) {
        for _ in 0..EDGE_ROUNDS {
            let before = self.best.nll;
            if !self.best.at_edge {
                break;
            }
            let from = self.best.params.clone();
            self.try_from_point(search, &from);
            if !is_below_free(self.best.nll, before) {
                break;
            }
        }
    }

    /// Returns the better one of `minimum`, which is none or lies at the edge of the domain, and of
    /// what a few random starts lead to.
    pub(crate) fn rescued<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        model: &Model,
        minimum: Minimum,
    ) -> Minimum {
        let start = minimum.params.clone();
        let found = search.run_all(model, &start, RESCUE_STARTS, 0).minima;
        found.into_iter().fold(minimum, |lowest, (other, _)| self.better_of(lowest, other))
    }

    /// Fits again from `start` (P) and random points, and from `usual` (P), the starting values of
    /// the model; the lowest minimum is taken.
    pub(crate) fn refit_widely<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        model: &Model,
        [start, usual]: [&[f64]; 2],
    ) {
        for (minimum, _) in search.run_all(model, start, RESCUE_STARTS, 0).minima {
            self.take(minimum);
        }
        self.try_from_point(search, usual);
    }

    /// Returns the lowest free minimum that the first one of `ends` and the model's indications
    /// lead to; keeps what else was met. `explores` says whether fits are explored at all.
    pub(crate) fn explored<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        model: &Model,
        ends: RandomStarts,
        explores: bool,
    ) -> Minimum {
        let RandomStarts { mut minima, n_known } = ends;
        let first = minima.iter().find(|(_, by)| *by == FoundBy::Start).map(|(minimum, _)| minimum.clone());
        let others = minima.split_off(1);
        let (mut lowest, mut explored) = search.explore(minima, SearchBreadth::Full);
        if !lowest.converged() || (lowest.at_edge && search.explores_widely()) {
            let mut known = vec![(self.rescued(search, model, lowest), FoundBy::Start)];
            known.append(&mut explored);
            (lowest, explored) = search.explore(known, SearchBreadth::Full);
        }
        if explores && search.is_strained(model, &lowest) {
            let lower = search.kicked(model, &lowest);
            lowest = lower.last().map_or(lowest, |(lower, _)| lower.clone());
            explored.extend(lower);
        }
        explored.extend(others);
        for (minimum, by) in explored {
            self.free.add(search.likelihood, &minimum, by);
            if minimum.converged() && search.are_distinct(&lowest, &minimum) {
                self.has_several = true;
                self.pool.add(search.likelihood, &minimum, by);
            }
        }
        if let Some(first) = first.filter(|_| n_known > 0) {
            self.free.count(search.likelihood, &first, n_known);
        }
        lowest
    }

    /// Returns the free minima with `best`, the lowest of them, which may be known to more digits;
    /// the lowest first.
    pub(crate) fn free_with<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        best: &Minimum,
    ) -> Vec<Basin> {
        if !self.free.count(search.likelihood, best, 0) {
            self.free.add(search.likelihood, best, FoundBy::Conditional);
        }
        let mut basins = self.free.basins().to_vec();
        basins.sort_by(|a, b| a.minimum.nll.total_cmp(&b.minimum.nll));
        basins
    }

    /// Returns `true` if there is another conditional minimum as deep as `minimum` with the
    /// parameters `fixed` at their values.
    pub(crate) fn has_equal<L: SearchLikelihood + ?Sized>(
        &self,
        search: &mut Search<'_, L>,
        minimum: &Minimum,
        fixed: &[(usize, f64)],
    ) -> bool {
        let is_equal = |other: &Minimum| {
            fixed.iter().all(|&(i, value)| other.params[i] == value) && is_as_deep(other.nll, minimum.nll)
        };
        let mut equal = self.pool.basins().iter().map(|basin| &basin.minimum).filter(|other| is_equal(other));
        minimum.converged() && equal.any(|other| search.are_distinct(minimum, other))
    }

    /// Keeps the conditional minima `met` with the parameters `fixed` at their values, which are
    /// not `lowest`, as starting points for further fits. If the lowest one is not where the main
    /// branch led, it is kept too.
    pub(crate) fn keep_branches<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        fixed: &[(usize, f64)],
        lowest: &Minimum,
        met: MetMinima,
    ) {
        for (k, other) in met.from_basins.iter().enumerate() {
            if other.converged() && search.are_distinct(lowest, other) {
                self.has_several = true;
                self.pool.update(k, other);
            }
        }
        let mut leaves_main = false;
        for (other, by) in met.others {
            leaves_main = other.converged() && search.are_distinct(lowest, &other);
            if leaves_main {
                self.has_several = true;
                self.pool.add_branch(&other, by, fixed);
            }
        }
        if leaves_main {
            self.pool.add_branch(lowest, FoundBy::Conditional, fixed);
        }
    }
}

/// Returns the minimum of data that were not fitted: no parameters, and -ln L = ∞.
pub(crate) fn unknown() -> Minimum {
    Minimum {
        params: Vec::new(),
        nll: f64::INFINITY,
        gradient: Vec::new(),
        edm: f64::INFINITY,
        outcome: Outcome::NotFinite,
        iterations: 0,
        evaluations: 0,
        at_edge: false,
    }
}
