//! From what a user names (a workspace, patches, a patch of a set) to the workspace that is meant.

use std::path::{Path, PathBuf};

use ns_core::spec::Workspace;
use serde_json::Value;

use crate::patch::{self, Patch};
use crate::patchset::PatchSet;
use crate::source::{DocumentSource, name_of, read_bytes};
use crate::{DocumentError, pyhf};

/// A workspace, and what is to be done to it before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRequest {
    /// The workspace.
    pub workspace: DocumentSource,
    /// JSON patches, applied in order, after the patch of the set.
    pub patches: Vec<DocumentSource>,
    /// A patch set, and the name of the patch of it that is applied first, to the workspace it was made for.
    pub patchset: Option<(PathBuf, String)>,
}

impl LoadRequest {
    /// A workspace as it is.
    #[must_use]
    pub fn new(workspace: DocumentSource) -> Self {
        Self { workspace, patches: Vec::new(), patchset: None }
    }
}

/// Reads a workspace with its patches applied.
///
/// # Errors
///
/// Whatever is wrong with one of the files, with the file's name; and, as in pyhf, a patch set that was made for
/// another workspace.
pub fn load(request: &LoadRequest) -> Result<Workspace, DocumentError> {
    let name = request.workspace.name();
    let bytes = read_bytes(&request.workspace)?;
    if request.patches.is_empty() && request.patchset.is_none() {
        return pyhf::read_workspace(&bytes).map_err(|error| error.in_file(&name));
    }
    let mut document = pyhf::read_value(&bytes).map_err(|error| error.in_file(&name))?;
    if let Some((path, patch_name)) = &request.patchset {
        apply_from_set(&mut document, &bytes, path, patch_name)?;
    }
    for source in &request.patches {
        apply_from(&mut document, source)?;
    }
    pyhf::from_value(&document).map_err(|error| error.in_file(&format!("{name}, patched")))
}

fn apply_from_set(
    document: &mut Value,
    workspace_bytes: &[u8],
    path: &Path,
    patch_name: &str,
) -> Result<(), DocumentError> {
    let set_bytes = read_bytes(&DocumentSource::Path(path.to_owned()))?;
    let done = PatchSet::from_bytes(&set_bytes).and_then(|set| {
        let patch = set.read(set.by_name(patch_name)?)?;
        set.require(workspace_bytes)?;
        patch::apply(document, &patch)
    });
    done.map_err(|error| error.in_file(&name_of(path)))
}

fn apply_from(document: &mut Value, source: &DocumentSource) -> Result<(), DocumentError> {
    let bytes = read_bytes(source)?;
    let done = Patch::from_bytes(&bytes).and_then(|patch| patch::apply(document, &patch));
    done.map_err(|error| error.in_file(&source.name()))
}
