//! Reads XML to a tree of elements, with the place of each element and attribute.
//!
//! A document type is passed over: no DTD is read, no entity is defined, and no file is named, so
//! that no document is larger than its text.

mod error;

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesRef, BytesStart, Event};

pub use error::XmlError;

use crate::json::DEPTH_LIMIT;
use crate::place::{DocumentPlace, TextPosition};

/// An element with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct XmlElement {
    pub(crate) name: String,
    /// The byte at which it begins.
    pub(crate) offset: usize,
    /// In the order of the document; no two have one name.
    pub(crate) attributes: Vec<XmlAttribute>,
    /// The elements in it, in the order of the document.
    pub(crate) children: Vec<XmlElement>,
    /// The text in it, without that of other elements.
    pub(crate) text: String,
}

/// An attribute of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct XmlAttribute {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The byte at which its name begins.
    pub(crate) offset: usize,
}

/// Returns the element that a document consists of.
pub(crate) fn parse(text: &str) -> Result<XmlElement, XmlError> {
    let start = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let mut reader = Reader::from_str(&text[start..]);
    let mut builder = Builder { text, open: Vec::new(), root: None };
    loop {
        let offset = start + position(reader.buffer_position());
        let event = reader.read_event().map_err(|error| XmlError::Syntax {
            problem: error.to_string(),
            place: place(text, start + position(reader.error_position())),
        })?;
        match event {
            Event::Eof => break,
            event => builder.take(event, offset)?,
        }
    }
    match builder {
        Builder { open, .. } if !open.is_empty() => {
            let name = open.last().map(|element| element.name.clone()).unwrap_or_default();
            Err(XmlError::Unclosed { name, place: place(text, text.len()) })
        }
        Builder { root, .. } => root.ok_or(XmlError::Blank),
    }
}

/// Returns the content of the first processing instruction for `target` in front of the root of a
/// document that [`parse`] accepts.
pub(crate) fn instruction(text: &str, target: &str) -> Option<String> {
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    loop {
        match reader.read_event().ok()? {
            Event::PI(instruction) if instruction.target() == target => {
                return Some(instruction.content().trim().to_owned());
            }
            Event::Start(_) | Event::Empty(_) | Event::Eof => return None,
            _ => {}
        }
    }
}

fn position(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Returns the place of the byte `offset` of `text`.
pub(crate) fn place(text: &str, offset: usize) -> DocumentPlace {
    DocumentPlace { pointer: String::new(), position: Some(TextPosition::of(text, offset)) }
}

struct Builder<'a> {
    text: &'a str,
    /// Elements that have not ended, from the outermost to the innermost.
    open: Vec<XmlElement>,
    root: Option<XmlElement>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, offset: usize) -> Result<(), XmlError> {
        match event {
            Event::Start(start) => {
                let element = self.element(&start, offset)?;
                self.open.push(element);
                Ok(())
            }
            Event::Empty(start) => {
                let element = self.element(&start, offset)?;
                self.add(element)
            }
            Event::End(_) => match self.open.pop() {
                Some(element) => self.add(element),
                None => Ok(()),
            },
            Event::Text(text) => self.append(&text.xml10_content(), offset),
            Event::CData(text) => self.append(&text.xml10_content(), offset),
            Event::GeneralRef(reference) => {
                let resolved = self.resolved(&reference, offset)?;
                self.append(&resolved, offset)
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Eof => Ok(()),
        }
    }

    fn element(&self, start: &BytesStart<'_>, offset: usize) -> Result<XmlElement, XmlError> {
        if self.open.len() >= DEPTH_LIMIT {
            return Err(XmlError::Depth { place: place(self.text, offset) });
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(XmlError::SecondRoot { place: place(self.text, offset) });
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.bad_attribute(&error, offset))?;
            let offset = self.offset_of(attribute.key.as_ref()).unwrap_or(offset);
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| self.syntax(error.to_string(), offset))?.into_owned();
            attributes.push(XmlAttribute { name: attribute.key.as_ref().to_owned(), value, offset });
        }
        let name = start.name().as_ref().to_owned();
        Ok(XmlElement { name, offset, attributes, children: Vec::new(), text: String::new() })
    }

    /// Returns where `part`, a slice of the text, begins.
    fn offset_of(&self, part: &str) -> Option<usize> {
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        (offset < self.text.len()).then_some(offset)
    }

    fn syntax(&self, problem: String, offset: usize) -> XmlError {
        XmlError::Syntax { problem, place: place(self.text, offset) }
    }

    /// Returns the error of an attribute in the element at `offset`. Its positions count from the
    /// name of the element.
    fn bad_attribute(&self, error: &AttrError, offset: usize) -> XmlError {
        let (problem, within) = match error {
            AttrError::ExpectedEq(at) => ("expected `=` after the name of an attribute", *at),
            AttrError::ExpectedValue(at) => ("expected a value after `=`", *at),
            AttrError::UnquotedValue(at) => ("expected the value of an attribute in quotes", *at),
            AttrError::ExpectedQuote(at, _) => ("expected a quote after the value of an attribute", *at),
            AttrError::Duplicated(at, _) => ("an attribute has a second value", *at),
        };
        self.syntax(problem.to_owned(), offset + 1 + within)
    }

    /// Returns what a reference stands for.
    fn resolved(&self, reference: &BytesRef<'_>, offset: usize) -> Result<String, XmlError> {
        match reference.resolve_char_ref() {
            Ok(Some(character)) => return Ok(character.to_string()),
            Ok(None) => {}
            Err(error) => return Err(self.syntax(error.to_string(), offset)),
        }
        let known = resolve_predefined_entity(reference).map(str::to_owned);
        known.ok_or_else(|| XmlError::Entity { name: reference.to_string(), place: place(self.text, offset) })
    }

    fn append(&mut self, text: &str, offset: usize) -> Result<(), XmlError> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(XmlError::Outside { place: place(self.text, offset) }),
        }
        Ok(())
    }

    fn add(&mut self, element: XmlElement) -> Result<(), XmlError> {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
