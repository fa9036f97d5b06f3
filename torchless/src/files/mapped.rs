//! Files of a model: mapped into memory, or read as text.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::{Error, Problem};

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
        // SAFETY: the mapping is private and read-only, and bytes of any value are valid. A program
        // that changes or truncates a model's file while it is used changes what is computed or
        // ends the process, as with every program that maps its input; we never write to one.
        let bytes = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        Ok(MappedFile { path: path.into(), bytes: Arc::new(bytes) })
    }

    pub(crate) fn malformed(&self, field: impl Into<String>, problem: Problem) -> Error {
        Error::malformed(&*self.path, field, problem)
    }

    /// Returns its name without folders.
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
    let problem = Problem::Unexpected { expected: "a file with contents".into(), found: "not a regular file".into() };
    Err(Error::malformed(path, "the file", problem))
}

/// Reads a text file of a model, and refuses one that is larger than any configuration.
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
    // The size of a file may be wrong: devices have none, and other programs append.
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LIMIT {
        let problem = Problem::OutOfRange { value: "its size".into(), expected: "at most 256 MiB are read" };
        return Err(Error::malformed(path, "the file", problem));
    }
    String::from_utf8(bytes).map_err(|_| Error::malformed(path, "the file", Problem::NotUtf8))
}
