//! Bytes to text: UTF-8, with or without a byte-order mark.

use crate::DocumentError;
use crate::place::Position;

/// The text in `bytes`, without the byte-order mark that some editors write.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, DocumentError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, rest) = bytes.split_at(error.valid_up_to());
        let good = String::from_utf8_lossy(good);
        DocumentError::NotUtf8 { byte: rest.first().copied().unwrap_or(0), position: Position::of(&good, good.len()) }
    })
}
