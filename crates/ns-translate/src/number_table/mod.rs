//! Reads tables of numbers, such as the data sets of a caller: NumPy files (`.npy`), archives of
//! one NumPy array (`.npz`), text, and JSON.
//!
//! The format is recognised by the first bytes. Text has a row on each line, its numbers separated
//! by commas or blanks; lines that begin with `#` and a first line of names are skipped. JSON is a
//! list of rows. Numbers need not be finite: the caller knows what they must be.

mod error;
mod npy;
mod npz;
mod rows;

pub use error::NumberTableError;

use crate::json::{self, JsonCursor, JsonError};

/// Numbers in rows of equal length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NumberTable {
    /// The numbers, row by row (R × C).
    pub values: Vec<f64>,
    /// The number of rows (R).
    pub n_rows: usize,
    /// The number of columns (C).
    pub n_columns: usize,
}

/// Reads a table in any of the formats.
///
/// # Errors
///
/// If the bytes are of no such format, are damaged, or hold something other than a table, with the
/// place.
///
/// # Example
///
/// ```
/// let table = ns_translate::read_number_table(b"SR_0, SR_1\n57, 63\n51.5, 70\n")?;
/// assert_eq!((table.n_rows, table.values), (2, vec![57.0, 63.0, 51.5, 70.0]));
///
/// let error = ns_translate::read_number_table(b"57 63\n51\n").unwrap_err();
/// assert_eq!(error.to_string(), "line 2 has 1 number instead of 2");
/// # Ok::<(), ns_translate::NumberTableError>(())
/// ```
pub fn read_number_table(bytes: &[u8]) -> Result<NumberTable, NumberTableError> {
    if bytes.starts_with(npy::MAGIC) {
        return npy::read(bytes);
    }
    if bytes.starts_with(npz::MAGIC) {
        return npy::read(&npz::only_array(bytes)?);
    }
    let text = json::decode(bytes)?;
    if text.trim_start().starts_with(['[', '{']) { read_json(text) } else { rows::read(text) }
}

fn read_json(text: &str) -> Result<NumberTable, NumberTableError> {
    let root = json::parse(text)?;
    let mut table = NumberTable::default();
    for row in JsonCursor::top(text, &root).list()? {
        let before = table.values.len();
        for number in row.list()? {
            table.values.push(number.number()?);
        }
        let found = table.values.len() - before;
        if table.n_rows == 0 {
            table.n_columns = found;
        } else if found != table.n_columns {
            return Err(JsonError::WrongLength { expected: table.n_columns, found, place: row.place() }.into());
        }
        table.n_rows += 1;
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
