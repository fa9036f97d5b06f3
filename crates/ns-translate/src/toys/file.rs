//! Writing a file of toys: append, survive, resume, finish.
//!
//! Records go to `OUT.npy.part` in whole batches; its header is renewed after each, so that NumPy can read it at any time. After a kill, even in the middle
//! of a write, what is torn or foreign at the end is cut off and the run goes on behind it. The part is locked while a run writes it, so that two runs
//! never share one file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Identity, ToyFileError};
use crate::source::name_of;

/// What to do about toys that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Start anew; refuse if a run was left unfinished.
    Fresh,
    /// Go on where a run was left, or start anew if there is none.
    Resume,
}

/// A file of toys that is being written.
#[derive(Debug)]
pub struct ToyFile {
    path: PathBuf,
    identity: Identity,
    file: File,
    n_records: u64,
    /// Whether it was complete when it was opened.
    is_complete: bool,
}

/// `path` with `more` at the end of its name.
pub(super) fn with_suffix(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> ToyFileError + '_ {
    move |source| ToyFileError::Io { name: name_of(path), source }
}

/// The identity in the document beside a file, with its number of records if it is complete; `None` if there is no document.
pub(super) fn read_identity(document: &Path) -> Result<Option<(Identity, Option<u64>)>, ToyFileError> {
    let bytes = match fs::read(document) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(document)(error)),
    };
    let value: Option<Value> = serde_json::from_slice(&bytes).ok();
    let identity = value.as_ref().and_then(Identity::from_value);
    identity.map(Some).ok_or_else(|| ToyFileError::NoIdentity { name: name_of(document) })
}

/// Writes a document whole or not at all.
pub(super) fn write_identity(document: &Path, identity: &Identity, n_records: Option<u64>) -> Result<(), ToyFileError> {
    let mut text = serde_json::to_vec_pretty(&identity.to_value(n_records)).unwrap_or_default();
    text.push(b'\n');
    let temporary = with_suffix(document, ".tmp");
    let written = File::create(&temporary).and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&temporary, document)).map_err(failed(document))
}

impl ToyFile {
    /// Opens the file that is to become `path`. `is_unit` says whether a record is the one that belongs at a place in the run.
    ///
    /// # Errors
    /// Unfinished toys in the way, toys of another run, or a file system that refuses.
    pub fn open(
        path: &Path,
        identity: Identity,
        mode: Mode,
        is_unit: impl Fn(u64, &[u8]) -> bool,
    ) -> Result<Self, ToyFileError> {
        let (part, document) = (with_suffix(path, ".part"), with_suffix(path, ".part.json"));
        if mode == Mode::Resume
            && !part.exists()
            && let Some(finished) = Self::finished(path, &identity)?
        {
            return Ok(finished);
        }
        let file = claim(path)?;
        let is_empty = file.metadata().map_err(failed(&part))?.len() == 0;
        let left = if is_empty { None } else { read_identity(&document)? };
        let Some((theirs, _)) = left else { return Self::create(path, identity, file) };
        if mode == Mode::Resume {
            return Self::resume(path, identity, file, &theirs, is_unit);
        }
        match whole_records(&part, &theirs)? {
            0 => Self::create(path, identity, file),
            n_records => Err(ToyFileError::Unfinished { name: name_of(&part), n_records }),
        }
    }

    /// The run that was completed at `path`, if there is one.
    fn finished(path: &Path, identity: &Identity) -> Result<Option<Self>, ToyFileError> {
        let found = if path.exists() { read_identity(&with_suffix(path, ".json"))? } else { None };
        let Some((theirs, Some(n_records))) = found else { return Ok(None) };
        Self::complete(path, identity.clone(), &theirs, n_records).map(Some)
    }

