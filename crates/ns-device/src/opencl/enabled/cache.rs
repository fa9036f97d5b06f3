//! Compiled programs on disk, for drivers that take seconds or minutes to compile: by device,
//! driver, options and text.
//!
//! A file is written under another name and renamed. It begins with all that its binary depends on
//! and a checksum: an entry that is of something else, or damaged, is not used and is replaced. A
//! folder that cannot be written costs time and nothing else.
//!
//! The folder is bounded: a process that adds an entry removes those that were not used for long,
//! and then the oldest of the others until they fit. Only files that this module has written are
//! removed: the folder may be one that the user keeps other things in. A file is removed whole,
//! which does not disturb a process that reads it, and one that looks for it later compiles again.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, fs, io, process};

/// The folder of the cache, or `off`.
const VARIABLE: &str = "NEXTSTAT_OPENCL_CACHE";
const MAGIC: &[u8] = b"nextstat OpenCL program 1\n";
/// How long an entry may stay unused before it is removed.
const LONGEST_UNUSED: Duration = Duration::from_hours(90 * 24);
/// Bytes that all entries may have; a program has about one megabyte.
pub(super) const MOST_BYTES: u64 = 256 << 20;
/// How old an unfinished file must be for its process to have ended.
const LONGEST_UNFINISHED: Duration = Duration::from_hours(24);
/// How old the time of an entry's use may be before it is set again.
const USE_RESOLUTION: Duration = Duration::from_hours(24);
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
        if is_whole {
            self.note_use();
        }
        is_whole.then(|| binary.to_owned())
    }

    /// Sets the time of the file, by which entries grow old, to now.
    fn note_use(&self) {
        let Ok(file) = fs::File::options().append(true).open(&self.path) else { return };
        let time = file.metadata().and_then(|about| about.modified());
        if time.is_ok_and(|time| age(time, SystemTime::now()) > USE_RESOLUTION) {
            let _ = file.set_modified(SystemTime::now());
        }
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
        prune(folder, &self.path, SystemTime::now(), MOST_BYTES);
    }

    /// Removes an entry that the driver does not take.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what was not used for long, and then the files that were not used for the longest time
/// while there are more than `most_bytes`; never `newest`, nor a file that is no entry. What cannot
/// be read or removed stays.
fn prune(folder: &Path, newest: &Path, now: SystemTime, most_bytes: u64) {
    let Ok(listed) = fs::read_dir(folder) else { return };
    let mut entries = Vec::new();
    for file in listed.filter_map(Result::ok) {
        let path = file.path();
        let Ok(about) = file.metadata() else { continue };
        let Ok(used) = about.modified() else { continue };
        if path == newest || !about.is_file() || !is_written_here(&path) {
            continue;
        }
        let is_unfinished = path.extension().is_some_and(|extension| extension == "unfinished");
        let longest = if is_unfinished { LONGEST_UNFINISHED } else { LONGEST_UNUSED };
        let age = age(used, now);
        if age > longest {
            let _ = fs::remove_file(path);
        } else {
            entries.push((age, about.len(), path));
        }
    }
    let of_newest = fs::metadata(newest).map_or(0, |about| about.len());
    let mut bytes = of_newest + entries.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
    while bytes > most_bytes {
        // Few, and seldom too many.
        let oldest = (0..entries.len()).max_by_key(|&i| entries[i].0);
        let Some((_, removed, path)) = oldest.map(|i| entries.swap_remove(i)) else { return };
        let _ = fs::remove_file(path);
        bytes -= removed;
    }
}

/// Returns `true` for a file of this cache: `MODULE-HASH.bin` or
/// `MODULE-HASH.PROCESS-N.unfinished`, with the hash in 16 hexadecimal digits, that begins as
/// entries do.
fn is_written_here(path: &Path) -> bool {
    let Some((stem, end)) = path.file_name().and_then(|name| name.to_str()?.split_once('.')) else { return false };
    let hash = stem.rsplit_once('-').map_or("", |(_, hash)| hash);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_process = |end: &str| {
        let numbers = end.strip_suffix(".unfinished").and_then(|numbers| numbers.split_once('-'));
        numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
    };
    let is_named =
        hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && (end == "bin" || of_process(end));
    is_named && begins_as_entry(path).unwrap_or(false)
}

/// Returns whether the file begins with [`MAGIC`], or with as much of it as was written.
fn begins_as_entry(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    fs::File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(MAGIC.starts_with(&begin))
}

/// Returns the time from `then` to `now`; none if a clock went backwards.
fn age(then: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
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
        CacheEntry { path: folder.join("program-0123456789abcdef.bin"), key: key.as_bytes().to_owned() }
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

    fn made(folder: &Path, name: &str, bytes: usize, days: u64) -> PathBuf {
        let path = folder.join(name);
        let mut content = MAGIC.to_owned();
        content.resize(bytes, 0);
        fs::write(&path, content).expect("a file");
        let file = fs::File::options().append(true).open(&path).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_hours(24 * days)).expect("a time");
        path
    }

    #[test]
    fn what_is_old_or_too_much_is_removed_and_nothing_else() {
        let own = entry("prune", "own");
        let folder = own.path.parent().expect("a folder");
        fs::create_dir_all(folder).expect("a folder");
        let [old, kept, left_over] = [
            made(folder, "fit-000000000000000a.bin", 30, 91),
            made(folder, "fit-000000000000000b.bin", 30, 89),
            made(folder, "fit-000000000000000c.1-0.unfinished", 3, 2),
        ];
        let of_others = [
            made(folder, "notes.txt", 30, 999),
            made(folder, "model.bin", 5000, 999),
            made(folder, "model-0123.bin", 5000, 999),
            made(folder, "a.1-x.unfinished", 30, 999),
            made(folder, "model-00000000000000ff.bin", 5000, 999),
        ];
        fs::write(&of_others[4], "not of this program").expect("a file");
        own.write(b"compiled");
        assert_eq!([&old, &kept, &left_over].map(|path| path.exists()), [false, true, false]);
        let of_now = [1, 2, 3].map(|i| made(folder, &format!("fit-000000000000001{i}.bin"), 600, 4 - i));
        prune(folder, &own.path, SystemTime::now(), 1300);
        assert_eq!(of_now.map(|path| path.exists()), [false, true, true]);
        assert_eq!([kept.exists(), own.path.exists()], [false, true]);
        prune(folder, &own.path, SystemTime::now(), 0);
        assert_eq!(own.read().as_deref(), Some(&b"compiled"[..]), "the newest stays");
        assert!(of_others.iter().all(|path| path.exists()), "files of others stay");
        fs::remove_dir_all(folder).expect("a folder");
    }

    #[test]
    fn what_is_used_does_not_grow_old() {
        let own = entry("use", "own");
        own.write(b"compiled");
        let file = fs::File::options().append(true).open(&own.path).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_hours(24 * 80)).expect("a time");
        assert!(own.read().is_some());
        let used = fs::metadata(&own.path).and_then(|about| about.modified()).expect("a time");
        assert!(age(used, SystemTime::now()) < Duration::from_hours(1));
        fs::remove_dir_all(own.path.parent().expect("a folder")).expect("a folder");
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
