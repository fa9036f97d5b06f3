//! Finds the first difference between two items of the same name.

use serde::Serialize;
use serde_json::Value;

use crate::json::FoundValue;
use crate::place::{push_index, push_key};

/// The first difference between something in the first workspace and something in the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDifference {
    /// In the first workspace.
    pub left: PlacedValue,
    /// In the second.
    pub right: PlacedValue,
}

/// A value and its place in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedValue {
    /// The JSON pointer in its workspace.
    pub pointer: String,
    /// The value; `None` if there is none.
    pub found: Option<FoundValue>,
}

/// Returns the first difference between `left` and `right`, which are at the pointers `at`, or the
/// two as they are if there is none.
pub(super) fn difference<T: Serialize>(left: &T, right: &T, at: [String; 2]) -> WorkspaceDifference {
    let (left, right) = (value(left), value(right));
    let mut below = String::new();
    let [a, b] = first_difference(Some(&left), Some(&right), &mut below).unwrap_or([Some(&left), Some(&right)]);
    let [left, right] = at.map(|pointer| pointer + &below);
    WorkspaceDifference {
        left: PlacedValue { pointer: left, found: a.map(FoundValue::of) },
        right: PlacedValue { pointer: right, found: b.map(FoundValue::of) },
    }
}

/// Returns `item` as a value, by way of text: an integer of any length is text, but not every one
/// is a `serde_json` number.
fn value<T: Serialize>(item: &T) -> Value {
    serde_json::to_vec(item).and_then(|text| serde_json::from_slice(&text)).unwrap_or_default()
}

/// Returns the first two values that differ, with the steps to them in `pointer`.
fn first_difference<'v>(
    left: Option<&'v Value>,
    right: Option<&'v Value>,
    pointer: &mut String,
) -> Option<[Option<&'v Value>; 2]> {
    let length = pointer.len();
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                push_key(pointer, key);
                if let Some(different) = first_difference(a.get(key), b.get(key), pointer) {
                    return Some(different);
                }
                pointer.truncate(length);
            }
            None
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                push_index(pointer, index);
                if let Some(different) = first_difference(Some(a), Some(b), pointer) {
                    return Some(different);
                }
                pointer.truncate(length);
            }
            None
        }
        (Some(Value::Number(a)), Some(Value::Number(b))) if a.as_f64() == b.as_f64() => None,
        (a, b) => (a != b).then_some([a, b]),
    }
}
