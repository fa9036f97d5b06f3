//! Where documents come from: files and standard input, plain or compressed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::DocumentError;

/// More bytes than this are refused: the largest published patch sets hold some 100 MB.
const SIZE_LIMIT: u64 = 4 << 30;

/// More decompressed bytes than this are refused unless [`UNPACKED_LIMIT`] says so: a small file may unpack to any number of them.
const UNPACKED_SIZE_LIMIT: u64 = 1 << 30;

/// The environment variable that replaces the limit of decompressed bytes.
pub(crate) const UNPACKED_LIMIT: &str = "NEXTSTAT_MAX_UNPACKED_BYTES";

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentSource {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl DocumentSource {
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
/// [`DocumentError::Unreadable`], [`DocumentError::TooLarge`] (4 GiB) and [`DocumentError::UnpackedTooLarge`] (1 GiB after decompression, or what
/// `NEXTSTAT_MAX_UNPACKED_BYTES` says), all with the name; [`DocumentError::NotALimit`] if that is no number.
pub fn read_bytes(source: &DocumentSource) -> Result<Vec<u8>, DocumentError> {
    let name = source.name();
    let limits = Limits { size: SIZE_LIMIT, unpacked: unpacked_limit(std::env::var_os(UNPACKED_LIMIT))? };
    match source {
        DocumentSource::Path(path) => File::open(path)
            .map_err(|source| DocumentError::Unreadable { name: name.clone(), source })
            .and_then(|file| read_from(file, &name, limits)),
        DocumentSource::Stdin => read_from(io::stdin().lock(), &name, limits),
    }
}

/// Most bytes that are read.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// As they are.
    size: u64,
    /// After decompression.
    unpacked: u64,
}

/// The limit of decompressed bytes, which is `given` in the environment or not.
fn unpacked_limit(given: Option<OsString>) -> Result<u64, DocumentError> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(UNPACKED_SIZE_LIMIT) };
    let number = given.to_str().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| DocumentError::NotALimit {
        variable: UNPACKED_LIMIT,
        value: given.to_string_lossy().into_owned(),
    })
}

fn read_from(mut stream: impl Read, name: &str, limits: Limits) -> Result<Vec<u8>, DocumentError> {
    let bytes = read_limited(&mut stream, name, limits.size)?;
    let unpacked = |error| match error {
        DocumentError::TooLarge { name, limit } => DocumentError::UnpackedTooLarge { name, limit },
        other => other,
    };
    if bytes.starts_with(&GZIP_MAGIC) {
        let decoder = flate2::read::MultiGzDecoder::new(Cursor::new(bytes));
        return read_limited(decoder, name, limits.unpacked).map_err(unpacked);
    }
    if bytes.starts_with(&ZSTD_MAGIC) {
        let unreadable = |source| DocumentError::Unreadable { name: name.to_owned(), source };
        let decoder = zstd::Decoder::with_buffer(Cursor::new(bytes)).map_err(unreadable)?;
        return read_limited(decoder, name, limits.unpacked).map_err(unpacked);
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

    const SMALL: Limits = Limits { size: 100, unpacked: 100 };

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
            assert_eq!(read_from(&bytes[..], "x", SMALL).expect("readable"), plain);
        }
    }

    #[test]
    fn several_compressed_members_are_one_document() {
        for pack in [gzip, zstd] {
            let packed = [pack(b"[1,"), pack(b"2]")].concat();
            assert_eq!(read_from(&packed[..], "x", SMALL).expect("readable"), b"[1,2]");
        }
    }

    #[test]
    fn bombs_and_endless_streams_stop_at_the_limit() {
        let zeros = vec![0_u8; 1 << 20];
        let limits = Limits { size: 1 << 19, unpacked: 1 << 16 };
        for bytes in [gzip(&zeros), zstd(&zeros)] {
            let error = read_from(&bytes[..], "`bomb`", limits).expect_err("too large");
            assert_eq!(error.to_string(), "`bomb` unpacks to more than 65536 bytes");
            let hint = error.hint().expect("a way to raise the limit");
            assert!(hint.contains("NEXTSTAT_MAX_UNPACKED_BYTES"), "{hint}");
            let raised = Limits { unpacked: 1 << 20, ..limits };
            assert_eq!(read_from(&bytes[..], "`bomb`", raised).expect("within the limit"), zeros);
        }
        assert!(matches!(read_from(io::repeat(b' '), "x", limits), Err(DocumentError::TooLarge { .. })));
    }

    #[test]
    fn the_limit_of_unpacked_bytes_is_set_in_the_environment() {
        let limit = |text: &str| unpacked_limit(Some(text.into()));
        assert!(matches!(
            (unpacked_limit(None), limit(""), limit("12")),
            (Ok(UNPACKED_SIZE_LIMIT), Ok(UNPACKED_SIZE_LIMIT), Ok(12))
        ));
        let error = limit("1 GB").expect_err("no number");
        assert_eq!(error.to_string(), "`NEXTSTAT_MAX_UNPACKED_BYTES=1 GB` is not a number of bytes");
    }

    #[test]
    fn damaged_and_absent_files_are_named() {
        for mut packed in [gzip(b"[1, 2, 3]"), zstd(b"[1, 2, 3]")] {
            packed.truncate(packed.len() - 4);
            let error = read_from(&packed[..], "`ws.json.gz`", SMALL).expect_err("truncated");
            assert_eq!(error.to_string(), "cannot read `ws.json.gz`");
        }
        let absent = DocumentSource::Path(PathBuf::from("/nowhere/ws.json"));
        let error = read_bytes(&absent).expect_err("absent");
        assert_eq!(error.to_string(), "cannot read `/nowhere/ws.json`");
    }
}
