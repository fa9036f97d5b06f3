//! Tensors of a model's files, by name.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::mapped::MappedFile;
use crate::error::{Error, Problem};
use crate::weights::format::{Format, unpack};
use crate::weights::{Bytes, Matrix};

/// A tensor as its file describes it; its bytes are inside the file.
#[derive(Debug, Clone)]
pub(crate) struct StoredTensor {
    pub(crate) file: MappedFile,
    /// As the file calls it; not every one is a [`Format`].
    pub(crate) dtype: String,
    /// The last one runs fastest.
    pub(crate) shape: Vec<usize>,
    pub(crate) range: Range<usize>,
}

impl StoredTensor {
    pub(crate) fn format(&self, name: &str) -> Result<Format, Error> {
        let known = Format::ALL.into_iter().find(|format| format.name() == self.dtype);
        known.ok_or_else(|| self.malformed(name, Problem::Unsupported { what: "the type", found: self.dtype.clone() }))
    }

    pub(crate) fn malformed(&self, name: &str, problem: Problem) -> Error {
        self.file.malformed(format!("tensor `{name}`"), problem)
    }
}

/// Refuses tensors of a file that share bytes: no writer makes them, and they would let a small
/// file claim to be a large model.
pub(crate) fn refuse_overlaps(tensors: &HashMap<String, StoredTensor>) -> Result<(), Error> {
    let mut ranges: Vec<(&StoredTensor, &String)> =
        tensors.iter().map(|(name, tensor)| (tensor, name)).filter(|(tensor, _)| !tensor.range.is_empty()).collect();
    ranges.sort_by_key(|(tensor, name)| (tensor.range.start, *name));
    for pair in ranges.windows(2) {
        let [(before, other), (tensor, name)] = pair else { continue };
        if tensor.range.start < before.range.end {
            return Err(tensor.malformed(name, in_bytes_of(other)));
        }
    }
    Ok(())
}

/// Returns the problem of a tensor that shares bytes with another.
pub(crate) fn in_bytes_of(other: &str) -> Problem {
    Problem::Unexpected { expected: "in bytes of its own".into(), found: format!("in those of `{other}`, too") }
}

/// The tensors of a model, by name.
#[derive(Debug)]
pub(crate) struct Tensors {
    /// Where a tensor that is missing should have been.
    pub(crate) path: Arc<Path>,
    pub(crate) by_name: HashMap<String, StoredTensor>,
}

impl Tensors {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the bytes of all tensors.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.by_name.values().map(|tensor| tensor.range.len() as u64).sum()
    }

    fn get(&self, name: &str, shape: &[usize]) -> Result<(&StoredTensor, Format), Error> {
        let missing = || Error::malformed(&*self.path, format!("tensor `{name}`"), Problem::Missing);
        let tensor = self.by_name.get(name).ok_or_else(missing)?;
        if tensor.shape != shape {
            let (expected, found) = (format!("of shape {shape:?}"), format!("of shape {:?}", tensor.shape));
            return Err(tensor.malformed(name, Problem::Unexpected { expected, found }));
        }
        Ok((tensor, tensor.format(name)?))
    }

    /// Returns a matrix that stays in its file.
    pub(crate) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Matrix, Error> {
        let (tensor, format) = self.get(name, &[rows, columns])?;
        let bytes = Bytes::Mapped(Arc::clone(&tensor.file.bytes), tensor.range.clone());
        Matrix::new(bytes, format, rows, columns).ok_or_else(|| {
            let expected = format!("{rows} rows of whole blocks of {} weights", format.block_len());
            tensor.malformed(name, Problem::Unexpected { expected, found: format!("{columns} columns") })
        })
    }

    /// Reads a vector as single precision.
    pub(crate) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, Error> {
        self.numbers(name, &[length])
    }

    /// Reads a tensor of any shape as single precision.
    pub(crate) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let (tensor, format) = self.get(name, shape)?;
        let length = tensor.shape.iter().product();
        let bytes = &tensor.file.bytes[tensor.range.clone()];
        if format.row_bytes(length) != Some(bytes.len()) {
            let expected = format!("{length} numbers of type {format}");
            return Err(
                tensor.malformed(name, Problem::Unexpected { expected, found: format!("{} bytes", bytes.len()) })
            );
        }
        let mut values = vec![0.0; length];
        unpack(format, bytes, &mut values);
        Ok(values)
    }
}
