//! Reads JSON as written, to a tree that keeps the place of each value, the spelling of each number
//! and duplicate keys.
//!
//! This is the slow way: it finds the place and the reason of every error, and it serves digests
//! and patches, which need spellings and order. The fast reader of [`crate::pyhf`] reads most
//! workspaces without a tree.

mod cursor;
mod error;
mod found;
mod python;
mod reader;
mod syntax;
mod value;
mod written;

use std::borrow::Cow;

pub(crate) use cursor::{JsonCursor, JsonObject};
pub use error::JsonError;
pub use found::FoundValue;
pub use python::python_json;
pub(crate) use python::python_repr;
pub(crate) use reader::{first_keys, parse, parse_part, parse_to_depth};
pub use syntax::SyntaxProblem;
pub(crate) use value::to_value;
pub(crate) use written::WrittenValue;

use crate::text;

/// The largest depth of nested lists and objects. Real documents stay below 15.
pub(crate) const DEPTH_LIMIT: usize = 127;

/// A value and its place.
#[derive(Debug)]
pub(crate) struct JsonNode<'a> {
    /// Offset of its first byte.
    pub(crate) start: usize,
    /// The value.
    pub(crate) tree: JsonTree<'a>,
}

/// The kinds of values.
#[derive(Debug)]
pub(crate) enum JsonTree<'a> {
    Null,
    Bool(bool),
    /// A number as it is spelt.
    Number(&'a str),
    /// `NaN`, `Infinity` or `-Infinity`: not JSON, but Python writes and reads them.
    NonFinite(&'a str),
    Text(Cow<'a, str>),
    List(Vec<JsonNode<'a>>),
    Object(Vec<ObjectMember<'a>>),
    /// A list or an object below the depth that is kept: its syntax is checked, and it is not
    /// stored.
    Skipped,
}

/// A key and its value, in document order, with duplicates.
#[derive(Debug)]
pub(crate) struct ObjectMember<'a> {
    /// Offset of the key's opening quote.
    pub(crate) start: usize,
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: JsonNode<'a>,
}

/// Returns the text in `bytes`, without a byte-order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, JsonError> {
    Ok(text::decode(bytes)?)
}
