//! Files in memory, which documents can be read from instead of a disk.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files in memory by their paths, such as those of an archive, or those that a browser was given.
///
/// Paths have no working directory: `./a/../b.json` and `/b.json` are `b.json`. Clones share the
/// contents.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ns_translate::{DocumentSource, LoadRequest, MemoryFiles, load};
///
/// let mut files = MemoryFiles::default();
/// files.insert("model.json", std::fs::read("../../examples/simple.json")?);
/// let file = DocumentSource::memory(Arc::new(files), "model.json");
/// assert_eq!(load(&LoadRequest::new(file))?.channels.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    contents: BTreeMap<PathBuf, Arc<[u8]>>,
}

impl MemoryFiles {
    /// Puts a file at `path`, and replaces one that is there.
    pub fn insert(&mut self, path: impl AsRef<Path>, bytes: impl Into<Arc<[u8]>>) {
        self.contents.insert(normalized(path.as_ref()), bytes.into());
    }

    /// Returns the bytes of the file at `path`, or `None` if there is none.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<&Arc<[u8]>> {
        self.contents.get(&normalized(path.as_ref()))
    }

    /// Returns the paths of all files in alphabetical order, and their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.contents.iter().map(|(path, bytes)| (path.as_path(), &**bytes))
    }
}

/// Returns `path` without its root and the parts `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_same_however_they_are_spelled() {
        let mut files = MemoryFiles::default();
        files.insert("./a/b.json", *b"1");
        files.insert("c.json", *b"2");
        for path in ["a/b.json", "/a/b.json", "a/./b.json", "x/../a/b.json", "../a/b.json"] {
            assert_eq!(files.get(path).map(|bytes| &bytes[..]), Some(&b"1"[..]), "{path}");
        }
        assert!(files.get("b.json").is_none());
        files.insert("a/b.json", *b"3");
        let all: Vec<_> = files.iter().collect();
        assert_eq!(all, [(Path::new("a/b.json"), &b"3"[..]), (Path::new("c.json"), &b"2"[..])]);
    }
}
