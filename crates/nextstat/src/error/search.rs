//! Why a search for signals has no result.

use super::settings::quoted;

/// Why a search has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A label that the patch set does not have.
    #[error("the patch set has no label `{label}`")]
    NoLabel {
        /// The label.
        label: String,
        /// The labels that it has.
        known: Vec<String>,
    },
    /// A label that does not have another number for every signal.
    #[error(
        "upcrossings cannot be counted along `{label}`: its values are not numbers that differ between all signals"
    )]
    NotInARow {
        /// The label.
        label: String,
    },
    /// A signal with other bins than the background.
    #[error("its bins or their data are not those of the other signals")]
    OtherBins,
    /// Too few samples.
    #[error("{n} samples are too few for a global p-value")]
    TooFewSamples {
        /// Their number.
        n: usize,
    },
    /// A background that did not converge or that the data do not determine.
    #[error("the fit of the background {reason}, so that there is no global significance")]
    Background {
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl SearchError {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoLabel { known, .. } => Some(format!("its labels are {}", quoted(known))),
            Self::NotInARow { .. } => Some("choose a label with a number of its own for every signal".to_owned()),
            Self::TooFewSamples { .. } => Some("use 100 or more; the default is 20000".to_owned()),
            Self::Background { .. } | Self::OtherBins => None,
        }
    }
}
