//! Reads points to evaluate a model at: a JSON list of parameter vectors.

use crate::json::{self, JsonCursor, JsonError};
use crate::place::DocumentPlace;

/// Why a document is not a list of points.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointsError {
    /// The document is not JSON, or not a list of lists of numbers.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A point with another number of coordinates than the model has parameters.
    #[error("expected {expected} entries, found {found} {place}")]
    WrongLength {
        /// The number of parameters.
        expected: usize,
        /// The number of coordinates.
        found: usize,
        /// The place in the document.
        place: DocumentPlace,
    },
}

impl PointsError {
    /// Returns the place in the document, or `None` for bytes that are not text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::WrongLength { place, .. } => Some(place),
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Json(error) => error.hint(),
            Self::WrongLength { .. } => None,
        }
    }
}

/// Reads a list of points, and returns the `n_params` numbers of each.
///
/// # Errors
///
/// If the document is not JSON or not a list of lists of `n_params` finite numbers, with the place.
///
/// # Example
///
/// ```
/// let error = ns_translate::read_points(b"[[1.0, 0.5], [2.0]]", 2).unwrap_err();
/// assert_eq!(error.to_string(), "expected 2 entries, found 1 at `/1` (line 1, column 14)");
/// ```
pub fn read_points(bytes: &[u8], n_params: usize) -> Result<Vec<Vec<f64>>, PointsError> {
    let text = json::decode(bytes)?;
    let root = json::parse(text)?;
    JsonCursor::top(text, &root).list()?.map(|point| read_point(&point, n_params)).collect()
}

fn read_point(cursor: &JsonCursor<'_>, n_params: usize) -> Result<Vec<f64>, PointsError> {
    let point: Vec<f64> = cursor.list()?.map(|number| number.number()).collect::<Result<_, JsonError>>()?;
    if point.len() != n_params {
        let (expected, found) = (n_params, point.len());
        return Err(PointsError::WrongLength { expected, found, place: cursor.place() });
    }
    Ok(point)
}
