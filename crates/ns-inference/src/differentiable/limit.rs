//! Upper limits as functions of the inputs: where CLs(μ, x) falls to the level.
//!
//! The expected ones are where √q_A(μ, x) reaches a number t, so dμ/dx = -(∂q_A/∂x)/(∂q_A/∂μ); the observed one is where ln CLs(q, q_A) = ln α, with the slopes of both.

use super::asimov::Asimov;
use super::error::{DifferentiableError, Of, arrived, finite};
use super::follow::{self, FitStart, Fits};
use super::statistics::{Compared, TestValues};
use super::{Kind, ProfiledDifferentiableSession};
use crate::asymptotic::{ln_cls, root_asimov_at};
use crate::limit::LimitOptions;
use crate::profile::Profiler;
use crate::root::{Interval, Root, increasing};
use crate::test_statistic::{TestStatistic, Tested};
use ns_core::TemplateLikelihood;

/// How far beyond the range of the parameter, in units of the distance to its upper end, a limit is looked for.
const BEYOND: f64 = 1e6;

/// Where so many kinds of limits were before the last one is remembered.
const MOST_REMEMBERED: usize = 15;

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Which {
    /// The observed one.
    Observed,
    /// The one expected if the background fluctuates by as many standard deviations.
    Expected(f64),
}

