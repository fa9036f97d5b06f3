//! Regular expressions as Combine's cards and physics models use them.

use regex_lite::{Error, Regex};

use super::error::{CardError, CardProblem};
use super::words::CardPlace;

/// The most bytes of a compiled expression.
const SIZE: usize = 1 << 20;

/// Returns the expression that matches what `pattern` matches as a whole.
pub(super) fn whole(pattern: &str) -> Result<Regex, Error> {
    regex_lite::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(SIZE).build()
}

/// Returns the expression that matches what begins with what `pattern` matches.
pub(super) fn beginning(pattern: &str) -> Result<Regex, Error> {
    regex_lite::RegexBuilder::new(&format!("^(?:{pattern})")).size_limit(SIZE).build()
}

/// Returns the pattern of channels with its plus signs as letters, which they are in names.
pub(super) fn escaped_plus(pattern: &str) -> String {
    pattern.replace('+', r"\+")
}

/// A pattern of names.
pub(super) enum NamePattern {
    /// `*`
    All,
    /// An expression for whole names.
    Whole(Regex),
}

impl NamePattern {
    pub(super) fn read(pattern: &str, place: CardPlace) -> Result<Self, CardError> {
        if pattern == "*" {
            return Ok(Self::All);
        }
        let read = whole(pattern).map(Self::Whole);
        read.map_err(|error| CardProblem::Pattern { pattern: pattern.to_owned() }.because(error, place))
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Whole(pattern) => pattern.is_match(name),
        }
    }
}
