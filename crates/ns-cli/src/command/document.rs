//! Reads the workspaces that are to be rewritten.

use ns_translate::workspace::Document;
use ns_translate::{Source, read_bytes};

use crate::error::CliError;

/// The workspace as written.
pub(super) fn document(source: &Source) -> Result<Document, CliError> {
    let bytes = read_bytes(source)?;
    Document::from_bytes(&bytes).map_err(|error| CliError::NotRewritable(error.in_file(&source.name())))
}
