//! Searches without a result.

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
    /// A label along which signals are no row.
    #[error("the values of `{label}` are not numbers that differ between all signals, so that these are not in a row")]
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
            Self::NotInARow { .. } => Some("upcrossings are counted for signals that differ in one number".to_owned()),
            Self::TooFewSamples { .. } => Some("the error of 20000 samples is a few tenths of a per cent".to_owned()),
            Self::Background { .. } | Self::OtherBins => None,
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
