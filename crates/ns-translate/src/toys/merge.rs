//! Joins the shards of a run to the bytes that one run of all toys would have written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::file::{failed, read_description, read_records, require_sound, with_suffix};
use super::{Shard, ToyFile, ToyFileError, ToyFileMode, ToyRunIdentity};
use crate::source::name_of;

/// Files that make one whole run, in the order of its toys.
#[derive(Debug)]
pub struct MergedToys {
    /// The run.
    pub identity: ToyRunIdentity,
    parts: Vec<ShardFile>,
}

#[derive(Debug)]
struct ShardFile {
    path: PathBuf,
    identity: ToyRunIdentity,
    n_records: u64,
}

/// Checks that the files `paths`, in any order, are the shards of one run, each once, and returns
/// the run.
///
/// # Errors
/// If a file is incomplete, damaged or of another run, with its name; or if shards are missing or
/// given twice.
pub fn merge(paths: &[PathBuf]) -> Result<MergedToys, ToyFileError> {
    let mut parts = paths.iter().map(|path| part(path)).collect::<Result<Vec<ShardFile>, ToyFileError>>()?;
    let Some(first) = parts.first() else {
        return Err(ToyFileError::MissingShards { missing: vec![1], of: 1 });
    };
    parts[1..].iter().try_for_each(|other| require_same_run(first, other))?;
    let of = first.identity.shard.of;
    parts.sort_by_key(|part| part.identity.shard.index);
    if let Some(pair) = parts.windows(2).find(|pair| pair[0].identity.shard == pair[1].identity.shard) {
        let index = pair[0].identity.shard.index;
        return Err(ToyFileError::SameShard {
            first: name_of(&pair[0].path),
            second: name_of(&pair[1].path),
            index,
            of,
        });
    }
    if parts.len() as u64 != of {
        let is_there = |index: &u64| parts.iter().any(|part| part.identity.shard.index == *index);
        return Err(ToyFileError::MissingShards { missing: (1..=of).filter(|index| !is_there(index)).collect(), of });
    }
    let whole = ToyRunIdentity { shard: Shard::WHOLE, ..parts[0].identity.clone() };
    let identity = parts.iter().fold(whole, |identity, part| identity.with_devices_of(&part.identity));
    Ok(MergedToys { identity, parts })
}

fn part(path: &Path) -> Result<ShardFile, ToyFileError> {
    let found = fs::metadata(path).map_err(failed(path))?.len();
    let document = with_suffix(path, ".json");
    let Some(described) = read_description(&document)? else {
        return Err(ToyFileError::NoIdentity { name: name_of(&document) });
    };
    let (identity, n_records) = (&described.identity, described.n_records);
    let (range, name) = (identity.range(), name_of(path));
    let wanted = range.end - range.start;
    // A run of one part may stop before its last toy; one of several may not.
    let Some(n_records) = n_records.filter(|n| *n == wanted || (identity.shard.of == 1 && *n < wanted)) else {
        return Err(ToyFileError::Incomplete { name, found: n_records.unwrap_or(0), expected: wanted });
    };
    let expected = identity.layout.header(0).len() as u64 + n_records * identity.layout.record_bytes() as u64;
    if found != expected {
        return Err(ToyFileError::Damaged { name, expected, found });
    }
    let mut file = File::open(path).map_err(failed(path))?;
    require_sound(path, &mut file, &described, n_records)?;
    Ok(ShardFile { path: path.to_owned(), identity: described.identity, n_records })
}

fn require_same_run(first: &ShardFile, other: &ShardFile) -> Result<(), ToyFileError> {
    let (name, reference) = (name_of(&other.path), name_of(&first.path));
    if let Some((setting, expected, found)) = first.identity.difference(&other.identity) {
        return Err(ToyFileError::Differs { name, setting, found, reference, expected });
    }
    let (expected, found) = (first.identity.shard.of, other.identity.shard.of);
    if found != expected {
        return Err(ToyFileError::OtherDivision { name, found, reference, expected });
    }
    Ok(())
}

impl MergedToys {
    /// Calls `receive` with every record, in the order of the run, until it returns `false`.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn read(&self, mut receive: impl FnMut(&[u8]) -> bool) -> Result<(), ToyFileError> {
        for part in &self.parts {
            let mut wants_more = true;
            let mut file = File::open(&part.path).map_err(failed(&part.path))?;
            let read = read_records(&mut file, &part.identity, part.n_records, |record| {
                wants_more = receive(record);
                wants_more
            });
            read.map_err(failed(&part.path))?;
            if !wants_more {
                break;
            }
        }
        Ok(())
    }

    /// Writes the whole run to `path`.
    ///
    /// # Errors
    /// If unfinished toys are in the way, or the file system fails.
    pub fn write(&self, path: &Path) -> Result<(), ToyFileError> {
        const CHUNK: usize = 1 << 20;
        let mut output = ToyFile::open(path, self.identity.clone(), ToyFileMode::Fresh, |_, _| true)?;
        let (mut chunk, mut outcome) = (Vec::with_capacity(CHUNK), Ok(()));
        self.read(|record| {
            chunk.extend_from_slice(record);
            if chunk.len() >= CHUNK {
                outcome = output.append(&chunk);
                chunk.clear();
            }
            outcome.is_ok()
        })?;
        outcome?;
        output.append(&chunk)?;
        output.finish()
    }
}
