//! Describes the ways in which a text violates the syntax of JSON, with hints.

use std::fmt;

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxProblem {
    /// The text ends in the middle of something.
    Truncated,
    /// The text is empty, or blank.
    Blank,
    /// Another character or word than expected.
    Unexpected {
        /// The first character, or the word.
        found: String,
        /// What is expected.
        expected: &'static str,
    },
    /// Text after the document's end.
    Trailing {
        /// Its first character.
        found: char,
    },
    /// A number that does not follow the syntax of JSON.
    Number {
        /// As far as it was read.
        found: String,
    },
    /// An escape in a string that JSON does not know.
    Escape {
        /// The escape.
        found: String,
    },
    /// Half of a UTF-16 surrogate pair, which is not a character.
    LoneSurrogate {
        /// Its code unit.
        unit: u16,
    },
    /// A raw control character in a string.
    ControlCharacter {
        /// Its code.
        code: u8,
    },
    /// Lists and objects nested more deeply than the limit.
    TooDeep {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for SyntaxProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the document breaks off"),
            Self::Blank => f.write_str("the document is empty"),
            Self::Unexpected { found, expected } => {
                write!(f, "expected {expected}, found `{found}`")
            }
            Self::Trailing { found } => write!(f, "text after the end of the document, beginning with `{found}`"),
            Self::Number { found } => write!(f, "`{found}` is not a JSON number"),
            Self::Escape { found } => write!(f, "`{found}` is not a JSON escape"),
            Self::LoneSurrogate { unit } => {
                write!(f, "`\\u{unit:04x}` is half of a surrogate pair")
            }
            Self::ControlCharacter { code } => {
                write!(f, "raw control character `\\u{code:04x}` in a string")
            }
            Self::TooDeep { limit } => {
                write!(f, "more than {limit} lists and objects inside each other")
            }
        }
    }
}

impl SyntaxProblem {
    /// Returns what the author probably meant, or `None`.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Truncated => Some("was the file copied or downloaded to its end?"),
            Self::Unexpected { found, expected } => unexpected_hint(found, expected),
            Self::Trailing { .. } => Some("one file holds one document"),
            Self::Number { found } => number_hint(found),
            Self::ControlCharacter { .. } => Some("write a line break as `\\n` and a tab as `\\t`"),
            _ => None,
        }
    }
}

fn unexpected_hint(found: &str, expected: &str) -> Option<&'static str> {
    match found {
        "True" | "False" | "None" => Some("JSON writes `true`, `false` and `null`"),
        "nan" | "inf" | "-inf" | "Inf" | "NAN" | "INF" => Some("JSON has no NaN and no infinity"),
        "'" => Some("JSON puts strings in double quotes"),
        "/" | "#" => Some("JSON has no comments"),
        "<" => Some("this looks like XML; `nextstat xml2json` of the Python package converts HistFactory XML"),
        "]" | "}" if expected != SEPARATOR => Some("JSON allows no comma before a closing bracket"),
        _ => None,
    }
}

/// What separates the entries of a list or an object.
pub(crate) const SEPARATOR: &str = "a comma or a closing bracket";

fn number_hint(found: &str) -> Option<&'static str> {
    if found.starts_with('+') {
        Some("JSON numbers carry no plus sign")
    } else if found.starts_with('.') || found.starts_with("-.") || found.ends_with('.') {
        Some("JSON wants a digit on both sides of the decimal point")
    } else {
        Some("JSON numbers have no leading zeros and look like `-12.5e-3`")
    }
}
