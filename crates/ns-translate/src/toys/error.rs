//! Errors of files of toys.

use std::io;

/// Why a file of toys cannot be written, continued or merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToyFileError {
    /// The file system failed.
    #[error("cannot use {name}")]
    Io {
        /// The file in backticks.
        name: String,
        /// Its reason.
        source: io::Error,
    },
    /// Toys of an earlier run are there, and the caller did not ask to continue it.
    #[error("{name} holds {n_records} toys of a run that was not completed")]
    Unfinished {
        /// The file in backticks.
        name: String,
        /// The number of toys in it.
        n_records: u64,
    },
    /// Another process is writing the file.
    #[error("another run is writing {name}")]
    Busy {
        /// The file in backticks.
        name: String,
    },
    /// A file without a document beside it, or with one that does not describe toys.
    #[error("{name} does not say which toys are in the file beside it")]
    NoIdentity {
        /// The document in backticks.
        name: String,
    },
    /// The files are not of one run.
    #[error("{name} was made with another `{setting}`: {found}, not {expected} as {reference}")]
    Differs {
        /// The file in backticks.
        name: String,
        /// What differs.
        setting: String,
        /// Its value in this file.
        found: String,
        /// The file that it is compared with.
        reference: String,
        /// The value there.
        expected: String,
    },
    /// The run of a shard is not complete.
    #[error("{name} is not complete: it has {found} of {expected} toys")]
    Incomplete {
        /// The file in backticks.
        name: String,
        /// The number of toys in it.
        found: u64,
        /// The number of toys that it should have.
        expected: u64,
    },
    /// A file with another length than its document says.
    #[error("{name} is damaged: it should have {expected} bytes and has {found}")]
    Damaged {
        /// The file in backticks.
        name: String,
        /// Bytes it should have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// A finished file of which the end is missing.
    #[error("{name} ends after {found} of {expected} toys")]
    Cut {
        /// The file in backticks.
        name: String,
        /// The number of whole toys in it.
        found: u64,
        /// The number of toys when it was finished.
        expected: u64,
    },
    /// Records that differ from those that were written.
    #[error("{name} is damaged: toys {first} to {last} of it do not match their checksum")]
    WrongChecksum {
        /// The file in backticks.
        name: String,
        /// The first record of the block, from 1.
        first: u64,
        /// Its last record.
        last: u64,
    },
    /// Two files with the same toys.
    #[error("{first} and {second} both hold shard {index} of {of}")]
    SameShard {
        /// A file in backticks.
        first: String,
        /// Another one.
        second: String,
        /// The shard, from 1.
        index: u64,
        /// The number of shards of the run.
        of: u64,
    },
    /// The files divide the run in different ways.
    #[error("{name} holds a shard of {found}, {reference} one of {expected}")]
    OtherDivision {
        /// The file in backticks.
        name: String,
        /// Its number of shards.
        found: u64,
        /// The file it is compared with.
        reference: String,
        /// The number of shards there.
        expected: u64,
    },
    /// Toys that are in no file.
    #[error("{}", not_given(.missing, *.of))]
    MissingShards {
        /// The missing shards, from 1.
        missing: Vec<u64>,
        /// The number of shards of the run.
        of: u64,
    },
}

fn not_given(missing: &[u64], of: u64) -> String {
    const SHOWN: usize = 10;
    let mut words: Vec<String> = missing.iter().take(SHOWN).map(u64::to_string).collect();
    if missing.len() > SHOWN {
        words.push(format!("and {} more", missing.len() - SHOWN));
    }
    let noun = if missing.len() == 1 { "shard" } else { "shards" };
    format!("{noun} {} of {of} not given", words.join(", "))
}

impl ToyFileError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Busy { .. } => Some("wait for it, or write to another file".to_owned()),
            Self::Unfinished { .. } => Some("continue it with `--resume`, or remove the file".to_owned()),
            Self::NoIdentity { .. } => {
                Some("a file of toys is only of use together with the `.json` file written beside it".to_owned())
            }
            Self::Differs { setting, .. } if setting == "nextstat_version" => {
                Some("toys of different versions need not be comparable; make them again with one version".to_owned())
            }
            Self::Differs { .. } => Some("toys can be continued and merged only if all of this agrees".to_owned()),
            Self::Incomplete { .. } => Some("repeat its command with `--resume` first".to_owned()),
            Self::Cut { .. } | Self::WrongChecksum { .. } => {
                Some("take a sound copy, or remove the file and make the toys again".to_owned())
            }
            Self::MissingShards { .. } => {
                Some("repeat the command with `--shard K/N` for each, or name their files too".to_owned())
            }
            _ => None,
        }
    }
}
