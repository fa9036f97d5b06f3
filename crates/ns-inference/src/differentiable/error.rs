//! Reports why there is no value or gradient: a fit that failed, a minimum without a derivative, a
//! limit that does not exist.

use crate::minimize::{Minimum, Outcome};
use ns_core::model::BinPlace;
use thiserror::Error;

/// The reason why a parameter that is not free at the best fit has no uncertainty.
pub(super) const AT_END: &str = "it is fixed, or its best fit is at an end of its range";

/// The data to which a model is fitted.
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

/// The reason why a value or its gradient is unknown. Neither is returned.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum DifferentiableError {
    /// A fit did not converge.
    #[error("{fit} to {of} did not converge: {} (EDM {edm:.1e})", verdict(*.outcome))]
    Fit {
        /// The fit.
        fit: &'static str,
        /// The fitted data.
        of: FitTarget,
        /// Why it stopped.
        outcome: Outcome,
        /// The estimated distance to the minimum.
        edm: f64,
    },
    /// A minimum is at the edge of the domain. The edge depends on the templates, and no condition
    /// on the derivatives determines how the minimum moves.
    #[error(
        "{fit} to {of} ended at the edge of the domain of -ln L, where the minimum has no derivative with respect to the templates"
    )]
    Edge {
        /// The fit.
        fit: &'static str,
        /// The fitted data.
        of: FitTarget,
    },
    /// A parameter is on the kink of its interpolation, and -ln L has a nonzero derivative on one
    /// side only.
    #[error(
        "`{parameter}` is on the kink of its interpolation and -ln L is stationary on one side only, so the minimum has no derivative with respect to the templates"
    )]
    Kink {
        /// The parameter.
        parameter: String,
    },
    /// The device failed during a fit.
    #[error("the device failed: {reason}")]
    Device {
        /// The message of the device.
        reason: String,
    },
    /// The conditional minimum is lower than the free one.
    #[error("the conditional fit to {of} ended lower than the free fit within the ranges of the parameters")]
    Below {
        /// The fitted data.
        of: FitTarget,
    },
    /// The Hessian at a minimum cannot be inverted, so the derivative of the minimum is unknown.
    #[error(
        "the Hessian at the minimum of {fit} to {of} is not positive definite, so the minimum has no derivative with respect to the templates"
    )]
    Curvature {
        /// The fit.
        fit: &'static str,
        /// The fitted data.
        of: FitTarget,
    },
    /// The parameter of interest has no standard deviation.
    #[error("`{parameter}` has no uncertainty: {reason}")]
    NoUncertainty {
        /// The parameter.
        parameter: String,
        /// The reason.
        reason: &'static str,
    },
    /// The limit does not exist.
    #[error("there is no {which} limit: {reason}")]
    NoLimit {
        /// The kind of limit: observed, or expected with its number of standard deviations.
        which: String,
        /// The reason.
        reason: &'static str,
    },
    /// A gradient has elements that are not finite, or -ln L is not finite at its point.
    #[error("the gradient of {what} is not finite")]
    NotFinite {
        /// The quantity.
        what: &'static str,
    },
    /// A bin of the Asimov data set is empty, so the derivative with respect to events that an
    /// input adds there is infinite.
    #[error("{place} has no expected events, so the statistic has no derivative with respect to the templates there")]
    Empty {
        /// The bin.
        place: BinPlace,
    },
}

impl DifferentiableError {
    /// Returns one line of advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty { .. } => Some("add a small background to every bin, such as 0.001 events"),
            Self::Edge { .. } => {
                Some("narrow the ranges of the parameters so that the expected count of every bin stays positive")
            }
            Self::NoUncertainty { reason, .. } if *reason == AT_END => {
                Some("widen the range of the parameter so that its best fit is inside")
            }
            _ => None,
        }
    }
}

/// Returns the name of the fit with the parameter of interest fixed at `mu` if given.
pub(super) fn fit_name(mu: Option<f64>) -> &'static str {
    if mu.is_some() { "the conditional fit" } else { "the free fit" }
}

/// Returns the description of a fit's `outcome` in messages.
fn verdict(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Converged => "it converged",
        Outcome::IterationLimit => "its iterations ran out",
        Outcome::Stalled => "no step makes progress",
        Outcome::Saddle => "it ended at a saddle point",
        Outcome::NotFinite => "the likelihood is not finite at the starting point",
    }
}

/// Checks that all `derivatives` of `what` are finite.
pub(super) fn require_finite<'a>(
    what: &'static str,
    derivatives: impl IntoIterator<Item = &'a f64>,
) -> Result<(), DifferentiableError> {
    if derivatives.into_iter().all(|derivative| derivative.is_finite()) {
        return Ok(());
    }
    Err(DifferentiableError::NotFinite { what })
}

/// Checks that `minimum` converged and is not at the edge of the domain.
pub(super) fn require_minimum(fit: &'static str, of: FitTarget, minimum: &Minimum) -> Result<(), DifferentiableError> {
    if minimum.converged() {
        return if minimum.at_edge { Err(DifferentiableError::Edge { fit, of }) } else { Ok(()) };
    }
    Err(DifferentiableError::Fit { fit, of, outcome: minimum.outcome, edm: minimum.edm })
}
