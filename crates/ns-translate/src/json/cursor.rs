//! Reads typed values from a tree, with the place of each for messages.

use std::collections::HashSet;

use super::{FoundValue, JsonError, JsonNode, JsonTree, ObjectMember};
use crate::hint::shortened;
use crate::place::{DocumentPlace, TextPosition, push_index, push_key};

/// Characters of a number in a message.
const LONGEST_NUMBER: usize = 40;

/// A value in a document and its place.
#[derive(Clone, Copy)]
pub(crate) struct JsonCursor<'c> {
    /// The text to count lines in; `None` if the user did not write it.
    text: Option<&'c str>,
    node: &'c JsonNode<'c>,
    way: Way<'c>,
}

/// The step from a cursor's parent to its node.
#[derive(Clone, Copy)]
enum Way<'c> {
    /// The first node, with its JSON pointer.
    Top(&'c str),
    Key(&'c JsonCursor<'c>, &'c str),
    Index(&'c JsonCursor<'c>, usize),
}

/// An object whose keys have been checked.
pub(crate) struct JsonObject<'c> {
    cursor: &'c JsonCursor<'c>,
    members: &'c [ObjectMember<'c>],
}

impl<'c> JsonCursor<'c> {
    /// Returns a cursor at the top of a document.
    pub(crate) fn top(text: &'c str, node: &'c JsonNode<'c>) -> Self {
        Self::at(text, node, "")
    }

    /// Returns a cursor at the top of a document whose text the user did not write: its places have
    /// no line.
    pub(crate) fn without_lines(node: &'c JsonNode<'c>) -> Self {
        let (text, way) = (None, Way::Top(""));
        Self { text, node, way }
    }

    /// Returns a cursor at the part of the document `text` whose pointer is `pointer`.
    pub(crate) fn at(text: &'c str, node: &'c JsonNode<'c>, pointer: &'c str) -> Self {
        let (text, way) = (Some(text), Way::Top(pointer));
        Self { text, node, way }
    }

    pub(crate) fn node(&self) -> &'c JsonNode<'c> {
        self.node
    }

    /// Returns the pointer and the position of the value.
    pub(crate) fn place(&self) -> DocumentPlace {
        let mut place = DocumentPlace::default();
        self.write_pointer(&mut place.pointer);
        place.position = self.position(self.node.start);
        place
    }

