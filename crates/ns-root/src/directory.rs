//! Directories of a file: the lists of their keys, searched by name and cycle.

use std::collections::HashMap;

use crate::cursor::{Cursor, OutOfBytes};
use crate::error::RootFileError;
use crate::key::Key;
use crate::source::ByteSource;

/// Directories from this version on have offsets of eight bytes.
const LONG_OFFSETS: i16 = 1000;

/// The longest record of a directory without its name, in bytes.
pub(crate) const RECORD_LENGTH: u64 = 64;

/// The record of a directory: where the list of its keys is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryRecord {
    /// Where the list begins in the file.
    pub(crate) keys_offset: u64,
    /// The bytes of the list.
    keys_length: u64,
}

impl DirectoryRecord {
    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Result<Self, OutOfBytes> {
        let is_long = cursor.i16()? > LONG_OFFSETS;
        let _created_and_modified = [cursor.u32()?, cursor.u32()?];
        let keys_length = cursor.count()?;
        let _name_length = cursor.i32()?;
        let _own_and_parent = [cursor.offset(is_long)?, cursor.offset(is_long)?];
        Ok(Self { keys_offset: cursor.offset(is_long)?, keys_length })
    }
}

/// The keys of a directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// In the order of the file.
    pub(crate) keys: Vec<Key>,
    by_name: HashMap<String, Vec<usize>>,
}

impl Directory {
    /// Reads the list of keys of the directory with this record.
    pub(crate) fn read(source: &mut ByteSource, record: DirectoryRecord) -> Result<Self, RootFileError> {
        const WHAT: &str = "a list of keys";
        if record.keys_offset == 0 || record.keys_length == 0 {
            return Err(RootFileError::NotClosed);
        }
        let bytes = source.read(WHAT, record.keys_offset, record.keys_length)?;
        let keys =
            listed(&bytes).map_err(|OutOfBytes| RootFileError::Truncated { what: WHAT, offset: record.keys_offset })?;
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, key) in keys.iter().enumerate() {
            by_name.entry(key.name.clone()).or_default().push(index);
        }
        Ok(Self { keys, by_name })
    }

    /// Returns the key that `step` names: the first of that name, as ROOT does, or the cycle after
    /// `;`. ROOT lists the highest cycle first; other programs do not.
    ///
    /// A name that is there as it is written comes first, so that one with a semicolon is found.
    pub(crate) fn find(&self, step: &str) -> Option<&Key> {
        let of_name = |name: &str| self.by_name.get(name).into_iter().flatten().map(|&index| &self.keys[index]);
        let first = |name: &str| of_name(name).next();
        first(step).or_else(|| {
            let (name, cycle) = step.rsplit_once(';')?;
            if cycle == "*" {
                return first(name);
            }
            let cycle: i16 = cycle.parse().ok()?;
            of_name(name).find(|key| key.cycle == cycle)
        })
    }

    /// Returns the names of the keys for which `wanted` returns true, each once.
    pub(crate) fn names(&self, wanted: impl Fn(&Key) -> bool) -> Vec<String> {
        let mut names: Vec<String> = self.keys.iter().filter(|key| wanted(key)).map(|key| key.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the keys of a list, which begins with a key of its own.
fn listed(bytes: &[u8]) -> Result<Vec<Key>, OutOfBytes> {
    let mut cursor = Cursor::new(bytes);
    Key::take(&mut cursor)?;
    let count = cursor.count()?;
    // Each key takes bytes, so that the count cannot ask for more than there are.
    (0..count).map(|_| Key::take(&mut cursor)).collect()
}
