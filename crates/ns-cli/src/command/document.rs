//! Reads the workspaces that are to be rewritten.

use ns_translate::workspace::WorkspaceDocument;
use ns_translate::{DocumentError, DocumentSource, read_bytes};

use crate::error::CliError;

/// The workspace as written.
pub(super) fn document(source: &DocumentSource) -> Result<WorkspaceDocument, CliError> {
    let bytes = read_bytes(source)?;
    WorkspaceDocument::from_bytes(&bytes)
        .map_err(|error| CliError::NotRewritable(DocumentError::from(error).in_file(&source.name())))
}
