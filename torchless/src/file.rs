//! Files mapped into memory, and the tensors that are found in them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::{Error, Problem};
use crate::format::Format;
use crate::linear::{Bytes, Matrix};

/// A file in memory, and its name for messages.
#[derive(Debug, Clone)]
pub(crate) struct MappedFile {
    pub(crate) path: Arc<Path>,
    pub(crate) bytes: Arc<Mmap>,
}

impl MappedFile {
    #[expect(unsafe_code, reason = "a mapping is only as constant as its file")]
    pub(crate) fn open(path: &Path) -> Result<MappedFile, Error> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        require_file(path)?;
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() == 0 {
            let problem = Problem::Unexpected { expected: "a file with contents".into(), found: "empty".into() };
            return Err(Error::malformed(path, "the file", problem));
        }
        // SAFETY: the mapping is private and read-only, and bytes of any value are valid. Whoever changes or cuts a model's file while it is
        // used changes what is computed or ends the process, as with every program that maps its input; we never write to one.
        let bytes = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        Ok(MappedFile { path: path.into(), bytes: Arc::new(bytes) })
    }

    pub(crate) fn malformed(&self, field: impl Into<String>, problem: Problem) -> Error {
        Error::malformed(&*self.path, field, problem)
    }

    /// Its name without folders.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }
}

/// Refuses pipes and devices: opening or reading one may never end. Asks before the file is opened.
fn require_file(path: &Path) -> Result<(), Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Ok(());
    }
    let problem = Problem::Unexpected { expected: "a file with contents".into(), found: "no regular file".into() };
    Err(Error::malformed(path, "the file", problem))
}

/// Reads a text file of a model; refuses one that is larger than any configuration is.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    require_file(path)?;
    read_input(path)
}

/// Reads a text that the user names, such as a list of events: pipes are fine, the limit is the
/// same.
pub(crate) fn read_input(path: &Path) -> Result<String, Error> {
    const LIMIT: u64 = 256 << 20;
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // What a file says of its size may be wrong: devices have none, and other programs append.
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LIMIT {
        let problem = Problem::OutOfRange { value: "its size".into(), expected: "at most 256 MiB are read" };
        return Err(Error::malformed(path, "the file", problem));
    }
    String::from_utf8(bytes).map_err(|_| Error::malformed(path, "the file", Problem::NotUtf8))
}

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

    fn malformed(&self, name: &str, problem: Problem) -> Error {
        self.file.malformed(format!("tensor `{name}`"), problem)
    }
}

/// Refuses tensors of a file that share bytes: no writer makes them, and they would let a small file claim to be a large model.
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

/// What is wrong with a tensor that shares bytes with another.
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

    /// Bytes of all tensors.
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

    /// A matrix that stays in its file.
    pub(crate) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Matrix, Error> {
        let (tensor, format) = self.get(name, &[rows, columns])?;
        let bytes = Bytes::Mapped(Arc::clone(&tensor.file.bytes), tensor.range.clone());
        Matrix::new(bytes, format, rows, columns).ok_or_else(|| {
            let expected = format!("{rows} rows of whole blocks of {} weights", format.block_len());
            tensor.malformed(name, Problem::Unexpected { expected, found: format!("{columns} columns") })
        })
    }

    /// A few numbers, as single precision.
    pub(crate) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, Error> {
        let (tensor, format) = self.get(name, &[length])?;
        let bytes = &tensor.file.bytes[tensor.range.clone()];
        if format.row_bytes(length) != Some(bytes.len()) {
            let expected = format!("{length} numbers of type {format}");
            return Err(
                tensor.malformed(name, Problem::Unexpected { expected, found: format!("{} bytes", bytes.len()) })
            );
        }
        let mut values = vec![0.0; length];
        crate::format::unpack(format, bytes, &mut values);
        Ok(values)
    }
}
