//! Reads pyhf's patch sets: many named patches for one background-only workspace, with the digests
//! of that workspace.
//!
//! Sets of a hundred megabytes exist, and one patch is used at a time. So a set is kept as text and
//! checked once down to its operations; the values of a patch are read when the patch is requested.

mod error;
mod extract;
mod read;
mod value;

use std::collections::HashMap;

use ns_core::spec::Workspace;
use serde_json::Value;

pub use error::PatchSetError;
pub use extract::{ExtractedPatch, PatchContents};
pub use value::PatchValue;

use crate::digest::{DigestAlgorithm, canonical_json, digest, digest_of_canonical};
use crate::json::{self, JsonCursor};
use crate::patch::{self, Patch};
use crate::pyhf;

/// A set of patches.
#[derive(Debug, Clone)]
pub struct PatchSet {
    text: String,
    metadata: PatchSetMetadata,
    /// The byte at which the metadata begin in the text.
    metadata_start: usize,
    patches: Vec<PatchEntry>,
    by_name: HashMap<String, usize>,
    by_values: HashMap<Vec<PatchValue>, usize>,
}

/// The metadata of a patch set.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchSetMetadata {
    /// The names of the values of each patch.
    pub labels: Vec<String>,
    /// Free text.
    pub description: String,
    /// The origin of the set: kind (`hepdata`) and identifier.
    pub references: Vec<(String, String)>,
    /// Digests of the workspace that the set was made for.
    pub digests: Vec<(DigestAlgorithm, String)>,
}

/// One patch of a set, not yet read.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchEntry {
    /// Its name, unique in the set.
    pub name: String,
    /// Its values, one per label.
    pub values: Vec<PatchValue>,
    /// Its index in the set.
    index: usize,
    /// The byte at which its operations begin in the text of the set.
    start: usize,
    /// The byte at which its metadata begin.
    metadata_start: usize,
}

/// A digest of a patch set compared with that of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestCheck {
    /// The algorithm.
    pub algorithm: DigestAlgorithm,
    /// The digest in the patch set.
    pub expected: String,
    /// The digest of the workspace.
    pub found: String,
}

impl DigestCheck {
    /// Returns whether the workspace is the one that the set was made for.
    #[must_use]
    pub fn matches(&self) -> bool {
        self.expected.eq_ignore_ascii_case(&self.found)
    }
}

impl PatchSet {
    /// Reads a patch set.
    ///
    /// # Errors
    ///
    /// If the document is not JSON or violates pyhf's schema 1.0.0, with the place: duplicate names
    /// and values, values without labels, operations that RFC 6902 does not define.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PatchSetError> {
        read::patch_set(bytes)
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &PatchSetMetadata {
        &self.metadata
    }

    /// Returns every patch, in document order.
    #[must_use]
    pub fn patches(&self) -> &[PatchEntry] {
        &self.patches
    }

    /// Returns the patch with this name.
    ///
    /// # Errors
    ///
    /// [`PatchSetError::UnknownPatch`], whose hint has the nearest names.
    pub fn by_name(&self, name: &str) -> Result<&PatchEntry, PatchSetError> {
        let entry = self.by_name.get(name).and_then(|&index| self.patches.get(index));
        entry.ok_or_else(|| PatchSetError::UnknownPatch {
            name: name.to_owned(),
            known: self.patches.iter().map(|entry| entry.name.clone()).collect(),
        })
    }

    /// Returns the patch with these values, one per label.
    ///
    /// # Errors
    ///
    /// [`PatchSetError::UnknownPatchValues`].
    pub fn by_values(&self, values: &[PatchValue]) -> Result<&PatchEntry, PatchSetError> {
        let entry = self.by_values.get(values).and_then(|&index| self.patches.get(index));
        entry.ok_or_else(|| PatchSetError::UnknownPatchValues {
            values: values.to_vec(),
            labels: self.metadata.labels.clone(),
        })
    }

    /// Reads the operations of one patch of this set.
    ///
    /// # Errors
    ///
    /// Errors in the values of the operations, which [`Self::from_bytes`] does not read: duplicate
    /// keys and numbers out of range.
    pub fn read(&self, entry: &PatchEntry) -> Result<Patch, PatchSetError> {
        let pointer = format!("/patches/{}/patch", entry.index);
        let node = json::parse_part(&self.text, entry.start, &pointer)?;
        Ok(Patch::read(&JsonCursor::at(&self.text, &node, &pointer))?)
    }

    /// Compares every digest of the set with that of a workspace, and returns the comparisons: a
    /// digest that differs is a result, not an error.
    ///
    /// # Errors
    ///
    /// If the workspace is not JSON.
    pub fn verify(&self, workspace_bytes: &[u8]) -> Result<Vec<DigestCheck>, PatchSetError> {
        let canonical = canonical_json(workspace_bytes)?;
        let check = |(algorithm, expected): &(DigestAlgorithm, String)| DigestCheck {
            algorithm: *algorithm,
            expected: expected.clone(),
            found: digest_of_canonical(&canonical, *algorithm),
        };
        Ok(self.metadata.digests.iter().map(check).collect())
    }

    /// Refuses a workspace other than the one that the set was made for, and returns the digests
    /// of this one, which all match.
    ///
    /// # Errors
    ///
    /// [`PatchSetError::DigestMismatch`] for the first digest that differs; a workspace that is not
    /// JSON.
    pub fn require(&self, workspace_bytes: &[u8]) -> Result<Vec<DigestCheck>, PatchSetError> {
        let checks = self.verify(workspace_bytes)?;
        match checks.iter().find(|check| !check.matches()) {
            None => Ok(checks),
            Some(DigestCheck { algorithm, expected, found }) => Err(PatchSetError::DigestMismatch {
                algorithm: *algorithm,
                expected: expected.clone(),
                found: found.clone(),
            }),
        }
    }

    /// Returns the digest of the set itself.
    #[must_use]
    pub fn digest(&self, algorithm: DigestAlgorithm) -> String {
        // The text was read as JSON, and nothing else can fail.
        digest(self.text.as_bytes(), algorithm).unwrap_or_default()
    }

    /// Returns the workspace that one patch makes of `background`, without checking again that this
    /// is the workspace of the set ([`Self::require`]).
    ///
    /// # Errors
    ///
    /// If the patch does not fit, or its result is not a workspace.
    pub fn workspace(&self, background: &Value, entry: &PatchEntry) -> Result<Workspace, PatchSetError> {
        let mut document = background.clone();
        patch::apply(&mut document, &self.read(entry)?)?;
        Ok(pyhf::from_value(&document)?)
    }

    /// Returns the workspace with one patch applied, after [`Self::require`], as pyhf does.
    ///
    /// # Errors
    ///
    /// If the name is unknown, the workspace is not that of the set, or the patch does not fit.
    pub fn apply(&self, workspace_bytes: &[u8], name: &str) -> Result<Value, PatchSetError> {
        let patch = self.read(self.by_name(name)?)?;
        let mut document = pyhf::read_value(workspace_bytes)?;
        self.require(workspace_bytes)?;
        patch::apply(&mut document, &patch)?;
        Ok(document)
    }
}
