//! Errors of JSON documents: invalid text, and values other than those expected.

use super::{FoundValue, SyntaxProblem};
use crate::hint::meant_or_known;
use crate::place::DocumentPlace;
use crate::text::NotUtf8Error;

/// Why bytes are not the JSON document that is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are not text.
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8Error),
    /// The text is not JSON.
    #[error("{problem} {place}")]
    Syntax {
        /// The violated rule.
        problem: SyntaxProblem,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// `NaN` or an infinity instead of a number.
    #[error("`{literal}` is not a JSON number, {place}")]
    NotFinite {
        /// As written.
        literal: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A number beyond the range of doubles.
    #[error("the number `{number}` is out of range {place}")]
    NumberOutOfRange {
        /// As written, shortened.
        number: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A value of another type.
    #[error("expected {expected}, found {found} {place}")]
    WrongType {
        /// The expected type, with its article.
        expected: &'static str,
        /// The value there.
        found: FoundValue,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A key that the object must not have.
    #[error("unknown key `{key}` {place}")]
    UnknownKey {
        /// As written.
        key: String,
        /// The keys that it may have.
        known: &'static [&'static str],
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A key that an object has twice.
    #[error("duplicate key `{key}` {place}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The place of the second.
        place: DocumentPlace,
    },
    /// A key that the object must have.
    #[error("missing key `{key}` in the object {place}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The object.
        place: DocumentPlace,
    },
    /// A list or an object without an entry where one is required.
    #[error("expected at least one entry, found none {place}")]
    Empty {
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A list of another length.
    #[error("expected {expected} entries, found {found} {place}")]
    WrongLength {
        /// The expected length.
        expected: usize,
        /// The length found.
        found: usize,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A name that a list has twice.
    #[error("`{name}` is in the list twice {place}")]
    RepeatedName {
        /// The name.
        name: String,
        /// The place of the second.
        place: DocumentPlace,
    },
    /// A string of another form.
    #[error("`{text}` is not {expected} {place}")]
    Malformed {
        /// As written.
        text: String,
        /// The expected form.
        expected: &'static str,
        /// The place in the document.
        place: DocumentPlace,
    },
}

/// The hint for documents whose first character is not JSON.
const NOT_JSON: &str = "this is not JSON; `nextstat build` makes a workspace of a YAML configuration";

impl JsonError {
    /// Returns whether the document is empty.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        matches!(self, Self::Syntax { problem: SyntaxProblem::Blank, .. })
    }

    /// Returns the place in the document, or `None` for bytes that are not text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::NotUtf8(_) => None,
            Self::Syntax { place, .. }
            | Self::NotFinite { place, .. }
            | Self::NumberOutOfRange { place, .. }
            | Self::WrongType { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::DuplicateKey { place, .. }
            | Self::MissingKey { place, .. }
            | Self::Empty { place }
            | Self::WrongLength { place, .. }
            | Self::RepeatedName { place, .. }
            | Self::Malformed { place, .. } => Some(place),
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotUtf8(error) => Some(error.hint().to_owned()),
            Self::Syntax { problem: SyntaxProblem::Unexpected { found, .. }, place }
                if place.is_start() && !matches!(found.as_str(), "<" | "/") =>
            {
                Some(NOT_JSON.to_owned())
            }
            Self::Syntax { problem, .. } => problem.hint().map(str::to_owned),
            Self::NotFinite { .. } => {
                Some("JSON has no NaN and no infinity; leave the entry out or write a finite number".to_owned())
            }
            Self::UnknownKey { key, known, .. } => {
                Some(meant_or_known(key, known.iter().copied(), "the keys here are"))
            }
            Self::DuplicateKey { .. } => {
                Some("the same object has this key before; other readers silently take the last one".to_owned())
            }
            _ => None,
        }
    }
}
