//! Unpacks ZIP and tar archives, such as those of HEPData, and archives in them.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Layers that are unpacked: HEPData puts archives into others, and a compressed archive has two.
/// An archive that contains itself would have no end of them.
const DEPTH: usize = 6;

/// The most bytes that an archive may unpack to.
const UNPACKED_LIMIT: u64 = 1 << 30;

/// The most files of an archive.
const FILE_LIMIT: usize = 20_000;

const ZSTANDARD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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
/// otherwise the file itself, unpacked where it is gzip or Zstandard.
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
        let deeper = depth.checked_sub(1);
        match deeper {
            Some(deeper) if bytes.starts_with(b"PK\x03\x04") => self.add_zip(&path, &bytes, deeper),
            Some(deeper) if bytes.starts_with(&[0x1f, 0x8b]) => {
                let unpacked = self.read(&path, MultiGzDecoder::new(&bytes[..]))?;
                self.add(path, unpacked, deeper)
            }
            Some(deeper) if bytes.starts_with(&ZSTANDARD_MAGIC) => {
                let reader = ns_root::zstandard_reader(&bytes).map_err(|error| damaged(&path, error))?;
                let unpacked = self.read(&path, reader)?;
                self.add(path, unpacked, deeper)
            }
            Some(deeper) if bytes.get(TAR_MAGIC) == Some(b"ustar") => self.add_tar(&path, &bytes, deeper),
            _ if self.files.len() >= FILE_LIMIT => Err(ArchiveError::TooMany { name: self.archive.to_owned() }),
            _ => {
                self.files.push((path, bytes));
                Ok(())
            }
        }
    }

    fn add_zip(&mut self, path: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        let damaged = |error: zip::result::ZipError| damaged(path, error.into());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        for i in 0..archive.len() {
            let file = archive.by_index(i).map_err(damaged)?;
            let name = file.name().map_err(damaged)?.into_owned();
            if file.is_file() && !is_of_the_system(&name) {
                let unpacked = self.read(path, file)?;
                self.add(within(path, &name), unpacked, depth)?;
            }
        }
        Ok(())
    }

    fn add_tar(&mut self, path: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        let mut archive = tar::Archive::new(bytes);
        for file in archive.entries().map_err(|error| damaged(path, error))? {
            let file = file.map_err(|error| damaged(path, error))?;
            let name = String::from_utf8_lossy(&file.path_bytes()).into_owned();
            if is_of_the_system(&name) {
                continue;
            }
            if file.header().entry_type().is_file() {
                let unpacked = self.read(path, file)?;
                self.add(within(path, &name), unpacked, depth)?;
            } else if let Some(linked) = file.link_name_bytes().filter(|_| file.header().entry_type().is_hard_link()) {
                let linked = within(path, &String::from_utf8_lossy(&linked));
                let found = self.files.iter().find(|(known, _)| *known == linked).map(|(_, bytes)| bytes.clone());
                let missing = || damaged(path, io::Error::new(io::ErrorKind::NotFound, format!("no file `{linked}`")));
                let unpacked = self.read(path, &found.ok_or_else(missing)?[..])?;
                self.add(within(path, &name), unpacked, depth)?;
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

/// Returns the path of a file `name` in the archive `path`; parts `..` do not lead out of it.
fn within(path: &str, name: &str) -> String {
    let parts = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    parts.fold(path.to_owned(), |path, part| format!("{path}/{part}"))
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

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 3).expect("compressed")
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
        let packed = zstandard(&tar(&[("four.json", b"4444")]));
        let outer = zip(&[
            ("resource.tar.gz", &inner),
            ("__MACOSX/._three", b""),
            ("three.txt", b"333"),
            ("x.tar.zst", &packed),
        ]);
        let files = unpack("hepdata.zip", outer).expect("an archive");
        let expected: [(&str, &[u8]); 4] = [
            ("hepdata.zip/resource.tar.gz/a/one.json", b"1"),
            ("hepdata.zip/resource.tar.gz/two.json.gz", b"22"),
            ("hepdata.zip/three.txt", b"333"),
            ("hepdata.zip/x.tar.zst/four.json", b"4444"),
        ];
        let found: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_do_not_lead_out_of_their_archive() {
        let archive = zip(&[("../../simple.json", b"1"), ("/a/./b.json", b"2"), ("c\\..\\d.json", b"3")]);
        let names: Vec<String> = unpack("x.zip", archive).expect("an archive").into_iter().map(|file| file.0).collect();
        assert_eq!(names, ["x.zip/simple.json", "x.zip/a/b.json", "x.zip/c/d.json"]);
    }

    #[test]
    fn layers_without_end_are_left_packed() {
        let mut bytes = b"{}".to_vec();
        for _ in 0..1000 {
            bytes = gzip(&bytes);
        }
        let [(_, left)] = &unpack("a.gz", bytes).expect("a file")[..] else { panic!("one file") };
        assert!(left.starts_with(&[0x1f, 0x8b]));
    }

    #[test]
    fn hard_links_are_the_files_that_they_name() {
        let mut builder = tar::Builder::new(tar(&[("one.json", b"1")])[..1024].to_vec());
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        builder.append_link(&mut header, "two.json", "one.json").expect("appended");
        let files = unpack("a.tar", builder.into_inner().expect("finished")).expect("an archive");
        assert_eq!(files[1], ("a.tar/two.json".to_owned(), b"1".to_vec()));
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
