//! Computes upper limits as functions of the inputs: the values of μ at which CLs falls to the
//! level.
//!
//! An expected limit is where √q_A(μ, x) reaches a number t, so dμ/dx = -(∂q_A/∂x)/(∂q_A/∂μ). The
//! observed limit is where ln CLs(q, q_A) = ln α, with the derivatives of both.

use super::asimov::Asimov;
use super::error::{DifferentiableError, FitTarget, require_finite, require_minimum};
use super::statistics::{StatisticPoints, TestValues, compare};
use super::warm_start::{self, DataSetFits, FitStart};
use super::{Kind, ProfiledDifferentiableSession};
use crate::asymptotic::{ln_cls, root_asimov_at};
use crate::limit::LimitOptions;
use crate::profile::Profiler;
use crate::root::{Root, RootInterval, increasing};
use crate::test_statistic::{EvaluatedStatistic, TestFailure, TestStatistic};
use ns_core::TemplateLikelihood;

/// The largest value tested for a limit, in units of the distance to the upper end of the range.
const MAX_RANGE_FACTOR: f64 = 1e6;

/// How many limits of other kinds are remembered besides the last one.
const MAX_REMEMBERED: usize = 15;

/// A kind of limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitKind {
    /// The observed limit.
    Observed,
    /// The limit expected if the background fluctuates by this many standard deviations.
    Expected(f64),
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Observed => f.write_str("observed"),
            Self::Expected(n) => write!(f, "expected ({n:+}σ)"),
        }
    }
}

/// The largest deviation of √q_A or ln CLs from its target at a limit. Where fits change from one
/// minimum to another, the deviation is larger.
const AT_LIMIT: f64 = 1e-4;

/// The reason given for such a jump.
const JUMPS: &str = "CLs jumps across the level where the fits change from one minimum to another";

/// The result of a root search, and the last failed fit if there was one.
struct Search {
    root: Root,
    failure: Option<TestFailure>,
    /// The smallest deviation from the target of all values tested.
    nearest: f64,
}

impl Search {
    fn new() -> Self {
        Self { root: Root::Unknown, failure: None, nearest: f64::INFINITY }
    }

    /// Returns the limit, or an error with the reason why there is none.
    fn limit(&self, which: LimitKind) -> Result<f64, DifferentiableError> {
        let reason = match self.root {
            Root::At(_) if self.nearest > AT_LIMIT => JUMPS,
            Root::At(mu) => return Ok(mu),
            Root::Below => "every value tested is excluded",
            Root::Above => "no value tested is excluded",
            Root::Unknown => self.failure.map_or("CLs could not be computed where it had to be", TestFailure::reason),
        };
        Err(DifferentiableError::NoLimit { which: which.to_string(), reason })
    }
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Returns the upper limit `which`, and writes its gradient to `by_inputs` (M).
    ///
    /// # Errors
    /// If a fit fails, or if there is no limit.
    pub fn limit(
        &mut self,
        wanted: LimitOptions,
        which: LimitKind,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        let asimov = self.make_asimov(0.0)?;
        let mu = match which {
            LimitKind::Expected(n) => self.expected_limit(&asimov, wanted, n, by_inputs)?,
            LimitKind::Observed => self.observed_limit(&asimov, wanted, by_inputs)?,
        };
        self.last_limits.retain(|last| (last.0, last.1) != (wanted, which));
        self.last_limits.truncate(MAX_REMEMBERED);
        self.last_limits.insert(0, (wanted, which, mu));
        Ok(mu)
    }

