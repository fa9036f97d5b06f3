//! Keeps JSON values as written without their text: integers stay integers, and equality is that
//! of Python.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{JsonCursor, JsonError, JsonTree};

/// A value as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum WrittenValue {
    Null,
    Bool(bool),
    Number(WrittenNumber),
    Text(String),
    List(Vec<WrittenValue>),
    Object(BTreeMap<String, WrittenValue>),
}

/// A number that is an integer or a float by its spelling, as in Python.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrittenNumber {
    /// Digits only. Integers of more than 128 bits become floats.
    Whole(i128),
    Float(f64),
}

impl WrittenValue {
    /// Returns the value at the cursor, and refuses duplicate keys and numbers that are not finite.
    pub(crate) fn read(cursor: &JsonCursor<'_>) -> Result<Self, JsonError> {
        match &cursor.node().tree {
            JsonTree::Null => Ok(Self::Null),
            JsonTree::Bool(value) => Ok(Self::Bool(*value)),
            JsonTree::Text(text) => Ok(Self::Text(text.to_string())),
            JsonTree::Number(spelling) => match spelling.parse() {
                Ok(whole) => Ok(Self::Number(WrittenNumber::Whole(whole))),
                Err(_) => cursor.number().map(WrittenNumber::Float).map(Self::Number),
            },
            JsonTree::NonFinite(literal) => Err(cursor.not_finite(literal)),
            JsonTree::List(_) | JsonTree::Skipped => {
                cursor.list()?.map(|item| Self::read(&item)).collect::<Result<_, _>>().map(Self::List)
            }
            JsonTree::Object(_) => Self::members(cursor).map(Self::Object),
        }
    }

    /// Returns the members of the object at the cursor.
    pub(crate) fn members(cursor: &JsonCursor<'_>) -> Result<BTreeMap<String, Self>, JsonError> {
        let mut members = BTreeMap::new();
        for (member, value) in cursor.members()? {
            if members.insert(member.key.to_string(), Self::read(&value)?).is_some() {
                return Err(cursor.duplicate_key(member));
            }
        }
        Ok(members)
    }
}

impl PartialEq for WrittenNumber {
    /// Compares values: `5` equals `5.0`, and nothing is rounded.
    fn eq(&self, other: &Self) -> bool {
        /// The first float above every `i128`.
        const TWO_TO_127: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
        match (*self, *other) {
            (Self::Whole(a), Self::Whole(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Whole(whole), Self::Float(float)) | (Self::Float(float), Self::Whole(whole)) => {
                float.fract() == 0.0 && float.abs() < TWO_TO_127 && float as i128 == whole
            }
        }
    }
}

impl Serialize for WrittenNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Whole(whole) => serializer.serialize_i128(whole),
            Self::Float(float) => serializer.serialize_f64(float),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, python_json};
    use super::*;

    fn written(text: &str) -> Result<WrittenValue, JsonError> {
        WrittenValue::read(&JsonCursor::top(text, &parse(text)?))
    }

    #[test]
    fn values_are_written_back_as_python_writes_them() {
        for (text, python) in [
            ("[1, 1.0, 1e2, -0, -0.0, 1E-7]", "[1, 1.0, 100.0, 0, -0.0, 1e-07]"),
            ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
            (r#"{"b": null, "a": [true, "é"]}"#, r#"{"a": [true, "\u00e9"], "b": null}"#),
        ] {
            let flat = python_json(&written(text).expect("JSON")).expect("text keys");
            let flat: Vec<&str> = flat.lines().map(str::trim).collect();
            let flat = flat.join(" ").replace("[ ", "[").replace(" ]", "]").replace("{ ", "{").replace(" }", "}");
            assert_eq!(flat, python);
        }
    }

    #[test]
    fn equality_is_of_values_and_exact() {
        let equal = |a, b| written(a).expect("JSON") == written(b).expect("JSON");
        assert!(equal("[5, -0]", "[5.0, 0.0]"));
        assert!(equal(r#"{"a": 1, "b": 2}"#, r#"{"b": 2.0, "a": 1e0}"#));
        assert!(!equal("9007199254740993", "9007199254740992.0"));
        assert!(!equal("5", "5.5"));
        assert!(!equal("1", "1e300"));
        assert!(!equal("null", "0"));
    }

    #[test]
    fn invalid_values_are_refused_with_their_place() {
        let message = |text| written(text).expect_err("wrong").to_string();
        assert_eq!(message("[NaN]"), "`NaN` is not a JSON number, at `/0` (line 1, column 2)");
        assert_eq!(message(r#"{"a":1,"a":2}"#), "duplicate key `a` at `/a` (line 1, column 8)");
    }
}
