//! The files that a user chose, by path, and what each of them is.

use std::sync::Arc;

use nextstat::patchsets::{SignalGrid, patchset};
use ns_translate::{DocumentKind, DocumentSource, MemoryFiles};
use serde::Serialize;
use serde_json::Value;

use crate::archive;
use crate::error::EngineError;

/// Bytes at the beginning of an XML document within which a combination says that it is one.
const OPENING: usize = 1 << 14;

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Files {
    files: Arc<MemoryFiles>,
}

/// A file, for a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// The path: of a file in an archive, it begins with that of the archive.
    pub path: String,
    /// Its size, unpacked.
    pub bytes: usize,
    /// `pyhf`, `hs3`, `histfactory-xml`, `card`, `patchset`, `patch`, `root` or `other`.
    pub kind: &'static str,
}

impl Files {
    /// Adds a file, or the files of an archive (ZIP or tar), which replace those with the same
    /// paths, and returns them.
    ///
    /// # Errors
    ///
    /// A damaged archive or compressed file, and one that unpacks to more than 1 GiB.
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) -> Result<Vec<FileEntry>, EngineError> {
        let mut files = MemoryFiles::clone(&self.files);
        let mut added = Vec::new();
        for (path, bytes) in archive::unpack(name, bytes)? {
            files.insert(&path, bytes);
            added.push(path);
        }
        self.files = Arc::new(files);
        Ok(added.iter().filter_map(|path| self.entry(path)).collect())
    }

    /// Returns all files in alphabetical order.
    #[must_use]
    pub fn list(&self) -> Vec<FileEntry> {
        self.files.iter().map(|(path, bytes)| entry(path.display().to_string(), bytes)).collect()
    }

    /// Returns the metadata of a patch set and its patches, if it was made for this workspace.
    ///
    /// # Errors
    ///
    /// Files that cannot be read; a set that was made for another workspace.
    pub fn patchset(&self, workspace: &str, set: &str) -> Result<Value, EngineError> {
        let grid = SignalGrid::load(&self.source(workspace), &self.source(set))?;
        Ok(patchset(grid.set()))
    }

    /// Returns the file at `path`.
    #[must_use]
    pub(crate) fn source(&self, path: &str) -> DocumentSource {
        DocumentSource::memory(Arc::clone(&self.files), path)
    }

    fn entry(&self, path: &str) -> Option<FileEntry> {
        self.files.get(path).map(|bytes| entry(path.to_owned(), bytes))
    }
}

fn entry(path: String, bytes: &[u8]) -> FileEntry {
    FileEntry { path, bytes: bytes.len(), kind: kind(bytes) }
}

fn kind(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"root") {
        return "root";
    }
    match DocumentKind::recognize(bytes) {
        Some(DocumentKind::Workspace | DocumentKind::Model) => "pyhf",
        Some(DocumentKind::Hs3) => "hs3",
        Some(DocumentKind::HistFactory) if is_combination(bytes) => "histfactory-xml",
        Some(DocumentKind::Card) => "card",
        Some(DocumentKind::PatchSet) => "patchset",
        Some(DocumentKind::Patch) => "patch",
        _ => "other",
    }
}

/// Returns `true` unless XML is one of the channels of a combination, a web page, or the like.
fn is_combination(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(&bytes[..bytes.len().min(OPENING)]).contains("<Combination")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognised() {
        let mut files = Files::default();
        for (name, bytes, kind) in [
            ("a.json", &br#"{"channels": []}"#[..], "pyhf"),
            ("b.json", br#"{"patches": []}"#, "patchset"),
            ("c.json", br#"[{"op": "add"}]"#, "patch"),
            ("d.json", br#"{"distributions": []}"#, "hs3"),
            ("e.xml", b"<!DOCTYPE Combination><Combination/>", "histfactory-xml"),
            ("f.xml", b"<Channel/>", "other"),
            ("g.txt", b"imax 1\n", "card"),
            ("h.root", b"root\0\0", "root"),
            ("README.md", b"# Title\n", "other"),
        ] {
            let added = files.add(name, bytes.to_vec()).expect("a file");
            assert_eq!((added[0].kind, added[0].bytes), (kind, bytes.len()), "{name}");
        }
        assert_eq!(files.list().len(), 9);
    }

    #[test]
    fn a_patch_set_of_another_workspace_is_refused() {
        let read = |name: &str| std::fs::read(format!("../../examples/{name}")).expect("an example");
        let mut files = Files::default();
        files.add("background.json", read("simple.json")).expect("a file");
        let set = br#"{"metadata": {"digests": {"sha256": "0000000000000000000000000000000000000000000000000000000000000000"},
            "labels": ["m"], "description": "", "references": {"hepdata": "ins1"}, "name": "s"},
            "patches": [], "version": "1.0.0"}"#;
        files.add("set.json", set.to_vec()).expect("a file");
        let error = files.patchset("background.json", "set.json").expect_err("another workspace");
        assert!(error.message.contains("`set.json`"), "{error}");
    }
}