    fn create(path: &Path, identity: Identity, mut file: File) -> Result<Self, ToyFileError> {
        let part = with_suffix(path, ".part");
        // Empty it first: records left there must never stand beside the description of this run.
        file.set_len(0).map_err(failed(&part))?;
        write_identity(&with_suffix(path, ".part.json"), &identity, None)?;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&identity.layout.header(0)))
            .map_err(failed(&part))?;
        Ok(Self { path: path.to_owned(), identity, file, n_records: 0, is_complete: false })
    }

    fn complete(path: &Path, identity: Identity, theirs: &Identity, n_records: u64) -> Result<Self, ToyFileError> {
        require_same(&identity, theirs, path)?;
        let file = File::open(path).map_err(failed(path))?;
        let identity = Identity { devices: theirs.devices.clone(), ..identity };
        Ok(Self { path: path.to_owned(), identity, file, n_records, is_complete: true })
    }

    fn resume(
        path: &Path,
        identity: Identity,
        file: File,
        theirs: &Identity,
        is_unit: impl Fn(u64, &[u8]) -> bool,
    ) -> Result<Self, ToyFileError> {
        let part = with_suffix(path, ".part");
        require_same(&identity, theirs, &part)?;
        let n_whole = whole_records(&part, &identity)?;
        let identity = identity.with_devices_of(theirs);
        write_identity(&with_suffix(path, ".part.json"), &identity, None)?;
        let mut toys = Self { path: path.to_owned(), identity, file, n_records: n_whole, is_complete: false };
        let (first, mut n_sound) = (toys.identity.range().start, 0);
        toys.read(|record| {
            let is_sound = is_unit(first + n_sound, record);
            n_sound += u64::from(is_sound);
            is_sound
        })?;
        toys.n_records = n_sound.min(toys.identity.range().end - first);
        let length = toys.identity.layout.header(0).len() as u64 + toys.n_records * toys.record_bytes();
        toys.file.set_len(length).map_err(failed(&part))?;
        toys.renew_header()?;
        Ok(toys)
    }

    fn record_bytes(&self) -> u64 {
        self.identity.layout.record_bytes() as u64
    }

    /// Where the toys are until the file is complete.
    #[must_use]
    pub fn part(&self) -> PathBuf {
        with_suffix(&self.path, ".part")
    }

    /// What it is of.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Records in it.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        self.n_records
    }

    /// Whether there is nothing more to do, because an earlier run has finished it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Appends whole records.
    ///
    /// # Errors
    /// A file system that refuses; what was there before stays as it was.
    pub fn append(&mut self, records: &[u8]) -> Result<(), ToyFileError> {
        let header = self.identity.layout.header(0).len() as u64;
        let end = header + self.n_records * self.record_bytes();
        let part = self.part();
        let written = self.file.seek(SeekFrom::Start(end)).and_then(|_| self.file.write_all(records));
        written.map_err(failed(&part))?;
        self.n_records += records.len() as u64 / self.record_bytes().max(1);
        self.renew_header()
    }

    fn renew_header(&mut self) -> Result<(), ToyFileError> {
        let header = self.identity.layout.header(self.n_records);
        let renewed = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&header));
        renewed.map_err(failed(&self.part()))
    }

    /// Reads the records in order until `receive` wants no more.
    ///
    /// # Errors
    /// A file system that refuses.
    pub fn read(&mut self, receive: impl FnMut(&[u8]) -> bool) -> Result<(), ToyFileError> {
        read_records(&mut self.file, &self.identity, self.n_records, receive).map_err(failed(&self.path))
    }

    /// Moves it to its final name.
    ///
    /// # Errors
    /// A file system that refuses; the toys then stay where they were.
    pub fn finish(&mut self) -> Result<(), ToyFileError> {
        if self.is_complete {
            return Ok(());
        }
        let part = self.part();
        self.renew_header()?;
        self.file.sync_all().map_err(failed(&part))?;
        write_identity(&with_suffix(&self.path, ".json"), &self.identity, Some(self.n_records))?;
        fs::rename(&part, &self.path).map_err(failed(&self.path))?;
        self.is_complete = true;
        // Unlocking can only fail where the file was never locked; closing it unlocks it in any case.
        let _ = self.file.unlock();
        // The toys are safe; a document left behind does no harm.
        let _ = fs::remove_file(with_suffix(&self.path, ".part.json"));
        Ok(())
    }
}

