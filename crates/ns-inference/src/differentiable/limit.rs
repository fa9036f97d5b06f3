//! Upper limits as functions of the inputs: where CLs(μ, x) falls to the level.
//!
//! The expected ones are where √q_A(μ, x) reaches a number t, so dμ/dx = -(∂q_A/∂x)/(∂q_A/∂μ); the observed one is where ln CLs(q, q_A) = ln α, with the derivatives of both.

use super::asimov::Asimov;
use super::error::{DifferentiableError, FitTarget, arrived, finite};
use super::follow::{self, DataSetFits, FitStart};
use super::statistics::{StatisticPoints, TestValues, compare};
use super::{Kind, ProfiledDifferentiableSession};
use crate::asymptotic::{ln_cls, root_asimov_at};
use crate::limit::LimitOptions;
use crate::profile::Profiler;
use crate::root::{Root, RootInterval, increasing};
use crate::test_statistic::{EvaluatedStatistic, TestFailure, TestStatistic};
use ns_core::TemplateLikelihood;

/// How far beyond the range of the parameter, in units of the distance to its upper end, a limit is looked for.
const BEYOND: f64 = 1e6;

/// Where so many kinds of limits were before the last one is remembered.
const MOST_REMEMBERED: usize = 15;

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitKind {
    /// The observed one.
    Observed,
    /// The one expected if the background fluctuates by as many standard deviations.
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

/// At a limit √q_A or ln CLs is nearer than this to what is asked for; where the fits change from one minimum to another it jumps.
const AT_LIMIT: f64 = 1e-4;

/// What is said of such a jump.
const JUMPS: &str = "CLs jumps across the level there, as the fits change from one minimum to another";

/// A root, and the last fit's failure if there was one.
struct Search {
    root: Root,
    failure: Option<TestFailure>,
    /// How near to the level a value came.
    nearest: f64,
}

impl Search {
    fn new() -> Self {
        Self { root: Root::Unknown, failure: None, nearest: f64::INFINITY }
    }

    /// The limit, if one was found.
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
    /// The upper limit `which`; its gradient is written to `by_inputs` (M).
    ///
    /// # Errors
    /// If a fit fails, or where there is no limit.
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
        self.last_limits.truncate(MOST_REMEMBERED);
        self.last_limits.insert(0, (wanted, which, mu));
        Ok(mu)
    }

    /// Where a limit is looked for: if fits follow each other first where the last one of its kind was; else there is no guess yet.
    fn interval(&self, asimov: &Asimov, wanted: LimitOptions, which: LimitKind) -> (RootInterval, bool) {
        let (lower, range_end) = (asimov.params[self.poi], self.model.parameters.upper[self.poi]);
        let upper = if range_end.is_finite() { lower + BEYOND * (range_end - lower).max(1.0) } else { f64::MAX };
        let follows = self.options.start == FitStart::Warm;
        let is_known =
            |last: &&(LimitOptions, LimitKind, f64)| follows && (last.0, last.1) == (wanted, which) && last.2 > lower;
        let known = self.last_limits.iter().find(is_known).map(|last| last.2.min(upper));
        (RootInterval { lower, upper, guess: known.unwrap_or(lower) }, known.is_some())
    }

    fn expected_limit(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        n: f64,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        let (poi, which, target) = (self.poi, LimitKind::Expected(n), root_asimov_at(wanted.level, n));
        let (mut interval, is_known) = self.interval(asimov, wanted, which);
        let mut fits = self.asimov_fits(asimov);
        if !is_known {
            interval.guess_from(target, fits.width());
        }
        let found = search_twice(&mut fits, DataSetFits::follow_no_more, |fits| {
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
            finite("the limit", &*by_inputs)?;
        }
        Ok(mu)
    }

    fn observed_limit(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        self.ask_device(Kind::Free, None)?;
        let (mut interval, is_known) = self.interval(asimov, wanted, LimitKind::Observed);
        let (poi, statistic, start, warm_fits) = (self.poi, wanted.statistic, self.start(), &mut self.warm_fits);
        let free = follow::wanted(&mut warm_fits.free, start);
        let observed = follow::fit(&self.model, &mut self.observed, &self.options.fit, free);
        let observed = DataSetFits::new(observed, poi, follow::wanted(&mut warm_fits.conditional, start));
        arrived("the free fit", FitTarget::Observed, observed.free())?;
        let expected = Profiler::of_asimov(&self.model, &mut self.asimov, &self.options.fit, &asimov.params);
        let mut expected = DataSetFits::new(expected, poi, follow::wanted(&mut warm_fits.asimov, start));
        if !is_known {
            interval.guess_from(root_asimov_at(wanted.level, 0.0), expected.width());
        }
        let ln_level = wanted.level.ln();
        let follow_no_more = |pair: &mut (DataSetFits<'_, L>, DataSetFits<'_, L>)| {
            pair.0.follow_no_more();
            pair.1.follow_no_more();
        };
        let found = search_twice(&mut (observed, expected), follow_no_more, |(observed, expected)| {
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

    /// dμ/dx of an observed limit, where the statistics of both data sets were `compared` and CLs has these derivatives, written to `by_inputs` (M).
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
        finite("the limit", &*by_inputs)
    }
}

impl RootInterval {
    /// Begins where a limit would be if the likelihood were a parabola of standard deviation `width`.
    fn guess_from(&mut self, target: f64, width: f64) {
        self.guess = (self.lower + target * width).min(self.upper);
    }
}

/// What `search` finds with `fits` that follow each other; where they end in no limit, with fits that do not.
fn search_twice<F, T>(
    fits: &mut F,
    follow_no_more: impl FnOnce(&mut F),
    search: impl Fn(&mut F) -> Result<T, DifferentiableError>,
) -> Result<T, DifferentiableError> {
    search(fits).or_else(|_| {
        follow_no_more(fits);
        search(fits)
    })
}

/// √q and its derivative along μ.
fn along_mu(tested: &EvaluatedStatistic) -> Option<[f64; 2]> {
    let root = tested.value?.sqrt();
    Some([root, if root > 0.0 { tested.derivative / root } else { 0.0 }])
}

/// An error if fits at the limit are `off` from what it is the limit of: they found other minima than the search for it.
fn require_level(which: LimitKind, off: f64) -> Result<(), DifferentiableError> {
    if off.abs() <= AT_LIMIT {
        return Ok(());
    }
    Err(DifferentiableError::NoLimit { which: which.to_string(), reason: JUMPS })
}

/// CLs of the observed data and its derivatives with respect to q and q_A.
fn observed_cls(statistic: TestStatistic, q: f64, asimov: &StatisticPoints) -> [f64; 3] {
    let values = TestValues { statistic, q, q_asimov: asimov.q, q_by_mu: 0.0, q_asimov_by_mu: asimov.by_mu };
    values.cls()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_whose_values_stay_away_from_the_level_is_a_jump_and_no_limit() {
        let found = |nearest| Search { root: Root::At(2.5), failure: None, nearest }.limit(LimitKind::Expected(1.0));
        assert_eq!(found(1e-9).expect("a limit"), 2.5);
        let error = found(0.1).expect_err("a jump").to_string();
        assert!(error.contains("expected (+1σ)") && error.contains(JUMPS), "{error}");
        assert!(require_level(LimitKind::Observed, 1e-9).is_ok() && require_level(LimitKind::Observed, -0.1).is_err());
    }
}
