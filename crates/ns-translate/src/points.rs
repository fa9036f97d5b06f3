//! Points to evaluate a model at: a JSON list of parameter vectors.

use crate::json::{self, Cursor};
use crate::{DocumentError, text};

/// Reads a list of points with `n_params` numbers each.
///
/// # Errors
///
/// Anything that is not JSON or not a list of lists of `n_params` finite numbers, with its place.
///
/// # Example
///
/// ```
/// let error = ns_translate::read_points(b"[[1.0, 0.5], [2.0]]", 2).unwrap_err();
/// assert_eq!(error.to_string(), "expected 2 entries, found 1 at `/1` (line 1, column 14)");
/// ```
pub fn read_points(bytes: &[u8], n_params: usize) -> Result<Vec<Vec<f64>>, DocumentError> {
    let text = text::decode(bytes)?;
    let root = json::parse(text)?;
    Cursor::top(text, &root).list()?.map(|point| read_point(&point, n_params)).collect()
}

fn read_point(cursor: &Cursor<'_>, n_params: usize) -> Result<Vec<f64>, DocumentError> {
    let point: Vec<f64> = cursor.list()?.map(|number| number.number()).collect::<Result<_, _>>()?;
    if point.len() != n_params {
        let (expected, found) = (n_params, point.len());
        return Err(DocumentError::WrongLength { expected, found, place: cursor.place() });
    }
    Ok(point)
}
