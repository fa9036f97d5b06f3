//! Reads NumPy files of two-dimensional arrays (format 1.0 to 3.0:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use super::{NumberTable, NumberTableError};
use crate::hint::shortened;

/// The first bytes of a NumPy file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest type that a message shows.
const LONGEST: usize = 60;

/// The entries of an array: their kind, size and order of bytes.
#[derive(Debug, Clone, Copy)]
struct EntryType {
    kind: u8,
    size: usize,
    is_big_endian: bool,
}

/// Reads the array in `bytes`.
pub(super) fn read(bytes: &[u8]) -> Result<NumberTable, NumberTableError> {
    let (header, data) = split(bytes).ok_or(damaged("its header is cut off"))?;
    let entry = entry_type(header)?;
    let is_transposed = match value_of(header, "fortran_order").map(|value| value.starts_with("True")) {
        Some(is_transposed) => is_transposed,
        None => return Err(damaged("its header does not give the order of the entries")),
    };
    let shape = shape(header).ok_or(damaged("its header has no shape"))?;
    let &[n_rows, n_columns] = shape.as_slice() else {
        return Err(NumberTableError::Dimensions { found: shape.len() });
    };
    let n = n_rows.checked_mul(n_columns);
    let expected = n.and_then(|n| n.checked_mul(entry.size)).ok_or(damaged("its shape is too large"))?;
    let data = data.get(..expected).ok_or(NumberTableError::Truncated { expected, found: data.len() })?;
    let stored = data.chunks_exact(entry.size).map(|bytes| entry.number(bytes));
    let values = if is_transposed { transposed(&stored.collect::<Vec<_>>(), n_rows) } else { stored.collect() };
    Ok(NumberTable { values, n_rows, n_columns })
}

fn damaged(reason: &'static str) -> NumberTableError {
    NumberTableError::Damaged { reason }
}

/// Returns the header and what follows it.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (&[major, _], rest) = bytes.get(MAGIC.len()..)?.split_first_chunk::<2>()?;
    let (len, rest) = if major == 1 {
        let (len, rest) = rest.split_first_chunk::<2>()?;
        (usize::from(u16::from_le_bytes(*len)), rest)
    } else {
        let (len, rest) = rest.split_first_chunk::<4>()?;
        (usize::try_from(u32::from_le_bytes(*len)).ok()?, rest)
    };
    let (header, data) = rest.split_at_checked(len)?;
    Some((std::str::from_utf8(header).ok()?, data))
}

/// Returns the text after `'key':` in the header, a Python dictionary.
fn value_of<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let (_, after) = header.split_once(&format!("'{key}'"))?;
    Some(after.trim_start().strip_prefix(':')?.trim_start())
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let (inside, _) = value_of(header, "shape")?.strip_prefix('(')?.split_once(')')?;
    let lengths = inside.split(',').map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.parse().ok()).collect()
}

/// Returns the type of the entries, such as `<f8`.
fn entry_type(header: &str) -> Result<EntryType, NumberTableError> {
    let described = value_of(header, "descr").ok_or(damaged("its header has no type of entries"))?;
    let word = described.strip_prefix('\'').and_then(|word| word.split_once('\''));
    let found = || {
        let end = described.find("'fortran_order'").unwrap_or(described.len());
        let word = word.map_or_else(|| described[..end].trim_end().trim_end_matches(','), |(word, _)| word);
        NumberTableError::EntryType { found: format!("`{}`", shortened(word, LONGEST)) }
    };
    let Some(([order @ (b'<' | b'>' | b'|' | b'='), kind, size @ ..], _)) =
        word.map(|(word, rest)| (word.as_bytes(), rest))
    else {
        return Err(found());
    };
    let size = match size {
        [digit @ b'1'..=b'8'] => usize::from(digit - b'0'),
        _ => return Err(found()),
    };
    match (kind, size) {
        (b'f', 4 | 8) | (b'i' | b'u', 1 | 2 | 4 | 8) => {
            Ok(EntryType { kind: *kind, size, is_big_endian: *order == b'>' })
        }
        _ => Err(found()),
    }
}

impl EntryType {
    /// Returns the number stored in `bytes`.
    fn number(self, bytes: &[u8]) -> f64 {
        let mut eight = [0; 8];
        eight[..self.size].copy_from_slice(bytes);
        if self.is_big_endian {
            eight[..self.size].reverse();
        }
        let word = u64::from_le_bytes(eight);
        match (self.kind, self.size) {
            (b'f', 4) => f64::from(f32::from_bits(word as u32)),
            (b'f', _) => f64::from_bits(word),
            (b'i', 1) => f64::from(word as i8),
            (b'i', 2) => f64::from(word as i16),
            (b'i', 4) => f64::from(word as i32),
            (b'i', _) => word as i64 as f64,
            _ => word as f64,
        }
    }
}

/// Returns the entries row by row that are stored column by column.
fn transposed(stored: &[f64], n_rows: usize) -> Vec<f64> {
    (0..n_rows).flat_map(|row| stored.iter().skip(row).step_by(n_rows.max(1)).copied()).collect()
}
