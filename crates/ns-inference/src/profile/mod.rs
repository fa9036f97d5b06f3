//! The profile likelihood: minima of -ln L with some parameters fixed, found quickly one after the
//! other.
//!
//! A [`Profiler`] holds a model's free minimum and its Hessian. A conditional minimum is predicted
//! from those along the covariance, so that two or three Newton steps reach it; one that lies below
//! the free minimum shows that the free minimum was another one, which is then replaced. Scans,
//! rankings, test statistics and limits are all made of [`Profiler::at`].

mod conditional;

use crate::accelerator::{FixedKey, WarmStarts};
use crate::hessian::Hessian;
use crate::minimize::BoundSide;
use crate::minimize::{Domain, Minimum, Outcome};
use crate::options::{FitOptions, MultiStart, domain_and_start};
use crate::result::{BestFit, FlatDirection, LocalMinimum, PoiBestFit};
use crate::search::{BasinPool, Candidates, FoundBy, RandomStarts, Search, SearchBreadth, distinct, is_cheap};
use ns_core::{Model, SearchLikelihood};
use std::collections::HashSet;
use std::sync::Arc;

/// How far below the free minimum a conditional one must be for the free one to be looked for
/// again.
const LOWER: f64 = 1e-9;

/// Returns the difference of -ln L near a value of `nll` that rounding alone can make.
pub(crate) fn rounding(nll: f64) -> f64 {
    1e-9 * nll.abs().max(1.0)
}

/// Returns the smallest difference of -ln L that two converged fits can tell from none, near a
/// value of `nll`: some hundred roundings.
pub(crate) fn resolution(nll: f64) -> f64 {
    1e-13 * nll.abs().max(1.0)
}

/// Random points from which a fit that did not converge is tried again.
const RESCUE_STARTS: usize = 8;

/// How often a minimum at the edge of the domain is tried to be lowered.
const EDGE_ROUNDS: usize = 5;

/// A smaller derivative of -ln L at the end of a range counts as zero.
const PUSHED_OUT: f64 = 1e-6;

/// The Hessian at `params` (P) with the parameters `fixed` free whatever their range.
#[derive(Debug)]
struct Widened {
    params: Vec<f64>,
    fixed: Vec<usize>,
    hessian: Hessian,
}

/// The free minimum of a likelihood, and conditional ones on request.
#[derive(Debug)]
pub struct Profiler<'a, L: ?Sized> {
    model: &'a Model,
    search: Search<'a, L>,
    start: Vec<f64>,
    multi_start: Option<MultiStart>,
    best: Minimum,
    hessian: Option<Hessian>,
    widened: Option<Widened>,
    /// Whether different starting points have ended in different minima.
    has_several_minima: bool,
    /// Free minima, the lowest one included.
    free: BasinPool,
    /// Every minimum met that was not the lowest, free or conditional: with parameters fixed it may
    /// be.
    pool: BasinPool,
    n_conditional: usize,
    /// Whether fits are explored at all: those of toys only where that was found to matter.
    explores: bool,
    /// Whether each fit to changed data is explored, however little there is to explore.
    explores_every_fit: bool,
    /// Conditional minima that an accelerator found, as starting points, and those that were used:
    /// a second fit at the same point starts elsewhere.
    warm_starts: Arc<WarmStarts>,
    tried: HashSet<FixedKey>,
}

impl<'a, L: SearchLikelihood + ?Sized> Profiler<'a, L> {
    /// Finds the free minimum under `options` (whose errors and intervals do not matter here).
    pub fn new(model: &'a Model, likelihood: &'a mut L, options: &FitOptions) -> Self {
        let mut profiler = Self::unfitted(model, likelihood, options);
        profiler.fit();
        profiler
    }

    /// Finds the free minimum from the starting values.
    pub(crate) fn fit(&mut self) {
        let start = self.start.clone();
        self.best = self.lowest_explored(&start);
    }

    /// Returns the lowest free minimum that `start` (P), random starts and the model's indications
    /// lead to.
    fn lowest_explored(&mut self, start: &[f64]) -> Minimum {
        let ends = self.lowest(start);
        self.explored(ends)
    }

