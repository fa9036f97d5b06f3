//! Applies a patch to a document, whole or not at all.

use json_patch::jsonptr::{Pointer, Token};
use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::{Patch, PatchError, PatchProblem};
use crate::json::{DEPTH_LIMIT, FoundValue};

/// The largest number of steps of a path. The value put there is nested at most as deeply again.
const PATH_LIMIT: usize = DEPTH_LIMIT;

/// The largest depth of a document after a patch, so that recursion over it cannot overflow the
/// stack.
const PATCHED_DEPTH_LIMIT: usize = 2 * DEPTH_LIMIT;

/// The largest number of values that the `copy` operations of a patch copy together. Without a
/// limit a few of them fill any memory.
const COPY_LIMIT: usize = 2_000_000;

/// Applies every operation of `patch`, in order. A patch that fails leaves the document unchanged.
///
/// # Errors
///
/// [`PatchError::Operation`] with the operation's index, kind and path; its source is the reason.
///
/// # Example
///
/// ```
/// use ns_translate::patch::{Patch, apply};
///
/// let mut document = serde_json::json!({"channels": [{"name": "SR"}]});
/// let patch = Patch::from_bytes(br#"[{"op": "add", "path": "/channels/7/samples/0", "value": {}}]"#)?;
/// assert_eq!(
///     ns_translate::full_message(&apply(&mut document, &patch).unwrap_err()),
///     "operation 0 (`add /channels/7/samples/0`): there is no `/channels/7`, `/channels` is a list of 1"
/// );
/// # Ok::<(), ns_translate::patch::PatchError>(())
/// ```
pub fn apply(document: &mut Value, patch: &Patch) -> Result<(), PatchError> {
    if let Some((index, operation)) = first_too_deep(patch) {
        let limit = PATH_LIMIT;
        return Err(failure(index, operation, PatchProblem::TooDeep { limit }));
    }
    let is_plain = |operation: &PatchOperation| {
        use PatchOperation::{Add, Remove, Replace};
        matches!(operation, Add(_) | Remove(_) | Replace(_))
    };
    if patch.operations.iter().all(is_plain) {
        // These three can be undone one by one, which is cheaper than a copy of the document.
        return json_patch::patch(document, &patch.operations).map_err(|error| explain(document, patch, &error));
    }
    let mut copy = document.clone();
    let mut copied = 0;
    for (index, operation) in patch.operations.iter().enumerate() {
        do_one(&mut copy, operation, &mut copied).map_err(|problem| failure(index, operation, problem))?;
    }
    *document = copy;
    Ok(())
}

fn first_too_deep(patch: &Patch) -> Option<(usize, &PatchOperation)> {
    let too_deep = |operation: &PatchOperation| operation.path().count() > PATH_LIMIT;
    patch.operations.iter().enumerate().find(|(_, operation)| too_deep(operation))
}

fn do_one(document: &mut Value, operation: &PatchOperation, copied: &mut usize) -> Result<(), PatchProblem> {
    match operation {
        PatchOperation::Test(test) => {
            let Some(value) = document.pointer(test.path.as_str()) else {
                return Err(problem(document, operation, &PatchErrorKind::InvalidPointer));
            };
            return same(value, &test.value)
                .then_some(())
                .ok_or_else(|| PatchProblem::TestFailed { found: FoundValue::of(value) });
        }
        PatchOperation::Copy(copy) => {
            *copied += check_size(document, copy.from.as_str(), operation)?;
        }
        PatchOperation::Move(from) => {
            check_size(document, from.from.as_str(), operation)?;
        }
        _ => {}
    }
    if *copied > COPY_LIMIT {
        return Err(PatchProblem::TooLarge { limit: COPY_LIMIT });
    }
    json_patch::patch_unsafe(document, std::slice::from_ref(operation))
        .map_err(|error| problem(document, operation, &error.kind))
}

/// Returns the number of values at `from`, or an error if they would be nested too deeply where the
/// operation puts them.
fn check_size(document: &Value, from: &str, operation: &PatchOperation) -> Result<usize, PatchProblem> {
    let size = document.pointer(from).map(Size::of).unwrap_or_default();
    if operation.path().count() + size.depth > PATCHED_DEPTH_LIMIT {
        let limit = PATCHED_DEPTH_LIMIT;
        return Err(PatchProblem::TooDeep { limit });
    }
    Ok(size.values)
}

