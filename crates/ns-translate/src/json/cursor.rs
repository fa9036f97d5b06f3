//! A node together with the way to it: reads typed values from a tree, and knows the place of each for messages.

use std::collections::HashSet;

use super::{Member, Node, Tree};
use crate::DocumentError;
use crate::error::FoundValue;
use crate::place::{DocumentPlace, TextPosition, push_index, push_key};

/// A value in a document and its place.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'c> {
    /// The text to count lines in; `None` when it is not the user's.
    text: Option<&'c str>,
    node: &'c Node<'c>,
    way: Way<'c>,
}

/// How a cursor's node hangs on its parent.
#[derive(Clone, Copy)]
enum Way<'c> {
    /// The first node, and the pointer of the place where it stands.
    Top(&'c str),
    Key(&'c Cursor<'c>, &'c str),
    Index(&'c Cursor<'c>, usize),
}

/// An object whose keys have been checked.
pub(crate) struct Object<'c> {
    cursor: &'c Cursor<'c>,
    members: &'c [Member<'c>],
}

impl<'c> Cursor<'c> {
    /// A cursor at the top of a document.
    pub(crate) fn top(text: &'c str, node: &'c Node<'c>) -> Self {
        Self::at(text, node, "")
    }

    /// A cursor at the top of a document whose text the user never saw: places are pointers only.
    pub(crate) fn without_lines(node: &'c Node<'c>) -> Self {
        let (text, way) = (None, Way::Top(""));
        Self { text, node, way }
    }

    /// A cursor at a part of the document `text` whose pointer is `pointer`.
    pub(crate) fn at(text: &'c str, node: &'c Node<'c>, pointer: &'c str) -> Self {
        let (text, way) = (Some(text), Way::Top(pointer));
        Self { text, node, way }
    }

    pub(crate) fn node(&self) -> &'c Node<'c> {
        self.node
    }

    /// The pointer and the position of the value.
    pub(crate) fn place(&self) -> DocumentPlace {
        let mut place = DocumentPlace::default();
        self.write_pointer(&mut place.pointer);
        place.position = self.position(self.node.start);
        place
    }

    /// The place of the value that the pointer `below`, relative to this one, leads to.
    pub(crate) fn place_below(&self, below: &str) -> DocumentPlace {
        let mut place = self.place();
        place.pointer.push_str(below);
        let mut node = self.node;
        for step in below.split('/').skip(1) {
            let next = match &node.tree {
                Tree::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                Tree::Object(members) => members.iter().find(|member| member.key == step).map(|member| &member.value),
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

    fn key_place(&self, member: &Member<'_>) -> DocumentPlace {
        let mut place = self.place();
        push_key(&mut place.pointer, &member.key);
        place.position = self.position(member.start);
        place
    }

    /// What stands here, for a message.
    pub(crate) fn found(&self) -> FoundValue {
        match &self.node.tree {
            Tree::Null => FoundValue::Null,
            Tree::Bool(value) => FoundValue::Bool(*value),
            Tree::Number(spelling) | Tree::NonFinite(spelling) => FoundValue::Number((*spelling).to_owned()),
            Tree::Text(text) => FoundValue::Text(text.to_string()),
            Tree::List(items) => FoundValue::List(items.len()),
            Tree::Object(_) => FoundValue::Object,
            Tree::Skipped => FoundValue::Nested,
        }
    }

    pub(crate) fn wrong_type(&self, expected: &'static str) -> DocumentError {
        let (found, place) = (self.found(), self.place());
        DocumentError::WrongType { expected, found, place }
    }

    pub(crate) fn not_finite(&self, literal: &str) -> DocumentError {
        DocumentError::NotFinite { literal: literal.to_owned(), place: self.place() }
    }

    pub(crate) fn duplicate_key(&self, second: &Member<'_>) -> DocumentError {
        DocumentError::DuplicateKey { key: second.key.to_string(), place: self.key_place(second) }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.tree, Tree::Null)
    }

    pub(crate) fn text(&self) -> Result<&'c str, DocumentError> {
        match &self.node.tree {
            Tree::Text(text) => Ok(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    pub(crate) fn boolean(&self) -> Result<bool, DocumentError> {
        match self.node.tree {
            Tree::Bool(value) => Ok(value),
            _ => Err(self.wrong_type("`true` or `false`")),
        }
    }

    /// The nearest double to the number here; beyond the range of doubles is an error.
    pub(crate) fn number(&self) -> Result<f64, DocumentError> {
        match self.node.tree {
            Tree::Number(spelling) => match spelling.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number),
                _ => Err(DocumentError::NumberOutOfRange { number: shortened(spelling), place: self.place() }),
            },
            Tree::NonFinite(literal) => Err(self.not_finite(literal)),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// A list of at least one number.
    pub(crate) fn numbers(&self) -> Result<Vec<f64>, DocumentError> {
        self.filled_list()?.map(|item| item.number()).collect()
    }

    pub(crate) fn list<'k>(&'k self) -> Result<impl ExactSizeIterator<Item = Cursor<'k>>, DocumentError> {
        let Tree::List(items) = &self.node.tree else {
            return Err(self.wrong_type("a list"));
        };
        let child = |(index, node)| Cursor { text: self.text, node, way: Way::Index(self, index) };
        Ok(items.iter().enumerate().map(child))
    }

    /// A list with at least one entry.
    pub(crate) fn filled_list<'k>(&'k self) -> Result<impl ExactSizeIterator<Item = Cursor<'k>>, DocumentError> {
        let items = self.list()?;
        if items.len() == 0 {
            return Err(DocumentError::Empty { place: self.place() });
        }
        Ok(items)
    }

