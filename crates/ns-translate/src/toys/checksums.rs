//! Computes checksums of the records of a file of toys, kept in the document beside it, so that
//! damage by a disk or a copy is noticed.
//!
//! Each is the CRC-32 of a block of records. Blocks depend on the run and not on its batches, so
//! the document of a finished run does not depend on interruptions.

use std::fs::File;
use std::io;

use serde_json::{Value, json};

use super::ToyRunIdentity;
use super::file::read_records;

const ALGORITHM: &str = "crc32";

/// The number of records of the smallest block.
const SMALLEST: u64 = 256;

/// The largest number of blocks of a file, so that documents stay short.
const MOST_BLOCKS: u64 = 4096;

/// The checksums of a number of records.
#[derive(Debug, Clone)]
pub(super) struct Checksums {
    /// The number of records of a block.
    each: u64,
    n_records: u64,
    /// The checksums of the full blocks.
    full: Vec<u32>,
    /// The checksum of the records after those.
    open: crc32fast::Hasher,
}

/// Checksums as in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenChecksums {
    each: u64,
    n_records: u64,
    values: Vec<u32>,
}

impl Checksums {
    /// Returns the checksums of no records, for a file of the run `identity`.
    pub(super) fn new(identity: &ToyRunIdentity) -> Self {
        let range = identity.range();
        let blocks = (range.end - range.start).div_ceil(SMALLEST);
        let each = SMALLEST.saturating_mul(blocks.div_ceil(MOST_BLOCKS).max(1).next_power_of_two());
        Self { each, n_records: 0, full: Vec::new(), open: crc32fast::Hasher::new() }
    }

    /// Returns `self`, which has no records, with the first `n` records of `file`.
    pub(super) fn of(mut self, file: &mut File, identity: &ToyRunIdentity, n: u64) -> io::Result<Self> {
        read_records(file, identity, n, |record| {
            self.add(record);
            true
        })?;
        Ok(self)
    }

    /// Adds the next record.
    pub(super) fn add(&mut self, record: &[u8]) {
        self.open.update(record);
        self.n_records += 1;
        if self.n_records.is_multiple_of(self.each) {
            self.full.push(std::mem::take(&mut self.open).finalize());
        }
    }

    /// Returns the number of records.
    pub(super) fn n_records(&self) -> u64 {
        self.n_records
    }

    /// Returns the checksums as in a document.
    pub(super) fn written(&self) -> WrittenChecksums {
        let mut values = self.full.clone();
        if !self.n_records.is_multiple_of(self.each) {
            values.push(self.open.clone().finalize());
        }
        WrittenChecksums { each: self.each, n_records: self.n_records, values }
    }
}

impl WrittenChecksums {
    pub(super) fn to_value(&self) -> Value {
        let values: Vec<String> = self.values.iter().map(|value| format!("{value:08x}")).collect();
        json!({"algorithm": ALGORITHM, "records_each": self.each, "n_records": self.n_records, "values": values})
    }

    /// Returns the checksums in a document, or `None` if they are absent, as in files of earlier
    /// versions, or of another kind.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        if value["algorithm"] != ALGORITHM {
            return None;
        }
        let values = value["values"].as_array()?.iter().map(|value| u32::from_str_radix(value.as_str()?, 16).ok());
        Some(Self {
            each: value["records_each"].as_u64().filter(|each| *each > 0)?,
            n_records: value["n_records"].as_u64()?,
            values: values.collect::<Option<_>>()?,
        })
    }

    /// Returns the end of the block of record `n`.
    pub(super) fn end_of_block(&self, n: u64) -> u64 {
        (n / self.each + 1).saturating_mul(self.each)
    }

    /// Returns how many of the first `n` records of `file` are known to be as they were written.
    pub(super) fn sound(&self, file: &mut File, identity: &ToyRunIdentity, n: u64) -> io::Result<u64> {
        let covered = n.min(self.n_records);
        let none = Checksums { each: self.each, ..Checksums::new(identity) };
        let found = none.of(file, identity, covered)?;
        let found = found.written().values;
        let wrong = (0..found.len()).find(|&block| self.values.get(block) != found.get(block));
        Ok(match wrong {
            Some(block) => (block as u64 * self.each).min(covered),
            None => covered,
        })
    }
}

/// The document of a file of toys: the run, the number of records if the file is complete, and
/// checksums.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToyFileDescription {
    pub(super) identity: ToyRunIdentity,
    pub(super) n_records: Option<u64>,
    pub(super) checksums: Option<WrittenChecksums>,
}
