//! Writes a file of toys: appends, resumes after a kill, finishes.
//!
//! Records go to `OUT.npy.part` in whole batches. Its header is renewed after each, so that NumPy
//! can read the file at any time. After a kill, even in the middle of a write, torn or foreign
//! records at the end are cut off, and the run continues there. The part is locked while a run
//! writes it, so that two runs never share a file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::checksums::{Checksums, ToyFileDescription};
use super::{ToyFileError, ToyRunIdentity};
use crate::json::python_json;
use crate::source::name_of;
use crate::whole_file::write_whole;

/// How long records may be without checksums in the document. After a kill, those are made again.
const UNNOTED: Duration = Duration::from_secs(1);

/// What to do with toys that exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToyFileMode {
    /// Start a new run; refuse if one was left unfinished.
    Fresh,
    /// Continue the run that was left unfinished, or start a new one if there is none.
    Resume,
}

/// A file of toys that is being written.
#[derive(Debug)]
pub struct ToyFile {
    path: PathBuf,
    identity: ToyRunIdentity,
    file: File,
    /// The checksums of all its records.
    checksums: Checksums,
    noted: Noted,
    /// Whether it is complete and has its final name.
    is_complete: bool,
}

/// The state in the document of an unfinished file.
#[derive(Debug)]
struct Noted {
    n_records: u64,
    at: Instant,
}

impl Noted {
    fn now(n_records: u64) -> Self {
        Self { n_records, at: Instant::now() }
    }
}

/// Returns `path` with `more` at the end of its name.
pub(super) fn with_suffix(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> ToyFileError + '_ {
    move |source| ToyFileError::Io { name: name_of(path), source }
}

/// Returns the content of the document beside a file, or `None` if there is no document.
pub(super) fn read_description(document: &Path) -> Result<Option<ToyFileDescription>, ToyFileError> {
    let bytes = match fs::read(document) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(document)(error)),
    };
    let value: Option<Value> = serde_json::from_slice(&bytes).ok();
    let described = value.as_ref().and_then(ToyRunIdentity::from_value);
    described.map(Some).ok_or_else(|| ToyFileError::NoIdentity { name: name_of(document) })
}

/// Writes a document whole or not at all; `n_records` is that of a complete file.
fn write_description(
    document: &Path,
    identity: &ToyRunIdentity,
    n_records: Option<u64>,
    checksums: &Checksums,
) -> Result<(), ToyFileError> {
    let mut value = identity.to_value(n_records);
    value["checksums"] = checksums.written().to_value();
    let text = python_json(&value).map_err(io::Error::from).map_err(failed(document))? + "\n";
    write_whole(document, text.as_bytes()).map_err(failed(document))
}

impl ToyFile {
    /// Opens the file that is to become `path`. `is_unit` returns whether a record is the one with
    /// an index in the run.
    ///
    /// # Errors
    /// If unfinished toys are in the way, the toys are of another run, or the file system fails.
    pub fn open(
        path: &Path,
        identity: ToyRunIdentity,
        mode: ToyFileMode,
        is_unit: impl Fn(u64, &[u8]) -> bool,
    ) -> Result<Self, ToyFileError> {
        let (part, document) = (with_suffix(path, ".part"), with_suffix(path, ".part.json"));
        if mode == ToyFileMode::Resume
            && !part.exists()
            && let Some(finished) = Self::finished(path, &identity)?
        {
            return Ok(finished);
        }
        let file = claim(path)?;
        let is_empty = file.metadata().map_err(failed(&part))?.len() == 0;
        let left = if is_empty { None } else { read_description(&document)? };
        let Some(theirs) = left else { return Self::create(path, identity, file) };
        if mode == ToyFileMode::Resume {
            return Self::resume(path, identity, file, &theirs, is_unit);
        }
        match whole_records(&part, &theirs.identity)? {
            0 => Self::create(path, identity, file),
            n_records => Err(ToyFileError::Unfinished { name: name_of(&part), n_records }),
        }
    }