    /// Returns `true` if there is another conditional minimum as deep as `minimum` with the
    /// parameters `fixed` at their values.
    pub(crate) fn has_equal_minimum(&mut self, minimum: &Minimum, fixed: &[(usize, f64)]) -> bool {
        let is_equal = |other: &Minimum| {
            fixed.iter().all(|&(i, value)| other.params[i] == value)
                && (other.nll - minimum.nll).abs() <= distinct(minimum.nll)
        };
        let (search, pool) = (&mut self.search, &self.pool);
        let mut equal = pool.basins().iter().map(|basin| &basin.minimum).filter(|other| is_equal(other));
        minimum.converged() && equal.any(|other| search.are_distinct(minimum, other))
    }

    /// Returns the lowest free minimum that the first one of `ends` and the model's indications
    /// lead to; what else was met is kept.
    fn explored(&mut self, ends: RandomStarts) -> Minimum {
        let RandomStarts { mut minima, n_known } = ends;
        let first = minima.iter().find(|(_, by)| *by == FoundBy::Start).map(|(minimum, _)| minimum.clone());
        let others = minima.split_off(1);
        let (mut lowest, mut explored) = self.search.explore(minima, SearchBreadth::Full);
        if !lowest.converged() || (lowest.at_edge && self.explores_widely()) {
            let mut known = vec![(self.rescued(lowest), FoundBy::Start)];
            known.append(&mut explored);
            (lowest, explored) = self.search.explore(known, SearchBreadth::Full);
        }
        if self.explores && self.search.is_strained(self.model, &lowest) {
            let lower = self.search.kicked(self.model, &lowest);
            lowest = lower.last().map_or(lowest, |(lower, _)| lower.clone());
            explored.extend(lower);
        }
        explored.extend(others);
        for (minimum, by) in explored {
            self.free.add(self.search.likelihood, &minimum, by);
            if minimum.converged() && self.search.are_distinct(&lowest, &minimum) {
                self.has_several_minima = true;
                self.pool.add(self.search.likelihood, &minimum, by);
            }
        }
        if let Some(first) = first.filter(|_| n_known > 0) {
            self.free.count(self.search.likelihood, &first, n_known);
        }
        lowest
    }

    /// Returns the lower one of `minimum`, which is none or lies at the edge of the domain, and of
    /// what a few random starts lead to.
    fn rescued(&mut self, minimum: Minimum) -> Minimum {
        let start = minimum.params.clone();
        let found = self.search.run_all(self.model, &start, RESCUE_STARTS, 0).minima;
        found.into_iter().fold(minimum, |lowest, (other, _)| self.lower_of(lowest, other))
    }

    /// Returns minima, free or conditional, that were found beside the lowest.
    #[must_use]
    pub fn pool(&self) -> &BasinPool {
        &self.pool
    }

    /// Looks for minima from the basins of `pool` too.
    #[must_use]
    pub fn with_pool(mut self, pool: &BasinPool) -> Self {
        self.pool = pool.clone();
        self
    }

    /// Returns the distinct free minima, the lowest one, which is `best`, first. Empty if there is
    /// only one, unless `always`.
    pub(crate) fn minima(&mut self, best: &Minimum, always: bool) -> Vec<LocalMinimum> {
        let mut free = std::mem::take(&mut self.free);
        if !free.count(self.search.likelihood, best, 0) {
            free.add(self.search.likelihood, best, FoundBy::Conditional);
        }
        let mut basins = free.basins().to_vec();
        basins.sort_by(|a, b| a.minimum.nll.total_cmp(&b.minimum.nll));
        self.free = free;
        if basins.len() < 2 && !always {
            return Vec::new();
        }
        let (names, poi) = (&self.model.parameters.names, self.model.poi());
        let local = |basin: &crate::search::Basin| LocalMinimum {
            twice_nll: 2.0 * basin.minimum.nll,
            depth: 2.0 * (basin.minimum.nll - best.nll),
            poi: poi.map(|index| PoiBestFit {
                name: names[index].clone(),
                index,
                bestfit: Some(basin.minimum.params[index]),
            }),
            found_by: basin.found_by.describe(names),
            n_starts: basin.n_starts,
            params: basin.minimum.params.clone(),
        };
        basins.iter().map(local).collect()
    }

