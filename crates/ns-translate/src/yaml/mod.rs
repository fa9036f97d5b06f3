//! Reads YAML to the tree of [`crate::json`], with the place of each value, so that one set of
//! readers and messages serves both.
//!
//! Scalars follow the core schema of YAML 1.2: `no` and `on` are text. Anchors, aliases and tags
//! are refused: no document is larger than its text, and a pattern such as `*_JES` without quotes,
//! which YAML takes for an alias, is explained.

mod error;

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

pub use error::{YamlError, YamlFeature};

use crate::json::{DEPTH_LIMIT, JsonNode, JsonTree, ObjectMember};
use crate::place::{DocumentPlace, TextPosition};

/// Reads a whole document.
pub(crate) fn parse(text: &str) -> Result<JsonNode<'_>, YamlError> {
    let mut builder = Builder { text, offsets: Offsets { text, index: 0, offset: 0 }, open: Vec::new(), root: None };
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        builder.take(event, span)?;
    }
    builder.root.ok_or(YamlError::Blank)
}

/// A list or an object that has not ended.
struct Open<'a> {
    start: usize,
    contents: Contents<'a>,
}

enum Contents<'a> {
    List(Vec<JsonNode<'a>>),
    /// Members, and the key whose value comes next, with its offset.
    Object(Vec<ObjectMember<'a>>, Option<(usize, Cow<'a, str>)>),
}

struct Builder<'a> {
    text: &'a str,
    offsets: Offsets<'a>,
    /// From the outermost to the innermost.
    open: Vec<Open<'a>>,
    root: Option<JsonNode<'a>>,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), YamlError> {
        let start = self.offsets.of(span.start.index());
        match event {
            Event::Alias(_) => Err(self.refused(YamlFeature::Alias, start)),
            Event::Scalar(_, _, anchor, ref tag)
            | Event::SequenceStart(anchor, ref tag)
            | Event::MappingStart(anchor, ref tag)
                if anchor != 0 || tag.is_some() =>
            {
                Err(self.refused(if anchor == 0 { YamlFeature::Tag } else { YamlFeature::Anchor }, start))
            }
            Event::Scalar(text, style, ..) => self.scalar(text, style, start),
            Event::SequenceStart(..) => self.begin(Contents::List(Vec::new()), start),
            Event::MappingStart(..) => self.begin(Contents::Object(Vec::new(), None), start),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::DocumentStart(_) if self.root.is_some() => Err(self.refused(YamlFeature::SecondDocument, start)),
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: Cow<'a, str>, style: ScalarStyle, start: usize) -> Result<(), YamlError> {
        if let Some(Open { contents: Contents::Object(_, key @ None), .. }) = self.open.last_mut() {
            *key = Some((start, text));
            return Ok(());
        }
        let tree = if style == ScalarStyle::Plain { plain(text, self.text, start) } else { JsonTree::Text(text) };
        self.add(JsonNode { start, tree })
    }

    fn begin(&mut self, contents: Contents<'a>, start: usize) -> Result<(), YamlError> {
        if matches!(self.open.last(), Some(Open { contents: Contents::Object(_, None), .. })) {
            return Err(self.refused(YamlFeature::NestedKey, start));
        }
        if self.open.len() >= DEPTH_LIMIT {
            return Err(self.refused(YamlFeature::Depth, start));
        }
        self.open.push(Open { start, contents });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(Open { start, contents }) = self.open.pop() else { return Ok(()) };
        let tree = match contents {
            Contents::List(items) => JsonTree::List(items),
            Contents::Object(members, _) => JsonTree::Object(members),
        };
        self.add(JsonNode { start, tree })
    }

    fn add(&mut self, node: JsonNode<'a>) -> Result<(), YamlError> {
        match self.open.last_mut().map(|open| &mut open.contents) {
            None => self.root = Some(node),
            Some(Contents::List(items)) => items.push(node),
            Some(Contents::Object(members, key)) => match key.take() {
                Some((start, key)) => members.push(ObjectMember { start, key, value: node }),
                // Keys are scalars: whatever else begins there was refused.
                None => return Err(self.refused(YamlFeature::NestedKey, node.start)),
            },
        }
        Ok(())
    }

    fn refused(&self, feature: YamlFeature, start: usize) -> YamlError {
        YamlError::Refused { feature, place: place(TextPosition::of(self.text, start)) }
    }

    fn syntax(&mut self, error: &saphyr_parser::ScanError) -> YamlError {
        let start = self.offsets.of(error.marker().index());
        let at = self.text.get(start..).unwrap_or_default();
        if at.starts_with('*') {
            return self.refused(YamlFeature::Alias, start);
        }
        YamlError::Syntax { problem: error.info().to_owned(), place: place(TextPosition::of(self.text, start)) }
    }
}

fn place(position: TextPosition) -> DocumentPlace {
    DocumentPlace { pointer: String::new(), position: Some(position) }
}

/// Returns the value of the scalar without quotes that begins at byte `start` of `text`.
fn plain<'a>(scalar: Cow<'a, str>, text: &'a str, start: usize) -> JsonTree<'a> {
    match &*scalar {
        "" | "~" | "null" | "Null" | "NULL" => JsonTree::Null,
        "true" | "True" | "TRUE" => JsonTree::Bool(true),
        "false" | "False" | "FALSE" => JsonTree::Bool(false),
        // The spelling in the text: the parser's copy does not live as long as the tree.
        spelling => match text.get(start..start + spelling.len()) {
            Some(number) if number == spelling && is_number(number) => JsonTree::Number(number),
            _ => JsonTree::Text(scalar),
        },
    }
}

/// Returns whether `text` is a number of JSON, as which numbers are read. `.5` and `+1` are text.
fn is_number(text: &str) -> bool {
    matches!(crate::json::parse(text), Ok(JsonNode { tree: JsonTree::Number(_), .. }))
}

/// Turns indices of characters into offsets of bytes. They come nearly in order, so that walking
/// from one to the next reads the text once.
struct Offsets<'a> {
    text: &'a str,
    index: usize,
    offset: usize,
}

impl Offsets<'_> {
    /// Returns the offset of the character `index`; one past the end is the end.
    fn of(&mut self, index: usize) -> usize {
        while self.index < index {
            let Some(character) = self.text[self.offset..].chars().next() else { break };
            (self.index, self.offset) = (self.index + 1, self.offset + character.len_utf8());
        }
        while self.index > index {
            let Some(character) = self.text[..self.offset].chars().next_back() else { break };
            (self.index, self.offset) = (self.index - 1, self.offset - character.len_utf8());
        }
        self.offset
    }
}

#[cfg(test)]
mod tests;
