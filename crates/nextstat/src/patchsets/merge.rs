//! The shards of a grid of signals: which patches they have, and their documents joined.

use super::GridAnswer;
use ns_translate::toys::Shard;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Which patches of a set to analyse, and what is asked of them.
#[derive(Debug, Clone, PartialEq)]
pub struct GridShard {
    /// The part of the patches.
    pub shard: Shard,
    /// The question as the document of a shard has it: shards with different ones are not merged.
    pub question: Value,
}

impl GridShard {
    /// All patches.
    pub const WHOLE: Self = Self { shard: Shard::WHOLE, question: Value::Null };

    /// Returns the patches of `n`.
    #[must_use]
    pub fn range(&self, n: usize) -> Range<usize> {
        let Range { start, end } = self.shard.range(n as u64);
        usize::try_from(start).unwrap_or(n)..usize::try_from(end).unwrap_or(n)
    }

    /// Returns the entry `shard` of the document of a grid of `n` patches, and `None` for all of
    /// them.
    pub(super) fn entry(&self, n: usize) -> Option<Value> {
        let (range, Shard { index, of }) = (self.range(n), self.shard);
        let entry = json!({"index": index, "of": of, "first": range.start, "n_patches": range.len(), "question": self.question});
        (self.shard != Shard::WHOLE).then_some(entry)
    }
}

/// The document of a shard, and its name in messages.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedGrid {
    /// The file in backticks.
    pub name: String,
    /// The document.
    pub document: Value,
}

/// Why documents are not the shards of one grid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GridMergeError {
    /// A document of something else.
    #[error("{name} is not a shard of the analysis of every patch")]
    NotAShard {
        /// The file in backticks.
        name: String,
    },
    /// A shard that Ctrl-C ended.
    #[error("{name} is not complete: it has {found} of {expected} patches")]
    Incomplete {
        /// The file in backticks.
        name: String,
        /// The number of patches in it.
        found: usize,
        /// The number of patches that it should have.
        expected: usize,
    },
    /// Shards of different runs.
    #[error("{name} was made with another `{setting}` than {reference}")]
    Differs {
        /// The file in backticks.
        name: String,
        /// What differs.
        setting: String,
        /// The file that it is compared with.
        reference: String,
    },
    /// Two documents of the same patches.
    #[error("{first} and {second} both hold shard {index} of {of}")]
    SameShard {
        /// A file in backticks.
        first: String,
        /// Another one.
        second: String,
        /// The shard, from 1.
        index: u64,
        /// The number of shards.
        of: u64,
    },
    /// Patches that are in no document.
    #[error("shard {index} of {of} not given")]
    Missing {
        /// The first shard that is missing, from 1.
        index: u64,
        /// The number of shards.
        of: u64,
    },
    /// One error instead of every result, for which an undivided run has no document.
    #[error("no patch has a result: {message}")]
    EveryPatch {
        /// The error of every patch.
        message: String,
    },
}

impl GridMergeError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAShard { .. } => Some("`hypotest` and `limit` with `--every-patch --shard K/N` write shards"),
            Self::Incomplete { .. } => Some("compute this shard again"),
            Self::Differs { .. } => Some("shards can be merged only if all of this agrees"),
            Self::SameShard { .. } | Self::Missing { .. } | Self::EveryPatch { .. } => None,
        }
    }
}

/// The parts of a document that are compared or joined.
struct ShardDocument<'a> {
    name: &'a str,
    shard: Shard,
    question: &'a Value,
    n_patches: usize,
    patches: &'a [Value],
    provenance: &'a Map<String, Value>,
}

impl<'a> ShardDocument<'a> {
    fn of(NamedGrid { name, document }: &'a NamedGrid) -> Result<Self, GridMergeError> {
        Self::read(name, document).ok_or_else(|| GridMergeError::NotAShard { name: name.clone() })?.complete()
    }

    fn read(name: &'a str, document: &'a Value) -> Option<Self> {
        let is_grid = document["$schema"].as_str()?.starts_with("urn:nextstat:schema:every-patch:");
        let entry = document.get("shard").filter(|_| is_grid)?;
        let shard = Shard { index: entry["index"].as_u64()?, of: entry["of"].as_u64()? };
        (1..=shard.of).contains(&shard.index).then_some(())?;
        Some(Self {
            name,
            shard,
            question: &entry["question"],
            n_patches: usize::try_from(document["n_patches"].as_u64()?).ok()?,
            patches: document["patches"].as_array()?,
            provenance: document["provenance"].as_object()?,
        })
    }

