//! Errors of patch sets: invalid sets, unknown patches, and workspaces of other sets.

use ns_core::advice::{Advice, AdvicePart, Remedy};

use super::PatchValue;
use crate::digest::{DigestAlgorithm, DigestError};
use crate::hint::in_backticks;
use crate::json::JsonError;
use crate::kind::WrongDocumentError;
use crate::patch::PatchError;
use crate::place::DocumentPlace;
use crate::pyhf::PyhfError;

/// Why a patch set cannot be read, or a patch of it not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchSetError {
    /// The set is not JSON, or its lists, objects and values are not those of the schema.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The whole document is of another kind.
    #[error(transparent)]
    WrongDocument(#[from] WrongDocumentError),
    /// A patch of the set that is invalid or does not fit the workspace.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// Another schema version, or a workspace that is invalid once it is patched.
    #[error(transparent)]
    Pyhf(#[from] PyhfError),
    /// A digest that cannot be computed or has an unknown algorithm.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// Two patches with one name.
    #[error("two patches are named `{name}`: the second {place}")]
    DuplicatePatchName {
        /// The name.
        name: String,
        /// The place of the second.
        place: DocumentPlace,
    },
    /// Two patches with the same values.
    #[error("patches `{first}` and `{second}` have the same values {place}")]
    DuplicatePatchValues {
        /// The first patch.
        first: String,
        /// The second patch.
        second: String,
        /// The second patch's values.
        place: DocumentPlace,
    },
    /// A patch with another number of values than the set has labels.
    #[error("patch `{name}` has {found} values for {expected} labels {place}")]
    ValuesPerLabel {
        /// The patch.
        name: String,
        /// The number of labels.
        expected: usize,
        /// The number of values.
        found: usize,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A patch name that the set does not have.
    #[error("the patch set has no patch named `{name}`")]
    UnknownPatch {
        /// The requested name.
        name: String,
        /// The names that the set has.
        known: Vec<String>,
    },
    /// Patch values that the set does not have.
    #[error("the patch set has no patch with the values {}", in_backticks(.values.iter().map(PatchValue::to_string)))]
    UnknownPatchValues {
        /// The requested values.
        values: Vec<PatchValue>,
        /// The set's labels.
        labels: Vec<String>,
    },
    /// A workspace other than the one that the set was made for.
    #[error(
        "the patch set was made for another workspace: its {algorithm} digest is `{expected}`, this one's `{found}`"
    )]
    DigestMismatch {
        /// The algorithm.
        algorithm: DigestAlgorithm,
        /// The digest in the patch set.
        expected: String,
        /// The digest of the given workspace.
        found: String,
    },
}

impl PatchSetError {
    /// Returns the place in the document, or `None` for an error that is not in its text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::Patch(error) => error.place(),
            Self::Pyhf(error) => error.place(),
            Self::Digest(error) => error.place(),
            Self::DuplicatePatchName { place, .. }
            | Self::DuplicatePatchValues { place, .. }
            | Self::ValuesPerLabel { place, .. } => Some(place),
            _ => None,
        }
    }

    /// Returns the JSON pointer of [`Self::place`].
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.place().map(|place| place.pointer.as_str())
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::Json(error) => error.hint().map(Advice::from),
            Self::WrongDocument(error) => Some(error.advice()),
            Self::Patch(error) => error.advice(),
            Self::Pyhf(error) => error.advice(),
            Self::Digest(error) => error.hint().map(Advice::from),
            Self::UnknownPatch { name, known } => nearest_names(name, known).map(Advice::from),
            Self::UnknownPatchValues { labels, .. } => {
                Some(format!("the values stand for {}", in_backticks(labels)).into())
            }
            Self::DigestMismatch { .. } => Some(Advice::Naming(&[
                AdvicePart::Text("if that is intended, extract the patch to a file and pass it with "),
                AdvicePart::Remedy(Remedy::Patches),
            ])),
            _ => None,
        }
    }
}

fn nearest_names(name: &str, known: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let similarity = |other: &String| ns_core::name_similarity(name, other);
    let mut ranked: Vec<(f64, &str)> = known.iter().map(|other| (similarity(other), other.as_str())).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = in_backticks(ranked.iter().take(SHOWN).map(|(_, other)| *other));
    match known.len() {
        0 => None,
        all if all <= SHOWN => Some(format!("it has {nearest}")),
        all => Some(format!("it has {all} patches; the nearest names are {nearest}")),
    }
}
