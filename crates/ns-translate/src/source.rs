//! Reads the bytes of documents from files and standard input, plain or compressed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use std::sync::Arc;

use ns_core::similar_name;
use ns_root::{RootFile, RootFileError};

use crate::memory_files::MemoryFiles;

/// The largest size of a file in bytes. The largest published patch sets have some 100 MB.
const SIZE_LIMIT: u64 = 4 << 30;

/// The largest size after decompression, unless [`UNPACKED_LIMIT`] sets another: a small file may
/// unpack to any number of bytes.
const UNPACKED_SIZE_LIMIT: u64 = 1 << 30;

/// The environment variable that replaces [`UNPACKED_SIZE_LIMIT`].
const UNPACKED_LIMIT: &str = "NEXTSTAT_MAX_UNPACKED_BYTES";

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Why the bytes of a document cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file system or the decompressor failed.
    #[error("cannot read {name}")]
    Unreadable {
        /// The file in backticks, or `standard input`.
        name: String,
        /// A file of a similar name in the folder of one that does not exist.
        similar: Option<String>,
        /// Its reason.
        source: io::Error,
    },
    /// More bytes than any workspace has.
    #[error("{name} holds more than {limit} bytes")]
    TooLarge {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A compressed file that unpacks to more bytes than allowed.
    #[error("{name} unpacks to more than {limit} bytes")]
    UnpackedTooLarge {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A limit in the environment that is not a number.
    #[error("`{variable}={value}` is not a number of bytes")]
    NotALimit {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

impl SourceError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnpackedTooLarge { .. } => {
                Some(format!("if the file is sound, allow more: `{UNPACKED_LIMIT}=BYTES` in the environment"))
            }
            Self::Unreadable { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            _ => None,
        }
    }
}

/// The origin of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentSource {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// A file in memory; the other files that it names are there, too.
    Memory {
        /// All files.
        files: Arc<MemoryFiles>,
        /// The path of this one.
        path: PathBuf,
    },
}

impl DocumentSource {
    /// Returns the name of the source in messages: the path in backticks, or `standard input`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => name_of(path),
            Self::Stdin => "standard input".to_owned(),
            Self::Memory { path, .. } => name_of(path),
        }
    }

    /// Returns the file at `path` in memory.
    #[must_use]
    pub fn memory(files: Arc<MemoryFiles>, path: impl Into<PathBuf>) -> Self {
        Self::Memory { files, path: path.into() }
    }

    /// Returns the path of a file, on the disk or in memory; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Memory { path, .. } => Some(path),
            Self::Stdin => None,
        }
    }

    /// Returns the path of a file on the disk; `None` for every other source.
    #[must_use]
    pub fn path_on_disk(&self) -> Option<&Path> {
        if let Self::Path(path) = self { Some(path) } else { None }
    }

    /// Returns the folder that relative names in the document start from: that of the file, and the
    /// working directory for standard input.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.path().and_then(Path::parent).map(Path::to_owned).unwrap_or_default()
    }

    /// Returns the file at `path` in memory if this one is there, and on the disk otherwise.
    #[must_use]
    pub fn sibling(&self, path: impl Into<PathBuf>) -> Self {
        match self {
            Self::Memory { files, .. } => Self::memory(Arc::clone(files), path),
            Self::Path(_) | Self::Stdin => Self::Path(path.into()),
        }
    }

    /// Returns `true` if the source is a file that exists.
    #[must_use]
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::Path(path) => path.is_file(),
            Self::Stdin => false,
            Self::Memory { files, path } => files.get(path).is_some(),
        }
    }

    /// Opens the ROOT file that the source is.
    pub(crate) fn open_root(&self) -> Result<RootFile, RootFileError> {
        match self {
            Self::Path(path) => RootFile::open(path),
            Self::Stdin => Err(RootFileError::Io(io::ErrorKind::Unsupported.into())),
            Self::Memory { files, path } => match files.get(path) {
                Some(bytes) => RootFile::from_bytes(bytes.to_vec()),
                None => Err(RootFileError::Io(io::ErrorKind::NotFound.into())),
            },
        }
    }
}