    fn complete(self) -> Result<Self, GridMergeError> {
        let grid = GridShard { shard: self.shard, question: Value::Null };
        let (found, expected) = (self.patches.len(), grid.range(self.n_patches).len());
        let incomplete = || GridMergeError::Incomplete { name: self.name.to_owned(), found, expected };
        if found == expected { Ok(self) } else { Err(incomplete()) }
    }

    /// Returns `true` if one of the patches was analysed, so that the provenance says how.
    fn is_analysed(&self) -> bool {
        self.provenance.contains_key("measurement")
    }

    /// Returns the first difference from another shard.
    fn difference(&self, other: &Self) -> Option<String> {
        let counts = [
            ("number of shards", self.shard.of == other.shard.of),
            ("number of patches", self.n_patches == other.n_patches),
        ];
        let name = counts.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name.to_owned());
        let question = |value: &Value| value.as_object().cloned().unwrap_or_default();
        // Without an analysis, provenance says what was read and no more.
        let known = if other.is_analysed() { self.provenance } else { other.provenance };
        name.or_else(|| difference(&question(self.question), &question(other.question)))
            .or_else(|| difference(other.provenance, self.provenance))
            .or_else(|| difference(known, other.provenance))
    }
}

/// Returns the first key of `first` whose value in `second` is another one, the command line and
/// names of files aside.
fn difference(first: &Map<String, Value>, second: &Map<String, Value>) -> Option<String> {
    let digest = |value: &Value| value.get("digest").unwrap_or(value).clone();
    let is_other =
        |(key, value): &(&String, &Value)| *key != "command" && second.get(*key).map(digest) != Some(digest(value));
    first.iter().find(is_other).map(|(key, _)| key.clone())
}

/// Joins the documents of all shards of a grid, in any order, to the answer of an undivided run.
///
/// # Errors
/// A document of something else, of another run, or of an interrupted one; a shard that is missing
/// or given twice; the same error for every patch.
pub fn merge(documents: &[NamedGrid]) -> Result<GridAnswer, GridMergeError> {
    let mut shards = documents.iter().map(ShardDocument::of).collect::<Result<Vec<_>, _>>()?;
    // Those that say how they were made come first, and are compared with the others.
    shards.sort_by_key(|shard| (!shard.is_analysed(), shard.shard.index));
    let Some(first) = shards.first() else { return Err(GridMergeError::Missing { index: 1, of: 1 }) };
    require_one_grid(first, &shards[1..])?;
    let mut provenance = first.provenance.clone();
    provenance.remove("command");
    let n_patches = first.n_patches;
    shards.sort_by_key(|shard| shard.shard.index);
    require_each_once(&shards)?;
    let patches: Vec<Value> = shards.iter().flat_map(|shard| shard.patches).cloned().collect();
    if let Some(message) = one_error(&patches) {
        return Err(GridMergeError::EveryPatch { message });
    }
    Ok(GridAnswer { n_patches, patches, part: GridShard::WHOLE, provenance: Value::Object(provenance) })
}

/// Refuses shards of another grid than that of `first`.
fn require_one_grid(first: &ShardDocument<'_>, others: &[ShardDocument<'_>]) -> Result<(), GridMergeError> {
    for other in others {
        if let Some(setting) = first.difference(other) {
            let (name, reference) = (other.name.to_owned(), first.name.to_owned());
            return Err(GridMergeError::Differs { name, setting, reference });
        }
    }
    Ok(())
}

/// Refuses shards, in their order, of which one is missing or there twice.
fn require_each_once(shards: &[ShardDocument<'_>]) -> Result<(), GridMergeError> {
    if let Some([first, second]) = shards.windows(2).find(|pair| pair[0].shard == pair[1].shard) {
        let Shard { index, of } = first.shard;
        let [first, second] = [first, second].map(|shard| shard.name.to_owned());
        return Err(GridMergeError::SameShard { first, second, index, of });
    }
    let of = shards.first().map_or(1, |shard| shard.shard.of);
    let is_there = |index: u64| shards.binary_search_by_key(&index, |shard| shard.shard.index).is_ok();
    match (1..=of).find(|index| !is_there(*index)) {
        Some(index) => Err(GridMergeError::Missing { index, of }),
        None => Ok(()),
    }
}

/// Returns the error of every patch, if they all have the same.
fn one_error(patches: &[Value]) -> Option<String> {
    let message = patches.first()?.get("error")?;
    patches.iter().all(|patch| patch.get("error") == Some(message)).then(|| message.as_str().map(str::to_owned))?
}
