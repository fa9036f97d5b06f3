//! [`Cursor`] to `serde_json::Value`, refusing what a `Value` would silently drop: duplicate keys and overflowing numbers.

use serde_json::{Map, Number, Value};

use super::{Cursor, Tree};
use crate::DocumentError;

/// The value at the cursor. Whole numbers stay whole as far as 64 bits reach.
pub(crate) fn to_value(cursor: &Cursor<'_>) -> Result<Value, DocumentError> {
    match &cursor.node().tree {
        Tree::Null => Ok(Value::Null),
        Tree::Bool(value) => Ok(Value::Bool(*value)),
        Tree::Text(text) => Ok(Value::String(text.to_string())),
        Tree::List(_) | Tree::Skipped => {
            let items = cursor.list()?;
            items.map(|item| to_value(&item)).collect::<Result<_, _>>().map(Value::Array)
        }
        Tree::Object(_) => object(cursor),
        Tree::Number(spelling) => number(cursor, spelling),
        Tree::NonFinite(literal) => Err(cursor.not_finite(literal)),
    }
}

fn object(cursor: &Cursor<'_>) -> Result<Value, DocumentError> {
    let mut map = Map::new();
    for (member, value) in cursor.members()? {
        if map.insert(member.key.to_string(), to_value(&value)?).is_some() {
            return Err(cursor.duplicate_key(member));
        }
    }
    Ok(Value::Object(map))
}

fn number(cursor: &Cursor<'_>, spelling: &str) -> Result<Value, DocumentError> {
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
