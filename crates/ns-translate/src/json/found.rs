//! Describes the value that a document has instead of the expected one, for messages.

use std::fmt;

use serde_json::Value;

use crate::hint::shortened;

/// The value that a document has where another is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list with its number of entries.
    List(usize),
    /// An object.
    Object,
    /// A list or an object, of which the reader stored no more.
    Nested,
}

impl FoundValue {
    /// Returns the description of `value`.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.len()),
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for FoundValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        match self {
            Self::Null => f.write_str("`null`"),
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Number(spelling) => write!(f, "the number `{}`", shortened(spelling, LONGEST)),
            Self::Text(text) => write!(f, "the string `{}`", shortened(text, LONGEST)),
            Self::List(length) => write!(f, "a list of {length}"),
            Self::Object => f.write_str("an object"),
            Self::Nested => f.write_str("a list or an object"),
        }
    }
}