    /// Returns the same for data that are exactly what `params` (P) expect, an Asimov data set:
    /// where `params` is allowed, no fit is needed.
    pub fn of_asimov(model: &'a Model, likelihood: &'a mut L, options: &FitOptions, params: &[f64]) -> Self {
        let mut profiler = Self::unfitted(model, likelihood, options);
        profiler.adopt_asimov(params);
        profiler
    }

    /// Takes the data, which have changed, for the Asimov data set of `params` (P).
    ///
    /// Keeps the pool: basins of other data remain useful starting points.
    pub(crate) fn adopt_asimov(&mut self, params: &[f64]) {
        self.forget_hessians();
        self.free.clear();
        (self.has_several_minima, self.n_conditional) = (false, 0);
        let domain = &self.search.domain;
        let is_allowed = (0..params.len()).all(|i| {
            (domain.lower[i]..=domain.upper[i]).contains(&params[i]) || (domain.fixed[i] && params[i] == self.start[i])
        });
        if !is_allowed {
            self.best = self.lowest_explored(params);
            return;
        }
        let mut gradient = vec![0.0; params.len()];
        let nll = self.search.likelihood.nll_and_grad(params, &mut gradient);
        let outcome = if nll.is_finite() { Outcome::Converged } else { Outcome::NotFinite };
        self.best = Minimum { params: params.to_vec(), nll, gradient, edm: 0.0, outcome, evaluations: 1, ..unknown() };
    }

    /// Returns the same round a free minimum that is known already: nothing is fitted, and
    /// conditional fits have no random starts of their own. A procedure whose fits are shared among
    /// threads makes one profiler of this kind for each part, with the pool that the random starts
    /// of its free fit have filled.
    pub fn around(model: &'a Model, likelihood: &'a mut L, options: &FitOptions, best: &Minimum) -> Self {
        let mut profiler = Self::unfitted(model, likelihood, options);
        profiler.multi_start = None;
        profiler.best = best.clone();
        profiler
    }

    /// Returns a profiler whose free minimum is still to be found, by [`Profiler::refit`].
    pub fn unfitted(model: &'a Model, likelihood: &'a mut L, options: &FitOptions) -> Self {
        let (domain, start) = domain_and_start(model, options);
        let search = Search::new(likelihood, domain, Candidates::of(model), options.minimize);
        Self {
            model,
            search,
            start,
            multi_start: options.multi_start,
            best: unknown(),
            hessian: None,
            widened: None,
            has_several_minima: false,
            free: BasinPool::default(),
            pool: BasinPool::default(),
            n_conditional: 0,
            explores: true,
            explores_every_fit: false,
            warm_starts: Arc::default(),
            tried: HashSet::new(),
        }
    }

    /// Takes `best` for the free minimum of a likelihood whose data have changed.
    pub fn adopt(&mut self, best: Minimum) {
        self.forget();
        self.best = best;
    }

    /// Takes `best` for the free minimum, which it is to more digits than the one that was found.
    pub(crate) fn refine(&mut self, best: Minimum) {
        self.forget_hessians();
        self.best = best;
    }

    /// Explores fits from now on, or not.
    pub(crate) fn set_exploring(&mut self, explores: bool) {
        self.explores = explores;
    }

    /// Returns whether fits are explored.
    pub(crate) fn is_exploring(&self) -> bool {
        self.explores
    }

    /// Explores every fit to changed data as the free fit is, also where that is only to reflect
    /// same-sign systematics.
    pub(crate) fn explore_every_fit(&mut self) {
        self.explores_every_fit = true;
    }

    /// Forgets everything about data that have changed.
    fn forget(&mut self) {
        self.forget_hessians();
        (self.has_several_minima, self.best, self.n_conditional) = (false, unknown(), 0);
        self.free.clear();
        self.pool.clear();
    }

    /// Starts the first conditional fit at each point where `warm_starts` say, as far as they know.
    pub(crate) fn warm_start(&mut self, warm_starts: &Arc<WarmStarts>) {
        self.warm_starts = warm_starts.clone();
        self.tried.clear();
    }

