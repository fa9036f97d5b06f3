//! Compiled programs on disk, for drivers that take seconds or minutes to compile: by device,
//! driver, options and text.
//!
//! A file is written under another name and renamed, so that no reader sees a part of it. It begins
//! with all that its binary depends on and a checksum: an entry that is of something else, or
//! damaged, is not used and is replaced. A folder that cannot be written costs time and nothing
//! else.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process};

/// The folder of the cache, or `off`.
const VARIABLE: &str = "NEXTSTAT_OPENCL_CACHE";
const MAGIC: &[u8] = b"nextstat OpenCL program 1\n";
/// How many entries this process has written, so that its threads write files of their own.
static N_WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Where one program is kept.
pub(super) struct CacheEntry {
    path: PathBuf,
    /// All that the binary depends on.
    key: Vec<u8>,
}

impl CacheEntry {
    /// Returns the place of the program of module `name`, which depends on `key`; `None` without a
    /// folder.
    pub(super) fn new(name: &str, key: &[&str]) -> Option<CacheEntry> {
        let folder = folder(|variable| env::var_os(variable).map(PathBuf::from))?;
        let key = key.join("\0").into_bytes();
        let path = folder.join(format!("{name}-{:016x}.bin", checksum(&key)));
        Some(CacheEntry { path, key })
    }

    /// Returns the binary, if there is one that is whole and of this key.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let file = fs::read(&self.path).ok()?;
        let rest = file.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (key, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let (sum, binary) = rest.split_first_chunk::<8>()?;
        let is_whole = key == self.key && u64::from_le_bytes(*sum) == checksum(binary) && !binary.is_empty();
        is_whole.then(|| binary.to_owned())
    }

    /// Keeps `binary`, if the folder can be written.
    pub(super) fn write(&self, binary: &[u8]) {
        let length = (self.key.len() as u64).to_le_bytes();
        let sum = checksum(binary).to_le_bytes();
        let file = [MAGIC, &length, &self.key, &sum, binary].concat();
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let number = N_WRITTEN.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path.with_extension(format!("{}-{number}.unfinished", process::id()));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&unfinished, file));
        if written.and_then(|()| fs::rename(&unfinished, &self.path)).is_err() {
            let _ = fs::remove_file(&unfinished);
        }
    }

    /// Removes an entry that the driver does not take.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the folder that the environment names, or that of the system for caches: as the XDG Base
/// Directory Specification says, with the places of macOS and Windows.
fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(named) = variable(VARIABLE) {
        return (named.as_os_str() != "off" && !named.as_os_str().is_empty()).then_some(named);
    }
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let caches = if cfg!(windows) {
        variable("LOCALAPPDATA").and_then(absolute)
    } else {
        let home = |inside: &str| variable("HOME").and_then(absolute).map(|home| home.join(inside));
        let own = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
        variable("XDG_CACHE_HOME").and_then(absolute).or_else(|| home(own))
    };
    Some(caches?.join("nextstat").join("opencl"))
}

/// Returns the FNV-1a hash of 64 bits: against damage, not against an attacker, who could replace
/// the program too.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(folder: &str, key: &str) -> CacheEntry {
        let folder = env::temp_dir().join(format!("ns-device-cache-{}-{folder}", process::id()));
        CacheEntry { path: folder.join("program.bin"), key: key.as_bytes().to_owned() }
    }

    #[test]
    fn a_program_comes_back_and_a_damaged_or_another_one_does_not() {
        let (own, other) = (entry("damage", "own"), entry("damage", "other"));
        assert_eq!(own.read(), None);
        own.write(b"compiled");
        assert_eq!(own.read().as_deref(), Some(&b"compiled"[..]));
        assert_eq!(other.read(), None, "the same name, another key");
        let whole = fs::read(&own.path).expect("written");
        for length in 0..whole.len() {
            fs::write(&own.path, &whole[..length]).expect("a file");
            assert_eq!(own.read(), None, "{length} bytes of {}", whole.len());
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 4;
            fs::write(&own.path, &damaged).expect("a file");
            assert_eq!(own.read(), None, "byte {place}");
        }
        own.write(b"compiled again");
        assert_eq!(own.read().as_deref(), Some(&b"compiled again"[..]));
        let folder = own.path.parent().expect("a folder");
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1, "nothing unfinished is left");
        own.remove();
        assert_eq!(own.read(), None);
        fs::remove_dir_all(folder).expect("empty");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let place = CacheEntry { path: "/dev/null/program.bin".into(), key: Vec::new() };
        place.write(b"compiled");
        assert_eq!(place.read(), None);
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_folder_is_that_of_the_xdg_specification() {
        let with = |given: &'static [(&str, &str)]| {
            folder(move |variable| {
                given.iter().find(|(name, _)| *name == variable).map(|(_, path)| PathBuf::from(path))
            })
        };
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.cache/nextstat/opencl".into()));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/nextstat/opencl".into()));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]), Some("/h/.cache/nextstat/opencl".into()));
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("HOME", "/h"), (VARIABLE, "/own")]), Some("/own".into()));
        assert_eq!(with(&[("HOME", "/h"), (VARIABLE, "off")]), None);
    }
}
