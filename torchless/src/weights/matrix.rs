//! Matrices as they are stored: in a mapped file or in memory, without a copy.

use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use super::format::{Format, unpack};

/// Bytes that are not copied: a part of a mapped file, or memory.
#[derive(Clone)]
pub(crate) enum Bytes {
    Mapped(Arc<Mmap>, Range<usize>),
    Owned(Arc<[u8]>),
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(file, range) => &file[range.clone()],
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes", self.as_slice().len())
    }
}

/// A matrix as it is stored: rows of weights of one format.
#[derive(Debug, Clone)]
pub struct Matrix {
    bytes: Bytes,
    format: Format,
    rows: usize,
    columns: usize,
    row_bytes: usize,
}

impl Matrix {
    /// Makes a matrix; `None` if `bytes` are not `rows` whole rows, at least one, of at least one
    /// number.
    pub(crate) fn new(bytes: Bytes, format: Format, rows: usize, columns: usize) -> Option<Matrix> {
        let row_bytes = format.row_bytes(columns)?;
        (rows > 0 && columns > 0 && row_bytes.checked_mul(rows)? == bytes.as_slice().len()).then_some(())?;
        Some(Matrix { bytes, format, rows, columns, row_bytes })
    }

    /// Copies `bytes` into a matrix; `None` if they are not `rows` whole rows, at least one.
    pub fn from_bytes(bytes: &[u8], format: Format, rows: usize, columns: usize) -> Option<Matrix> {
        Matrix::new(Bytes::Owned(bytes.into()), format, rows, columns)
    }

    /// Copies `values` into a matrix of single precision; `None` if they are not `rows`·`columns`,
    /// at least one.
    pub fn from_values(values: &[f32], rows: usize, columns: usize) -> Option<Matrix> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Matrix::new(Bytes::Owned(bytes.into()), Format::F32, rows, columns)
    }

    /// Returns the number of outputs of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inputs of a product.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the format in which it is stored.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the bytes of one row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Returns the bytes of all rows.
    pub fn n_bytes(&self) -> usize {
        self.bytes.as_slice().len()
    }

    /// Writes row `row` as numbers to `out` (columns).
    pub fn row(&self, row: usize, out: &mut [f32]) {
        unpack(self.format, self.rows_of(row..row + 1), out);
    }

    /// Returns its bytes, as they lie in their file.
    pub(crate) fn stored(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// Returns the bytes of some rows.
    pub(crate) fn rows_of(&self, rows: Range<usize>) -> &[u8] {
        &self.bytes.as_slice()[rows.start * self.row_bytes..rows.end * self.row_bytes]
    }
}
