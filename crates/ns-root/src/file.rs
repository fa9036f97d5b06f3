//! Opens a file, finds an object by its path, and reads a histogram.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Cursor as Bytes};
use std::path::Path;
use std::sync::Arc;

use crate::compression::unpack;
use crate::cursor::{Cursor, OutOfBytes};
use crate::directory::{Directory, DirectoryRecord, RECORD_LENGTH};
use crate::error::RootFileError;
use crate::histogram::{Histogram, is_histogram, read_histogram};
use crate::key::Key;
use crate::limits::OBJECT_LIMIT;
use crate::source::{ByteSource, ReadSeek};

/// Files from this version on have offsets of eight bytes.
const LONG_OFFSETS: i32 = 1_000_000;

/// The longest header of a file in bytes.
const HEADER_LENGTH: u64 = 64;

/// A ROOT file that is open for reading.
pub struct RootFile {
    source: ByteSource,
    top: DirectoryRecord,
    /// Directories that have been read, by the offset of the list of their keys.
    directories: HashMap<u64, Arc<Directory>>,
}

impl RootFile {
    /// Opens the file `path`.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened, or does not begin as a ROOT file does.
    pub fn open(path: &Path) -> Result<Self, RootFileError> {
        let file = File::open(path).map_err(RootFileError::Io)?;
        Self::new(Box::new(BufReader::new(file)))
    }

    /// Opens a file that is in memory.
    ///
    /// # Errors
    ///
    /// As [`RootFile::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, RootFileError> {
        Self::new(Box::new(Bytes::new(bytes)))
    }

    pub(crate) fn new(reader: Box<dyn ReadSeek>) -> Result<Self, RootFileError> {
        const WHAT: &str = "the directory of the file";
        let mut source = ByteSource::new(reader)?;
        let header = source.read_up_to("the header of the file", 0, HEADER_LENGTH)?;
        let offset = top_directory(&header)?;
        let record = source.read_up_to(WHAT, offset, RECORD_LENGTH)?;
        let top = DirectoryRecord::take(&mut Cursor::new(&record))
            .map_err(|OutOfBytes| RootFileError::Truncated { what: WHAT, offset })?;
        Ok(Self { source, top, directories: HashMap::new() })
    }

    /// Returns the keys of the directory `path`, all cycles, in the order of the file; the empty
    /// path is the top of the file.
    ///
    /// # Errors
    ///
    /// A directory that is not there, or cannot be read.
    pub fn keys(&mut self, path: &str) -> Result<Vec<Key>, RootFileError> {
        let steps: Vec<&str> = steps(path).collect();
        Ok(self.directory(&steps)?.keys.clone())
    }

    /// Reads the histogram `path`: names of directories and of the histogram, separated by `/`.
    ///
    /// Of several objects with one name the first in the list of keys is read, as ROOT does, unless
    /// the name ends in a cycle: `dir/name;2`. In files that ROOT wrote, it has the highest cycle.
    ///
    /// # Errors
    ///
    /// A histogram that is not there, an object of another class, and everything that is wrong with
    /// the file on the way to it.
    pub fn histogram(&mut self, path: &str) -> Result<Histogram, RootFileError> {
        let mut steps: Vec<&str> = steps(path).collect();
        let name = steps.pop().unwrap_or_default();
        let directory = self.directory(&steps)?;
        let Some(key) = directory.find(name) else {
            let known = directory.names(|key| is_histogram(&key.class));
            return Err(RootFileError::NoObject { name: name.to_owned(), directory: steps.join("/"), known });
        };
        let path = [&steps[..], &[name]].concat().join("/");
        if !is_histogram(&key.class) {
            return Err(RootFileError::NotAHistogram { path, class: key.class.clone() });
        }
        let bytes = self.object(key, &path)?;
        read_histogram(&key.class, &bytes, key.offset, &path)
    }

    fn directory(&mut self, steps: &[&str]) -> Result<Arc<Directory>, RootFileError> {
        let mut directory = self.listed(self.top)?;
        for (depth, step) in steps.iter().enumerate() {
            let Some(key) = directory.find(step).filter(|key| key.is_directory()) else {
                let known = directory.names(Key::is_directory);
                let parent = steps[..depth].join("/");
                return Err(RootFileError::NoDirectory { name: (*step).to_owned(), parent, known });
            };
            let record = self.record(key)?;
            directory = self.listed(record)?;
        }
        Ok(directory)
    }

    fn listed(&mut self, record: DirectoryRecord) -> Result<Arc<Directory>, RootFileError> {
        if let Some(directory) = self.directories.get(&record.keys_offset) {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(Directory::read(&mut self.source, record)?);
        self.directories.insert(record.keys_offset, Arc::clone(&directory));
        Ok(directory)
    }

    /// Reads the record of the directory that `key` names.
    fn record(&mut self, key: &Key) -> Result<DirectoryRecord, RootFileError> {
        const WHAT: &str = "a directory";
        let truncated = || RootFileError::Truncated { what: WHAT, offset: key.offset };
        let offset = key.offset.checked_add(key.key_length).ok_or_else(truncated)?;
        let record = self.source.read(WHAT, offset, key.object_length.min(RECORD_LENGTH))?;
        DirectoryRecord::take(&mut Cursor::new(&record)).map_err(|OutOfBytes| truncated())
    }

    /// Returns the bytes of the object that `key` names, unpacked.
    fn object(&mut self, key: &Key, path: &str) -> Result<Vec<u8>, RootFileError> {
        const WHAT: &str = "an object";
        let damaged = |problem| RootFileError::Damaged { what: WHAT, offset: key.offset, problem };
        let length = key.record_length.max(key.object_length);
        if length > OBJECT_LIMIT {
            return Err(RootFileError::TooLarge { path: path.to_owned(), length, limit: OBJECT_LIMIT });
        }
        let packed_length = key.record_length.checked_sub(key.key_length);
        let packed_length = packed_length.ok_or_else(|| damaged("its key is longer than its record"))?;
        let offset = key.offset.checked_add(key.key_length);
        let offset = offset.ok_or_else(|| damaged("it begins beyond any file"))?;
        let bytes = self.source.read(WHAT, offset, packed_length)?;
        if key.object_length <= packed_length {
            return Ok(bytes);
        }
        let length = usize::try_from(key.object_length).map_err(|_| damaged("its length is larger than any memory"))?;
        unpack(&bytes, length).map_err(|problem| RootFileError::Compression { offset: key.offset, problem })
    }
}

/// Returns the offset of the record of the top directory.
fn top_directory(header: &[u8]) -> Result<u64, RootFileError> {
    let Some(rest) = header.strip_prefix(b"root") else { return Err(RootFileError::NotRoot) };
    let mut cursor = Cursor::new(rest);
    let mut read = || -> Result<u64, OutOfBytes> {
        let is_long = cursor.i32()? >= LONG_OFFSETS;
        let begin = cursor.count()?;
        let _end_and_free = [cursor.offset(is_long)?, cursor.offset(is_long)?];
        let _free = [cursor.i32()?, cursor.i32()?];
        Ok(begin + cursor.count()?)
    };
    read().map_err(|OutOfBytes| RootFileError::Truncated { what: "the header of the file", offset: 0 })
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|step| !step.is_empty())
}

#[cfg(test)]
mod tests;
