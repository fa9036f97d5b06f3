//! A patch applied to a document, whole or not at all.

use json_patch::{PatchError, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::problem::{first_missing, found};
use super::{Patch, PatchProblem};
use crate::DocumentError;
use crate::json::DEPTH_LIMIT;

/// How deep a path may lead; what is put there nests at most as deep again.
const PATH_LIMIT: usize = DEPTH_LIMIT;

/// How deep a document may nest after a patch, so that nothing that walks it runs out of stack.
const PATCHED_DEPTH_LIMIT: usize = 2 * DEPTH_LIMIT;

/// How many values all `copy` operations of a patch may copy: a few of them could otherwise fill any memory.
const COPY_LIMIT: usize = 2_000_000;

/// Applies every operation of `patch`, in order. A failing patch leaves the document as it was.
///
/// # Errors
///
/// [`DocumentError::Patch`] with the operation's index, its kind and path, and what is in its way.
///
/// # Example
///
/// ```
/// use ns_translate::patch::{Patch, apply};
///
/// let mut document = serde_json::json!({"channels": [{"name": "SR"}]});
/// let patch = Patch::from_bytes(br#"[{"op": "add", "path": "/channels/7/samples/0", "value": {}}]"#)?;
/// assert_eq!(
///     apply(&mut document, &patch).unwrap_err().to_string(),
///     "operation 0 (`add /channels/7/samples/0`): there is no `/channels/7`, `/channels` is a list of 1"
/// );
/// # Ok::<(), ns_translate::DocumentError>(())
/// ```
pub fn apply(document: &mut Value, patch: &Patch) -> Result<(), DocumentError> {
    if let Some((index, operation)) = first_too_deep(patch) {
        let limit = PATH_LIMIT;
        return Err(failure(index, operation, PatchProblem::TooDeep { limit }));
    }
    let is_plain = |operation: &PatchOperation| {
        use PatchOperation::{Add, Remove, Replace};
        matches!(operation, Add(_) | Remove(_) | Replace(_))
    };
    if patch.operations.iter().all(is_plain) {
        // These three can be undone one by one, which costs less than a copy of the document.
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
                .ok_or_else(|| PatchProblem::TestFailed { found: found(value) });
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

/// The number of values at `from`, if they may go where the operation puts them.
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

/// Equality as RFC 6902 wants it for `test`: numbers by value, so `1` is `1.0`.
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

/// Says why a patch of plain operations failed on `document`, which has been restored: replays it up to there.
fn explain(document: &Value, patch: &Patch, error: &PatchError) -> DocumentError {
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

/// The reason in words. `document` is as the operation left it: as it was, but for a `move` that took its value out and
/// found no place to put it.
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

fn failure(index: usize, operation: &PatchOperation, problem: PatchProblem) -> DocumentError {
    let op = match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    };
    let path = operation.path().to_string();
    let problem = Box::new(problem);
    DocumentError::Patch { index, op, path, problem }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn patched(mut document: Value, operations: &Value) -> Result<Value, String> {
        let patch = Patch::from_bytes(operations.to_string().as_bytes()).expect("a patch");
        let before = document.clone();
        match apply(&mut document, &patch) {
            Ok(()) => Ok(document),
            Err(error) => {
                assert_eq!(document, before, "a failing patch changed the document");
                Err(error.to_string())
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
    fn patches_that_copy_a_document_into_itself_meet_a_limit() {
        let doubling: Vec<Value> =
            (0..64).map(|n| json!({"op": "copy", "from": "", "path": format!("/{n}")})).collect();
        let error = patched(json!({}), &Value::Array(doubling)).expect_err("2^64 values");
        assert!(error.ends_with("the patch copies more than 2000000 values"), "{error}");
    }

    #[test]
    fn patches_that_nest_a_document_in_itself_meet_a_limit() {
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
        /// The short cut for plain operations against one operation after the other on a copy.
        #[test]
        fn a_patch_applies_whole_as_its_operations_do_one_by_one(operations in vec(small_operation(), 1..6)) {
            let document = json!({"a": [1, {"x": 2}], "b": {"x": [3], "-": 4}});
            let operations = Value::Array(operations);
            let patch = Patch::from_bytes(operations.to_string().as_bytes()).expect("a patch");
            let mut one_by_one = document.clone();
            let mut copied = 0;
            let done = patch.operations.iter().enumerate().try_for_each(|(index, operation)| {
                do_one(&mut one_by_one, operation, &mut copied)
                    .map_err(|problem| failure(index, operation, problem).to_string())
            });
            prop_assert_eq!(patched(document, &operations), done.map(|()| one_by_one));
        }
    }
}
