//! JSON patches (RFC 6902) on documents.
//!
//! The operations themselves are `json-patch`'s. What is added here: messages that say which step of a path is not
//! there, documents left untouched by a patch that fails, and limits on patches that copy a document into itself.

mod apply;
mod problem;

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::Value;

pub use apply::apply;
pub use problem::PatchProblem;

use crate::DocumentError;
use crate::json::{self, Cursor, Object, to_value};
use crate::kind::DocumentKind;
use crate::text;

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
    /// Anything that is not JSON or not a list of RFC 6902 operations, with its place; a patch set and a workspace are
    /// recognised and named.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        let text = text::decode(bytes)?;
        let root = json::parse(text)?;
        let wanted = DocumentKind::Patch;
        match DocumentKind::of(&root) {
            Some(found) if found != wanted => Err(DocumentError::WrongDocument { wanted, found }),
            _ => Self::read(&Cursor::top(text, &root)),
        }
    }

    pub(crate) fn read(cursor: &Cursor<'_>) -> Result<Self, DocumentError> {
        let operations = cursor.list()?.map(|item| operation(&item)).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    /// The number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The patch as a document, for writing it to a file.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let operations = self.operations.iter().map(|operation| serde_json::to_value(operation).unwrap_or_default());
        operations.collect()
    }
}

/// What RFC 6902 lets one do.
#[derive(Clone, Copy)]
enum Verb {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

fn verb(object: &Object<'_>) -> Result<Verb, DocumentError> {
    let cursor = object.need("op")?;
    Ok(match cursor.text()? {
        "add" => Verb::Add,
        "remove" => Verb::Remove,
        "replace" => Verb::Replace,
        "move" => Verb::Move,
        "copy" => Verb::Copy,
        "test" => Verb::Test,
        other => {
            return Err(DocumentError::UnknownOperation { op: other.to_owned(), place: cursor.place() });
        }
    })
}

fn pointer(object: &Object<'_>, key: &'static str) -> Result<PointerBuf, DocumentError> {
    let cursor = object.need(key)?;
    let text = cursor.text()?;
    PointerBuf::parse(text).map_err(|_| DocumentError::Malformed {
        text: text.to_owned(),
        expected: "a JSON pointer (steps that each begin with `/`; `~0` for `~` and `~1` for `/` inside one)",
        place: cursor.place(),
    })
}

/// Checks everything about an operation but the inside of its value. Keys that RFC 6902 does not know are ignored, as
/// it asks.
pub(crate) fn check_operation(cursor: &Cursor<'_>) -> Result<(), DocumentError> {
    let object = cursor.open_object()?;
    pointer(&object, "path")?;
    match verb(&object)? {
        Verb::Add | Verb::Replace | Verb::Test => object.need("value").map(|_| ()),
        Verb::Move | Verb::Copy => pointer(&object, "from").map(|_| ()),
        Verb::Remove => Ok(()),
    }
}

fn operation(cursor: &Cursor<'_>) -> Result<PatchOperation, DocumentError> {
    let object = cursor.open_object()?;
    let verb = verb(&object)?;
    let path = pointer(&object, "path")?;
    let value = || to_value(&object.need("value")?);
    let from = || pointer(&object, "from");
    Ok(match verb {
        Verb::Add => PatchOperation::Add(AddOperation { path, value: value()? }),
        Verb::Replace => PatchOperation::Replace(ReplaceOperation { path, value: value()? }),
        Verb::Test => PatchOperation::Test(TestOperation { path, value: value()? }),
        Verb::Move => PatchOperation::Move(MoveOperation { from: from()?, path }),
        Verb::Copy => PatchOperation::Copy(CopyOperation { from: from()?, path }),
        Verb::Remove => PatchOperation::Remove(RemoveOperation { path }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Patch, DocumentError> {
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
            (r#"{"patches": [], "metadata": {}}"#, "pass a patch set with `--patchset FILE --patch-name NAME`"),
            (
                r#"{"channels": [], "observations": []}"#,
                "the workspace comes first, patches follow with `--patch` or `--patchset`",
            ),
        ] {
            assert_eq!(read(text).expect_err(text).hint().as_deref(), Some(hint));
        }
    }
}
