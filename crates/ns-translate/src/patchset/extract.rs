//! Extracts one patch of a set as a document, as pyhf's `patchset extract` does.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{PatchEntry, PatchSet, PatchSetError};
use crate::json::{self, JsonCursor, JsonError, WrittenValue};

/// The parts of a patch to extract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PatchContents {
    /// The operations.
    #[default]
    Operations,
    /// The operations, the metadata of the patch, and those of the set.
    WithMetadata,
}

/// A patch as a document. It serializes with sorted keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ExtractedPatch(WrittenValue);

impl PatchSet {
    /// Returns one patch of this set as a document. Of a metadata key that patch and set both have,
    /// the value of the set is taken, as in pyhf.
    ///
    /// # Errors
    ///
    /// Errors in values that [`Self::from_bytes`] does not read: duplicate keys and numbers out of
    /// range.
    pub fn extract(&self, entry: &PatchEntry, what: PatchContents) -> Result<ExtractedPatch, PatchSetError> {
        let pointer = format!("/patches/{}", entry.index);
        let operations = self.part(entry.start, &format!("{pointer}/patch"), WrittenValue::read)?;
        if what == PatchContents::Operations {
            return Ok(ExtractedPatch(operations));
        }
        let mut metadata = self.part(entry.metadata_start, &format!("{pointer}/metadata"), WrittenValue::members)?;
        metadata.extend(self.part(self.metadata_start, "/metadata", WrittenValue::members)?);
        let members = [("metadata", WrittenValue::Object(metadata)), ("patch", operations)];
        let members: BTreeMap<_, _> = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Ok(ExtractedPatch(WrittenValue::Object(members)))
    }

    /// Reads with `read` the part that begins at byte `start` and is at `pointer`.
    fn part<T>(
        &self,
        start: usize,
        pointer: &str,
        read: fn(&JsonCursor<'_>) -> Result<T, JsonError>,
    ) -> Result<T, JsonError> {
        let node = json::parse_part(&self.text, start, pointer)?;
        read(&JsonCursor::at(&self.text, &node, pointer))
    }
}