    /// Keys and values in document order, duplicates included.
    pub(crate) fn members<'k>(&'k self) -> Result<impl Iterator<Item = (&'k Member<'k>, Cursor<'k>)>, DocumentError> {
        let Tree::Object(members) = &self.node.tree else {
            return Err(self.wrong_type("an object"));
        };
        Ok(members.iter().map(|member| (member, self.member(member))))
    }

    fn member<'k>(&'k self, member: &'k Member<'k>) -> Cursor<'k> {
        Cursor { text: self.text, node: &member.value, way: Way::Key(self, &member.key) }
    }

    /// An object with some of the keys `known`, each at most once, and no others.
    pub(crate) fn object<'k>(&'k self, known: &'static [&'static str]) -> Result<Object<'k>, DocumentError> {
        let object = self.open_object()?;
        match object.members.iter().find(|member| !known.contains(&&*member.key)) {
            None => Ok(object),
            Some(member) => {
                Err(DocumentError::UnknownKey { key: member.key.to_string(), known, place: self.key_place(member) })
            }
        }
    }

    /// An object with any keys, each at most once.
    pub(crate) fn open_object<'k>(&'k self) -> Result<Object<'k>, DocumentError> {
        let Tree::Object(members) = &self.node.tree else {
            return Err(self.wrong_type("an object"));
        };
        let mut seen = HashSet::with_capacity(members.len());
        for member in members {
            if !seen.insert(&*member.key) {
                return Err(self.duplicate_key(member));
            }
        }
        Ok(Object { cursor: self, members })
    }
}

impl<'c> Object<'c> {
    pub(crate) fn get(&self, key: &str) -> Option<Cursor<'c>> {
        let member = self.members.iter().find(|member| member.key == key)?;
        Some(self.cursor.member(member))
    }

    pub(crate) fn need(&self, key: &'static str) -> Result<Cursor<'c>, DocumentError> {
        self.get(key).ok_or_else(|| DocumentError::MissingKey { key, place: self.cursor.place() })
    }
}

/// A spelling of any length, cut for a message.
fn shortened(spelling: &str) -> String {
    const LONGEST: usize = 40;
    if spelling.len() <= LONGEST {
        return spelling.to_owned();
    }
    format!("{}…", &spelling[..LONGEST])
}
