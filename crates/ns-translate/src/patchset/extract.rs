//! One patch of a set as a document of its own, with everything that is written there: pyhf's `patchset extract`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{PatchEntry, PatchSet};
use crate::DocumentError;
use crate::json::{self, Cursor, Written};

/// What to extract of a patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PatchContents {
    /// The operations.
    #[default]
    Operations,
    /// The operations, what is said of the patch, and what the set says of itself.
    WithMetadata,
}

/// A patch as a document. It serializes with sorted keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ExtractedPatch(Written);

impl PatchSet {
    /// One patch of this set as a document. Of a key that patch and set both have, the set's value is taken, as in pyhf.
    ///
    /// # Errors
    ///
    /// What the set's own reading left unread: duplicate keys and numbers out of range.
    pub fn extract(&self, entry: &PatchEntry, what: PatchContents) -> Result<ExtractedPatch, DocumentError> {
        let pointer = format!("/patches/{}", entry.index);
        let operations = self.part(entry.start, &format!("{pointer}/patch"), Written::read)?;
        if what == PatchContents::Operations {
            return Ok(ExtractedPatch(operations));
        }
        let mut metadata = self.part(entry.metadata_start, &format!("{pointer}/metadata"), Written::members)?;
        metadata.extend(self.part(self.metadata_start, "/metadata", Written::members)?);
        let members = [("metadata", Written::Object(metadata)), ("patch", operations)];
        let members: BTreeMap<_, _> = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Ok(ExtractedPatch(Written::Object(members)))
    }

    /// What begins at `start` and stands at `pointer`, read by `read`.
    fn part<T>(
        &self,
        start: usize,
        pointer: &str,
        read: fn(&Cursor<'_>) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        let node = json::parse_part(&self.text, start, pointer)?;
        read(&Cursor::at(&self.text, &node, pointer))
    }
}
