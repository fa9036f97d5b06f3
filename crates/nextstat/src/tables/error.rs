//! Why a document has no such table.

use crate::error::{Face, Hint};
use crate::stored::StoredFitError;

/// A document without tables, or without the requested one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A text that is not JSON.
    #[error("the document is not JSON: {reason}")]
    NotJson {
        /// The parser's message.
        reason: String,
    },
    /// The document of a fit that is damaged, or was changed.
    #[error(transparent)]
    Fit(#[from] StoredFitError),
    /// A document that is not a result.
    #[error("the document is not a result of nextstat: it has no `$schema`")]
    NotAResult,
    /// A result that has no tables.
    #[error("a result of `{kind}` has no tables")]
    NoTables {
        /// The name of its schema.
        kind: String,
    },
    /// A table that the document does not have.
    #[error("the result has no table `{name}`")]
    NoSuchTable {
        /// The name.
        name: String,
        /// Those that it has.
        known: Vec<&'static str>,
    },
    /// A part of the document that was not asked for when it was made.
    #[error("the document has no `{key}`")]
    Missing {
        /// Its key.
        key: &'static str,
    },
    /// A name that no row has.
    #[error("no row has the name `{name}`")]
    NoSuchRow {
        /// The name or the pattern.
        name: String,
        /// The most similar one, if one is similar.
        similar: Option<String>,
    },
    /// A value that is not what it must be.
    #[error("at {pointer}: expected {expected}, found `{found}`")]
    BadValue {
        /// JSON pointer to the value.
        pointer: String,
        /// What is expected.
        expected: String,
        /// The value.
        found: String,
    },
}

impl Hint for TableError {
    fn hint(&self, face: Face) -> Option<String> {
        match self {
            Self::NotJson { .. } | Self::NotAResult => Some(
                face.either("commands write results with `-o FILE`", "results write documents with `to_json`")
                    .to_owned(),
            ),
            Self::NoTables { .. } => Some(
                "there are tables of fit, report, yields, ranking, limit, hypotest, hypotest-toys, significance, scan, \
                 contours, gof, toys, fits, exclusion, coverage and region"
                    .to_owned(),
            ),
            Self::NoSuchTable { name, known } => Some(match ns_core::similar_name(name, known.iter().copied()) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => format!("there are `{}`", known.join("`, `")),
            }),
            Self::Missing { key: key @ ("correlation" | "covariance") } => {
                Some(face.either(format!("`nextstat fit --{key}` writes it"), "`nextstat.fit` has it".to_owned()))
            }
            Self::Fit(error) => error.hint(face),
            Self::NoSuchRow { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            _ => None,
        }
    }
}
