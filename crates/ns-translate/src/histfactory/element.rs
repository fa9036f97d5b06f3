//! An element of HistFactory XML: its attributes as words, numbers and truth values, each with its
//! place in messages.

use super::error::{HistFactoryError, HistFactoryProblem};
use crate::place::DocumentPlace;
use crate::xml::{XmlAttribute, XmlElement, place};

/// The spellings that ROOT knows.
const TRUTH: &[&str] = &["True", "true", "False", "false"];

/// An element with the text of its document.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    text: &'a str,
    element: &'a XmlElement,
}

impl<'a> Node<'a> {
    /// Returns the element that a document consists of, which must be a `wanted`.
    pub(super) fn root(text: &'a str, element: &'a XmlElement, wanted: &'static str) -> Result<Self, HistFactoryError> {
        let node = Self { text, element };
        if element.name == wanted {
            return Ok(node);
        }
        Err(HistFactoryProblem::Root { wanted, found: element.name.clone() }.at(&node.place()))
    }

    pub(super) fn name(&self) -> &'a str {
        &self.element.name
    }

    pub(super) fn place(&self) -> DocumentPlace {
        place(self.text, self.element.offset)
    }

    /// Refuses attributes and elements that are not among those listed.
    pub(super) fn require_known(
        &self,
        attributes: &'static [&'static str],
        elements: &'static [&'static str],
    ) -> Result<(), HistFactoryError> {
        let element = || self.element.name.clone();
        for attribute in &self.element.attributes {
            let is_of_xml = attribute.name.starts_with("xml") || attribute.name.contains(':');
            if !is_of_xml && !attributes.contains(&attribute.name.as_str()) {
                let (name, known) = (attribute.name.clone(), attributes);
                let problem = HistFactoryProblem::UnknownAttribute { name, element: element(), known };
                return Err(problem.at(&place(self.text, attribute.offset)));
            }
        }
        for child in self.all() {
            if !elements.contains(&child.name()) {
                let (name, known) = (child.name().to_owned(), elements);
                return Err(HistFactoryProblem::UnknownElement { name, parent: element(), known }.at(&child.place()));
            }
        }
        Ok(())
    }

    /// Returns the elements in it.
    pub(super) fn all(&self) -> impl Iterator<Item = Self> + use<'a> {
        let text = self.text;
        self.element.children.iter().map(move |element| Self { text, element })
    }

    /// Returns the elements of one name in it.
    pub(super) fn children(&self, name: &'static str) -> impl Iterator<Item = Self> + use<'a> {
        self.all().filter(move |child| child.name() == name)
    }

    fn find(&self, name: &str) -> Option<&'a XmlAttribute> {
        self.element.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Returns the value of an attribute, without blanks around it.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.find(name).map(|attribute| attribute.value.trim())
    }

    /// Returns the value of an attribute that must be there and not be empty.
    pub(super) fn required(&self, name: &'static str) -> Result<&'a str, HistFactoryError> {
        self.attribute(name).filter(|value| !value.is_empty()).ok_or_else(|| self.without(name))
    }

    fn without(&self, name: &'static str) -> HistFactoryError {
        HistFactoryProblem::NoAttribute { name, element: self.element.name.clone() }.at(&self.place())
    }

    /// Returns a number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<f64>, HistFactoryError> {
        let Some(attribute) = self.find(name) else { return Ok(None) };
        let number = attribute.value.trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| {
            let (attribute, offset) = (attribute.clone(), attribute.offset);
            HistFactoryProblem::Number { attribute: attribute.name, value: attribute.value }
                .at(&place(self.text, offset))
        })
    }

    /// Returns a number that must be there.
    pub(super) fn required_number(&self, name: &'static str) -> Result<f64, HistFactoryError> {
        self.number(name)?.ok_or_else(|| self.without(name))
    }

    /// Returns a value that must be one of `allowed`.
    pub(super) fn word(
        &self,
        name: &'static str,
        allowed: &'static [&'static str],
    ) -> Result<Option<&'a str>, HistFactoryError> {
        let Some(attribute) = self.find(name) else { return Ok(None) };
        let value = attribute.value.trim();
        if allowed.contains(&value) {
            return Ok(Some(value));
        }
        let problem = HistFactoryProblem::Word { attribute: name.to_owned(), value: value.to_owned(), allowed };
        Err(problem.at(&place(self.text, attribute.offset)))
    }

    /// Returns a truth value.
    pub(super) fn truth(&self, name: &'static str) -> Result<Option<bool>, HistFactoryError> {
        Ok(self.word(name, TRUTH)?.map(|word| word.eq_ignore_ascii_case("true")))
    }

    /// Returns the words of the text.
    pub(super) fn words(&self) -> Vec<String> {
        self.element.text.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the words of a text that must have some.
    pub(super) fn required_words(&self, wanted: &'static str) -> Result<Vec<String>, HistFactoryError> {
        let words = self.words();
        if words.is_empty() { Err(self.no_text(wanted)) } else { Ok(words) }
    }

    /// Returns a text that must not be empty.
    pub(super) fn required_text(&self, wanted: &'static str) -> Result<String, HistFactoryError> {
        let text = self.element.text.trim();
        if text.is_empty() { Err(self.no_text(wanted)) } else { Ok(text.to_owned()) }
    }

    fn no_text(&self, wanted: &'static str) -> HistFactoryError {
        HistFactoryProblem::NoText { element: self.element.name.clone(), wanted }.at(&self.place())
    }
}
