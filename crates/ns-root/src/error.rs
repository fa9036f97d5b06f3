//! Why a histogram cannot be read from a ROOT file, or be written to one.

use std::io;

/// Why a histogram cannot be read from a ROOT file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootFileError {
    /// The file system failed.
    #[error("the file cannot be read")]
    Io(#[source] io::Error),
    /// The first bytes are not those of a ROOT file.
    #[error("this is not a ROOT file: it does not begin with `root`")]
    NotRoot,
    /// A file that its writer did not close: it has no list of its contents.
    #[error("the file has no list of its contents: it was not closed after it was written")]
    NotClosed,
    /// A record that extends beyond the end of the file, or beyond its own length.
    #[error("{what} at byte {offset} breaks off: the file is incomplete or damaged")]
    Truncated {
        /// What the record describes.
        what: &'static str,
        /// Where the record begins in the file.
        offset: u64,
    },
    /// A record whose contents contradict each other.
    #[error("{what} at byte {offset} is damaged: {problem}")]
    Damaged {
        /// What the record describes.
        what: &'static str,
        /// Where the record begins in the file.
        offset: u64,
        /// The contradiction.
        problem: &'static str,
    },
    /// A compressed object that does not unpack.
    #[error("the object at byte {offset} does not unpack: {problem}")]
    Compression {
        /// Where the record begins in the file.
        offset: u64,
        /// What is wrong.
        problem: CompressionProblem,
    },
    /// An object that is larger than any histogram.
    #[error("`{path}` occupies {length} bytes, and {limit} are allowed")]
    TooLarge {
        /// The object's path in the file.
        path: String,
        /// Its length in bytes.
        length: u64,
        /// The largest length.
        limit: u64,
    },
    /// A path to a directory that is not there.
    #[error("there is no directory `{name}`{}", within(.parent))]
    NoDirectory {
        /// The step of the path that is missing.
        name: String,
        /// The directory in which it was looked for; empty for the top of the file.
        parent: String,
        /// Names of the directories there.
        known: Vec<String>,
    },
    /// A name that is not in its directory.
    #[error("there is no histogram `{name}`{}", within(.directory))]
    NoObject {
        /// The name, with the cycle if one was asked for.
        name: String,
        /// The directory in which it was looked for; empty for the top of the file.
        directory: String,
        /// Names of the objects there.
        known: Vec<String>,
    },
    /// An object that is not a histogram with one axis.
    #[error("`{path}` is a `{class}`, not a histogram with one axis")]
    NotAHistogram {
        /// The object's path in the file.
        path: String,
        /// Its class.
        class: String,
    },
    /// A version of a class that is not read.
    #[error("`{path}` was written as version {version} of `{class}`, which is not read")]
    Version {
        /// The object's path in the file.
        path: String,
        /// The class, or a base of it.
        class: &'static str,
        /// The version in the file.
        version: u16,
    },
    /// A histogram whose entries were not yet sorted into bins when it was written.
    #[error("`{path}` keeps {entries} entries in its buffer: they are in no bin yet")]
    Buffered {
        /// The object's path in the file.
        path: String,
        /// How many entries there are.
        entries: u64,
    },
}

impl RootFileError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotClosed => Some("open the file in ROOT once and close it: ROOT recovers what it can"),
            Self::Buffered { .. } => Some("call `BufferEmpty()` before the histogram is written"),
            Self::Version { .. } => Some("read the file with ROOT 3 or later and write it again"),
            _ => None,
        }
    }

    /// Returns what was asked for and does not exist, and the names that do.
    #[must_use]
    pub fn missing(&self) -> Option<(&str, &[String])> {
        match self {
            Self::NoDirectory { name, known, .. } | Self::NoObject { name, known, .. } => Some((name, known)),
            _ => None,
        }
    }
}

fn within(directory: &str) -> String {
    if directory.is_empty() { String::new() } else { format!(" in the directory `{directory}`") }
}

/// Why compressed bytes do not unpack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionProblem {
    /// A block without the letters of a known algorithm.
    #[error("unknown compression `{0}`")]
    Unknown(String),
    /// A block whose lengths do not fit the object's.
    #[error("a compressed block has a wrong length")]
    Length,
    /// A checksum that is not that of the bytes.
    #[error("the checksum of a compressed block is wrong")]
    Checksum,
    /// Bytes that the algorithm does not accept.
    #[error("invalid {0} data")]
    Invalid(&'static str),
}

/// Why a histogram cannot be written to a ROOT file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootWriteError {
    /// Numbers that are not those of the bins of one axis.
    #[error("the contents, edges and uncertainties of the histogram `{name}` are not those of the same bins")]
    Bins {
        /// The histogram.
        name: String,
    },
    /// More bins than an object within the limit can have.
    #[error("the histogram `{name}` has {n_bins} bins, and {limit} are allowed")]
    TooManyBins {
        /// The histogram.
        name: String,
        /// The number of its bins.
        n_bins: usize,
        /// The most bins.
        limit: usize,
    },
    /// Edges of bins that are not in order.
    #[error("the edges of the histogram `{name}` do not increase")]
    Edges {
        /// The histogram.
        name: String,
    },
    /// A name that ROOT would read as a path or a cycle.
    #[error("`{name}` cannot be the name of an object in a ROOT file")]
    Name {
        /// The name.
        name: String,
    },
    /// A name that is longer than a key can have.
    #[error("a name of {length} bytes is too long for a ROOT file: {limit} are allowed")]
    LongName {
        /// The bytes of the name.
        length: usize,
        /// The most bytes.
        limit: usize,
    },
    /// A second object of one name.
    #[error("the ROOT file has two objects `{name}`{}", within(.directory))]
    Twice {
        /// The name.
        name: String,
        /// The directory; empty for the top of the file.
        directory: String,
    },
    /// More bytes than offsets of four bytes reach.
    #[error("the ROOT file would have more than {limit} bytes")]
    TooLarge {
        /// The most bytes.
        limit: u64,
    },
}