    /// Returns the interval in which a limit is sought, and whether its guess is a previous limit
    /// with the same options and of the same kind. There is such a guess only with warm starts.
    fn interval(&self, asimov: &Asimov, wanted: LimitOptions, which: LimitKind) -> (RootInterval, bool) {
        let (lower, range_end) = (asimov.params[self.poi], self.model.parameters.upper[self.poi]);
        let upper =
            if range_end.is_finite() { lower + MAX_RANGE_FACTOR * (range_end - lower).max(1.0) } else { f64::MAX };
        let uses_warm_starts = self.options.start == FitStart::Warm;
        let is_previous = |last: &&(LimitOptions, LimitKind, f64)| {
            uses_warm_starts && (last.0, last.1) == (wanted, which) && last.2 > lower
        };
        let previous = self.last_limits.iter().find(is_previous).map(|last| last.2.min(upper));
        (RootInterval { lower, upper, guess: previous.unwrap_or(lower) }, previous.is_some())
    }

    fn expected_limit(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        n: f64,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        let (poi, which, target) = (self.poi, LimitKind::Expected(n), root_asimov_at(wanted.level, n));
        let (mut interval, has_guess) = self.interval(asimov, wanted, which);
        let mut fits = self.asimov_fits(asimov);
        if !has_guess {
            interval.guess_from(target, fits.width());
        }
        let found = search_twice(&mut fits, DataSetFits::disable_warm_starts, |fits| {
            let mut search = Search::new();
            search.root = increasing(interval, |mu| {
                let tested = fits.test(wanted.statistic, mu);
                search.failure = tested.failure.or(search.failure);
                let root = tested.value?.sqrt();
                search.nearest = search.nearest.min((root - target).abs());
                Some([root - target, tested.derivative / root])
            });
            let mu = search.limit(which)?;
            let at_limit = compare(fits, wanted.statistic, poi, mu, FitTarget::Asimov)?;
            require_level(which, at_limit.q.sqrt() - target)?;
            Ok((mu, at_limit))
        });
        let (mu, at_limit) = found?;
        if let Some(by_inputs) = by_inputs {
            self.asimov_gradient(asimov, &at_limit, by_inputs)?;
            by_inputs.iter_mut().for_each(|derivative| *derivative /= -at_limit.by_mu);
            require_finite("the limit", &*by_inputs)?;
        }
        Ok(mu)
    }

    fn observed_limit(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        self.fit_on_device(Kind::Free, None)?;
        let (mut interval, has_guess) = self.interval(asimov, wanted, LimitKind::Observed);
        let (poi, statistic, start, warm_fits) = (self.poi, wanted.statistic, self.start(), &mut self.warm_fits);
        let free = warm_start::if_enabled(&mut warm_fits.free, start);
        let observed = warm_start::fit(&self.model, &mut self.observed, &self.options.fit, free);
        let observed = DataSetFits::new(observed, poi, warm_start::if_enabled(&mut warm_fits.conditional, start));
        require_minimum("the free fit", FitTarget::Observed, observed.free())?;
        let expected = Profiler::of_asimov(&self.model, &mut self.asimov, &self.options.fit, &asimov.params);
        let mut expected = DataSetFits::new(expected, poi, warm_start::if_enabled(&mut warm_fits.asimov, start));
        if !has_guess {
            interval.guess_from(root_asimov_at(wanted.level, 0.0), expected.width());
        }
        let ln_level = wanted.level.ln();
        let disable_warm_starts = |pair: &mut (DataSetFits<'_, L>, DataSetFits<'_, L>)| {
            pair.0.disable_warm_starts();
            pair.1.disable_warm_starts();
        };
        let found = search_twice(&mut (observed, expected), disable_warm_starts, |(observed, expected)| {
            let mut search = Search::new();
            search.root = increasing(interval, |mu| {
                let pair = [observed.test(statistic, mu), expected.test(statistic, mu)];
                search.failure = pair[0].failure.or(pair[1].failure).or(search.failure);
                let [root, asimov] = [along_mu(&pair[0])?, along_mu(&pair[1])?];
                let [value, derivative] = ln_cls(statistic, root, asimov);
                search.nearest = search.nearest.min((ln_level - value).abs());
                Some([ln_level - value, -derivative])
            });
            let mu = search.limit(LimitKind::Observed)?;
            let observed = compare(observed, statistic, poi, mu, FitTarget::Observed)?;
            let expected = compare(expected, statistic, poi, mu, FitTarget::Asimov)?;
            let cls = observed_cls(statistic, observed.q, &expected);
            require_level(LimitKind::Observed, (cls[0] / wanted.level).ln())?;
            Ok((mu, [observed, expected], cls))
        });
        let (mu, [observed, expected], cls) = found?;
        if let Some(by_inputs) = by_inputs {
            self.observed_gradient(asimov, &observed, &expected, cls, by_inputs)?;
        }
        Ok(mu)
    }

