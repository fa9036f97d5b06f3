//! Fits that are repeated while templates change a little: each begins where the last one ended, with the Hessian that was factorised there.
//!
//! The value is to be that of a fit from the starting values all the same. So -ln L is looked at on the way from where such a fit would begin to the minimum
//! that was followed: as in one convex valley, its derivative there must promise at least what is gained. Minima across folds are looked for as ever. Where there is
//! doubt, and after [`MOST_FOLLOWED`] fits in a row, the fit is done from the starting values, and of two minima the lower one is taken.

use crate::minimize::{Domain, Minimizer, Minimum};
use crate::options::FitOptions;
use crate::profile::{DISTINCT, Profiler, rounding};
use crate::search::Search;
use crate::test_statistic::{EvaluatedStatistic, TestStatistic, classify};
use ns_core::{Model, SearchLikelihood};

/// As many fits follow each other before one from the starting values.
const MOST_FOLLOWED: usize = 16;

/// Where on the way from the starting values (1) to the minimum (0) -ln L is looked at.
const LOOKED_AT: [f64; 2] = [1.0, 0.5];

/// A barrier that is lower than this in -ln L is none.
const BARRIER: f64 = 1e-9;

/// Whether fits follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FitStart {
    /// All begin at the starting values.
    #[default]
    Initial,
    /// They begin where the last one ended, as long as that seems to change nothing but the time it takes. With several minima it may end in another one.
    Warm,
}

/// One fit of a session that is done again and again.
#[derive(Debug, Default)]
pub(super) struct WarmStartedFit {
    minimizer: Option<Minimizer>,
    /// The last minimum (P); empty if there is none to go on from.
    last: Vec<f64>,
    n_followed: usize,
    /// -ln L at the last minimum, and by how much it was higher on the way to it.
    seen: [f64; 3],
    /// A point and the gradient there (P each).
    point: Vec<f64>,
    gradient: Vec<f64>,
}

/// How it is made sure that a minimum is the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Not at all: the last one of the same templates was, and only the tested value has moved since.
    None,
    /// -ln L falls to it as in one valley, and there is none across a fold.
    WithFolds,
}

/// Where following led.
enum WarmStarted {
    /// To the minimum that is meant.
    There(Minimum),
    /// To one that may be another, or nowhere.
    Doubtful(Option<Minimum>),
}

impl WarmStartedFit {
    /// The minimum next to the last one, for a fit that would begin at `start` (P).
    fn follow<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        start: &[f64],
        checks: Checks,
    ) -> WarmStarted {
        if self.last.is_empty() {
            return WarmStarted::Doubtful(None);
        }
        let fixed = &search.domain.fixed;
        let from: Vec<f64> = (0..start.len()).map(|i| if fixed[i] { start[i] } else { self.last[i] }).collect();
        let minimum = self.resume(search, &from);
        if !is_tight(&minimum, search) {
            return WarmStarted::Doubtful(None);
        }
        if checks == Checks::None {
            self.last.clone_from(&minimum.params);
            return WarmStarted::There(minimum);
        }
        self.n_followed += 1;
        if self.n_followed > MOST_FOLLOWED {
            return WarmStarted::Doubtful(Some(minimum));
        }
        let Some([far, near]) = self.rises_of_one_valley(search.likelihood, &search.domain, start, &minimum) else {
            return WarmStarted::Doubtful(Some(minimum));
        };
        // Three values that are the same to the bit: -ln L has not changed since, as where μ = 0 and only the signal has.
        let seen = std::mem::replace(&mut self.seen, [minimum.nll, far, near]);
        if seen != self.seen && search.may_be_lower_reflected(&minimum) {
            return WarmStarted::Doubtful(Some(minimum));
        }
        self.last.clone_from(&minimum.params);
        WarmStarted::There(minimum)
    }

    /// How much higher -ln L is at `start` (P) and half way to `minimum`; `None` if it does not fall from there as convex functions do.
    fn rises_of_one_valley<L: SearchLikelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        start: &[f64],
        minimum: &Minimum,
    ) -> Option<[f64; 2]> {
        let n = start.len();
        self.point.resize(n, 0.0);
        self.gradient.resize(n, 0.0);
        let mut rises = [0.0; 2];
        for (rise, part) in rises.iter_mut().zip(LOOKED_AT) {
            for i in 0..n {
                let begin = if domain.fixed[i] { start[i] } else { start[i].clamp(domain.lower[i], domain.upper[i]) };
                self.point[i] = minimum.params[i] + part * (begin - minimum.params[i]);
            }
            *rise = likelihood.nll_and_grad(&self.point, &mut self.gradient) - minimum.nll;
            let derivative: f64 = (0..n).map(|i| self.gradient[i] * (self.point[i] - minimum.params[i])).sum();
            if !(rise.is_finite() && *rise >= -BARRIER && derivative >= *rise - BARRIER) {
                return None;
            }
        }
        Some(rises)
    }

    /// The next fit goes on from `found` (P), which somebody else has found for it; from nowhere if that is nothing.
    pub(super) fn warm_start_from(&mut self, domain: &Domain, found: Option<Vec<f64>>) {
        (self.n_followed, self.seen) = (0, [f64::NAN; 3]);
        self.last = found.filter(|_| domain.kinked.is_empty()).unwrap_or_default();
    }

    /// The next fit goes on from `minimum`, with the Hessian that `search` has factorised last: that of `minimum`, or of one that it was compared with, which costs a few steps.
    fn take_over<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, minimum: &Minimum) {
        self.last.clear();
        if minimum.converged() && !minimum.at_edge && search.domain.kinked.is_empty() {
            self.last.extend_from_slice(&minimum.params);
            search.lend_minimizer(&mut self.minimizer);
        }
    }

    /// `minimum`, which was found from the starting values, as tight as those that follow it: digits are to depend on how it was found as little as theirs. The next fit goes
    /// on from there; not from one at a kink or at the edge of the domain.
    fn settle<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, minimum: Minimum) -> Minimum {
        (self.n_followed, self.seen) = (0, [f64::NAN; 3]);
        self.last.clear();
        if !minimum.converged() || minimum.at_edge || !search.domain.kinked.is_empty() {
            return minimum;
        }
        if let Some(minimizer) = &mut self.minimizer {
            // The factor of other templates would say that less is left than there is.
            minimizer.forget_factor();
        }
        let tight = self.resume(search, &minimum.params);
        let is_same = is_tight(&tight, search) && (tight.nll - minimum.nll).abs() <= rounding(minimum.nll);
        let minimum = if is_same { tight } else { minimum };
        self.last.extend_from_slice(&minimum.params);
        minimum
    }

    /// The minimum next to `from` (P).
    fn resume<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, from: &[f64]) -> Minimum {
        let minimizer = self.minimizer.get_or_insert_with(|| Minimizer::new(&search.likelihood.structure()));
        minimizer.resume(search.likelihood, from, &search.domain, &search.options)
    }
}

