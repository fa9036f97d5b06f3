//! Reads one-dimensional histograms from ROOT files and writes them, without ROOT. It knows nothing
//! of physics.
//!
//! [`RootFile`] opens a file and finds objects in its directories; [`Histogram`] is what it reads:
//! `TH1C`, `TH1S`, `TH1I`, `TH1L`, `TH1F` and `TH1D` as ROOT 3 and later write them, compressed by
//! zlib, LZ4, Zstandard or LZMA or not at all, in files of any size. Anything else is refused by
//! name.
//!
//! [`RootWriter`] makes a file with histograms in directories: as `TH1D`, compressed by zlib, the
//! same bytes for the same histograms.
//!
//! Files are not trusted. Every length is compared with the bytes that are there, an object
//! occupies at most [`OBJECT_LIMIT`] bytes, and nothing recurses.
//!
//! ```no_run
//! use ns_root::RootFile;
//!
//! let mut file = RootFile::open("data/example.root".as_ref())?;
//! let histogram = file.histogram("SR/signal")?;
//! println!("{} bins: {:?}", histogram.n_bins(), histogram.values());
//! # Ok::<(), ns_root::RootFileError>(())
//! ```
//!
//! # Why not a crate
//!
//! `oxyroot` and `root-io` (2026) read trees and have no histograms; neither limits the memory that
//! a damaged file can ask for.
//!
//! # Modules
//!
//! `file` finds objects by `directory` and `key`; `source` reads bytes at an offset, `compression`
//! unpacks them (`zstandard` without C, too, for WebAssembly), `cursor` takes numbers from them,
//! and `histogram` is the object that they describe, within the `limits`. On the way back, `writer`
//! makes a file, `write_histogram` the bytes of an object and `layouts` those that describe its
//! classes; `output` puts numbers into them.

mod compression;
mod cursor;
mod directory;
mod error;
mod file;
mod histogram;
mod key;
mod layouts;
mod limits;
mod output;
mod source;
mod write_histogram;
mod writer;
mod zstandard;

pub use error::{CompressionProblem, RootFileError, RootWriteError};
pub use file::RootFile;
pub use histogram::Histogram;
pub use key::Key;
pub use limits::OBJECT_LIMIT;
pub use writer::RootWriter;
pub use zstandard::zstandard_reader;
