//! Warm starts for fits that are repeated while templates change slightly: each fit starts at the
//! last minimum with its factorised Hessian.
//!
//! The result must be that of a fit from the starting values. Therefore -ln L is evaluated between
//! those values and the minimum found: as for a convex function, its directional derivative there
//! must account at least for the decrease. Same-sign systematics are reflected as in every fit. In
//! case of doubt, and after [`MAX_WARM_FITS`] warm starts in succession, the fit is repeated from
//! the starting values, and the lower of the two minima is returned.

use crate::minimize::{Domain, Minimizer, Minimum};
use crate::options::FitOptions;
use crate::profile::Profiler;
use crate::search::{Search, is_lower, is_within_rounding};
use crate::test_statistic::{EvaluatedStatistic, TestStatistic, classify};
use ns_core::{Model, SearchLikelihood};

/// The maximum number of successive warm starts before a fit from the starting values.
const MAX_WARM_FITS: usize = 16;

/// The fractions of the way from the minimum (0) to the starting values (1) at which -ln L is
/// evaluated.
const CHECKED_FRACTIONS: [f64; 2] = [1.0, 0.5];

/// Barriers in -ln L below this are ignored.
const BARRIER: f64 = 1e-9;

/// The point at which fits start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FitStart {
    /// All fits start at the starting values.
    #[default]
    Initial,
    /// Fits start at the last minimum as long as the checks indicate that this changes only the run
    /// time. A model with several minima may end in another one.
    Warm,
}

/// A kind of fit that a session repeats, with the state for its next warm start.
#[derive(Debug, Default)]
pub(super) struct WarmStartedFit {
    minimizer: Option<Minimizer>,
    /// The last minimum (P); empty if the next fit cannot start from it.
    last: Vec<f64>,
    n_warm_fits: usize,
    /// -ln L at the last minimum, and its increase at the points of [`CHECKED_FRACTIONS`].
    last_values: [f64; 3],
    /// A point and the gradient there (P each).
    point: Vec<f64>,
    gradient: Vec<f64>,
}

/// The checks that a minimum is the same as that of a fit from the starting values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// None: the last minimum of the same templates passed the checks, and only the tested value
    /// has changed.
    None,
    /// -ln L decreases towards it without a barrier, and reflections lead to no lower minimum.
    All,
}

/// The result of a warm start.
enum WarmResult {
    /// The minimum, which passed the checks.
    Accepted(Minimum),
    /// A minimum that failed a check; `None` if there is none.
    Rejected(Option<Minimum>),
}

impl WarmStartedFit {
    /// Minimises from the last minimum, in place of a fit that would start at `start` (P). Returns
    /// the minimum and whether it passed `checks`.
    fn minimize<L: SearchLikelihood + ?Sized>(
        &mut self,
        search: &mut Search<'_, L>,
        start: &[f64],
        checks: Checks,
    ) -> WarmResult {
        if self.last.is_empty() {
            return WarmResult::Rejected(None);
        }
        let fixed = &search.domain.fixed;
        let from: Vec<f64> = (0..start.len()).map(|i| if fixed[i] { start[i] } else { self.last[i] }).collect();
        let minimum = self.resume(search, &from);
        if !reached_tolerance(&minimum, search) {
            return WarmResult::Rejected(None);
        }
        if checks == Checks::None {
            self.last.clone_from(&minimum.params);
            return WarmResult::Accepted(minimum);
        }
        self.n_warm_fits += 1;
        if self.n_warm_fits > MAX_WARM_FITS {
            return WarmResult::Rejected(Some(minimum));
        }
        let Some([far, near]) = self.convex_increases(search.likelihood, &search.domain, start, &minimum) else {
            return WarmResult::Rejected(Some(minimum));
        };
        // If all values are identical, -ln L has not changed, as at μ = 0 if only the signal has.
        let last_values = std::mem::replace(&mut self.last_values, [minimum.nll, far, near]);
        if last_values != self.last_values && search.may_be_lower_reflected(&minimum) {
            return WarmResult::Rejected(Some(minimum));
        }
        self.last.clone_from(&minimum.params);
        WarmResult::Accepted(minimum)
    }

    /// Returns how much higher -ln L is than at `minimum` at the points of [`CHECKED_FRACTIONS`] on
    /// the way to `start` (P); `None` if it does not decrease from there as a convex function does.
    fn convex_increases<L: SearchLikelihood + ?Sized>(
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
        for (rise, fraction) in rises.iter_mut().zip(CHECKED_FRACTIONS) {
            for i in 0..n {
                let begin = if domain.fixed[i] { start[i] } else { start[i].clamp(domain.lower[i], domain.upper[i]) };
                self.point[i] = minimum.params[i] + fraction * (begin - minimum.params[i]);
            }
            *rise = likelihood.nll_and_grad(&self.point, &mut self.gradient) - minimum.nll;
            let derivative: f64 = (0..n).map(|i| self.gradient[i] * (self.point[i] - minimum.params[i])).sum();
            if !(rise.is_finite() && *rise >= -BARRIER && derivative >= *rise - BARRIER) {
                return None;
            }
        }
        Some(rises)
    }