/// Opens the part of `path`, making it if it is not there, and locks it against other runs until it is closed.
fn claim(path: &Path) -> Result<File, ToyFileError> {
    let part = with_suffix(path, ".part");
    loop {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part);
        let file = open.map_err(failed(&part))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ToyFileError::Busy { name: name_of(path) }),
            // Some network file systems have no locks, and must still be able to hold toys.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(&part)(error)),
        }
        // The run that held the lock may have moved its file to the final name between our `open` and our `try_lock`.
        if is_at(&file, &part).map_err(failed(&part))? {
            return Ok(file);
        }
    }
}

/// Whether `file` is the one that `path` names now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match same_file::Handle::from_path(path) {
        Ok(there) => Ok(same_file::Handle::from_file(file.try_clone()?)? == there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads `n` records behind the header, until `receive` wants no more.
pub(super) fn read_records(
    file: &mut File,
    identity: &Identity,
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

fn require_same(identity: &Identity, theirs: &Identity, path: &Path) -> Result<(), ToyFileError> {
    let shard = |identity: &Identity| format!("{}/{}", identity.shard.index, identity.shard.of);
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

/// How many whole records there are behind the header.
fn whole_records(part: &Path, identity: &Identity) -> Result<u64, ToyFileError> {
    let length = fs::metadata(part).map_err(failed(part))?.len();
    let header = identity.layout.header(0).len() as u64;
    Ok(length.saturating_sub(header) / (identity.layout.record_bytes() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Map;

    use super::*;
    use crate::toys::{ColumnKind, Layout, Shard};

    /// A folder for one test, removed at its end.
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

    fn identity(seed: u64, n_toys: u64) -> Identity {
        let layout = Layout::new(&[("toy", ColumnKind::U64), ("nll", ColumnKind::F64)]);
        let settings = Map::from_iter([("seed".to_owned(), seed.into())]);
        Identity { kind: "fits".to_owned(), settings, layout, n_toys, shard: Shard::WHOLE, devices: BTreeSet::new() }
    }

    fn records(toys: std::ops::Range<u64>) -> Vec<u8> {
        toys.flat_map(|toy| [toy.to_le_bytes(), (toy as f64).to_le_bytes()]).flatten().collect()
    }

    fn open(path: &Path, identity: Identity, mode: Mode) -> Result<ToyFile, ToyFileError> {
        ToyFile::open(path, identity, mode, |toy, record| record[..8] == toy.to_le_bytes())
    }

    #[test]
    fn two_runs_cannot_write_one_file() {
        let scratch = Scratch::new("two-runs");
        let path = scratch.file();
        let mut first = open(&path, identity(1, 4), Mode::Fresh).expect("a new file");
        for mode in [Mode::Fresh, Mode::Resume] {
            for seed in [1, 2] {
                let error = open(&path, identity(seed, 4), mode).expect_err("the first run still writes");
                assert!(error.to_string().starts_with("another run is writing `"), "{error}");
            }
        }
        first.append(&records(0..4)).expect("writable");
        assert!(matches!(open(&path, identity(2, 4), Mode::Fresh), Err(ToyFileError::Busy { .. })));
        first.finish().expect("movable");
        // A finished file is locked no longer, while the first run still holds it open.
        let mut second = open(&path, identity(2, 4), Mode::Fresh).expect("a new part");
        second.append(&records(0..2)).expect("writable");
        let finished = open(&path, identity(1, 4), Mode::Fresh);
        assert!(matches!(finished, Err(ToyFileError::Busy { .. })));
        let bytes = fs::read(&path).expect("readable");
        assert!(bytes.ends_with(&records(0..4)), "the finished file holds the first run only");
        drop(second);
        assert!(matches!(open(&path, identity(2, 4), Mode::Fresh), Err(ToyFileError::Unfinished { n_records: 2, .. })));
    }
}
