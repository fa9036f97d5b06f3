//! Reads and writes workspaces in the JSON of pyhf, schema 1.0.0.
//!
//! The schema is followed strictly: unknown and missing keys, empty lists and other versions are
//! errors. So are duplicate keys, of which pyhf silently takes the last. Whether the numbers make a
//! model is not checked here.
//!
//! Every document is first read by `fast`, in one pass and without a tree. What it refuses is read
//! again by `diagnose`, which decides, and says what is wrong and where.

mod diagnose;
mod error;
mod extension;
mod fast;
mod fast_extension;
pub(crate) mod formula;
mod lacking;
mod write;

#[cfg(test)]
mod tests;

use ns_core::spec::Workspace;
use serde_json::Value;

pub(crate) use diagnose::{
    PARAMETER_KEYS, check_parameter, check_version, parameter as read_setting, workspace as read_tree,
};
pub use error::PyhfError;
pub(crate) use lacking::{require_schema, without_labels};
pub(crate) use write::parameter as write_setting;
pub use write::write_workspace;

use crate::json::{self, JsonCursor, to_value};
use crate::kind::DocumentKind;
use crate::kind::WrongDocumentError;
use crate::text;

/// The only supported schema version.
pub(crate) const VERSION: &str = "1.0.0";

/// Reads a pyhf workspace.
///
/// # Errors
///
/// If the document is not UTF-8, not JSON, or violates the schema, with the place.
///
/// # Example
///
/// ```
/// let document = br#"{
///     "channels": [{"name": "SR", "samples": [{"name": "signal", "data": [5.0], "modifiers": [
///         {"name": "mu", "type": "normfactr", "data": null}]}]}],
///     "observations": [{"name": "SR", "data": [7]}],
///     "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
///     "version": "1.0.0"}"#;
/// let error = ns_translate::pyhf::read_workspace(document).unwrap_err();
/// assert_eq!(error.pointer(), Some("/channels/0/samples/0/modifiers/0/type"));
/// assert_eq!(error.advice(), Some("did you mean `normfactor`?".into()));
/// ```
pub fn read_workspace(bytes: &[u8]) -> Result<Workspace, PyhfError> {
    let text = json::decode(bytes)?;
    match fast::read(&mut serde_json::Deserializer::from_str(&text::without_indentation(text))) {
        Ok(workspace) => Ok(workspace),
        Err(_) => diagnose_text(text),
    }
}

/// Reads a document to which patches are applied. It need not be a workspace yet.
///
/// # Errors
///
/// If the document is not JSON, has duplicate keys or numbers out of range, with the place; or if
/// it is a patch, a patch set or an HS3 document.
pub fn read_value(bytes: &[u8]) -> Result<Value, PyhfError> {
    let text = json::decode(bytes)?;
    let root = json::parse(text)?;
    let wanted = DocumentKind::Workspace;
    match DocumentKind::of(&root) {
        Some(found @ (DocumentKind::Patch | DocumentKind::PatchSet | DocumentKind::Hs3)) => {
            Err(WrongDocumentError { wanted, found }.into())
        }
        _ => Ok(to_value(&JsonCursor::top(text, &root))?),
    }
}

/// Reads a workspace from a document that is not text any more. Its errors have pointers but no
/// lines.
///
/// # Errors
///
/// If the document violates the schema.
pub fn from_value(document: &Value) -> Result<Workspace, PyhfError> {
    if let Ok(workspace) = fast::read_value(document) {
        return Ok(workspace);
    }
    let text = document.to_string();
    diagnose::workspace(&JsonCursor::without_lines(&json::parse(&text)?))
}

fn diagnose_text(text: &str) -> Result<Workspace, PyhfError> {
    let root = json::parse(text)?;
    diagnose::workspace(&JsonCursor::top(text, &root))
}