    /// Sets the point `found` (P), the result of another fit, as the start of the next fit. Without
    /// one, the next fit starts at the starting values.
    pub(super) fn warm_start_from(&mut self, domain: &Domain, found: Option<Vec<f64>>) {
        (self.n_warm_fits, self.last_values) = (0, [f64::NAN; 3]);
        self.last = found.filter(|_| domain.kinked.is_empty()).unwrap_or_default();
    }

    /// Sets `minimum` as the start of the next fit, with the Hessian that `search` factorised last.
    /// That Hessian belongs to `minimum` or to one compared with it, which costs a few more steps.
    fn continue_from<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, minimum: &Minimum) {
        self.last.clear();
        if minimum.converged() && !minimum.at_edge && search.domain.kinked.is_empty() {
            self.last.extend_from_slice(&minimum.params);
            search.lend_minimizer(&mut self.minimizer);
        }
    }

    /// Minimises further from `minimum`, which a fit from the starting values found, and returns
    /// the result, so that its last digits depend as little on the starting point as those of warm
    /// starts. The next fit starts there unless the minimum is at the edge of the domain or the
    /// model has kinks.
    fn tighten<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, minimum: Minimum) -> Minimum {
        (self.n_warm_fits, self.last_values) = (0, [f64::NAN; 3]);
        self.last.clear();
        if !minimum.converged() || minimum.at_edge || !search.domain.kinked.is_empty() {
            return minimum;
        }
        if let Some(minimizer) = &mut self.minimizer {
            // The factor of other templates would give too small an EDM.
            minimizer.forget_factor();
        }
        let tight = self.resume(search, &minimum.params);
        let is_same = reached_tolerance(&tight, search) && is_within_rounding(tight.nll, minimum.nll);
        let minimum = if is_same { tight } else { minimum };
        self.last.extend_from_slice(&minimum.params);
        minimum
    }

    /// Returns the minimum that a fit from `from` (P) reaches.
    fn resume<L: SearchLikelihood + ?Sized>(&mut self, search: &mut Search<'_, L>, from: &[f64]) -> Minimum {
        let minimizer = self.minimizer.get_or_insert_with(|| Minimizer::new(&search.likelihood.structure()));
        minimizer.resume(search.likelihood, from, &search.domain, &search.options)
    }
}

/// The fits to one data set: the free fit, and those with the parameter of interest fixed.
pub(super) struct DataSetFits<'a, L: ?Sized> {
    profiler: Profiler<'a, L>,
    poi: usize,
    /// The warm start of the first conditional fit, if fits with other templates left one.
    conditional: Option<&'a mut WarmStartedFit>,
    /// The warm start of later conditional fits otherwise.
    temporary: WarmStartedFit,
    /// Whether a conditional minimum has been found.
    has_conditional: bool,
    /// Whether each conditional fit starts from the free minimum, as the first one does.
    starts_from_free: bool,
}

/// Returns the state for warm starts, or `None` if `start` disables them.
pub(super) fn if_enabled(warm: &mut WarmStartedFit, start: FitStart) -> Option<&mut WarmStartedFit> {
    (start == FitStart::Warm).then_some(warm)
}

/// Fits under `options`, with a warm start if possible. Returns the profiler with the free minimum.
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
        let tightened = warm.tighten(profiler.search(), found);
        profiler.refine(tightened);
        return profiler;
    }
    let start = profiler.start().to_vec();
    match warm.minimize(profiler.search(), &start, Checks::All) {
        WarmResult::Accepted(minimum) => profiler.adopt(minimum),
        WarmResult::Rejected(other) => {
            profiler.fit();
            if let Some(lower) = other.filter(|other| is_lower(other.nll, profiler.best().nll)) {
                profiler.adopt(lower);
            }
            let found = profiler.best().clone();
            let tightened = warm.tighten(profiler.search(), found);
            profiler.adopt(tightened);
        }
    }
    profiler
}

/// Returns whether `minimum` reached the tolerance, and did not merely stop because of rounding.
fn reached_tolerance<L: ?Sized>(minimum: &Minimum, search: &Search<'_, L>) -> bool {
    minimum.converged() && minimum.edm.abs() <= search.options.tolerance
}

