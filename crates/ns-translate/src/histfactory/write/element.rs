//! Elements to be written, and their text: each on a line of its own, two spaces for each level.

use crate::json::python_repr;

/// An element to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewElement {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Content,
}

/// What is in an element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    Elements(Vec<NewElement>),
}

impl NewElement {
    /// Returns an element without attributes, with `text` in it.
    pub(super) fn with_text(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, attributes: Vec::new(), content: Content::Text(text.into()) }
    }

    /// Returns an element with other elements in it.
    pub(super) fn with_elements(name: &'static str, elements: Vec<Self>) -> Self {
        Self { name, attributes: Vec::new(), content: Content::Elements(elements) }
    }

    /// Returns an element called `Name`, or any with a first attribute.
    pub(super) fn new(name: &'static str) -> Self {
        Self::with_elements(name, Vec::new())
    }

    /// Adds an attribute.
    pub(super) fn attribute(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Adds an attribute that is a number.
    pub(super) fn number(self, name: &'static str, value: f64) -> Self {
        self.attribute(name, number(value))
    }

    /// Adds elements.
    pub(super) fn push(&mut self, element: Self) {
        match &mut self.content {
            Content::Elements(elements) => elements.push(element),
            Content::Text(_) => self.content = Content::Elements(vec![element]),
        }
    }

    /// Returns the document of this element.
    pub(super) fn document(&self, dtd: &str) -> String {
        let mut text = format!("<!DOCTYPE {} SYSTEM '{dtd}'>\n\n", self.name);
        self.write(0, &mut text);
        text.push('\n');
        text
    }

    fn write(&self, level: usize, output: &mut String) {
        output.push('<');
        output.push_str(self.name);
        for (name, value) in &self.attributes {
            output.push_str(&format!(" {name}=\""));
            escape(value, true, output);
            output.push('"');
        }
        match &self.content {
            Content::Text(text) if !text.is_empty() => {
                output.push('>');
                escape(text, false, output);
                self.end(output);
            }
            Content::Elements(elements) if !elements.is_empty() => {
                output.push('>');
                for element in elements {
                    output.push_str(&format!("\n{:1$}", "", 2 * (level + 1)));
                    element.write(level + 1, output);
                }
                output.push_str(&format!("\n{:1$}", "", 2 * level));
                self.end(output);
            }
            _ => output.push_str(" />"),
        }
    }

    fn end(&self, output: &mut String) {
        output.push_str(&format!("</{}>", self.name));
    }
}

/// Returns a number by the fewest digits that are read as the same one.
fn number(value: f64) -> String {
    let text = python_repr(value, &mut zmij::Buffer::new()).into_owned();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Writes text so that parsers give it back; in attributes they would make blanks of line feeds.
fn escape(text: &str, is_attribute: bool, output: &mut String) {
    for character in text.chars() {
        match character {
            '&' => output.push_str("&amp;"),
            '<' => output.push_str("&lt;"),
            '>' => output.push_str("&gt;"),
            '"' if is_attribute => output.push_str("&quot;"),
            '\t' | '\n' | '\r' if is_attribute => output.push_str(&format!("&#{:02};", u32::from(character))),
            other => output.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_as_the_same_tree() {
        let name = "a<b>&\"c'\td\ne";
        let inner = NewElement::new("Sample").attribute("Name", name).number("Val", 1e-5);
        let root = NewElement::with_elements("Channel", vec![inner, NewElement::with_text("POI", "x<&>\"y")]);
        let text = root.document("a.dtd");
        let read = crate::xml::parse(&text).expect("XML");
        assert_eq!(read.children[0].attributes[0].value, name, "{text}");
        assert_eq!(read.children[0].attributes[1].value, "1e-05", "{text}");
        assert_eq!(read.children[1].text, "x<&>\"y", "{text}");
    }
}
