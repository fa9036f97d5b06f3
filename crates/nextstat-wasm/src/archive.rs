//! Unpacks ZIP and tar archives, such as those of HEPData, and archives in them.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Archives within archives that are unpacked: HEPData puts one into another.
const DEPTH: usize = 3;

/// The most bytes that an archive may unpack to.
const UNPACKED_LIMIT: u64 = 1 << 30;

/// The most files of an archive.
const FILE_LIMIT: usize = 20_000;

/// Where a tar archive says that it is one.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

/// An archive that cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Bytes that are not an archive, or one that is damaged.
    #[error("cannot unpack `{name}`")]
    Damaged {
        /// The archive.
        name: String,
        /// What its reader says.
        source: io::Error,
    },
    /// More bytes than allowed.
    #[error("`{name}` unpacks to more than {UNPACKED_LIMIT} bytes")]
    TooLarge {
        /// The archive.
        name: String,
    },
    /// More files than allowed.
    #[error("`{name}` has more than {FILE_LIMIT} files")]
    TooMany {
        /// The archive.
        name: String,
    },
}

/// A file and its path.
pub(crate) type UnpackedFile = (String, Vec<u8>);

/// Returns the files of `bytes`: those of an archive at paths that begin with `name/`, and
/// otherwise the file itself, unpacked where it is gzip.
pub(crate) fn unpack(name: &str, bytes: Vec<u8>) -> Result<Vec<UnpackedFile>, ArchiveError> {
    let mut unpacker = Unpacker { archive: name, left: UNPACKED_LIMIT, files: Vec::new() };
    unpacker.add(name.to_owned(), bytes, DEPTH)?;
    Ok(unpacker.files)
}

struct Unpacker<'a> {
    archive: &'a str,
    /// Bytes that may still be unpacked.
    left: u64,
    files: Vec<UnpackedFile>,
}

impl Unpacker<'_> {
    fn add(&mut self, path: String, bytes: Vec<u8>, depth: usize) -> Result<(), ArchiveError> {
        if depth > 0 && bytes.starts_with(b"PK\x03\x04") {
            return self.add_zip(&path, &bytes, depth - 1);
        }
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let unpacked = self.read(&path, MultiGzDecoder::new(&bytes[..]))?;
            return self.add(path, unpacked, depth);
        }
        if depth > 0 && bytes.get(TAR_MAGIC) == Some(b"ustar") {
            return self.add_tar(&path, &bytes, depth - 1);
        }
        if self.files.len() >= FILE_LIMIT {
            return Err(ArchiveError::TooMany { name: self.archive.to_owned() });
        }
        self.files.push((path, bytes));
        Ok(())
    }

    fn add_zip(&mut self, path: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        let damaged = |error: zip::result::ZipError| damaged(path, error.into());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        for i in 0..archive.len() {
            let file = archive.by_index(i).map_err(damaged)?;
            let name = file.name().map_err(damaged)?.into_owned();
            if file.is_file() && !is_of_the_system(&name) {
                let unpacked = self.read(path, file)?;
                self.add(format!("{path}/{name}"), unpacked, depth)?;
            }
        }
        Ok(())
    }

    fn add_tar(&mut self, path: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        let mut archive = tar::Archive::new(bytes);
        for file in archive.entries().map_err(|error| damaged(path, error))? {
            let file = file.map_err(|error| damaged(path, error))?;
            let name = String::from_utf8_lossy(&file.path_bytes()).into_owned();
            if file.header().entry_type().is_file() && !is_of_the_system(&name) {
                let unpacked = self.read(path, file)?;
                self.add(format!("{path}/{name}"), unpacked, depth)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &str, reader: impl Read) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        reader.take(self.left + 1).read_to_end(&mut bytes).map_err(|error| damaged(path, error))?;
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| ArchiveError::TooLarge { name: self.archive.to_owned() })?;
        Ok(bytes)
    }
}

fn damaged(path: &str, source: io::Error) -> ArchiveError {
    ArchiveError::Damaged { name: path.to_owned(), source }
}

/// Returns `true` for what macOS puts into archives beside the files.
fn is_of_the_system(name: &str) -> bool {
    name.split('/').any(|part| part == "__MACOSX" || part.starts_with("._") || part == ".DS_Store")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, *bytes).expect("appended");
        }
        builder.into_inner().expect("finished")
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("compressed");
        encoder.finish().expect("finished")
    }

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).expect("started");
            writer.write_all(bytes).expect("written");
        }
        writer.finish().expect("finished").into_inner()
    }

    #[test]
    fn archives_within_archives_are_unpacked() {
        let inner = gzip(&tar(&[("a/one.json", b"1"), ("two.json.gz", &gzip(b"22"))]));
        let outer = zip(&[("resource.tar.gz", &inner), ("__MACOSX/._three", b""), ("three.txt", b"333")]);
        let files = unpack("hepdata.zip", outer).expect("an archive");
        let expected: [(&str, &[u8]); 3] = [
            ("hepdata.zip/resource.tar.gz/a/one.json", b"1"),
            ("hepdata.zip/resource.tar.gz/two.json.gz", b"22"),
            ("hepdata.zip/three.txt", b"333"),
        ];
        let found: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn other_files_stay_as_they_are() {
        assert_eq!(unpack("a.json", b"{}".to_vec()).expect("a file"), [("a.json".to_owned(), b"{}".to_vec())]);
        assert_eq!(unpack("a.json.gz", gzip(b"{}")).expect("a file"), [("a.json.gz".to_owned(), b"{}".to_vec())]);
    }

    #[test]
    fn damaged_archives_and_bombs_are_errors() {
        let whole = zip(&[("one.json", &[7; 1000])]);
        let error = unpack("a.zip", whole[..whole.len() - 30].to_vec()).expect_err("damaged");
        assert_eq!(error.to_string(), "cannot unpack `a.zip`");
        let error = unpack("a.gz", gzip(b"text")[..12].to_vec()).expect_err("damaged");
        assert_eq!(error.to_string(), "cannot unpack `a.gz`");
        let mut unpacker = Unpacker { archive: "bomb.gz", left: 100, files: Vec::new() };
        let error = unpacker.add("bomb.gz".to_owned(), gzip(&[0; 101]), DEPTH).expect_err("too large");
        assert!(matches!(error, ArchiveError::TooLarge { .. }));
    }
}
