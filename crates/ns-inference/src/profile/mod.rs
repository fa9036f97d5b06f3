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
use crate::search::{
    Basin, BasinPool, Candidates, FoundBy, KnownMinima, RandomStarts, Search, is_below, is_cheap, unknown,
};
use ns_core::{Model, SearchLikelihood};
use std::collections::HashSet;
use std::sync::Arc;

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
    known: KnownMinima,
    hessian: Option<Hessian>,
    widened: Option<Widened>,
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
        self.known.best = self.lowest_explored(&start);
    }

    /// Returns the lowest free minimum that `start` (P), random starts and the model's indications
    /// lead to.
    fn lowest_explored(&mut self, start: &[f64]) -> Minimum {
        let ends = self.lowest(start);
        self.known.explored(&mut self.search, self.model, ends, self.explores)
    }

    /// Returns `true` if there is another conditional minimum as deep as `minimum` with the
    /// parameters `fixed` at their values.
    pub(crate) fn has_equal_minimum(&mut self, minimum: &Minimum, fixed: &[(usize, f64)]) -> bool {
        self.known.has_equal(&mut self.search, minimum, fixed)
    }

    /// Returns minima, free or conditional, that were found beside the lowest.
    #[must_use]
    pub fn pool(&self) -> &BasinPool {
        &self.known.pool
    }

    /// Looks for minima from the basins of `pool` too.
    #[must_use]
    pub fn with_pool(mut self, pool: &BasinPool) -> Self {
        self.known.pool = pool.clone();
        self
    }

    /// Returns the distinct free minima, the lowest one, which is `best`, first. Empty if there is
    /// only one, unless `always`.
    pub(crate) fn minima(&mut self, best: &Minimum, always: bool) -> Vec<LocalMinimum> {
        let basins = self.known.free_with(&mut self.search, best);
        if basins.len() < 2 && !always {
            return Vec::new();
        }
        let (names, poi) = (&self.model.parameters.names, self.model.poi());
        let local = |basin: &Basin| LocalMinimum {
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
        self.known.forget_others();
        self.n_conditional = 0;
        let domain = &self.search.domain;
        let is_allowed = (0..params.len()).all(|i| {
            (domain.lower[i]..=domain.upper[i]).contains(&params[i]) || (domain.fixed[i] && params[i] == self.start[i])
        });
        if !is_allowed {
            self.known.best = self.lowest_explored(params);
            return;
        }
        let mut gradient = vec![0.0; params.len()];
        let nll = self.search.likelihood.nll_and_grad(params, &mut gradient);
        let outcome = if nll.is_finite() { Outcome::Converged } else { Outcome::NotFinite };
        self.known.best =
            Minimum { params: params.to_vec(), nll, gradient, edm: 0.0, outcome, evaluations: 1, ..unknown() };
    }

    /// Returns the same round a free minimum that is known already: nothing is fitted, and
    /// conditional fits have no random starts of their own. A procedure whose fits are shared among
    /// threads makes one profiler of this kind for each part, with the pool that the random starts
    /// of its free fit have filled.
    pub fn around(model: &'a Model, likelihood: &'a mut L, options: &FitOptions, best: &Minimum) -> Self {
        let mut profiler = Self::unfitted(model, likelihood, options);
        profiler.multi_start = None;
        profiler.known.best = best.clone();
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
            known: KnownMinima::none(),
            hessian: None,
            widened: None,
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
        self.known.best = best;
    }

    /// Takes `best` for the free minimum, which it is to more digits than the one that was found.
    pub(crate) fn refine(&mut self, best: Minimum) {
        self.forget_hessians();
        self.known.best = best;
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
        self.known.forget();
        self.n_conditional = 0;
    }

    /// Takes over `warm_starts`: the first conditional fit at each point that they know starts at
    /// the minimum that they have for it.
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
            self.known.take(minimum);
        }
        if self.explores && (self.explores_every_fit || self.explores_widely()) {
            let best = std::mem::replace(&mut self.known.best, unknown());
            let ends = RandomStarts { minima: vec![(best, FoundBy::Start)], n_known: 0 };
            self.known.best = self.known.explored(&mut self.search, self.model, ends, self.explores);
        }
        if !self.best().converged() {
            self.refit_widely(starts[0]);
        }
        self.known.settle_at_edge(&mut self.search);
    }

    /// Fits again from several points: `start`, the model's starting values, and random ones; the
    /// lowest is taken.
    pub fn refit_widely(&mut self, start: &[f64]) {
        self.forget_hessians();
        let start = self.allowed(start);
        self.known.refit_widely(&mut self.search, self.model, [&start, &self.start]);
    }

    /// Returns `start` with what is fixed at its value.
    fn allowed(&self, start: &[f64]) -> Vec<f64> {
        let value = |i: usize| if self.search.domain.fixed[i] { self.start[i] } else { start[i] };
        (0..start.len()).map(value).collect()
    }

    /// Returns the free minimum. It changes when [`Profiler::at`] finds a lower one.
    #[must_use]
    pub fn best(&self) -> &Minimum {
        &self.known.best
    }

    /// Returns the free minimum if it is lower than `known`, the free minimum that a procedure
    /// refers to.
    pub(crate) fn lower_than(&self, known: &Minimum) -> Option<Minimum> {
        is_below(self.best().nll, known.nll).then(|| self.best().clone())
    }

    /// Takes back that the free minimum is one: for data that come from a fit which failed.
    pub fn mark_failed(&mut self) {
        self.known.best.outcome = Outcome::Stalled;
    }

    /// Returns the free minimum with its uncertainties, after a check that it is no saddle point.
    pub fn best_fit(&mut self) -> BestFit {
        self.leave_saddle();
        let parameters = &self.model.parameters;
        let mut uncertainties = vec![None; self.best().params.len()];
        if self.best().nll.is_finite() {
            self.hessian();
            let Self { search, known, hessian, .. } = self;
            let best = &known.best;
            let flat = hessian.as_ref().map(|h| h.flat_directions(search.likelihood, &best.params, parameters));
            let known = hessian.as_ref().map(|h| h.uncertainties(&flat.unwrap_or_default(), parameters));
            uncertainties = known.unwrap_or(uncertainties);
        }
        let (nll, outcome) = (self.best().nll, self.best().outcome);
        let converged = self.best().converged();
        BestFit { params: self.best().params.clone(), uncertainties, twice_nll: 2.0 * nll, nll, converged, outcome }
    }

    /// Continues downwards from a free minimum that turns out to be a saddle point.
    fn leave_saddle(&mut self) {
        if self.best().nll.is_finite() {
            self.hessian();
        }
        let Self { search, model, known, hessian, .. } = self;
        if let Some(hessian) = hessian {
            search.leave_saddle(&model.parameters, &mut known.best, hessian);
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
        self.known.has_several
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
        let Self { search, known, hessian, .. } = self;
        let best = &known.best;
        hessian.get_or_insert_with(|| Hessian::at(search.likelihood, &best.params, &search.domain))
    }

    /// Returns the Hessian at the free minimum that predicts conditional minima with the parameters
    /// `fixed` at other values. In it these parameters are free even if the minimum is at an end of
    /// their range.
    fn hessian_with(&mut self, fixed: &[(usize, f64)]) -> &mut Hessian {
        let (domain, params) = (&self.search.domain, &self.known.best.params);
        let is_at_end = |i: &usize| !domain.fixed[*i] && domain.bound_at(*i, params[*i]).is_some();
        let fixed: Vec<usize> = fixed.iter().map(|&(i, _)| i).filter(is_at_end).collect();
        if fixed.is_empty() {
            return self.hessian();
        }
        let Self { search, known, widened, .. } = self;
        let best = &known.best;
        let last = widened.take().filter(|last| last.fixed == fixed && last.params == best.params);
        let find = || {
            let mut domain = search.domain.clone();
            fixed.iter().for_each(|&i| (domain.lower[i], domain.upper[i]) = (f64::NEG_INFINITY, f64::INFINITY));
            let hessian = Hessian::at(search.likelihood, &best.params, &domain);
            Widened { params: best.params.clone(), fixed, hessian }
        };
        &mut widened.insert(last.unwrap_or_else(find)).hessian
    }

    /// Returns a warning if the data do not determine parameter `i`, whatever its range, or hardly
    /// tell it from others.
    pub(crate) fn undetermined(&mut self, i: usize) -> Option<String> {
        let n = self.best().params.len();
        if !self.best().nll.is_finite() || self.is_pushed_out(i) || !self.hessian_with(&[(i, 0.0)]).is_suspicious(i, n)
        {
            return None;
        }
        let (params, names) = (self.best().params.clone(), &self.model.parameters);
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
        let derivative = self.best().gradient[i];
        match self.search.domain.bound_at(i, self.best().params[i]) {
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
        let mut column = vec![0.0; self.best().params.len()];
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

    /// Returns `true` if a free constrained parameter of `params` (P) is far from its start.
    pub(crate) fn has_large_pulls(&self, params: &[f64]) -> bool {
        self.search.has_large_pulls(self.model, params)
    }

    /// Returns `true` if a free parameter has a normsys that multiplies a yield several times.
    pub(crate) fn has_explosive_suspects(&self) -> bool {
        self.search.has_explosive_suspects()
    }

    /// Makes the free minimum that the point `params` (P) leads to the best one if it is lower.
    pub fn try_from_point(&mut self, params: &[f64]) {
        if self.known.try_from_point(&mut self.search, params) {
            self.forget_hessians();
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
