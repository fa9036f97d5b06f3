//! Converts a [`JsonCursor`] to a `serde_json::Value`, and refuses what a `Value` would silently
//! lose: duplicate keys and numbers out of range.

use serde_json::{Map, Number, Value};

use super::{JsonCursor, JsonError, JsonTree};

/// Returns the value at the cursor. Integers of up to 64 bits stay integers.
pub(crate) fn to_value(cursor: &JsonCursor<'_>) -> Result<Value, JsonError> {
    match &cursor.node().tree {
        JsonTree::Null => Ok(Value::Null),
        JsonTree::Bool(value) => Ok(Value::Bool(*value)),
        JsonTree::Text(text) => Ok(Value::String(text.to_string())),
        JsonTree::List(_) | JsonTree::Skipped => {
            let items = cursor.list()?;
            items.map(|item| to_value(&item)).collect::<Result<_, _>>().map(Value::Array)
        }
        JsonTree::Object(_) => object(cursor),
        JsonTree::Number(spelling) => number(cursor, spelling),
        JsonTree::NonFinite(literal) => Err(cursor.not_finite(literal)),
    }
}

fn object(cursor: &JsonCursor<'_>) -> Result<Value, JsonError> {
    let mut map = Map::new();
    for (member, value) in cursor.members()? {
        if map.insert(member.key.to_string(), to_value(&value)?).is_some() {
            return Err(cursor.duplicate_key(member));
        }
    }
    Ok(Value::Object(map))
}

fn number(cursor: &JsonCursor<'_>, spelling: &str) -> Result<Value, JsonError> {
    if let Ok(whole) = spelling.parse::<i64>()
        && spelling != "-0"
    {
        return Ok(Value::Number(whole.into()));
    }
    if let Ok(whole) = spelling.parse::<u64>() {
        return Ok(Value::Number(whole.into()));
    }
    let float = cursor.number()?;
    Ok(Number::from_f64(float).map_or(Value::Null, Value::Number))
}