/// Returns the name of a path in messages: the path in backticks.
pub(crate) fn name_of(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Returns all bytes of a source, decompressed where they are gzip or Zstandard by their first
/// bytes; the name of the file does not matter.
///
/// # Errors
///
/// [`SourceError::Unreadable`], [`SourceError::TooLarge`] (4 GiB) and
/// [`SourceError::UnpackedTooLarge`] (1 GiB after decompression, or the limit in
/// `NEXTSTAT_MAX_UNPACKED_BYTES`), all with the name; [`SourceError::NotALimit`] if that limit is
/// not a number.
pub fn read_bytes(source: &DocumentSource) -> Result<Vec<u8>, SourceError> {
    let name = source.name();
    let limits = Limits { size: SIZE_LIMIT, unpacked: unpacked_limit(std::env::var_os(UNPACKED_LIMIT))? };
    match source {
        DocumentSource::Path(path) => File::open(path)
            .map_err(|source| {
                let is_absent = source.kind() == io::ErrorKind::NotFound;
                let similar = if is_absent { similar_file(path) } else { None };
                SourceError::Unreadable { name: name.clone(), similar, source }
            })
            .and_then(|file| read_from(file, &name, limits)),
        DocumentSource::Stdin => read_from(io::stdin().lock(), &name, limits),
        DocumentSource::Memory { files, path } => match files.get(path) {
            Some(bytes) => read_from(&bytes[..], &name, limits),
            None => Err(absent_in_memory(files, path)),
        },
    }
}

fn absent_in_memory(files: &MemoryFiles, path: &Path) -> SourceError {
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    let similar = similar_name(&path.display().to_string(), names.iter().map(String::as_str)).map(str::to_owned);
    SourceError::Unreadable { name: name_of(path), similar, source: io::ErrorKind::NotFound.into() }
}

/// Returns the file that the absent file `path` may be meant to be: one in the same folder with a
/// similar name and the same ending, or with the same name and another ending.
fn similar_file(path: &Path) -> Option<String> {
    const MOST_FILES: usize = 10_000;
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or_else(|| Path::new("."))).ok()?;
    let files: Vec<String> =
        entries.take(MOST_FILES).flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Endings are alike too often to tell similar names.
    let (stem, ending) = name.split_at(name.find('.').unwrap_or(name.len()));
    let stems = files.iter().filter_map(|file| file.strip_suffix(ending)).filter(|stem| !stem.is_empty());
    let similar = similar_name(stem, stems).filter(|_| !stem.is_empty()).map(|stem| format!("{stem}{ending}"));
    let has_stem = |file: &&String| !stem.is_empty() && file.split('.').next() == Some(stem);
    let found = similar.or_else(|| files.iter().find(has_stem).cloned())?;
    Some(path.with_file_name(found).display().to_string())
}

/// The largest sizes that are read, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Before decompression.
    size: u64,
    /// After decompression.
    unpacked: u64,
}

/// Returns the limit after decompression; the usual one where the variable in the environment is
/// not a number.
pub(crate) fn unpacked_limit_now() -> u64 {
    unpacked_limit(std::env::var_os(UNPACKED_LIMIT)).unwrap_or(UNPACKED_SIZE_LIMIT)
}

/// Returns the limit after decompression, where `given` is the variable in the environment.
fn unpacked_limit(given: Option<OsString>) -> Result<u64, SourceError> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(UNPACKED_SIZE_LIMIT) };
    let number = given.to_str().and_then(|text| text.trim().parse().ok());
    number
        .ok_or_else(|| SourceError::NotALimit { variable: UNPACKED_LIMIT, value: given.to_string_lossy().into_owned() })
}

fn read_from(mut stream: impl Read, name: &str, limits: Limits) -> Result<Vec<u8>, SourceError> {
    let bytes = read_limited(&mut stream, name, limits.size)?;
    let unpacked = |error| match error {
        SourceError::TooLarge { name, limit } => SourceError::UnpackedTooLarge { name, limit },
        other => other,
    };
    if bytes.starts_with(&GZIP_MAGIC) {
        let decoder = flate2::read::MultiGzDecoder::new(Cursor::new(bytes));
        return read_limited(decoder, name, limits.unpacked).map_err(unpacked);
    }
    if bytes.starts_with(&ZSTD_MAGIC) {
        let unreadable = |source| SourceError::Unreadable { name: name.to_owned(), similar: None, source };
        let decoder = ns_root::zstandard_reader(&bytes).map_err(unreadable)?;
        return read_limited(decoder, name, limits.unpacked).map_err(unpacked);
    }
    Ok(bytes)
}

fn read_limited(stream: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, SourceError> {
    let name = name.to_owned();
    let mut bytes = Vec::new();
    match stream.take(limit + 1).read_to_end(&mut bytes) {
        Err(source) => Err(SourceError::Unreadable { name, similar: None, source }),
        Ok(_) if bytes.len() as u64 > limit => Err(SourceError::TooLarge { name, limit }),
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
    fn decompression_bombs_and_endless_streams_stop_at_the_limit() {
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
        assert!(matches!(read_from(io::repeat(b' '), "x", limits), Err(SourceError::TooLarge { .. })));
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
        assert_eq!(error.hint(), None);
    }

    #[test]
    fn misspelt_files_have_a_hint() {
        let folder = std::env::temp_dir().join(format!("nextstat-similar-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        for name in ["shapes.json", "a.json", "combined.json.gz"] {
            std::fs::write(folder.join(name), "{}").expect("a file");
        }
        let hint = |name: &str| {
            let hint = read_bytes(&DocumentSource::Path(folder.join(name))).expect_err("absent").hint();
            hint.map(|hint| hint.replace(&format!("{}/", folder.display()), ""))
        };
        assert_eq!(hint("shaeps.json").as_deref(), Some("did you mean `shapes.json`?"));
        assert_eq!(hint("combined.json").as_deref(), Some("did you mean `combined.json.gz`?"));
        assert_eq!(hint("shapes").as_deref(), Some("did you mean `shapes.json`?"));
        // Names of one letter with a common ending are not similar.
        assert_eq!([hint("b.json"), hint(".json"), hint("fit.json")], [None, None, None]);
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
