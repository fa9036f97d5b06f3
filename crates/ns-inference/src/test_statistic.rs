//! Test statistics made of a profile likelihood ratio: how much worse the data fit with the
//! parameter of interest at μ.
//!
//! G. Cowan, K. Cranmer, E. Gross and O. Vitells, Eur. Phys. J. C 71 (2011) 1554, arXiv:1007.1727;
//! equation numbers are theirs.

use crate::minimize::Minimum;
use crate::profile::Profiler;
use crate::search::{falls_below, told_apart};
use ns_core::SearchLikelihood;
use serde::Serialize;

/// Which test statistic. λ(μ) is the profile likelihood ratio L(μ, θ̂̂)/L(μ̂, θ̂).
///
/// The statistics with a tilde are meant for a parameter of interest that is not negative: their
/// best fit is the one in its range, as in pyhf. So with a range that starts at zero they are the
/// equations' λ̃, and with one that admits negative values they equal those without tilde.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestStatistic {
    /// t_μ = -2 ln λ(μ), eq. 8: deviations to both sides.
    T,
    /// t̃_μ, eq. 11: the same for μ ≥ 0.
    TTilde,
    /// q_μ, eq. 14: -2 ln λ(μ) for μ̂ ≤ μ, else 0: upper limits.
    Q,
    /// q̃_μ, eq. 16: the same for μ ≥ 0.
    #[default]
    QTilde,
    /// q₀, eq. 12: -2 ln λ(0) for μ̂ ≥ 0, else 0: discovery.
    Q0,
}

impl TestStatistic {
    /// Every statistic.
    pub const ALL: [Self; 5] = [Self::QTilde, Self::Q, Self::Q0, Self::T, Self::TTilde];

    /// Returns the name in documents and arguments.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::T => "t",
            Self::TTilde => "ttilde",
            Self::Q => "q",
            Self::QTilde => "qtilde",
            Self::Q0 => "q0",
        }
    }

    /// Returns the statistic of that name.
    ///
    /// ```
    /// use ns_inference::test_statistic::TestStatistic;
    /// assert_eq!(TestStatistic::named("q0"), Some(TestStatistic::Q0));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.name() == name)
    }

    /// Returns the statistic's value, given the best fit `mu_hat` and the `rise` of -ln L from
    /// there to its conditional minimum at `mu`.
    ///
    /// ```
    /// use ns_inference::test_statistic::TestStatistic;
    /// assert_eq!(TestStatistic::QTilde.value(1.0, 0.2, 1.5), 3.0);
    /// assert_eq!(TestStatistic::QTilde.value(1.0, 1.2, 1.5), 0.0);
    /// assert_eq!(TestStatistic::Q0.value(0.0, -0.2, 1.5), 0.0);
    /// ```
    #[must_use]
    pub fn value(self, mu: f64, mu_hat: f64, rise: f64) -> f64 {
        let counts = match self {
            Self::T | Self::TTilde => true,
            Self::Q | Self::QTilde => mu_hat <= mu,
            Self::Q0 => mu_hat >= mu,
        };
        if counts { 2.0 * rise.max(0.0) } else { 0.0 }
    }

    /// Returns `true` if only deviations to one side count, so that there is an expected band.
    #[must_use]
    pub fn is_one_sided(self) -> bool {
        !matches!(self, Self::T | Self::TTilde)
    }

    /// Returns the value of μ for which the Asimov data set of its expected distribution is made
    /// (pyhf's rule): 1 for a discovery, 0 otherwise.
    #[must_use]
    pub fn asimov_mu(self) -> f64 {
        if self == Self::Q0 { 1.0 } else { 0.0 }
    }
}

/// A test statistic with what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedStatistic {
    /// Its value; `None` where a fit did not converge, or where the best fit allowed lies above the
    /// conditional one.
    pub value: Option<f64>,
    /// The best-fit value of the parameter of interest.
    pub mu_hat: f64,
    /// The parameters of the conditional fit (P).
    pub conditional: Vec<f64>,
    /// d(-ln L)/dμ at the conditional minimum: half the derivative of -2 ln λ(μ).
    pub derivative: f64,
    /// Why there is no value.
    pub failure: Option<TestFailure>,
}

/// Why a test statistic has no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestFailure {
    /// The free fit did not converge.
    Free,
    /// The fit with the parameter of interest at this value did not converge.
    Conditional(f64),
    /// The fit at this value lies below the best fit that the ranges allow.
    Below(f64),
}

impl TestFailure {
    /// Returns the same in a few words, for who knows the data and the value.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Free => "the free fit did not converge",
            Self::Conditional(_) => "the conditional fit did not converge",
            Self::Below(_) => "the conditional fit lies below the best fit that the parameters' ranges allow",
        }
    }

    /// Returns the same in a sentence; `poi` is the name of the parameter of interest, and `data`
    /// says what was fitted.
    #[must_use]
    pub fn describe(self, poi: &str, data: &str) -> String {
        match self {
            Self::Free => format!("the free fit to {data} did not converge"),
            Self::Conditional(mu) => format!("the fit with `{poi}` = {mu} to {data} did not converge"),
            Self::Below(mu) => {
                format!(
                    "the fit with `{poi}` = {mu} to {data} lies below the best fit that the ranges of the parameters allow"
                )
            }
        }
    }
}

/// Returns the statistic at `mu` of the parameter `poi`.
///
/// A conditional minimum below the free one makes the profiler look for the free one again; a rise
/// that stays negative is no number.
pub fn test<L: SearchLikelihood + ?Sized>(
    profiler: &mut Profiler<'_, L>,
    statistic: TestStatistic,
    poi: usize,
    mu: f64,
) -> EvaluatedStatistic {
    let conditional = profiler.at(&[(poi, mu)]);
    classify(profiler, statistic, poi, mu, conditional)
}

/// Returns the same, with the conditional minimum also looked for from each of `starts` (each P),
/// and explored.
pub fn test_from<L: SearchLikelihood + ?Sized>(
    profiler: &mut Profiler<'_, L>,
    statistic: TestStatistic,
    poi: usize,
    mu: f64,
    starts: &[Vec<f64>],
) -> EvaluatedStatistic {
    let conditional = profiler.at_explored(&[(poi, mu)], starts);
    classify(profiler, statistic, poi, mu, conditional)
}

/// Returns the same from the conditional minimum at `mu` that `profiler` found.
pub fn classify<L: SearchLikelihood + ?Sized>(
    profiler: &Profiler<'_, L>,
    statistic: TestStatistic,
    poi: usize,
    mu: f64,
    conditional: Minimum,
) -> EvaluatedStatistic {
    let best = profiler.best();
    let rise = conditional.nll - best.nll;
    let mu_hat = best.params.get(poi).copied().unwrap_or(f64::NAN);
    let failure = if !best.converged() {
        Some(TestFailure::Free)
    } else if !conditional.converged() {
        Some(TestFailure::Conditional(mu))
    } else if falls_below(rise, best.nll) {
        Some(TestFailure::Below(mu))
    } else {
        None
    };
    let rise = told_apart(rise, best.nll);
    let value = failure.is_none().then(|| statistic.value(mu, mu_hat, rise));
    let derivative = conditional.gradient.get(poi).copied().unwrap_or(f64::NAN);
    EvaluatedStatistic { value, mu_hat, conditional: conditional.params, derivative, failure }
}
