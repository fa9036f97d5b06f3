//! Where documents come from: files and standard input, plain or compressed.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::DocumentError;

/// More decompressed bytes than this are refused: the largest published patch sets hold some 100 MB.
const SIZE_LIMIT: u64 = 4 << 30;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// The source for messages: the path in backticks, or `standard input`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => name_of(path),
            Self::Stdin => "standard input".to_owned(),
        }
    }
}

/// A path for messages, in backticks.
pub(crate) fn name_of(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Reads all of a source, decompressing gzip and Zstandard, which are known by their first bytes and not by the name.
///
/// # Errors
///
/// [`DocumentError::Unreadable`] and [`DocumentError::TooLarge`] (4 GiB after decompression), both with the name.
pub fn read_bytes(source: &Source) -> Result<Vec<u8>, DocumentError> {
    let name = source.name();
    match source {
        Source::Path(path) => File::open(path)
            .map_err(|source| DocumentError::Unreadable { name: name.clone(), source })
            .and_then(|file| read_from(file, &name, SIZE_LIMIT)),
        Source::Stdin => read_from(io::stdin().lock(), &name, SIZE_LIMIT),
    }
}

fn read_from(mut stream: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, DocumentError> {
    let bytes = read_limited(&mut stream, name, limit)?;
    if bytes.starts_with(&GZIP_MAGIC) {
        return read_limited(flate2::read::MultiGzDecoder::new(Cursor::new(bytes)), name, limit);
    }
    if bytes.starts_with(&ZSTD_MAGIC) {
        let unreadable = |source| DocumentError::Unreadable { name: name.to_owned(), source };
        let decoder = zstd::Decoder::with_buffer(Cursor::new(bytes)).map_err(unreadable)?;
        return read_limited(decoder, name, limit);
    }
    Ok(bytes)
}

fn read_limited(stream: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, DocumentError> {
    let name = name.to_owned();
    let mut bytes = Vec::new();
    match stream.take(limit + 1).read_to_end(&mut bytes) {
        Err(source) => Err(DocumentError::Unreadable { name, source }),
        Ok(_) if bytes.len() as u64 > limit => Err(DocumentError::TooLarge { name, limit }),
        Ok(_) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).expect("writing to memory")
    }

    #[test]
    fn compression_is_known_by_the_first_bytes() {
        let plain = b"{\"version\": \"1.0.0\"}".to_vec();
        for bytes in [plain.clone(), gzip(&plain), zstd(&plain)] {
            assert_eq!(read_from(&bytes[..], "x", 100).expect("readable"), plain);
        }
    }

    #[test]
    fn several_compressed_members_are_one_document() {
        for pack in [gzip, zstd] {
            let packed = [pack(b"[1,"), pack(b"2]")].concat();
            assert_eq!(read_from(&packed[..], "x", 100).expect("readable"), b"[1,2]");
        }
    }

    #[test]
    fn bombs_and_endless_streams_stop_at_the_limit() {
        let zeros = vec![0_u8; 1 << 20];
        for bytes in [gzip(&zeros), zstd(&zeros), zeros.clone()] {
            let error = read_from(&bytes[..], "`bomb`", 1 << 16).expect_err("too large");
            assert_eq!(error.to_string(), "`bomb` holds more than 65536 bytes");
        }
        assert!(matches!(read_from(io::repeat(b' '), "x", 1 << 16), Err(DocumentError::TooLarge { .. })));
    }

    #[test]
    fn damaged_and_absent_files_are_named() {
        for mut packed in [gzip(b"[1, 2, 3]"), zstd(b"[1, 2, 3]")] {
            packed.truncate(packed.len() - 4);
            let error = read_from(&packed[..], "`ws.json.gz`", 100).expect_err("truncated");
            assert_eq!(error.to_string(), "cannot read `ws.json.gz`");
        }
        let absent = Source::Path(PathBuf::from("/nowhere/ws.json"));
        let error = read_bytes(&absent).expect_err("absent");
        assert_eq!(error.to_string(), "cannot read `/nowhere/ws.json`");
    }
}
