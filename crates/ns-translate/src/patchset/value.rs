//! The coordinate of a patch in its set: a number or a word.

use std::fmt;
use std::hash::{Hash, Hasher};

/// One of a patch's values, such as a mass.
#[derive(Debug, Clone)]
pub enum PatchValue {
    /// A number; `2100` and `2100.0` are the same value.
    Number(f64),
    /// A word.
    Text(String),
}

impl PatchValue {
    /// Returns the bits of the number, equal for both zeros.
    fn bits(number: f64) -> u64 {
        (number + 0.0).to_bits()
    }
}

impl PartialEq for PatchValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Self::bits(*a) == Self::bits(*b),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for PatchValue {}

impl Hash for PatchValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Number(number) => Self::bits(*number).hash(state),
            Self::Text(text) => text.hash(state),
        }
    }
}

impl fmt::Display for PatchValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}
