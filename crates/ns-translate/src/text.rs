//! Decodes bytes to text: UTF-8 with or without a byte-order mark, and without indentation where
//! that saves time.

use std::borrow::Cow;

use memchr::memchr;

use crate::place::TextPosition;

/// What some editors write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of files that are taken for documents, and what the files are.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"root", "a ROOT file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x89HDF", "an HDF5 file"),
    (b"%PDF", "a PDF file"),
];

/// Bytes that are not UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .kind {
    Some(kind) => format!("the document is {kind}, not JSON"),
    None => format!("the document is not UTF-8 text: byte {byte:#04x} at {position}"),
})]
pub struct NotUtf8Error {
    /// What the first bytes say the file is, such as `a ROOT file`; `None` if they say nothing.
    pub kind: Option<&'static str>,
    /// The first byte that is not part of a character.
    pub byte: u8,
    /// Where it is.
    pub position: TextPosition,
}

impl NotUtf8Error {
    /// Returns what to do instead.
    pub(crate) fn hint(&self) -> &'static str {
        match self.kind {
            Some("a ROOT file") => {
                "of HistFactory XML, name the file of the combination; `nextstat.histograms` makes a workspace of \
                 histograms"
            }
            Some("a zip archive") => "extract it, and name the workspace in it",
            _ => "workspaces are JSON text, plain or compressed as .gz or .zst",
        }
    }
}

/// Returns the text in `bytes`, without the byte-order mark that some editors write.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, NotUtf8Error> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, rest) = bytes.split_at(error.valid_up_to());
        let good = String::from_utf8_lossy(good);
        let kind = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature)).map(|(_, kind)| *kind);
        NotUtf8Error { kind, byte: rest.first().copied().unwrap_or(0), position: TextPosition::of(&good, good.len()) }
    })
}

/// Returns the text at the beginning of `bytes`, up to the first byte that is not part of a
/// character; without a byte-order mark.
pub(crate) fn valid_opening(bytes: &[u8]) -> &str {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    // Fast for ASCII, where an iterator over chunks is not.
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

/// Returns `text` without the spaces at the beginnings of its lines.
///
/// This is the same JSON document, because JSON strings have no line breaks. Two thirds of an
/// indented workspace are such spaces, and the parser takes ten times as long for each of them.
pub(crate) fn without_indentation(text: &str) -> Cow<'_, str> {
    if !text.contains("\n ") {
        return Cow::Borrowed(text);
    }
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        rest = &rest[n_leading_spaces(rest.as_bytes())..];
        let end = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |line_break| line_break + 1);
        let (line, others) = rest.split_at(end);
        short.push_str(line);
        rest = others;
    }
    Cow::Owned(short)
}

fn n_leading_spaces(bytes: &[u8]) -> usize {
    const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
    let (chunks, others) = bytes.as_chunks::<8>();
    for (n, chunk) in chunks.iter().enumerate() {
        let differences = u64::from_le_bytes(*chunk) ^ SPACES;
        if differences != 0 {
            return 8 * n + differences.trailing_zeros() as usize / 8;
        }
    }
    8 * chunks.len() + others.iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_at_the_beginnings_of_lines_are_removed() {
        for n in 0..40 {
            let indent = " ".repeat(n);
            let text =
                format!("{indent}{{ \"a  b\":\n{indent}[1,  2],\r\n{indent}\"é\": \"\\n  x\"\n\n{indent}}}\n{indent}");
            let expected = "{ \"a  b\":\n[1,  2],\r\n\"é\": \"\\n  x\"\n\n}\n";
            assert_eq!(without_indentation(&text), expected, "{n} spaces");
        }
        assert!(matches!(without_indentation("{\"a\": 1}\n"), Cow::Borrowed("{\"a\": 1}\n")));
    }
}