#[derive(Default)]
struct Size {
    values: usize,
    depth: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let within = |sizes: &mut dyn Iterator<Item = Self>| {
            sizes.fold(Self { values: 1, depth: 1 }, |all, one| Self {
                values: all.values + one.values,
                depth: all.depth.max(one.depth + 1),
            })
        };
        match value {
            Value::Array(items) => within(&mut items.iter().map(Self::of)),
            Value::Object(map) => within(&mut map.values().map(Self::of)),
            _ => Self { values: 1, depth: 0 },
        }
    }
}

/// Returns whether two values are equal by the rules of RFC 6902 for `test`: numbers by value, so
/// `1` equals `1.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Returns the reason why a patch of plain operations failed on `document`, which has been
/// restored: replays the patch up to the failing operation.
fn explain(document: &Value, patch: &Patch, error: &json_patch::PatchError) -> PatchError {
    let index = error.operation.min(patch.operations.len().saturating_sub(1));
    let (before, rest) = patch.operations.split_at(index);
    let mut replayed = document.clone();
    let replay = json_patch::patch_unsafe(&mut replayed, before);
    debug_assert!(replay.is_ok(), "operations before the failing one have worked once");
    match rest.first() {
        Some(operation) => failure(index, operation, problem(&replayed, operation, &error.kind)),
        None => unreachable!("an empty patch does not fail"),
    }
}

/// Returns the reason why an operation failed. `document` is as the operation left it: unchanged,
/// except that a `move` may have removed its value.
fn problem(document: &Value, operation: &PatchOperation, kind: &PatchErrorKind) -> PatchProblem {
    let missing = match (kind, operation) {
        (PatchErrorKind::CannotMoveInsideItself, _) => return PatchProblem::IntoItself,
        (PatchErrorKind::InvalidFromPointer, PatchOperation::Move(operation)) => {
            first_missing(document, &operation.from)
        }
        (PatchErrorKind::InvalidFromPointer, PatchOperation::Copy(operation)) => {
            first_missing(document, &operation.from)
        }
        _ => first_missing(document, operation.path()),
    };
    missing.unwrap_or(PatchProblem::WholeDocument)
}

/// Returns the first step of `path` that `document` does not have, or `None` if it has all.
fn first_missing(document: &Value, path: &Pointer) -> Option<PatchProblem> {
    let mut here = document;
    let mut parent = String::new();
    for token in path.tokens() {
        match step(here, &token) {
            Some(next) => {
                here = next;
                parent = format!("{parent}/{}", token.encoded());
            }
            None => {
                return Some(PatchProblem::Missing {
                    pointer: format!("{parent}/{}", token.encoded()),
                    parent,
                    holds: FoundValue::of(here),
                });
            }
        }
    }
    None
}

fn step<'v>(value: &'v Value, token: &Token<'_>) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(token.decoded().as_ref()),
        Value::Array(items) => items.get(token.to_index().ok()?.for_len(items.len()).ok()?),
        _ => None,
    }
}