    /// Finds the free minimum of a likelihood whose data have changed: the lowest from `starts` (P
    /// each) and, should they fail, from further points.
    pub fn refit(&mut self, starts: &[&[f64]]) {
        self.forget();
        for start in starts {
            let start = self.allowed(start);
            let (minimum, _) = self.lowest(&start).minima.swap_remove(0);
            self.take(minimum);
        }
        if self.explores && (self.explores_every_fit || self.explores_widely()) {
            let best = std::mem::replace(&mut self.best, unknown());
            self.best = self.explored(RandomStarts { minima: vec![(best, FoundBy::Start)], n_known: 0 });
        }
        if !self.best.converged() {
            self.refit_widely(starts[0]);
        }
        self.settle_at_edge();
    }

    /// Settles a minimum at the edge of the domain from where it was sought, and takes a lower one
    /// if it is found from there.
    fn settle_at_edge(&mut self) {
        for _ in 0..EDGE_ROUNDS {
            let before = self.best.nll;
            if !self.best.at_edge {
                break;
            }
            let from = self.best.params.clone();
            self.try_from_point(&from);
            if self.best.nll >= before - LOWER {
                break;
            }
        }
    }

    /// Makes `minimum` the best one if there is none yet or if it is lower.
    fn take(&mut self, minimum: Minimum) {
        let best = std::mem::replace(&mut self.best, unknown());
        self.best = if best.params.is_empty() { minimum } else { self.lower_of(best, minimum) };
    }

    /// Fits again from several points: `start`, the model's starting values, and random ones; the
    /// lowest is taken.
    pub fn refit_widely(&mut self, start: &[f64]) {
        self.forget_hessians();
        let (start, usual) = (self.allowed(start), self.start.clone());
        for (minimum, _) in self.search.run_all(self.model, &start, RESCUE_STARTS, 0).minima {
            self.take(minimum);
        }
        self.try_from_point(&usual);
    }

    /// Returns `start` with what is fixed at its value.
    fn allowed(&self, start: &[f64]) -> Vec<f64> {
        let value = |i: usize| if self.search.domain.fixed[i] { self.start[i] } else { start[i] };
        (0..start.len()).map(value).collect()
    }

    /// Returns the free minimum. It changes when [`Profiler::at`] finds a lower one.
    #[must_use]
    pub fn best(&self) -> &Minimum {
        &self.best
    }

    /// Takes back that the free minimum is one: for data that come from a fit which failed.
    pub fn mark_failed(&mut self) {
        self.best.outcome = Outcome::Stalled;
    }

    /// Returns the free minimum with its uncertainties, after a check that it is no saddle point.
    pub fn best_fit(&mut self) -> BestFit {
        self.leave_saddle();
        let parameters = &self.model.parameters;
        let mut uncertainties = vec![None; self.best.params.len()];
        if self.best.nll.is_finite() {
            self.hessian();
            let Self { search, best, hessian, .. } = self;
            let flat = hessian.as_ref().map(|h| h.flat_directions(search.likelihood, &best.params, parameters));
            let known = hessian.as_ref().map(|h| h.uncertainties(&flat.unwrap_or_default(), parameters));
            uncertainties = known.unwrap_or(uncertainties);
        }
        let (nll, outcome) = (self.best.nll, self.best.outcome);
        let converged = self.best.converged();
        BestFit { params: self.best.params.clone(), uncertainties, twice_nll: 2.0 * nll, nll, converged, outcome }
    }

    /// Continues downwards from a free minimum that turns out to be a saddle point.
    fn leave_saddle(&mut self) {
        if self.best.nll.is_finite() {
            self.hessian();
        }
        let Self { search, model, best, hessian, .. } = self;
        if let Some(hessian) = hessian {
            search.leave_saddle(&model.parameters, best, hessian);
        }
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// Returns where fits start that know nothing better (P).
    #[must_use]
    pub fn start(&self) -> &[f64] {
        &self.start
    }

    /// Returns where the parameters may go.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.search.domain
    }