    /// Writes dμ/dx of an observed limit to `by_inputs` (M), from the statistics of both data sets
    /// and CLs with its derivatives with respect to them.
    fn observed_gradient(
        &mut self,
        asimov: &Asimov,
        observed: &StatisticPoints,
        expected: &StatisticPoints,
        [_, by_q, by_q_asimov]: [f64; 3],
        by_inputs: &mut [f64],
    ) -> Result<(), DifferentiableError> {
        let mut of_observed = vec![0.0; by_inputs.len()];
        self.difference(FitTarget::Observed, observed, &mut of_observed)?;
        self.asimov_gradient(asimov, expected, by_inputs)?;
        let by_mu = by_q * observed.by_mu + by_q_asimov * expected.by_mu;
        for (derivative, of_q) in by_inputs.iter_mut().zip(&of_observed) {
            *derivative = -(by_q * of_q + by_q_asimov * *derivative) / by_mu;
        }
        require_finite("the limit", &*by_inputs)
    }
}

impl RootInterval {
    /// Sets the guess to the limit for a parabolic likelihood of standard deviation `width`.
    fn guess_from(&mut self, target: f64, width: f64) {
        self.guess = (self.lower + target * width).min(self.upper);
    }
}

/// Returns the result of `search`. If it finds no limit with warm starts, repeats it without them.
fn search_twice<F, T>(
    fits: &mut F,
    disable_warm_starts: impl FnOnce(&mut F),
    search: impl Fn(&mut F) -> Result<T, DifferentiableError>,
) -> Result<T, DifferentiableError> {
    search(fits).or_else(|_| {
        disable_warm_starts(fits);
        search(fits)
    })
}

/// Returns √q and its derivative with respect to μ.
fn along_mu(tested: &EvaluatedStatistic) -> Option<[f64; 2]> {
    let root = tested.value?.sqrt();
    Some([root, if root > 0.0 { tested.derivative / root } else { 0.0 }])
}

/// Returns an error if the fits at the limit deviate by `off` from the target: they found other
/// minima than the search.
fn require_level(which: LimitKind, off: f64) -> Result<(), DifferentiableError> {
    if off.abs() <= AT_LIMIT {
        return Ok(());
    }
    Err(DifferentiableError::NoLimit { which: which.to_string(), reason: JUMPS })
}

/// Returns CLs of the observed data and its derivatives with respect to q and q_A.
fn observed_cls(statistic: TestStatistic, q: f64, asimov: &StatisticPoints) -> [f64; 3] {
    let values = TestValues { statistic, q, q_asimov: asimov.q, q_by_mu: 0.0, q_asimov_by_mu: asimov.by_mu };
    values.cls()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_far_from_the_level_is_a_jump_and_no_limit() {
        let found = |nearest| Search { root: Root::At(2.5), failure: None, nearest }.limit(LimitKind::Expected(1.0));
        assert_eq!(found(1e-9).expect("a limit"), 2.5);
        let error = found(0.1).expect_err("a jump").to_string();
        assert!(error.contains("expected (+1σ)") && error.contains(JUMPS), "{error}");
        assert!(require_level(LimitKind::Observed, 1e-9).is_ok() && require_level(LimitKind::Observed, -0.1).is_err());
    }
}
