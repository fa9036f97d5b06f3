//! Reads bytes at an offset of a file, none beyond its end.

use std::io::{Read, Seek, SeekFrom};

use crate::error::RootFileError;

/// What files are read from.
pub(crate) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// A file and its length.
pub(crate) struct ByteSource {
    reader: Box<dyn ReadSeek>,
    length: u64,
}

impl ByteSource {
    pub(crate) fn new(mut reader: Box<dyn ReadSeek>) -> Result<Self, RootFileError> {
        let length = reader.seek(SeekFrom::End(0)).map_err(RootFileError::Io)?;
        Ok(Self { reader, length })
    }

    /// Returns the `length` bytes at `offset` that describe `what`.
    pub(crate) fn read(&mut self, what: &'static str, offset: u64, length: u64) -> Result<Vec<u8>, RootFileError> {
        let truncated = RootFileError::Truncated { what, offset };
        let Some(end) = offset.checked_add(length) else { return Err(truncated) };
        let (Ok(length), true) = (usize::try_from(length), end <= self.length) else { return Err(truncated) };
        self.reader.seek(SeekFrom::Start(offset)).map_err(RootFileError::Io)?;
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).map_err(RootFileError::Io)?;
        Ok(bytes)
    }

    /// Returns up to `length` bytes at `offset`: fewer where the file ends.
    pub(crate) fn read_up_to(
        &mut self,
        what: &'static str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, RootFileError> {
        self.read(what, offset, length.min(self.length.saturating_sub(offset)))
    }
}