    /// Returns the run that was completed at `path`, or `None`.
    fn finished(path: &Path, identity: &ToyRunIdentity) -> Result<Option<Self>, ToyFileError> {
        let found = if path.exists() { read_description(&with_suffix(path, ".json"))? } else { None };
        let Some(theirs) = found else { return Ok(None) };
        let Some(n_records) = theirs.n_records else { return Ok(None) };
        Self::complete(path, identity.clone(), &theirs, n_records).map(Some)
    }

    fn create(path: &Path, identity: ToyRunIdentity, mut file: File) -> Result<Self, ToyFileError> {
        let part = with_suffix(path, ".part");
        // Empty it first: records left there must never be beside the description of this run.
        file.set_len(0).map_err(failed(&part))?;
        let checksums = Checksums::new(&identity);
        write_description(&with_suffix(path, ".part.json"), &identity, None, &checksums)?;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&identity.layout.header(0)))
            .map_err(failed(&part))?;
        Ok(Self { path: path.to_owned(), identity, file, checksums, noted: Noted::now(0), is_complete: false })
    }

    fn complete(
        path: &Path,
        identity: ToyRunIdentity,
        theirs: &ToyFileDescription,
        n_records: u64,
    ) -> Result<Self, ToyFileError> {
        require_same(&identity, &theirs.identity, path)?;
        let mut file = File::open(path).map_err(failed(path))?;
        let found = whole_records(path, &identity)?;
        if found < n_records {
            return Err(ToyFileError::Cut { name: name_of(path), found, expected: n_records });
        }
        require_sound(path, &mut file, theirs, n_records)?;
        let checksums = Checksums::new(&identity).of(&mut file, &identity, n_records).map_err(failed(path))?;
        let identity = ToyRunIdentity { devices: theirs.identity.devices.clone(), ..identity };
        Ok(Self { path: path.to_owned(), identity, file, checksums, noted: Noted::now(n_records), is_complete: true })
    }

    fn resume(
        path: &Path,
        identity: ToyRunIdentity,
        mut file: File,
        theirs: &ToyFileDescription,
        is_unit: impl Fn(u64, &[u8]) -> bool,
    ) -> Result<Self, ToyFileError> {
        let part = with_suffix(path, ".part");
        require_same(&identity, &theirs.identity, &part)?;
        let n_whole = whole_records(&part, &identity)?;
        let range = identity.range();
        let mut n_sound = 0;
        let units = read_records(&mut file, &identity, n_whole.min(range.end - range.start), |record| {
            let is_sound = is_unit(range.start + n_sound, record);
            n_sound += u64::from(is_sound);
            is_sound
        });
        units.map_err(failed(&part))?;
        if let Some(checksums) = &theirs.checksums {
            n_sound = checksums.sound(&mut file, &identity, n_sound).map_err(failed(&part))?;
        }
        let checksums = Checksums::new(&identity).of(&mut file, &identity, n_sound).map_err(failed(&part))?;
        let identity = identity.with_devices_of(&theirs.identity);
        let noted = Noted::now(n_sound);
        let mut toys = Self { path: path.to_owned(), identity, file, checksums, noted, is_complete: false };
        toys.note()?;
        toys.file.set_len(toys.end()).map_err(failed(&part))?;
        toys.renew_header()?;
        Ok(toys)
    }

    /// Returns the byte at which the next record begins.
    fn end(&self) -> u64 {
        self.identity.layout.header(0).len() as u64 + self.n_records() * self.record_bytes()
    }

    /// Writes the document of an unfinished file, with the checksums of its records.
    fn note(&mut self) -> Result<(), ToyFileError> {
        write_description(&with_suffix(&self.path, ".part.json"), &self.identity, None, &self.checksums)?;
        self.noted = Noted::now(self.n_records());
        Ok(())
    }

    fn record_bytes(&self) -> u64 {
        self.identity.layout.record_bytes() as u64
    }

    /// Returns the path of the toys until the file is complete.
    #[must_use]
    pub fn part(&self) -> PathBuf {
        with_suffix(&self.path, ".part")
    }

    /// Returns the run.
    #[must_use]
    pub fn identity(&self) -> &ToyRunIdentity {
        &self.identity
    }

    /// Returns the number of records.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        self.checksums.n_records()
    }

    /// Returns whether the file is complete, because an earlier run has finished it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Appends whole records.
    ///
    /// # Errors
    /// If the file system fails; earlier records are unchanged.
    pub fn append(&mut self, records: &[u8]) -> Result<(), ToyFileError> {
        let (end, part) = (self.end(), self.part());
        let written = self.file.seek(SeekFrom::Start(end)).and_then(|_| self.file.write_all(records));
        written.map_err(failed(&part))?;
        let record_bytes = self.identity.layout.record_bytes().max(1);
        records.chunks_exact(record_bytes).for_each(|record| self.checksums.add(record));
        self.renew_header()?;
        if self.noted.at.elapsed() >= UNNOTED { self.note() } else { Ok(()) }
    }

    fn renew_header(&mut self) -> Result<(), ToyFileError> {
        let header = self.identity.layout.header(self.n_records());
        let renewed = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&header));
        renewed.map_err(failed(&self.part()))
    }

    /// Calls `receive` with the records in order until it returns `false`.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn read(&mut self, receive: impl FnMut(&[u8]) -> bool) -> Result<(), ToyFileError> {
        let n_records = self.n_records();
        read_records(&mut self.file, &self.identity, n_records, receive).map_err(failed(&self.path))
    }

    /// Moves the file to its final name.
    ///
    /// # Errors
    /// If the file system fails; the toys then stay where they were.
    pub fn finish(&mut self) -> Result<(), ToyFileError> {
        if self.is_complete {
            return Ok(());
        }
        let part = self.part();
        self.renew_header()?;
        self.file.sync_all().map_err(failed(&part))?;
        let document = with_suffix(&self.path, ".json");
        write_description(&document, &self.identity, Some(self.n_records()), &self.checksums)?;
        fs::rename(&part, &self.path).map_err(failed(&self.path))?;
        self.is_complete = true;
        // Unlocking can only fail where the file was never locked; closing it unlocks it in any
        // case.
        let _ = self.file.unlock();
        // The toys are safe; a document left behind does no harm.
        let _ = fs::remove_file(with_suffix(&self.path, ".part.json"));
        Ok(())
    }
}

