//! Keeps ensembles of toys in files: NumPy structured arrays that survive a kill, each beside a
//! document that describes its run.
//!
//! A run appends to `OUT.npy.part`, described by `OUT.npy.part.json`, and moves both to `OUT.npy`
//! and `OUT.npy.json` when it is complete, so that a file with its final name is whole. The
//! document has checksums of the records. [`ToyFile`] writes and resumes, [`merge()`] joins the
//! shards of a run, [`FitRecordFormat`] and [`ToyTestRecord`] convert records.

mod checksums;
mod error;
mod file;
mod identity;
mod layout;
mod merge;
mod record;

pub use error::ToyFileError;
pub use file::{ToyFile, ToyFileMode};
pub use identity::{Shard, ToyRunIdentity};
pub use layout::{ColumnKind, RecordColumn, RecordLayout};
pub use merge::{MergedToys, merge};
pub use record::{DataSetRecord, DataSetRecordFormat, FitRecordFormat, ToyFitRecord, ToyFitStatus, ToyTestRecord};
