//! Errors of YAML text.

use std::fmt;

use crate::json::DEPTH_LIMIT;
use crate::place::DocumentPlace;

/// Why a text is not the YAML that is read here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlError {
    /// The text has nothing but comments and blanks.
    #[error("the document is empty")]
    Blank,
    /// The text is not YAML.
    #[error("invalid YAML: {problem} {place}")]
    Syntax {
        /// The violated rule, as the parser words it.
        problem: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// YAML that is not read here.
    #[error("{feature} {place}")]
    Refused {
        /// What it is.
        feature: YamlFeature,
        /// The place in the document.
        place: DocumentPlace,
    },
}

/// YAML that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlFeature {
    /// `*name`.
    Alias,
    /// `&name`.
    Anchor,
    /// `!name`.
    Tag,
    /// A key that is a list or an object.
    NestedKey,
    /// `---` after the first document.
    SecondDocument,
    /// Lists and objects nested beyond the limit.
    Depth,
}

impl YamlError {
    /// Returns the place in the document, or `None` for an empty one.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Blank => None,
            Self::Syntax { place, .. } | Self::Refused { place, .. } => Some(place),
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Refused { feature: YamlFeature::Alias, .. } => {
                "write a name or a pattern that begins with `*` in quotes: \"*_JES\""
            }
            Self::Refused { feature: YamlFeature::Anchor | YamlFeature::Tag, .. } => {
                "write a name that begins with `&` or `!` in quotes, and values out in full"
            }
            Self::Refused { feature: YamlFeature::NestedKey, .. } => {
                "write a name with `{`, `[` or `?` at its beginning in quotes"
            }
            Self::Syntax { problem, .. } if problem.contains("tab") => "indent with spaces",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for YamlFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alias => f.write_str("aliases of YAML are not allowed here: found `*`"),
            Self::Anchor => f.write_str("anchors of YAML are not allowed here: found `&`"),
            Self::Tag => f.write_str("tags of YAML are not allowed here: found `!`"),
            Self::NestedKey => f.write_str("expected a name as a key, found a list or an object"),
            Self::SecondDocument => f.write_str("expected one document, found a second one"),
            Self::Depth => write!(f, "lists and objects are nested deeper than {DEPTH_LIMIT} levels"),
        }
    }
}