impl Drop for ToyFile {
    fn drop(&mut self) {
        if !self.is_complete && self.noted.n_records != self.n_records() {
            // Records without checksums are made again: nothing is lost but time.
            let _ = self.note();
        }
    }
}

/// Refuses a finished file of which the `n_records` do not match their checksums.
pub(super) fn require_sound(
    path: &Path,
    file: &mut File,
    described: &ToyFileDescription,
    n_records: u64,
) -> Result<(), ToyFileError> {
    let Some(checksums) = &described.checksums else { return Ok(()) };
    let n_sound = checksums.sound(file, &described.identity, n_records).map_err(failed(path))?;
    if n_sound == n_records {
        return Ok(());
    }
    let last = checksums.end_of_block(n_sound).min(n_records);
    Err(ToyFileError::WrongChecksum { name: name_of(path), first: n_sound + 1, last })
}

/// Opens the part of `path`, creates it if it does not exist, and locks it against other runs until
/// it is closed.
fn claim(path: &Path) -> Result<File, ToyFileError> {
    let part = with_suffix(path, ".part");
    loop {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part);
        let file = open.map_err(failed(&part))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ToyFileError::Busy { name: name_of(path) }),
            // Some network file systems have no locks; toys can be written there too.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(&part)(error)),
        }
        // The run that had the lock may have moved its file to the final name between our `open`
        // and our `try_lock`.
        if is_at(&file, &part).map_err(failed(&part))? {
            return Ok(file);
        }
    }
}

