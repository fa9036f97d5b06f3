//! Why there is no gradient: a fit that failed, a minimum that is none, a limit that does not exist.

use crate::minimize::{Minimum, Outcome};
use ns_core::model::BinPlace;
use thiserror::Error;

/// Why a parameter has no uncertainty where others would.
pub(super) const AT_END: &str = "it is fixed, or its best fit is at an end of its range";

/// The data that a fit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitTarget {
    /// The observed data.
    Observed,
    /// The Asimov data set.
    Asimov,
}

impl std::fmt::Display for FitTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Observed => "the observed data",
            Self::Asimov => "the Asimov data set",
        })
    }
}

/// What keeps a value or its gradient from being known. Nothing is returned then.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum DifferentiableError {
    /// A fit did not arrive.
    #[error("{fit} to {of} did not converge: {} (EDM {edm:.1e})", verdict(*.outcome))]
    Fit {
        /// Which fit.
        fit: &'static str,
        /// The data it is of.
        of: FitTarget,
        /// Why it stopped.
        outcome: Outcome,
        /// How far from a minimum.
        edm: f64,
    },
    /// A minimum is at the edge of the domain: where that is depends on the templates, and no condition on derivatives says how.
    #[error("{fit} to {of} is at the edge of where -ln L is finite, and nothing says how it moves with the templates")]
    Edge {
        /// Which fit.
        fit: &'static str,
        /// The data it is of.
        of: FitTarget,
    },
    /// A parameter is on the kink of its interpolation, and -ln L has a derivative on one side only.
    #[error(
        "`{parameter}` is on the kink of its interpolation, and -ln L is flat on one side of it only: nothing says how the minimum moves"
    )]
    Kink {
        /// The parameter.
        parameter: String,
    },
    /// The device that was to do the fits failed.
    #[error("the device failed: {reason}")]
    Device {
        /// What it said.
        reason: String,
    },
    /// The conditional fit lies below the free one.
    #[error("the conditional fit to {of} lies below the best fit that the parameters' ranges allow")]
    Below {
        /// The data.
        of: FitTarget,
    },
    /// The Hessian at a minimum cannot be inverted, so nothing says how the minimum moves.
    #[error("the Hessian at {fit} to {of} is not positive definite, so nothing says how the minimum moves")]
    Curvature {
        /// Which fit.
        fit: &'static str,
        /// The data it is of.
        of: FitTarget,
    },
    /// The parameter of interest has no standard deviation.
    #[error("`{parameter}` has no uncertainty: {reason}")]
    NoUncertainty {
        /// The parameter.
        parameter: String,
        /// Why.
        reason: &'static str,
    },
    /// There is no limit.
    #[error("there is no {which} limit: {reason}")]
    NoLimit {
        /// Observed, or expected with its standard deviations.
        which: String,
        /// Why.
        reason: &'static str,
    },
    /// A gradient has elements that are not finite, or is of a point where -ln L is not.
    #[error("the gradient of {what} is not finite")]
    NotFinite {
        /// Of what.
        what: &'static str,
    },
    /// A bin of the Asimov data set is empty, and events that an input would add there count infinitely much.
    #[error("{place} expects nothing, and the statistic has no derivative with respect to templates there")]
    Empty {
        /// Where.
        place: BinPlace,
    },
}

impl DifferentiableError {
    /// One line of advice, where there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty { .. } => Some("give every bin some background, such as one event in a thousand"),
            Self::Edge { .. } => Some("narrower ranges of the parameters keep every bin's expectation positive"),
            Self::NoUncertainty { reason, .. } if *reason == AT_END => {
                Some("a wider range of the parameter lets its best fit be inside")
            }
            _ => None,
        }
    }
}

/// What the fit with the parameter of interest at `mu`, if that is given, is called.
pub(super) fn fit_name(mu: Option<f64>) -> &'static str {
    if mu.is_some() { "the conditional fit" } else { "the free fit" }
}

/// What an outcome says of a fit.
fn verdict(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Converged => "it arrived",
        Outcome::IterationLimit => "its iterations ran out",
        Outcome::Stalled => "no step makes progress",
        Outcome::Saddle => "it ended at a saddle point",
        Outcome::NotFinite => "the likelihood is not finite where it starts",
    }
}

/// Fails if one of `derivatives`, which are those of `what`, is not finite.
pub(super) fn finite<'a>(
    what: &'static str,
    derivatives: impl IntoIterator<Item = &'a f64>,
) -> Result<(), DifferentiableError> {
    if derivatives.into_iter().all(|derivative| derivative.is_finite()) {
        return Ok(());
    }
    Err(DifferentiableError::NotFinite { what })
}

/// Fails if `minimum` is none, or none that moves as its derivatives say.
pub(super) fn arrived(fit: &'static str, of: FitTarget, minimum: &Minimum) -> Result<(), DifferentiableError> {
    if minimum.converged() {
        return if minimum.at_edge { Err(DifferentiableError::Edge { fit, of }) } else { Ok(()) };
    }
    Err(DifferentiableError::Fit { fit, of, outcome: minimum.outcome, edm: minimum.edm })
}
