//! Checksums of the records of a file of toys, kept in the document beside it, so that damage by a disk or a copy is noticed.
//!
//! Each is the CRC-32 of a block of records. Blocks depend on the run and not on its batches: the document of a finished run is the same however it was made.

use std::fs::File;
use std::io;

use serde_json::{Value, json};

use super::ToyRunIdentity;
use super::file::read_records;

const ALGORITHM: &str = "crc32";

/// Records of the smallest block.
const SMALLEST: u64 = 256;

/// Blocks of a file at most, for documents that stay short.
const MOST_BLOCKS: u64 = 4096;

/// The checksums of a number of records.
#[derive(Debug, Clone)]
pub(super) struct Checksums {
    /// Records of a block.
    each: u64,
    n_records: u64,
    /// Of the blocks that are full.
    full: Vec<u32>,
    /// Of the records after those.
    open: crc32fast::Hasher,
}

/// Checksums as a document has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenChecksums {
    each: u64,
    n_records: u64,
    values: Vec<u32>,
}

impl Checksums {
    /// Those of no records, for a file of the run `identity`.
    pub(super) fn new(identity: &ToyRunIdentity) -> Self {
        let range = identity.range();
        let blocks = (range.end - range.start).div_ceil(SMALLEST);
        let each = SMALLEST.saturating_mul(blocks.div_ceil(MOST_BLOCKS).max(1).next_power_of_two());
        Self { each, n_records: 0, full: Vec::new(), open: crc32fast::Hasher::new() }
    }

    /// Those of the first `n` records of `file`, after none.
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

    /// How many records there are.
    pub(super) fn n_records(&self) -> u64 {
        self.n_records
    }

    /// As a document has them.
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

    /// None if they are absent, as in files of earlier versions, or of another kind.
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

    /// The end of the block in which record `n` is.
    pub(super) fn end_of_block(&self, n: u64) -> u64 {
        (n / self.each + 1).saturating_mul(self.each)
    }

    /// How many of the first `n` records of `file` are known to be what was written.
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

/// The document of a file of toys: what the toys are of, how many there are if the file is complete, and their checksums.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToyFileDescription {
    pub(super) identity: ToyRunIdentity,
    pub(super) n_records: Option<u64>,
    pub(super) checksums: Option<WrittenChecksums>,
}