    /// Returns what fits of this model and data set share.
    pub(crate) fn search(&mut self) -> &mut Search<'a, L> {
        &mut self.search
    }

    /// Returns where conditional minima are looked for beside where they are predicted, if that
    /// costs little: the starting values.
    pub(crate) fn cheap_starts(&self) -> Vec<Vec<f64>> {
        if is_cheap(1, self.start.len()) { vec![self.start.clone()] } else { Vec::new() }
    }

    /// Returns the likelihood.
    pub fn likelihood(&mut self) -> &mut L {
        self.search.likelihood
    }

    /// Returns `true` if different starting points ended in different minima; the lowest was taken.
    #[must_use]
    pub fn has_several_minima(&self) -> bool {
        self.has_several_minima
    }

    /// Returns the warnings about where minima were looked for: starts outside their ranges, and
    /// what was left out.
    pub(crate) fn search_warnings(&self) -> Vec<String> {
        let names = &self.model.parameters.names;
        let left_out = self.search.not_searched(names, self.multi_start.is_some());
        starts_outside(names, self.domain(), &self.start).into_iter().chain(left_out).collect()
    }

    /// Returns `true` if a search of this profiler was cut short.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.search.is_cut_short
    }

    /// Takes over whether a search of another profiler was cut short, so that the warnings say so.
    pub(crate) fn note_cut_short(&mut self, is_cut_short: bool) {
        self.search.is_cut_short |= is_cut_short;
    }

    /// Returns the exact Hessian at the free minimum.
    pub fn hessian(&mut self) -> &mut Hessian {
        let Self { search, best, hessian, .. } = self;
        hessian.get_or_insert_with(|| Hessian::at(search.likelihood, &best.params, &search.domain))
    }

    /// Returns the same for predictions of what happens when `fixed` are: they are free in it even
    /// where the minimum is at an end of their range.
    fn hessian_with(&mut self, fixed: &[(usize, f64)]) -> &mut Hessian {
        let (domain, params) = (&self.search.domain, &self.best.params);
        let is_at_end = |i: &usize| !domain.fixed[*i] && domain.bound_at(*i, params[*i]).is_some();
        let fixed: Vec<usize> = fixed.iter().map(|&(i, _)| i).filter(is_at_end).collect();
        if fixed.is_empty() {
            return self.hessian();
        }
        let Self { search, best, widened, .. } = self;
        let known = widened.take().filter(|known| known.fixed == fixed && known.params == best.params);
        let find = || {
            let mut domain = search.domain.clone();
            fixed.iter().for_each(|&i| (domain.lower[i], domain.upper[i]) = (f64::NEG_INFINITY, f64::INFINITY));
            let hessian = Hessian::at(search.likelihood, &best.params, &domain);
            Widened { params: best.params.clone(), fixed, hessian }
        };
        &mut widened.insert(known.unwrap_or_else(find)).hessian
    }

    /// Returns a warning if the data do not determine parameter `i`, whatever its range, or hardly
    /// tell it from others.
    pub(crate) fn undetermined(&mut self, i: usize) -> Option<String> {
        let n = self.best.params.len();
        if !self.best.nll.is_finite() || self.is_pushed_out(i) || !self.hessian_with(&[(i, 0.0)]).is_suspicious(i, n) {
            return None;
        }
        let (params, names) = (self.best.params.clone(), &self.model.parameters);
        let Self { search, hessian, widened, .. } = self;
        let known = widened.as_ref().map(|known| &known.hessian).filter(|known| known.free[i]).or(hessian.as_ref())?;
        let flat = known.flat_directions(search.likelihood, &params, names);
        let with = |d: &&FlatDirection| d.parameters.iter().any(|(name, _)| *name == names.names[i]);
        flat.iter().find(with).map(FlatDirection::warning)
    }

    /// Returns `true` if parameter `i` is at an end of its range and -ln L goes on falling beyond
    /// it. The data then determine it, even where -ln L is a straight line, as along a signal
    /// without events.
    fn is_pushed_out(&self, i: usize) -> bool {
        let derivative = self.best.gradient[i];
        match self.search.domain.bound_at(i, self.best.params[i]) {
            Some(BoundSide::Lower) => derivative > PUSHED_OUT,
            Some(BoundSide::Upper) => derivative < -PUSHED_OUT,
            None => false,
        }
    }

    fn forget_hessians(&mut self) {
        (self.hessian, self.widened) = (None, None);
    }

    /// Returns the standard deviation of parameter `i`, whatever its range, where -ln L has one.
    pub(crate) fn width(&mut self, i: usize) -> Option<f64> {
        let mut column = vec![0.0; self.best.params.len()];
        self.hessian_with(&[(i, 0.0)]).covariance_column(i, &mut column);
        (column[i] > 0.0).then(|| column[i].sqrt())
    }

    /// Returns the standard deviation of parameter `i` at the free minimum; at an end of its range,
    /// the one that -ln L has without the range. `None` if the data do not determine it.
    pub(crate) fn sigma_without_range(&mut self, i: usize) -> Option<f64> {
        self.hessian_with(&[(i, 0.0)]).sigma(i)
    }

    /// Returns `true` if exploring costs many fits, so that a procedure of many fits should explore
    /// few of them.
    pub(crate) fn explores_widely(&self) -> bool {
        self.search.explores_widely()
    }

    /// Makes the free minimum that the point `params` (P) leads to the best one if it is lower.
    pub fn try_from_point(&mut self, params: &[f64]) {
        let other = self.search.run(params);
        let best = std::mem::replace(&mut self.best, unknown());
        let met = [best.clone(), other.clone()];
        let old = best.nll;
        self.best = self.lower_of(best, other);
        if self.best.nll != old {
            self.forget_hessians();
        }
        // The one that was given up for the other is a start for further fits.
        for minimum in met {
            if minimum.converged() && self.best.converged() && self.search.are_distinct(&self.best, &minimum) {
                self.free.add(self.search.likelihood, &minimum, FoundBy::Conditional);
                self.pool.add(self.search.likelihood, &minimum, FoundBy::Conditional);
            }
        }
    }

    /// Returns where `start` leads, and random points if those are asked for; the lowest minimum
    /// first.
    fn lowest(&mut self, start: &[f64]) -> RandomStarts {
        match self.multi_start {
            Some(MultiStart { n_starts, seed }) => self.search.run_all(self.model, start, n_starts, seed),
            None => RandomStarts { minima: vec![(self.search.run(start), FoundBy::Start)], n_known: 0 },
        }
    }

    /// Returns the better one of two ends: of two alike the lower one, else the one that converged,
    /// unless `a`, which was there first, is lower without having converged. Notes whether two
    /// minima differ.
    fn lower_of(&mut self, a: Minimum, b: Minimum) -> Minimum {
        if a.converged() && b.converged() && (a.nll - b.nll).abs() > distinct(a.nll) {
            self.has_several_minima = true;
        }
        let is_better = match (a.converged(), b.converged()) {
            // A point that is lower than a minimum shows that the minimum is not the lowest, also
            // where it is none itself.
            (true, false) => b.nll < a.nll - distinct(a.nll),
            (false, true) => b.nll <= a.nll + distinct(a.nll) || !a.nll.is_finite(),
            _ => b.nll < a.nll || (!a.nll.is_finite() && b.nll.is_finite()),
        };
        let evaluations = a.evaluations + b.evaluations;
        Minimum { evaluations, ..if is_better { b } else { a } }
    }
}

/// Warns of starts outside their ranges, which are mistakes in the model or in the options: a fit
/// begins at the nearer end.
fn starts_outside(names: &[String], domain: &Domain, start: &[f64]) -> Vec<String> {
    let is_outside = |&i: &usize| !domain.fixed[i] && !(domain.lower[i]..=domain.upper[i]).contains(&start[i]);
    let warning = |i: usize| {
        let (name, start, lower, upper) = (&names[i], start[i], domain.lower[i], domain.upper[i]);
        format!(
            "`{name}` starts at {start}, outside its range from {lower} to {upper}; the fit began at the nearer end"
        )
    };
    (0..start.len()).filter(is_outside).map(warning).collect()
}

fn unknown() -> Minimum {
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