impl std::fmt::Display for Which {
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
    failure: Option<&'static str>,
    /// How near to the level a value came.
    nearest: f64,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// The upper limit `which`; its gradient is written to `by_inputs` (M).
    ///
    /// # Errors
    /// If a fit fails, or where there is no limit.
    pub fn limit(
        &mut self,
        wanted: LimitOptions,
        which: Which,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<f64, DifferentiableError> {
        let asimov = self.make_asimov(0.0)?;
        let interval = self.interval(&asimov, wanted, which);
        let found = match which {
            Which::Expected(n) => self.expected_root(&asimov, wanted, n, interval),
            Which::Observed => self.observed_root(&asimov, wanted, interval)?,
        };
        let reason = match found.root {
            Root::At(_) if found.nearest > AT_LIMIT => JUMPS,
            Root::At(mu) => {
                self.last_limits.retain(|last| (last.0, last.1) != (wanted, which));
                self.last_limits.truncate(MOST_REMEMBERED);
                self.last_limits.insert(0, (wanted, which, mu));
                if let Some(by_inputs) = by_inputs {
                    self.limit_gradient(&asimov, wanted, (which, mu), by_inputs)?;
                }
                return Ok(mu);
            }
            Root::Below => "every value tested is excluded",
            Root::Above => "no value tested is excluded",
            Root::Unknown => found.failure.unwrap_or("CLs could not be computed where it had to be"),
        };
        Err(DifferentiableError::NoLimit { which: which.to_string(), reason })
    }

    /// Where a limit is looked for: if fits follow each other first where the last one of its kind was, else where it would be if the likelihood were a parabola.
    fn interval(&mut self, asimov: &Asimov, wanted: LimitOptions, which: Which) -> Interval {
        let (lower, range_end) = (asimov.params[self.poi], self.model.parameters.upper[self.poi]);
        let upper = if range_end.is_finite() { lower + BEYOND * (range_end - lower).max(1.0) } else { f64::MAX };
        let follows = self.options.start == FitStart::Followed;
        let is_known =
            |last: &&(LimitOptions, Which, f64)| follows && (last.0, last.1) == (wanted, which) && last.2 > lower;
        let known = self.last_limits.iter().find(is_known).copied();
        let guess = known.map_or_else(
            || {
                let n = if let Which::Expected(n) = which { n } else { 0.0 };
                lower + root_asimov_at(wanted.level, n) * self.asimov_width(asimov)
            },
            |(.., last)| last,
        );
        Interval { lower, upper, guess: guess.min(upper) }
    }

    fn expected_root(&mut self, asimov: &Asimov, wanted: LimitOptions, n: f64, interval: Interval) -> Search {
        let target = root_asimov_at(wanted.level, n);
        let mut fits = self.asimov_fits(asimov);
        let (mut failure, mut nearest) = (None, f64::INFINITY);
        let root = increasing(interval, |mu| {
            let tested = fits.test(wanted.statistic, mu);
            failure = tested.failure.or(failure);
            let root = tested.value?.sqrt();
            nearest = nearest.min((root - target).abs());
            Some([root - target, tested.slope / root])
        });
        Search { root, failure, nearest }
    }

    fn observed_root(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        interval: Interval,
    ) -> Result<Search, DifferentiableError> {
        self.ask_device(Kind::Free, None)?;
        let (poi, statistic, start, followers) = (self.poi, wanted.statistic, self.start(), &mut self.followers);
        let free = follow::wanted(&mut followers.free, start);
        let observed = follow::fit(&self.model, &mut self.observed, &self.options.fit, free);
        let mut observed = Fits::new(observed, poi, follow::wanted(&mut followers.conditional, start));
        arrived("the free fit", Of::Observed, observed.free())?;
        let expected = Profiler::of_asimov(&self.model, &mut self.asimov, &self.options.fit, &asimov.params);
        let mut expected = Fits::new(expected, poi, follow::wanted(&mut followers.asimov, start));
        let ln_level = wanted.level.ln();
        let (mut failure, mut nearest) = (None, f64::INFINITY);
        let root = increasing(interval, |mu| {
            let pair = [observed.test(statistic, mu), expected.test(statistic, mu)];
            failure = pair[0].failure.or(pair[1].failure).or(failure);
            let [root, asimov] = [along_mu(&pair[0])?, along_mu(&pair[1])?];
            let [value, slope] = ln_cls(statistic, root, asimov);
            nearest = nearest.min((ln_level - value).abs());
            Some([ln_level - value, -slope])
        });
        Ok(Search { root, failure, nearest })
    }

    /// dμ/dx at the limit `mu`, written to `by_inputs` (M).
    fn limit_gradient(
        &mut self,
        asimov: &Asimov,
        wanted: LimitOptions,
        (which, mu): (Which, f64),
        by_inputs: &mut [f64],
    ) -> Result<(), DifferentiableError> {
        let statistic = wanted.statistic;
        let at_limit = self.compare_asimov(asimov, statistic, mu)?;
        self.asimov_gradient(asimov, &at_limit, by_inputs)?;
        if let Which::Expected(n) = which {
            require_level(which, at_limit.q.sqrt() - root_asimov_at(wanted.level, n))?;
            by_inputs.iter_mut().for_each(|slope| *slope /= -at_limit.by_mu);
            return finite("the limit", &*by_inputs);
        }
        let mut observed = vec![0.0; by_inputs.len()];
        let [q, q_by_mu] = self.statistic(statistic, mu, Some(&mut observed))?;
        let [cls, by_q, by_q_asimov] = observed_cls(statistic, q, &at_limit);
        require_level(which, (cls / wanted.level).ln())?;
        let by_mu = by_q * q_by_mu + by_q_asimov * at_limit.by_mu;
        for (slope, of_q) in by_inputs.iter_mut().zip(&observed) {
            *slope = -(by_q * of_q + by_q_asimov * *slope) / by_mu;
        }
        finite("the limit", &*by_inputs)
    }

    /// σ of the parameter of interest in the Asimov data set, for a first guess; 1 where it has none.
    fn asimov_width(&mut self, asimov: &Asimov) -> f64 {
        let mut column = vec![0.0; asimov.params.len()];
        if let Ok(mut hessian) = self.asimov_curvature(asimov) {
            hessian.covariance_column(self.poi, &mut column);
        }
        if column[self.poi] > 0.0 { column[self.poi].sqrt() } else { 1.0 }
    }
}

/// √q and its slope along μ.
fn along_mu(tested: &Tested) -> Option<[f64; 2]> {
    let root = tested.value?.sqrt();
    Some([root, if root > 0.0 { tested.slope / root } else { 0.0 }])
}

/// An error if fits at the limit are `off` from what it is the limit of: they found other minima than the search for it.
fn require_level(which: Which, off: f64) -> Result<(), DifferentiableError> {
    if off.abs() <= AT_LIMIT {
        return Ok(());
    }
    Err(DifferentiableError::NoLimit { which: which.to_string(), reason: JUMPS })
}

/// CLs of the observed data and its slopes with respect to q and q_A.
fn observed_cls(statistic: TestStatistic, q: f64, asimov: &Compared) -> [f64; 3] {
    let values = TestValues { statistic, q, q_asimov: asimov.q, q_by_mu: 0.0, q_asimov_by_mu: asimov.by_mu };
    values.cls()[0]
}
