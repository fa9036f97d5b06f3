//! Why an operation of a patch cannot be done: the first step of its path that is not there.

use std::fmt;

use json_patch::jsonptr::{Pointer, Token};
use serde_json::Value;

use crate::error::FoundValue;

/// Why an operation cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchProblem {
    /// A path leads to something that is not there.
    Missing {
        /// The path up to the first step that is not there.
        pointer: String,
        /// The path up to the last step that is.
        parent: String,
        /// What stands at `parent`.
        holds: FoundValue,
    },
    /// A `test` of a value found another one.
    TestFailed {
        /// What stands there.
        found: FoundValue,
    },
    /// A value cannot be moved into itself.
    IntoItself,
    /// The whole document cannot be removed or moved away.
    WholeDocument,
    /// The document would nest too deeply.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The patch would copy too many values.
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { pointer, parent, holds } if parent.is_empty() => {
                write!(f, "there is no `{pointer}`, the document is {holds}")
            }
            Self::Missing { pointer, parent, holds } => {
                write!(f, "there is no `{pointer}`, `{parent}` is {holds}")
            }
            Self::TestFailed { found } => write!(f, "the document has {found} there"),
            Self::IntoItself => f.write_str("a value cannot be moved into itself"),
            Self::WholeDocument => f.write_str("the whole document cannot be removed"),
            Self::TooDeep { limit } => write!(f, "the document would nest more than {limit} deep"),
            Self::TooLarge { limit } => write!(f, "the patch copies more than {limit} values"),
        }
    }
}

/// The first step of `path` that `document` does not have; `None` when it has them all.
pub(super) fn first_missing(document: &Value, path: &Pointer) -> Option<PatchProblem> {
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
                    holds: found(here),
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

/// What a value is, for a message.
pub(super) fn found(value: &Value) -> FoundValue {
    match value {
        Value::Null => FoundValue::Null,
        Value::Bool(value) => FoundValue::Bool(*value),
        Value::Number(number) => FoundValue::Number(number.to_string()),
        Value::String(text) => FoundValue::Text(text.clone()),
        Value::Array(items) => FoundValue::List(items.len()),
        Value::Object(_) => FoundValue::Object,
    }
}