/// Returns whether `file` is the one at `path` now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match same_file::Handle::from_path(path) {
        Ok(there) => Ok(same_file::Handle::from_file(file.try_clone()?)? == there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calls `receive` with `n` records after the header, until it returns `false`.
pub(super) fn read_records(
    file: &mut File,
    identity: &ToyRunIdentity,
    n: u64,
    mut receive: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(identity.layout.header(0).len() as u64))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut record = vec![0; identity.layout.record_bytes()];
    for _ in 0..n {
        reader.read_exact(&mut record)?;
        if !receive(&record) {
            break;
        }
    }
    Ok(())
}

fn require_same(identity: &ToyRunIdentity, theirs: &ToyRunIdentity, path: &Path) -> Result<(), ToyFileError> {
    let shard = |identity: &ToyRunIdentity| format!("{}/{}", identity.shard.index, identity.shard.of);
    let other_shard = (identity.shard != theirs.shard).then(|| ("shard".to_owned(), shard(identity), shard(theirs)));
    match identity.difference(theirs).or(other_shard) {
        None => Ok(()),
        Some((setting, expected, found)) => Err(ToyFileError::Differs {
            name: name_of(path),
            setting,
            found,
            reference: "asked for".to_owned(),
            expected,
        }),
    }
}

/// Returns the number of whole records after the header.
fn whole_records(part: &Path, identity: &ToyRunIdentity) -> Result<u64, ToyFileError> {
    let length = fs::metadata(part).map_err(failed(part))?.len();
    let header = identity.layout.header(0).len() as u64;
    Ok(length.saturating_sub(header) / (identity.layout.record_bytes() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Map;

    use super::*;
    use crate::toys::{ColumnKind, RecordLayout, Shard};

    /// A folder of one test, removed at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("nextstat-toy-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a temporary folder");
            Self(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("toys.npy")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn identity(seed: u64, n_toys: u64) -> ToyRunIdentity {
        let layout = RecordLayout::new(&[("toy", ColumnKind::U64), ("nll", ColumnKind::F64)]);
        let settings = Map::from_iter([("seed".to_owned(), seed.into())]);
        ToyRunIdentity {
            kind: "fits".to_owned(),
            settings,
            layout,
            n_toys,
            shard: Shard::WHOLE,
            devices: BTreeSet::new(),
        }
    }

    fn records(toys: std::ops::Range<u64>) -> Vec<u8> {
        toys.flat_map(|toy| [toy.to_le_bytes(), (toy as f64).to_le_bytes()]).flatten().collect()
    }

    fn open(path: &Path, identity: ToyRunIdentity, mode: ToyFileMode) -> Result<ToyFile, ToyFileError> {
        ToyFile::open(path, identity, mode, |toy, record| record[..8] == toy.to_le_bytes())
    }

    /// Writes a file of `n` toys, finished or not.
    fn file_of(path: &Path, n: u64, is_finished: bool) {
        let mut file = open(path, identity(1, n), ToyFileMode::Fresh).expect("a new file");
        for first in (0..n).step_by(100) {
            file.append(&records(first..n.min(first + 100))).expect("writable");
        }
        if is_finished {
            file.finish().expect("movable");
        }
    }

    /// Flips a bit in the value of record `record`.
    fn damage(path: &Path, record: usize) {
        let mut bytes = fs::read(path).expect("readable");
        let header = identity(1, 1).layout.header(0).len();
        bytes[header + 16 * record + 12] ^= 4;
        fs::write(path, bytes).expect("writable");
    }

    #[test]
    fn damaged_unfinished_toys_are_made_again() {
        let scratch = Scratch::new("damaged-part");
        let (path, part) = (scratch.file(), with_suffix(&scratch.file(), ".part"));
        file_of(&path, 1000, false);
        damage(&part, 600);
        let mut file = open(&path, identity(1, 1000), ToyFileMode::Resume).expect("its own run");
        assert_eq!(file.n_records(), 512, "whole blocks before the damage are kept");
        file.append(&records(512..1000)).expect("writable");
        file.finish().expect("movable");
        assert!(fs::read(&path).expect("readable").ends_with(&records(0..1000)));
    }

    #[test]
    fn damaged_finished_toys_are_refused() {
        let scratch = Scratch::new("damaged");
        let path = scratch.file();
        file_of(&path, 1000, true);
        assert!(open(&path, identity(1, 1000), ToyFileMode::Resume).is_ok_and(|file| file.n_records() == 1000));
        damage(&path, 999);
        let merged = crate::toys::merge(std::slice::from_ref(&path)).expect_err("a flipped bit");
        let resumed = open(&path, identity(1, 1000), ToyFileMode::Resume).expect_err("a flipped bit");
        for error in [merged, resumed] {
            assert!(
                error.to_string().ends_with("is damaged: toys 769 to 1000 of it do not match their checksum"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_finished_file_without_its_end_is_refused() {
        let scratch = Scratch::new("cut");
        let path = scratch.file();
        file_of(&path, 50, true);
        let length = fs::metadata(&path).expect("there").len();
        OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(length - 40)).expect("writable");
        let error = open(&path, identity(1, 50), ToyFileMode::Resume).expect_err("cut");
        assert!(error.to_string().ends_with("ends after 47 of 50 toys") && error.hint().is_some(), "{error}");
    }

    #[test]
    fn files_without_checksums_are_still_read() {
        let scratch = Scratch::new("no-checksums");
        let path = scratch.file();
        for (is_finished, suffix) in [(true, ".json"), (false, ".part.json")] {
            file_of(&path, 300, is_finished);
            let document = with_suffix(&path, suffix);
            let mut value: Value = serde_json::from_slice(&fs::read(&document).expect("readable")).expect("JSON");
            assert!(value.as_object_mut().is_some_and(|value| value.remove("checksums").is_some()));
            fs::write(&document, value.to_string()).expect("writable");
            if is_finished {
                assert!(crate::toys::merge(std::slice::from_ref(&path)).is_ok());
            }
            assert!(open(&path, identity(1, 300), ToyFileMode::Resume).is_ok_and(|file| file.n_records() == 300));
        }
    }

    #[test]
    fn two_runs_cannot_write_one_file() {
        let scratch = Scratch::new("two-runs");
        let path = scratch.file();
        let mut first = open(&path, identity(1, 4), ToyFileMode::Fresh).expect("a new file");
        for mode in [ToyFileMode::Fresh, ToyFileMode::Resume] {
            for seed in [1, 2] {
                let error = open(&path, identity(seed, 4), mode).expect_err("the first run still writes");
                assert!(error.to_string().starts_with("another run is writing `"), "{error}");
            }
        }
        first.append(&records(0..4)).expect("writable");
        assert!(matches!(open(&path, identity(2, 4), ToyFileMode::Fresh), Err(ToyFileError::Busy { .. })));
        first.finish().expect("movable");
        // A finished file is locked no longer, while the first run still holds it open.
        let mut second = open(&path, identity(2, 4), ToyFileMode::Fresh).expect("a new part");
        second.append(&records(0..2)).expect("writable");
        let finished = open(&path, identity(1, 4), ToyFileMode::Fresh);
        assert!(matches!(finished, Err(ToyFileError::Busy { .. })));
        let bytes = fs::read(&path).expect("readable");
        assert!(bytes.ends_with(&records(0..4)), "the finished file holds the first run only");
        drop(second);
        assert!(matches!(
            open(&path, identity(2, 4), ToyFileMode::Fresh),
            Err(ToyFileError::Unfinished { n_records: 2, .. })
        ));
    }
}