/// Runs `work` while the parameter `poi` is fixed, and returns its result.
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
    /// Creates the fits from the free minimum of `profiler`.
    pub(super) fn new(profiler: Profiler<'a, L>, poi: usize, conditional: Option<&'a mut WarmStartedFit>) -> Self {
        let starts_from_free = profiler.explores_widely();
        Self {
            profiler,
            poi,
            conditional,
            temporary: WarmStartedFit::default(),
            has_conditional: false,
            starts_from_free,
        }
    }

    /// Returns the free minimum. A lower conditional minimum replaces it.
    pub(super) fn free(&self) -> &Minimum {
        self.profiler.best()
    }

    pub(super) fn domain(&self) -> &Domain {
        self.profiler.domain()
    }

    /// Returns the standard deviation of the parameter of interest for a first guess; 1 if it has
    /// none.
    pub(super) fn width(&mut self) -> f64 {
        self.profiler.width(self.poi).unwrap_or(1.0)
    }

    /// Disables warm starts of conditional fits, after they have led to minima that are not the
    /// lowest.
    pub(super) fn disable_warm_starts(&mut self) {
        self.starts_from_free = true;
    }

    /// Returns the minimum with the parameter of interest fixed at `mu`.
    pub(super) fn at(&mut self, mu: f64) -> Minimum {
        if self.starts_from_free {
            let minimum = self.explored(mu);
            return self.tightened(minimum);
        }
        let is_first = !std::mem::replace(&mut self.has_conditional, true);
        if is_first && self.conditional.is_none() {
            return self.at_from_free(mu);
        }
        self.at_from_last(mu, if is_first { Checks::All } else { Checks::None })
    }

    /// Returns the minimum with the parameter of interest fixed at `mu`, after all checks, for
    /// values that are reported.
    pub(super) fn checked_at(&mut self, mu: f64) -> Minimum {
        if self.starts_from_free {
            let minimum = self.explored(mu);
            return self.tightened(minimum);
        }
        let is_first = !std::mem::replace(&mut self.has_conditional, true);
        if is_first && self.conditional.is_none() {
            return self.at_from_free(mu);
        }
        let minimum = self.at_from_last(mu, Checks::All);
        if self.profiler.cheap_starts().is_empty() {
            return minimum;
        }
        let other = self.explored(mu);
        if is_lower(other.nll, minimum.nll) { self.tightened(other) } else { minimum }
    }

    /// Returns the minimum with the parameter of interest fixed at `mu`, found from the free
    /// minimum and, if that is cheap, from the starting values.
    fn explored(&mut self, mu: f64) -> Minimum {
        let starts = self.profiler.cheap_starts();
        self.profiler.at_explored(&[(self.poi, mu)], &starts)
    }

    /// Minimises further from `minimum`, a result of [`Self::explored`], if warm starts are
    /// enabled, and returns the result.
    fn tightened(&mut self, minimum: Minimum) -> Minimum {
        let poi = self.poi;
        match self.conditional.as_deref_mut() {
            Some(warm) => with_fixed_poi(self.profiler.search(), poi, |search| warm.tighten(search, minimum)),
            None => minimum,
        }
    }

    /// Returns the minimum with the parameter of interest fixed at `mu`, found from the free
    /// minimum.
    fn at_from_free(&mut self, mu: f64) -> Minimum {
        let minimum = self.profiler.at_with_last_factor(self.poi, mu);
        let (poi, temporary) = (self.poi, &mut self.temporary);
        with_fixed_poi(self.profiler.search(), poi, |search| temporary.continue_from(search, &minimum));
        minimum
    }

    /// Returns the minimum with the parameter of interest fixed at `mu`, found from the last
    /// conditional minimum.
    fn at_from_last(&mut self, mu: f64, checks: Checks) -> Minimum {
        let (poi, fixed) = (self.poi, [(self.poi, mu)]);
        // Conditional fits also start from all other known free minima, which rules out a warm
        // start.
        if !(self.profiler.best().converged() && self.profiler.pool().basins().is_empty()) {
            return self.profiler.at_with_last_factor(poi, mu);
        }
        let warm = self.conditional.as_deref_mut().unwrap_or(&mut self.temporary);
        let mut start = self.profiler.best().params.clone();
        start[poi] = mu;
        let result = with_fixed_poi(self.profiler.search(), poi, |search| warm.minimize(search, &start, checks));
        match result {
            WarmResult::Accepted(minimum) => {
                self.profiler.learn_from(&fixed, &minimum);
                minimum
            }
            WarmResult::Rejected(other) => {
                let found = self.profiler.at_explored(&fixed, &[]);
                let minimum = other.filter(|other| is_lower(other.nll, found.nll)).unwrap_or(found);
                with_fixed_poi(self.profiler.search(), poi, |search| warm.tighten(search, minimum))
            }
        }
    }

    /// Returns the statistic at `mu`.
    pub(super) fn test(&mut self, statistic: TestStatistic, mu: f64) -> EvaluatedStatistic {
        let conditional = self.at(mu);
        classify(&self.profiler, statistic, self.poi, mu, conditional)
    }
}
