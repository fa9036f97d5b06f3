//! Keys: where an object is in the file, and what it is called.

use crate::cursor::{Cursor, OutOfBytes};

/// Keys from this version on have offsets of eight bytes.
const LONG_OFFSETS: i16 = 1000;

/// An entry of a directory: an object's name, class and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The object's name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Which of the objects with this name it is: later ones have higher cycles.
    pub cycle: i16,
    /// Where its record begins in the file.
    pub(crate) offset: u64,
    /// The bytes of the record, compressed.
    pub(crate) record_length: u64,
    /// The bytes of the record before those of the object.
    pub(crate) key_length: u64,
    /// The bytes of the object, unpacked.
    pub(crate) object_length: u64,
}

impl Key {
    /// Takes a key from a list of keys, or from the beginning of a record.
    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Result<Self, OutOfBytes> {
        let record_length = cursor.count()?;
        let version = cursor.i16()?;
        let object_length = cursor.count()?;
        let _date = cursor.u32()?;
        let key_length = u64::try_from(cursor.i16()?).map_err(|_| OutOfBytes)?;
        let cycle = cursor.i16()?;
        let offset = cursor.offset(version > LONG_OFFSETS)?;
        let _parent = cursor.offset(version > LONG_OFFSETS)?;
        let (class, name, _title) = (cursor.string()?, cursor.string()?, cursor.string()?);
        Ok(Self { name, class, cycle, offset, record_length, key_length, object_length })
    }

    /// Returns whether the object is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self.class.as_str(), "TDirectoryFile" | "TDirectory")
    }
}