    /// Returns the pointer of the value, without its position in the text, which takes longer.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.write_pointer(&mut pointer);
        pointer
    }

    /// Returns the place of the value at the pointer `below`, which is relative to this value.
    pub(crate) fn place_below(&self, below: &str) -> DocumentPlace {
        let mut place = self.place();
        place.pointer.push_str(below);
        let mut node = self.node;
        for step in below.split('/').skip(1) {
            let next = match &node.tree {
                JsonTree::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                JsonTree::Object(members) => {
                    members.iter().find(|member| member.key == step).map(|member| &member.value)
                }
                _ => None,
            };
            node = next.unwrap_or(node);
        }
        place.position = self.position(node.start);
        place
    }

    fn write_pointer(&self, pointer: &mut String) {
        match self.way {
            Way::Top(prefix) => pointer.push_str(prefix),
            Way::Key(parent, key) => {
                parent.write_pointer(pointer);
                push_key(pointer, key);
            }
            Way::Index(parent, index) => {
                parent.write_pointer(pointer);
                push_index(pointer, index);
            }
        }
    }

    fn position(&self, offset: usize) -> Option<TextPosition> {
        self.text.map(|text| TextPosition::of(text, offset))
    }

    fn key_place(&self, member: &ObjectMember<'_>) -> DocumentPlace {
        let mut place = self.place();
        push_key(&mut place.pointer, &member.key);
        place.position = self.position(member.start);
        place
    }

    /// Returns the description of the value for messages.
    pub(crate) fn found(&self) -> FoundValue {
        match &self.node.tree {
            JsonTree::Null => FoundValue::Null,
            JsonTree::Bool(value) => FoundValue::Bool(*value),
            JsonTree::Number(spelling) | JsonTree::NonFinite(spelling) => FoundValue::Number((*spelling).to_owned()),
            JsonTree::Text(text) => FoundValue::Text(text.to_string()),
            JsonTree::List(items) => FoundValue::List(items.len()),
            JsonTree::Object(_) => FoundValue::Object,
            JsonTree::Skipped => FoundValue::Nested,
        }
    }

    pub(crate) fn wrong_type(&self, expected: &'static str) -> JsonError {
        let (found, place) = (self.found(), self.place());
        JsonError::WrongType { expected, found, place }
    }

    pub(crate) fn not_finite(&self, literal: &str) -> JsonError {
        JsonError::NotFinite { literal: literal.to_owned(), place: self.place() }
    }

    pub(crate) fn duplicate_key(&self, second: &ObjectMember<'_>) -> JsonError {
        JsonError::DuplicateKey { key: second.key.to_string(), place: self.key_place(second) }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.tree, JsonTree::Null)
    }

    pub(crate) fn text(&self) -> Result<&'c str, JsonError> {
        match &self.node.tree {
            JsonTree::Text(text) => Ok(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// Returns the text, or `None` for a value of another type: an error would have a position,
    /// which takes as long as the document is.
    pub(crate) fn text_if_any(&self) -> Option<&'c str> {
        match &self.node.tree {
            JsonTree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, or `None` for a value of another type.
    pub(crate) fn number_if_any(&self) -> Option<f64> {
        match self.node.tree {
            JsonTree::Number(spelling) => spelling.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn boolean(&self) -> Result<bool, JsonError> {
        match self.node.tree {
            JsonTree::Bool(value) => Ok(value),
            _ => Err(self.wrong_type("`true` or `false`")),
        }
    }

    /// Returns the double nearest to the number; one beyond the range of doubles is an error.
    pub(crate) fn number(&self) -> Result<f64, JsonError> {
        match self.node.tree {
            JsonTree::Number(spelling) => match spelling.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number),
                _ => Err(JsonError::NumberOutOfRange {
                    number: shortened(spelling, LONGEST_NUMBER),
                    place: self.place(),
                }),
            },
            JsonTree::NonFinite(literal) => Err(self.not_finite(literal)),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// Returns the numbers of a list with at least one.
    pub(crate) fn numbers(&self) -> Result<Vec<f64>, JsonError> {
        self.filled_list()?.map(|item| item.number()).collect()
    }

    pub(crate) fn list<'k>(&'k self) -> Result<impl ExactSizeIterator<Item = JsonCursor<'k>>, JsonError> {
        let JsonTree::List(items) = &self.node.tree else {
            return Err(self.wrong_type("a list"));
        };
        let child = |(index, node)| JsonCursor { text: self.text, node, way: Way::Index(self, index) };
        Ok(items.iter().enumerate().map(child))
    }

    /// Returns the entries of a list with at least one.
    pub(crate) fn filled_list<'k>(&'k self) -> Result<impl ExactSizeIterator<Item = JsonCursor<'k>>, JsonError> {
        let items = self.list()?;
        if items.len() == 0 {
            return Err(JsonError::Empty { place: self.place() });
        }
        Ok(items)
    }

    /// Returns keys and values in document order, with duplicates.
    pub(crate) fn members<'k>(
        &'k self,
    ) -> Result<impl Iterator<Item = (&'k ObjectMember<'k>, JsonCursor<'k>)>, JsonError> {
        let JsonTree::Object(members) = &self.node.tree else {
            return Err(self.wrong_type("an object"));
        };
        Ok(members.iter().map(|member| (member, self.member(member))))
    }

    fn member<'k>(&'k self, member: &'k ObjectMember<'k>) -> JsonCursor<'k> {
        JsonCursor { text: self.text, node: &member.value, way: Way::Key(self, &member.key) }
    }

    /// Returns an object that has some of the keys `known`, each at most once, and no others.
    pub(crate) fn object<'k>(&'k self, known: &'static [&'static str]) -> Result<JsonObject<'k>, JsonError> {
        let object = self.open_object()?;
        match object.members.iter().find(|member| !known.contains(&&*member.key)) {
            None => Ok(object),
            Some(member) => {
                Err(JsonError::UnknownKey { key: member.key.to_string(), known, place: self.key_place(member) })
            }
        }
    }

    /// Returns an object that has any keys, each at most once.
    pub(crate) fn open_object<'k>(&'k self) -> Result<JsonObject<'k>, JsonError> {
        let JsonTree::Object(members) = &self.node.tree else {
            return Err(self.wrong_type("an object"));
        };
        let mut seen = HashSet::with_capacity(members.len());
        for member in members {
            if !seen.insert(&*member.key) {
                return Err(self.duplicate_key(member));
            }
        }
        Ok(JsonObject { cursor: self, members })
    }
}

impl<'c> JsonObject<'c> {
    pub(crate) fn get(&self, key: &str) -> Option<JsonCursor<'c>> {
        let member = self.members.iter().find(|member| member.key == key)?;
        Some(self.cursor.member(member))
    }

    pub(crate) fn need(&self, key: &'static str) -> Result<JsonCursor<'c>, JsonError> {
        self.get(key).ok_or_else(|| JsonError::MissingKey { key, place: self.cursor.place() })
    }
}
