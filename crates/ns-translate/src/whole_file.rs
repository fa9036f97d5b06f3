//! Writes files whole or not at all: first beside their place, then moved there. Results, and the
//! documents beside files of toys, are written in this way.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

/// Writes a file whole or not at all. Pipes and devices are written directly.
///
/// # Errors
/// If the file is read-only or the file system fails; an earlier file is then unchanged.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match OutputTarget::open(path)? {
        OutputTarget::Special(mut file) => file.write_all(bytes),
        OutputTarget::Replacement(replacement) => {
            replacement.file().write_all(bytes)?;
            replacement.finish()
        }
    }
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where it goes.
    pub path: PathBuf,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Why one of several files cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum NewFileError {
    /// It is one of those that were read.
    #[error("`{}` is what is read, and would be replaced", path.display())]
    IsInput {
        /// The file.
        path: PathBuf,
    },
    /// Another of them goes to the same place and has other contents.
    #[error("two files would be written to `{}`", path.display())]
    SamePlace {
        /// The place.
        path: PathBuf,
    },
    /// The file system refuses it.
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
}

/// Writes several files, each whole, and none before the contents of all are on the disk. Folders
/// are made where there are none. The `inputs` are not replaced.
///
/// # Errors
/// The first file that is an input, that goes to the place of another, or that cannot be written;
/// earlier files are then unchanged, unless the file system fails while they get their names.
pub fn write_all_whole(files: &[NewFile], inputs: &[PathBuf]) -> Result<(), NewFileError> {
    let is_input = |path: &Path| inputs.iter().any(|input| same_file::is_same_file(input, path).unwrap_or(false));
    if let Some(file) = files.iter().find(|file| is_input(&file.path)) {
        return Err(NewFileError::IsInput { path: file.path.clone() });
    }
    if let Some(file) = second_at_one_place(files) {
        return Err(NewFileError::SamePlace { path: file.path.clone() });
    }
    let prepared: Vec<PreparedFile> = files.iter().map(|file| named(file, prepare(file))).collect::<Result<_, _>>()?;
    for (file, prepared) in files.iter().zip(prepared) {
        let done = match prepared {
            PreparedFile::Special(mut special) => special.write_all(&file.bytes),
            PreparedFile::Replacement(closed) => closed.persist(),
        };
        named(file, done)?;
    }
    Ok(())
}

/// Returns the first of `files` that goes to the place of an earlier one and has other contents.
pub(crate) fn second_at_one_place(files: &[NewFile]) -> Option<&NewFile> {
    let mut known: HashMap<String, &NewFile> = HashMap::new();
    files.iter().find(|file| known.insert(place(&file.path), file).is_some_and(|first| first.bytes != file.bytes))
}

/// Returns the same text for all paths of one file, whether it exists or not, and for those that
/// differ only in capital letters: some file systems do not tell them apart.
fn place(path: &Path) -> String {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| {
        let path = behind_links(path);
        let folder = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        match (folder.map(fs::canonicalize), path.file_name()) {
            (Some(Ok(folder)), Some(name)) => folder.join(name),
            _ => std::path::absolute(&path).unwrap_or(path),
        }
    });
    whole.to_string_lossy().to_lowercase()
}

fn named<T>(file: &NewFile, result: io::Result<T>) -> Result<T, NewFileError> {
    result.map_err(|source| NewFileError::Unwritable { path: file.path.clone(), source })
}

/// A file of several that is ready to be written, or to get its name.
enum PreparedFile {
    Special(File),
    /// Closed, so that there may be more of them than a process may have open files.
    Replacement(ClosedReplacement),
}

/// Opens the destination of a file, and writes what will replace it.
fn prepare(file: &NewFile) -> io::Result<PreparedFile> {
    if let Some(folder) = file.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    Ok(match OutputTarget::open(&file.path)? {
        OutputTarget::Special(special) => PreparedFile::Special(special),
        OutputTarget::Replacement(replacement) => {
            replacement.file().write_all(&file.bytes)?;
            PreparedFile::Replacement(replacement.close()?)
        }
    })
}

