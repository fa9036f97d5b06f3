//! Errors of JSON patches: a document that is not a patch, and an operation that cannot be done.

use std::fmt;

use ns_core::advice::Advice;

use crate::hint::meant_or_known;
use crate::json::{FoundValue, JsonError};
use crate::kind::WrongDocumentError;
use crate::place::DocumentPlace;

/// Why a patch cannot be read or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The document is not JSON, or not a list of objects with the keys of an operation.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The whole document is of another kind.
    #[error(transparent)]
    WrongDocument(#[from] WrongDocumentError),
    /// An operation that RFC 6902 does not have.
    #[error("unknown patch operation `{op}` {place}")]
    UnknownOperation {
        /// As written.
        op: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// An operation that does not fit the document.
    #[error("operation {index} (`{op} {path}`)")]
    Operation {
        /// The index of the operation, from 0.
        index: usize,
        /// Its kind.
        op: &'static str,
        /// Its path.
        path: String,
        /// Why it cannot be done.
        source: Box<PatchProblem>,
    },
}

impl PatchError {
    /// Returns the place in the patch, or `None` for an error that is not in its text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::UnknownOperation { place, .. } => Some(place),
            Self::WrongDocument(_) | Self::Operation { .. } => None,
        }
    }

    /// Returns the JSON pointer of [`Self::place`].
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.place().map(|place| place.pointer.as_str())
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::Json(error) => error.hint().map(Advice::from),
            Self::WrongDocument(error) => Some(error.advice()),
            Self::UnknownOperation { op, .. } => {
                let known = ["add", "remove", "replace", "move", "copy", "test"];
                Some(meant_or_known(op, known, "the operations are").into())
            }
            Self::Operation { source, .. } => match **source {
                PatchProblem::Missing { .. } => Some("was the patch made for this workspace?".into()),
                _ => None,
            },
        }
    }
}

/// Why an operation cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchProblem {
    /// A path leads to something that the document does not have.
    Missing {
        /// The path up to the first step that does not exist.
        pointer: String,
        /// The path up to the last step that exists.
        parent: String,
        /// The value at `parent`.
        holds: FoundValue,
    },
    /// A `test` found another value.
    TestFailed {
        /// The value there.
        found: FoundValue,
    },
    /// A value cannot be moved into itself.
    IntoItself,
    /// The whole document cannot be removed or moved away.
    WholeDocument,
    /// The document would nest too deeply.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The patch would copy too many values.
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { pointer, parent, holds } if parent.is_empty() => {
                write!(f, "there is no `{pointer}`, the document is {holds}")
            }
            Self::Missing { pointer, parent, holds } => {
                write!(f, "there is no `{pointer}`, `{parent}` is {holds}")
            }
            Self::TestFailed { found } => write!(f, "the document has {found} there"),
            Self::IntoItself => f.write_str("a value cannot be moved into itself"),
            Self::WholeDocument => f.write_str("the whole document cannot be removed"),
            Self::TooDeep { limit } => write!(f, "the document would nest more than {limit} deep"),
            Self::TooLarge { limit } => write!(f, "the patch copies more than {limit} values"),
        }
    }
}

impl std::error::Error for PatchProblem {}
