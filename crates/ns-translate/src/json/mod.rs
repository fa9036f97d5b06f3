//! JSON as written: a tree that still knows where each value stood, how each number was spelt and which keys came twice.
//!
//! This is the slow and careful reading: it finds the place and the reason of whatever is wrong, and it is what
//! digests and patches are made from, because they need spellings and order. Workspaces are normally read by
//! [`crate::pyhf`]'s typed reader, which never builds a tree.

mod cursor;
mod python;
mod reader;
mod syntax;
mod value;
mod written;

use std::borrow::Cow;

pub(crate) use cursor::{Cursor, Object};
pub use python::python_json;
pub(crate) use python::python_repr;
pub(crate) use reader::{parse, parse_part, parse_to_depth};
pub use syntax::SyntaxProblem;
pub(crate) use value::to_value;
pub(crate) use written::Written;

/// How deep lists and objects may nest; real documents stay below 15.
pub(crate) const DEPTH_LIMIT: usize = 127;

/// A value and where it stands.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// Offset of its first byte.
    pub(crate) start: usize,
    /// The value.
    pub(crate) tree: Tree<'a>,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Tree<'a> {
    Null,
    Bool(bool),
    /// A number as it is spelt.
    Number(&'a str),
    /// `NaN`, `Infinity` or `-Infinity`: not JSON, but Python writes and reads them.
    NonFinite(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
    /// A list or an object below the depth that the reader was asked to keep: right in syntax, and not stored.
    Skipped,
}

/// A key and its value, in document order, with duplicates.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    /// Offset of the key's opening quote.
    pub(crate) start: usize,
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: Node<'a>,
}