/// The destination of the bytes for a path.
#[derive(Debug)]
pub enum OutputTarget {
    /// A file that is to replace what is there.
    Replacement(ReplacementFile),
    /// A pipe or a device, which is written directly.
    Special(File),
}

/// A temporary file that replaces another when it is finished. Otherwise it is removed.
#[derive(Debug)]
pub struct ReplacementFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl OutputTarget {
    /// Opens the destination for `path`. Links are followed: their target is replaced, whether it
    /// exists or not, and the link stays.
    ///
    /// # Errors
    /// If the file is read-only or the file system fails.
    pub fn open(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).map(Self::Special),
            Ok(found) if found.permissions().readonly() => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"))
            }
            Ok(found) => {
                let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                ReplacementFile::new(path, Some(&found)).map(Self::Replacement)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                ReplacementFile::new(behind_links(path), None).map(Self::Replacement)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the target of the links at `path`, which does not exist.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(next) = fs::read_link(&path) {
        // A target from the root replaces the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

/// Returns `error` without the path of the temporary file, which tempfile keeps only in the text:
/// the user named another file.
fn without_path(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let reason = text.split_once(" at path ").map_or(text.as_str(), |(reason, _)| reason);
    io::Error::new(error.kind(), reason)
}

impl ReplacementFile {
    fn new(path: PathBuf, existing: Option<&Metadata>) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".nextstat-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As for any new file, the umask of the process applies.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(|error| without_path(&error))?;
        if let Some(existing) = existing {
            file.as_file().set_permissions(existing.permissions())?;
        }
        Ok(Self { file, path })
    }

    /// Returns the file to write to.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Returns the name that it gets.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, after its contents are on the disk.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn finish(self) -> io::Result<()> {
        self.close()?.persist()
    }

    /// Closes the file after its contents are on the disk.
    fn close(self) -> io::Result<ClosedReplacement> {
        self.file.as_file().sync_all()?;
        Ok(ClosedReplacement { file: self.file.into_temp_path(), path: self.path })
    }
}

/// A temporary file whose contents are on the disk. It is removed unless it gets its name.
struct ClosedReplacement {
    file: TempPath,
    path: PathBuf,
}

impl ClosedReplacement {
    fn persist(self) -> io::Result<()> {
        self.file.persist(&self.path).map_err(|error| error.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: PathBuf, text: &str) -> NewFile {
        NewFile { path, bytes: text.into() }
    }

    #[test]
    fn two_files_do_not_go_to_one_place() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("in")).expect("a folder");
        for other in ["model.root", "./model.root", "in/../model.root", "Model.ROOT"] {
            let other = folder.path().join(other);
            let files = [file(folder.path().join("model.root"), "histograms"), file(other.clone(), "<xml/>")];
            let refused = write_all_whole(&files, &[]).expect_err("one place");
            assert!(matches!(&refused, NewFileError::SamePlace { path } if *path == other), "{refused}");
            assert_eq!(refused.to_string(), format!("two files would be written to `{}`", other.display()));
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is written");
        let same = file(folder.path().join("in/../model.root"), "histograms");
        let files = [file(folder.path().join("model.root"), "histograms"), same];
        write_all_whole(&files, &[]).expect("the same contents twice");
        assert_eq!(fs::read(&files[0].path).expect("readable"), b"histograms");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_another_file_is_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, link) = (folder.path().join("model.root"), folder.path().join("model.xml"));
        std::os::unix::fs::symlink("model.root", &link).expect("a link");
        let files = [file(root.clone(), "histograms"), file(link, "<xml/>")];
        // Whether there is a file behind the link or not.
        for _ in 0..2 {
            assert!(matches!(write_all_whole(&files, &[]), Err(NewFileError::SamePlace { .. })));
            fs::write(&root, "before").expect("written");
        }
        assert_eq!(fs::read(&root).expect("readable"), b"before");
    }
}
