//! Errors of XML text.

use crate::json::DEPTH_LIMIT;
use crate::place::DocumentPlace;

/// Why a text is not the XML that is read here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// The text has no element.
    #[error("the document is empty")]
    Blank,
    /// The text is not XML.
    #[error("invalid XML: {problem} {place}")]
    Syntax {
        /// The violated rule.
        problem: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// An element that has no end.
    #[error("the document breaks off: `{name}` is not closed {place}")]
    Unclosed {
        /// The innermost of the elements that have not ended.
        name: String,
        /// The end of the document.
        place: DocumentPlace,
    },
    /// Text before or after the element that a document consists of.
    #[error("expected an element, found text {place}")]
    Outside {
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A second element on the top level.
    #[error("expected one element on the top level, found a second one {place}")]
    SecondRoot {
        /// The place in the document.
        place: DocumentPlace,
    },
    /// An entity that XML does not define.
    #[error("unknown entity `&{name};` {place}")]
    Entity {
        /// Its name.
        name: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// Elements nested beyond the limit.
    #[error("elements are nested deeper than {DEPTH_LIMIT} levels {place}")]
    Depth {
        /// The place in the document.
        place: DocumentPlace,
    },
}

impl XmlError {
    /// Returns the place in the document, or `None` for an empty one.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Blank => None,
            Self::Syntax { place, .. }
            | Self::Unclosed { place, .. }
            | Self::Outside { place }
            | Self::SecondRoot { place }
            | Self::Entity { place, .. }
            | Self::Depth { place } => Some(place),
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Entity { .. } => Some("entities of a DTD are not read: write out what it stands for"),
            _ => None,
        }
    }
}
