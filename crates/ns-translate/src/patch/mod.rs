//! Reads JSON patches (RFC 6902) and applies them to documents.
//!
//! The operations are those of the crate `json-patch`. This module adds messages that name the step
//! of a path that does not exist, leaves a document unchanged when a patch fails, and limits
//! patches that copy a document into itself.

mod apply;
mod error;

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::Value;

pub use apply::apply;
pub use error::{PatchError, PatchProblem};

use crate::json::{self, JsonCursor, JsonError, JsonObject, to_value};
use crate::kind::DocumentKind;

/// A list of operations on a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    operations: Vec<PatchOperation>,
}

impl Patch {
    /// Reads a patch document.
    ///
    /// # Errors
    ///
    /// If the document is not JSON or not a list of RFC 6902 operations, with the place. A patch
    /// set and a workspace are recognised and named.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PatchError> {
        let text = json::decode(bytes)?;
        let root = json::parse(text)?;
        DocumentKind::Patch.require(&root)?;
        Self::read(&JsonCursor::top(text, &root))
    }

    pub(crate) fn read(cursor: &JsonCursor<'_>) -> Result<Self, PatchError> {
        let operations = cursor.list()?.map(|item| operation(&item)).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether the patch has no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the patch as a document, to be written to a file.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let operations = self.operations.iter().map(|operation| serde_json::to_value(operation).unwrap_or_default());
        operations.collect()
    }
}

/// The kinds of operations of RFC 6902.
#[derive(Clone, Copy)]
enum OperationKind {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

fn operation_kind(object: &JsonObject<'_>) -> Result<OperationKind, PatchError> {
    let cursor = object.need("op")?;
    Ok(match cursor.text()? {
        "add" => OperationKind::Add,
        "remove" => OperationKind::Remove,
        "replace" => OperationKind::Replace,
        "move" => OperationKind::Move,
        "copy" => OperationKind::Copy,
        "test" => OperationKind::Test,
        other => {
            return Err(PatchError::UnknownOperation { op: other.to_owned(), place: cursor.place() });
        }
    })
}

fn pointer(object: &JsonObject<'_>, key: &'static str) -> Result<PointerBuf, JsonError> {
    let cursor = object.need(key)?;
    let text = cursor.text()?;
    PointerBuf::parse(text).map_err(|_| JsonError::Malformed {
        text: text.to_owned(),
        expected: "a JSON pointer (steps that each begin with `/`; `~0` for `~` and `~1` for `/` inside one)",
        place: cursor.place(),
    })
}

/// Checks everything about an operation but the inside of its value. Keys that RFC 6902 does not
/// define are ignored, as it demands.
pub(crate) fn check_operation(cursor: &JsonCursor<'_>) -> Result<(), PatchError> {
    let object = cursor.open_object()?;
    pointer(&object, "path")?;
    match operation_kind(&object)? {
        OperationKind::Add | OperationKind::Replace | OperationKind::Test => drop(object.need("value")?),
        OperationKind::Move | OperationKind::Copy => drop(pointer(&object, "from")?),
        OperationKind::Remove => {}
    }
    Ok(())
}

fn operation(cursor: &JsonCursor<'_>) -> Result<PatchOperation, PatchError> {
    let object = cursor.open_object()?;
    let kind = operation_kind(&object)?;
    let path = pointer(&object, "path")?;
    let value = || to_value(&object.need("value")?);
    let from = || pointer(&object, "from");
    Ok(match kind {
        OperationKind::Add => PatchOperation::Add(AddOperation { path, value: value()? }),
        OperationKind::Replace => PatchOperation::Replace(ReplaceOperation { path, value: value()? }),
        OperationKind::Test => PatchOperation::Test(TestOperation { path, value: value()? }),
        OperationKind::Move => PatchOperation::Move(MoveOperation { from: from()?, path }),
        OperationKind::Copy => PatchOperation::Copy(CopyOperation { from: from()?, path }),
        OperationKind::Remove => PatchOperation::Remove(RemoveOperation { path }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Patch, PatchError> {
        Patch::from_bytes(text.as_bytes())
    }

    #[test]
    fn a_patch_is_written_as_it_was_read() {
        let text = r#"[{"op":"add","path":"/a/-","value":{"b":[1,2.5]}},{"op":"move","from":"/a","path":"/c"},
            {"op":"remove","path":"/c/0"},{"op":"test","path":"","value":null}]"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(read(text).expect("a patch").to_value(), value);
    }

    #[test]
    fn broken_operations_are_named_with_their_place() {
        for (text, message) in [
            (r#"[{"op":"ad","path":""}]"#, "unknown patch operation `ad` at `/0/op` (line 1, column 8)"),
            (r#"[{"op":"add","path":""}]"#, "missing key `value` in the object at `/0` (line 1, column 2)"),
            (r#"[{"op":"move","path":"","frm":"/a"}]"#, "missing key `from` in the object at `/0` (line 1, column 2)"),
            (
                r#"[{"op":"remove","path":3}]"#,
                "expected a string, found the number `3` at `/0/path` (line 1, column 24)",
            ),
            (r#"["add"]"#, "expected an object, found the string `add` at `/0` (line 1, column 2)"),
            (
                r#"[{"op":"add","path":"/a","value":{"x":1,"x":2}}]"#,
                "duplicate key `x` at `/0/value/x` (line 1, column 41)",
            ),
            (
                r#"[{"op":"add","path":"/a","value":[NaN]}]"#,
                "`NaN` is not a JSON number, at `/0/value/0` (line 1, column 35)",
            ),
        ] {
            assert_eq!(read(text).expect_err(text).to_string(), message);
        }
        let error = read(r#"[{"op":"remove","path":"channels/0"}]"#).expect_err("no leading slash");
        assert_eq!(error.pointer(), Some("/0/path"));
    }

    #[test]
    fn other_documents_are_recognised() {
        for (text, hint) in [
            (r#"{"patches": [], "metadata": {}}"#, "pass a patch set with `patchset`"),
            (
                r#"{"channels": [], "observations": []}"#,
                "the workspace comes first, patches follow with `patches` or `patchset`",
            ),
        ] {
            let advice = read(text).expect_err(text).advice().expect(text);
            assert_eq!(advice.to_string(), hint);
        }
    }
}
