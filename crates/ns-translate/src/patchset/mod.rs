//! pyhf's patch sets: many named patches for one background-only workspace, with the digests of that workspace.
//!
//! Sets of a hundred megabytes exist, and one patch of a set is wanted at a time. So a set is kept as text and checked
//! once down to its operations; the values that a patch puts into a workspace are read when the patch is asked for.

mod extract;
mod read;
mod value;

use std::collections::HashMap;

use ns_core::spec::Workspace;
use serde_json::Value;

pub use extract::{ExtractedPatch, PatchContents};
pub use value::PatchValue;

use crate::digest::{DigestAlgorithm, canonical_json, digest_of_canonical};
use crate::json::{self, Cursor};
use crate::patch::{self, Patch};
use crate::{DocumentError, pyhf};

/// A set of patches.
#[derive(Debug, Clone)]
pub struct PatchSet {
    text: String,
    metadata: PatchSetMetadata,
    /// Where what the set says of itself begins in its text.
    metadata_start: usize,
    patches: Vec<PatchEntry>,
    by_name: HashMap<String, usize>,
    by_values: HashMap<Vec<PatchValue>, usize>,
}

/// What a patch set says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchSetMetadata {
    /// What the values of each patch stand for.
    pub labels: Vec<String>,
    /// Free text.
    pub description: String,
    /// Where the set comes from: kind (`hepdata`) and identifier.
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
    /// Where its operations begin in the set's text.
    start: usize,
    /// Where what is said of it begins.
    metadata_start: usize,
}

/// A digest of a patch set held against a workspace.
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
    /// Whether the workspace is the one that the set was made for.
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
    /// Anything that is not JSON or not as pyhf's schema 1.0.0 has it, with its place: names and values that come
    /// twice, values without labels, operations that RFC 6902 does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        read::patch_set(bytes)
    }

    /// What the set says of itself.
    #[must_use]
    pub fn metadata(&self) -> &PatchSetMetadata {
        &self.metadata
    }

    /// Every patch, in document order.
    #[must_use]
    pub fn patches(&self) -> &[PatchEntry] {
        &self.patches
    }

    /// The patch with this name.
    ///
    /// # Errors
    ///
    /// [`DocumentError::UnknownPatch`], whose hint has the nearest names.
    pub fn by_name(&self, name: &str) -> Result<&PatchEntry, DocumentError> {
        let entry = self.by_name.get(name).and_then(|&index| self.patches.get(index));
        entry.ok_or_else(|| DocumentError::UnknownPatch {
            name: name.to_owned(),
            known: self.patches.iter().map(|entry| entry.name.clone()).collect(),
        })
    }

    /// The patch with these values, one per label.
    ///
    /// # Errors
    ///
    /// [`DocumentError::UnknownPatchValues`].
    pub fn by_values(&self, values: &[PatchValue]) -> Result<&PatchEntry, DocumentError> {
        let entry = self.by_values.get(values).and_then(|&index| self.patches.get(index));
        entry.ok_or_else(|| DocumentError::UnknownPatchValues {
            values: values.to_vec(),
            labels: self.metadata.labels.clone(),
        })
    }

    /// Reads the operations of one patch of this set.
    ///
    /// # Errors
    ///
    /// What the set's own reading left unread: duplicate keys and numbers out of range in the operations' values.
    pub fn read(&self, entry: &PatchEntry) -> Result<Patch, DocumentError> {
        let pointer = format!("/patches/{}/patch", entry.index);
        let node = json::parse_part(&self.text, entry.start, &pointer)?;
        Patch::read(&Cursor::at(&self.text, &node, &pointer))
    }

    /// Holds every digest of the set against a workspace's. A digest that differs is a result, not an error.
    ///
    /// # Errors
    ///
    /// A workspace that is not JSON.
    pub fn verify(&self, workspace_bytes: &[u8]) -> Result<Vec<DigestCheck>, DocumentError> {
        let canonical = canonical_json(workspace_bytes)?;
        let check = |(algorithm, expected): &(DigestAlgorithm, String)| DigestCheck {
            algorithm: *algorithm,
            expected: expected.clone(),
            found: digest_of_canonical(&canonical, *algorithm),
        };
        Ok(self.metadata.digests.iter().map(check).collect())
    }

    /// Refuses a workspace that is not the one this set was made for.
    ///
    /// # Errors
    ///
    /// [`DocumentError::DigestMismatch`] for the first digest that differs; a workspace that is not JSON.
    pub fn require(&self, workspace_bytes: &[u8]) -> Result<(), DocumentError> {
        let mut checks = self.verify(workspace_bytes)?.into_iter();
        match checks.find(|check| !check.matches()) {
            None => Ok(()),
            Some(check) => Err(DocumentError::DigestMismatch {
                algorithm: check.algorithm,
                expected: check.expected,
                found: check.found,
            }),
        }
    }

    /// The workspace that one patch makes of `background`; whether that is the set's own ([`Self::require`]) is not asked again.
    ///
    /// # Errors
    ///
    /// A patch that does not fit, or makes something that is no workspace.
    pub fn workspace(&self, background: &Value, entry: &PatchEntry) -> Result<Workspace, DocumentError> {
        let mut document = background.clone();
        patch::apply(&mut document, &self.read(entry)?)?;
        pyhf::from_value(&document)
    }

    /// The workspace with one patch applied, after [`Self::require`], as pyhf does.
    ///
    /// # Errors
    ///
    /// An unknown name, another workspace than the set was made for, or a patch that does not fit.
    pub fn apply(&self, workspace_bytes: &[u8], name: &str) -> Result<Value, DocumentError> {
        let patch = self.read(self.by_name(name)?)?;
        let mut document = pyhf::read_value(workspace_bytes)?;
        self.require(workspace_bytes)?;
        patch::apply(&mut document, &patch)?;
        Ok(document)
    }
}