fn failure(index: usize, operation: &PatchOperation, problem: PatchProblem) -> PatchError {
    let op = match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    };
    let path = operation.path().to_string();
    let source = Box::new(problem);
    PatchError::Operation { index, op, path, source }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::full_message;

    fn patched(mut document: Value, operations: &Value) -> Result<Value, String> {
        let patch = Patch::from_bytes(operations.to_string().as_bytes()).expect("a patch");
        let before = document.clone();
        match apply(&mut document, &patch) {
            Ok(()) => Ok(document),
            Err(error) => {
                assert_eq!(document, before, "a failing patch changed the document");
                Err(full_message(&error))
            }
        }
    }

    #[test]
    fn operations_apply_in_order() {
        let operations = json!([
            {"op": "test", "path": "/a/0", "value": 1.0},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "move", "from": "/a/0", "path": "/c"},
            {"op": "remove", "path": "/b/1"},
            {"op": "replace", "path": "/b/0", "value": null},
        ]);
        let expected = json!({"a": [2, 3], "b": [null, 3], "c": 1});
        assert_eq!(patched(json!({"a": [1, 2]}), &operations), Ok(expected));
    }

    #[test]
    fn failures_name_the_operation_and_the_missing_step_and_change_nothing() {
        let document = json!({"channels": [{"name": "SR", "samples": []}], "a/b": 1});
        for (operations, message) in [
            (
                json!([{"op": "remove", "path": "/channels/0/name"}, {"op": "remove", "path": "/channels/0/name"}]),
                "operation 1 (`remove /channels/0/name`): there is no `/channels/0/name`, `/channels/0` is an object",
            ),
            (
                json!([{"op": "add", "path": "/channels/0/samples/1", "value": 1}]),
                "operation 0 (`add /channels/0/samples/1`): there is no `/channels/0/samples/1`, `/channels/0/samples` is a list of 0",
            ),
            (
                json!([{"op": "add", "path": "/a~1b/x", "value": 1}]),
                "operation 0 (`add /a~1b/x`): there is no `/a~1b/x`, `/a~1b` is the number `1`",
            ),
            (
                json!([{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/a~1b", "value": 2}]),
                "operation 1 (`test /a~1b`): the document has the number `1` there",
            ),
            (
                json!([{"op": "move", "from": "/channels", "path": "/nowhere/x"}]),
                "operation 0 (`move /nowhere/x`): there is no `/nowhere`, the document is an object",
            ),
            (
                json!([{"op": "move", "from": "/channels", "path": "/channels/0"}]),
                "operation 0 (`move /channels/0`): a value cannot be moved into itself",
            ),
            (json!([{"op": "remove", "path": ""}]), "operation 0 (`remove `): the whole document cannot be removed"),
        ] {
            assert_eq!(patched(document.clone(), &operations), Err(message.to_owned()));
        }
    }

    #[test]
    fn copies_of_a_document_into_itself_are_limited() {
        let doubling: Vec<Value> =
            (0..64).map(|n| json!({"op": "copy", "from": "", "path": format!("/{n}")})).collect();
        let error = patched(json!({}), &Value::Array(doubling)).expect_err("2^64 values");
        assert!(error.ends_with("the patch copies more than 2000000 values"), "{error}");
    }

    #[test]
    fn moves_of_a_document_into_itself_are_limited() {
        let mut moves = vec![];
        for _ in 0..300 {
            moves.push(json!({"op": "add", "path": "/b", "value": {}}));
            moves.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
            moves.push(json!({"op": "move", "from": "/b", "path": "/a"}));
        }
        let error = patched(json!({"a": 1}), &Value::Array(moves)).expect_err("300 levels");
        assert!(error.ends_with("the document would nest more than 254 deep"), "{error}");
        let path = "/a".repeat(1000);
        let error = patched(json!({}), &json!([{"op": "remove", "path": path}])).expect_err("1,000 levels");
        assert!(error.ends_with("the document would nest more than 127 deep"), "{error}");
    }

    fn small_operation() -> impl Strategy<Value = Value> {
        let path = || {
            let steps = ["", "/a", "/a/0", "/a/1", "/a/-", "/b", "/b/x", "/b/-", "/b/x/0", "/c"];
            proptest::sample::select(steps.to_vec())
        };
        let value = proptest::sample::select(vec![json!(1), json!([]), json!([2, 3]), json!({"x": [4], "-": 5})]);
        let op = proptest::sample::select(vec!["add", "remove", "replace", "copy", "move", "test"]);
        (op, path(), path(), value)
            .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
    }

    proptest! {
        /// Compares the short cut for plain operations with single operations on a copy.
        #[test]
        fn a_patch_equals_its_operations_one_by_one(operations in vec(small_operation(), 1..6)) {
            let document = json!({"a": [1, {"x": 2}], "b": {"x": [3], "-": 4}});
            let operations = Value::Array(operations);
            let patch = Patch::from_bytes(operations.to_string().as_bytes()).expect("a patch");
            let mut one_by_one = document.clone();
            let mut copied = 0;
            let done = patch.operations.iter().enumerate().try_for_each(|(index, operation)| {
                do_one(&mut one_by_one, operation, &mut copied)
                    .map_err(|problem| full_message(&failure(index, operation, problem)))
            });
            prop_assert_eq!(patched(document, &operations), done.map(|()| one_by_one));
        }
    }
}
