//! pyhf JSON, schema 1.0.0: documents to workspaces and back.
//!
//! The schema is followed strictly: unknown and missing keys, empty lists and other versions are errors. So are
//! duplicate keys, of which pyhf silently takes the last. Whether the numbers make a model is not asked here.
//!
//! Every document is first read by `typed`, in one pass and without a tree. Whatever it refuses is read again by
//! `careful`, which has the last word and says what is wrong and where.

mod careful;
mod typed;
mod write;

#[cfg(test)]
mod tests;

use ns_core::spec::Workspace;
use serde_json::Value;

pub(crate) use careful::{version, workspace as read_tree};
pub use write::write_workspace;

use crate::DocumentError;
use crate::json::{self, Cursor, to_value};
use crate::kind::DocumentKind;
use crate::text;

/// The one schema version that is understood.
const VERSION: &str = "1.0.0";

/// Reads a pyhf workspace.
///
/// # Errors
///
/// Anything that is not UTF-8, not JSON, or not as the schema has it, with its place.
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
/// assert_eq!(error.hint().as_deref(), Some("did you mean `normfactor`?"));
/// ```
pub fn read_workspace(bytes: &[u8]) -> Result<Workspace, DocumentError> {
    let text = text::decode(bytes)?;
    match typed::read(&mut serde_json::Deserializer::from_str(&text::without_indentation(text))) {
        Ok(workspace) => Ok(workspace),
        Err(_) => read_carefully(text),
    }
}

/// Reads a document that patches are to be applied to. It need not be a workspace yet.
///
/// # Errors
///
/// Anything that is not JSON, duplicate keys and numbers out of range, with their place; a patch, a patch set or an HS3
/// document.
pub fn read_value(bytes: &[u8]) -> Result<Value, DocumentError> {
    let text = text::decode(bytes)?;
    let root = json::parse(text)?;
    let wanted = DocumentKind::Workspace;
    match DocumentKind::of(&root) {
        Some(found @ (DocumentKind::Patch | DocumentKind::PatchSet | DocumentKind::Hs3)) => {
            Err(DocumentError::WrongDocument { wanted, found })
        }
        _ => to_value(&Cursor::top(text, &root)),
    }
}

/// Reads a workspace from a document that has been changed since it was text; its errors have pointers but no lines.
///
/// # Errors
///
/// Anything that is not as the schema has it.
pub fn from_value(document: &Value) -> Result<Workspace, DocumentError> {
    if let Ok(workspace) = typed::read_value(document) {
        return Ok(workspace);
    }
    let text = document.to_string();
    careful::workspace(&Cursor::without_lines(&json::parse(&text)?))
}

fn read_carefully(text: &str) -> Result<Workspace, DocumentError> {
    let root = json::parse(text)?;
    careful::workspace(&Cursor::top(text, &root))
}
