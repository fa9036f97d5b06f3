//! Why bytes are not a table of numbers.

use crate::hint::in_backticks;
use crate::json::JsonError;
use crate::place::DocumentPlace;
use crate::text::NotUtf8Error;

/// Why bytes are not a table of numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberTableError {
    /// Not text, not JSON, or not a list of lists of numbers.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A NumPy file or an archive that is damaged or of an unknown version.
    #[error("damaged NumPy file: {reason}")]
    Damaged {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A NumPy file with fewer bytes than its header says.
    #[error("the array has {found} bytes instead of {expected}")]
    Truncated {
        /// The bytes of the array.
        expected: usize,
        /// The bytes that are there.
        found: usize,
    },
    /// An array with another number of dimensions than two.
    #[error("the array has {found} dimension{} instead of 2", if *found == 1 { "" } else { "s" })]
    Dimensions {
        /// The number of dimensions.
        found: usize,
    },
    /// An array of something other than numbers.
    #[error("the array has entries of the type {found}, which are not numbers")]
    EntryType {
        /// The type as NumPy writes it.
        found: String,
    },
    /// An archive with no array or with several.
    #[error("the archive has {} arrays instead of 1", .names.len())]
    SeveralArrays {
        /// The names of the arrays.
        names: Vec<String>,
    },
    /// An array of an archive that is no table.
    #[error("the array `{name}`: {error}")]
    InArray {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: Box<NumberTableError>,
    },
    /// A table without a name where there must be one.
    #[error("a single NumPy file has no names for its rows")]
    Unnamed,
    /// Two tables of the same name.
    #[error("there are two tables `{name}`")]
    Repeated {
        /// The name.
        name: String,
    },
    /// A word that is not a number.
    #[error("`{text}` in line {line}, column {column}, is not a number")]
    NotANumber {
        /// The word.
        text: String,
        /// The line, from 1.
        line: usize,
        /// Which number of the line, from 1.
        column: usize,
    },
    /// A line with more or fewer numbers than the first.
    #[error("line {line} has {found} number{} instead of {expected}", if *found == 1 { "" } else { "s" })]
    Ragged {
        /// The line, from 1.
        line: usize,
        /// Its numbers.
        found: usize,
        /// The numbers of the first row.
        expected: usize,
    },
}

impl From<NotUtf8Error> for NumberTableError {
    fn from(error: NotUtf8Error) -> Self {
        Self::Json(error.into())
    }
}

impl NumberTableError {
    /// Returns the place in the document, or `None` for what is not JSON.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            _ => None,
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Json(JsonError::NotUtf8(_)) => {
                Some("tables of numbers are NumPy files, text with a row on each line, or JSON".to_owned())
            }
            Self::Json(error) => error.hint(),
            Self::Dimensions { found: 1 } => Some("a single row is a table too: `array[None]`".to_owned()),
            Self::SeveralArrays { names } if !names.is_empty() => {
                Some(format!("save one of them alone; the archive has {}", in_backticks(names)))
            }
            Self::InArray { error, .. } => error.hint(),
            Self::Unnamed => Some("`numpy.savez(file, NAME=array)` gives every array a name".to_owned()),
            Self::EntryType { .. } => Some("`array.astype(float)` makes numbers of it".to_owned()),
            _ => None,
        }
    }
}