/// The fits to one data set: the free one, and those with the parameter of interest fixed.
pub(super) struct DataSetFits<'a, L: ?Sized> {
    profiler: Profiler<'a, L>,
    poi: usize,
    /// What the first conditional fit goes on from, if fits follow each other from one set of templates to the next.
    conditional: Option<&'a mut WarmStartedFit>,
    /// What later ones go on from, if not.
    own: WarmStartedFit,
    /// Whether a conditional minimum has been found.
    is_checked: bool,
    /// Whether each conditional fit is done from the free minimum, as if it were the first.
    is_each_first: bool,
}

/// The followers of a fit, if fits follow each other at all.
pub(super) fn wanted(warm: &mut WarmStartedFit, start: FitStart) -> Option<&mut WarmStartedFit> {
    (start == FitStart::Warm).then_some(warm)
}

/// The free minimum under `options`.
pub(super) fn fit<'a, L: SearchLikelihood + ?Sized>(
    model: &'a Model,
    likelihood: &'a mut L,
    options: &FitOptions,
    warm: Option<&mut WarmStartedFit>,
) -> Profiler<'a, L> {
    let Some(warm) = warm.filter(|_| options.multi_start.is_none()) else {
        return Profiler::new(model, likelihood, options);
    };
    let mut profiler = Profiler::unfitted(model, likelihood, options);
    if profiler.explores_widely() {
        profiler.fit();
        let found = profiler.best().clone();
        let settled = warm.settle(profiler.search(), found);
        profiler.refine(settled);
        return profiler;
    }
    let start = profiler.start().to_vec();
    match warm.follow(profiler.search(), &start, Checks::WithFolds) {
        WarmStarted::There(minimum) => profiler.adopt(minimum),
        WarmStarted::Doubtful(other) => {
            profiler.fit();
            if let Some(lower) = other.filter(|other| is_lower(other, profiler.best())) {
                profiler.adopt(lower);
            }
            let found = profiler.best().clone();
            let settled = warm.settle(profiler.search(), found);
            profiler.adopt(settled);
        }
    }
    profiler
}

/// Whether `minimum` is one to within the tolerance, and not only at rest because of rounding.
fn is_tight<L: ?Sized>(minimum: &Minimum, search: &Search<'_, L>) -> bool {
    minimum.converged() && minimum.edm.abs() <= search.options.tolerance
}

fn is_lower(other: &Minimum, minimum: &Minimum) -> bool {
    other.nll < minimum.nll - DISTINCT
}

