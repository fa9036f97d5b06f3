//! Errors of digests.

use super::DigestAlgorithm;
use crate::hint::in_backticks;
use crate::json::JsonError;
use crate::place::DocumentPlace;

/// Why a document has no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestError {
    /// The document is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An algorithm that is not offered.
    #[error("unknown digest algorithm `{name}`")]
    UnknownAlgorithm {
        /// As written.
        name: String,
    },
}

impl DigestError {
    /// Returns the place in the document, or `None` for an error that is not in its text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::UnknownAlgorithm { .. } => None,
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Json(error) => error.hint(),
            Self::UnknownAlgorithm { .. } => {
                Some(format!("the algorithms are {}", in_backticks(DigestAlgorithm::ALL.map(DigestAlgorithm::as_str))))
            }
        }
    }
}
