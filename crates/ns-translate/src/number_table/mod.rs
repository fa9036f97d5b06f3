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

/// Reads several tables with their names: an archive of NumPy files (`.npz`), or a JSON object of
/// lists of rows.
///
/// # Errors
///
/// As [`read_number_table`]; a single NumPy file, which has no name; a name that is there twice.
///
/// # Example
///
/// ```
/// let tables = ns_translate::read_named_tables(br#"{"SR": [[1, 2], [3, 4]], "CR": [[5], [6]]}"#)?;
/// assert_eq!((tables[0].0.as_str(), tables[0].1.n_columns), ("SR", 2));
/// assert_eq!(tables[1].1.values, [5.0, 6.0]);
/// # Ok::<(), ns_translate::NumberTableError>(())
/// ```
pub fn read_named_tables(bytes: &[u8]) -> Result<Vec<(String, NumberTable)>, NumberTableError> {
    if bytes.starts_with(npy::MAGIC) {
        return Err(NumberTableError::Unnamed);
    }
    let tables: Vec<(String, NumberTable)> = if bytes.starts_with(npz::MAGIC) {
        let arrays = npz::arrays(bytes)?.into_iter();
        let in_array = |name: &str, error| NumberTableError::InArray { name: name.to_owned(), error: Box::new(error) };
        let table = |(name, array): (String, Vec<u8>)| match npy::read(&array) {
            Ok(table) => Ok((name, table)),
            Err(error) => Err(in_array(&name, error)),
        };
        arrays.map(table).collect::<Result<_, _>>()?
    } else {
        let text = json::decode(bytes)?;
        let root = json::parse(text)?;
        let cursor = JsonCursor::top(text, &root);
        let members = cursor.members()?;
        members
            .map(|(member, rows)| Ok((member.key.to_string(), table_of(&rows)?)))
            .collect::<Result<_, JsonError>>()?
    };
    let repeated = (0..tables.len()).find(|&i| tables[..i].iter().any(|(name, _)| *name == tables[i].0));
    match repeated {
        Some(i) => Err(NumberTableError::Repeated { name: tables[i].0.clone() }),
        None => Ok(tables),
    }
}

fn read_json(text: &str) -> Result<NumberTable, NumberTableError> {
    let root = json::parse(text)?;
    Ok(table_of(&JsonCursor::top(text, &root))?)
}

/// Reads a list of rows.
fn table_of(rows: &JsonCursor<'_>) -> Result<NumberTable, JsonError> {
    let mut table = NumberTable::default();
    for row in rows.list()? {
        let before = table.values.len();
        for number in row.list()? {
            table.values.push(number.number()?);
        }
        let found = table.values.len() - before;
        if table.n_rows == 0 {
            table.n_columns = found;
        } else if found != table.n_columns {
            return Err(JsonError::WrongLength { expected: table.n_columns, found, place: row.place() });
        }
        table.n_rows += 1;
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