/// Does `work` while the parameter `poi` is fixed.
fn with_fixed_poi<L: ?Sized, T>(
    search: &mut Search<'_, L>,
    poi: usize,
    work: impl FnOnce(&mut Search<'_, L>) -> T,
) -> T {
    let was_fixed = std::mem::replace(&mut search.domain.fixed[poi], true);
    let done = work(search);
    search.domain.fixed[poi] = was_fixed;
    done
}

impl<'a, L: SearchLikelihood + ?Sized> DataSetFits<'a, L> {
    /// Round the free minimum of `profiler`.
    pub(super) fn new(profiler: Profiler<'a, L>, poi: usize, conditional: Option<&'a mut WarmStartedFit>) -> Self {
        let is_each_first = profiler.explores_widely();
        Self { profiler, poi, conditional, own: WarmStartedFit::default(), is_checked: false, is_each_first }
    }

    /// The free minimum. It changes when a conditional one lies below it.
    pub(super) fn free(&self) -> &Minimum {
        self.profiler.best()
    }

    pub(super) fn domain(&self) -> &Domain {
        self.profiler.domain()
    }

    /// The standard deviation of the parameter of interest, for a first guess; 1 where it has none.
    pub(super) fn width(&mut self) -> f64 {
        self.profiler.width(self.poi).unwrap_or(1.0)
    }

    /// From now on no conditional fit goes on from another: where following has led to minima that are not the lowest.
    pub(super) fn follow_no_more(&mut self) {
        self.is_each_first = true;
    }

    /// The minimum with the parameter of interest at `mu`.
    pub(super) fn at(&mut self, mu: f64) -> Minimum {
        if self.is_each_first {
            let minimum = self.thorough(mu);
            return self.settled(minimum);
        }
        let is_first = !std::mem::replace(&mut self.is_checked, true);
        if is_first && self.conditional.is_none() {
            return self.first(mu);
        }
        self.following(mu, if is_first { Checks::WithFolds } else { Checks::None })
    }

    /// The same with all checks, for the value that counts.
    pub(super) fn checked_at(&mut self, mu: f64) -> Minimum {
        if self.is_each_first {
            let minimum = self.thorough(mu);
            return self.settled(minimum);
        }
        let is_first = !std::mem::replace(&mut self.is_checked, true);
        if is_first && self.conditional.is_none() {
            return self.first(mu);
        }
        let minimum = self.following(mu, Checks::WithFolds);
        if self.profiler.cheap_starts().is_empty() {
            return minimum;
        }
        let other = self.thorough(mu);
        if is_lower(&other, &minimum) { self.settled(other) } else { minimum }
    }

    /// The minimum with the parameter of interest at `mu`, found from the free one and, if that costs little, from the starting values.
    fn thorough(&mut self, mu: f64) -> Minimum {
        let starts = self.profiler.cheap_starts();
        self.profiler.at_explored(&[(self.poi, mu)], &starts)
    }

    /// `minimum`, which is `thorough`, as tight as one that follows another, where fits do that.
    fn settled(&mut self, minimum: Minimum) -> Minimum {
        let poi = self.poi;
        match self.conditional.as_deref_mut() {
            Some(warm) => with_fixed_poi(self.profiler.search(), poi, |search| warm.settle(search, minimum)),
            None => minimum,
        }
    }

    /// The minimum with the parameter of interest at `mu`, found from the free one.
    fn first(&mut self, mu: f64) -> Minimum {
        let minimum = self.profiler.at_with_last_factor(self.poi, mu);
        let (poi, own) = (self.poi, &mut self.own);
        with_fixed_poi(self.profiler.search(), poi, |search| own.take_over(search, &minimum));
        minimum
    }

    /// The minimum with the parameter of interest at `mu`, next to the last one.
    fn following(&mut self, mu: f64, checks: Checks) -> Minimum {
        let (poi, fixed) = (self.poi, [(self.poi, mu)]);
        // Where other free minima are known, conditional ones are looked for from them too: nothing to follow.
        if !(self.profiler.best().converged() && self.profiler.pool().basins().is_empty()) {
            return self.profiler.at_with_last_factor(poi, mu);
        }
        let warm = self.conditional.as_deref_mut().unwrap_or(&mut self.own);
        let mut start = self.profiler.best().params.clone();
        start[poi] = mu;
        let followed = with_fixed_poi(self.profiler.search(), poi, |search| warm.follow(search, &start, checks));
        match followed {
            WarmStarted::There(minimum) => {
                self.profiler.learn_from(&fixed, &minimum);
                minimum
            }
            WarmStarted::Doubtful(other) => {
                let found = self.profiler.at_explored(&fixed, &[]);
                let minimum = other.filter(|other| is_lower(other, &found)).unwrap_or(found);
                with_fixed_poi(self.profiler.search(), poi, |search| warm.settle(search, minimum))
            }
        }
    }

    /// The statistic at `mu`.
    pub(super) fn test(&mut self, statistic: TestStatistic, mu: f64) -> EvaluatedStatistic {
        let conditional = self.at(mu);
        classify(&self.profiler, statistic, self.poi, mu, conditional)
    }
}
