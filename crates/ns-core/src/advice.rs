//! One line of advice, as data: words, and remedies that each interface spells in its own way.
//!
//! An error of a library crate does not know whether a command or a Python function shows it. So
//! its advice names a [`Remedy`], and the interface turns that into an option or an argument.

use std::borrow::Cow;
use std::fmt;

/// A setting that advice recommends, which interfaces spell differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The choice of no parameter of interest.
    NoPoi,
    /// The patches that are applied to a workspace.
    Patches,
    /// One patch, as a file.
    PatchFile,
    /// The patch set that a patch is taken from.
    PatchSet,
    /// One patch of a patch set, by its name.
    NamedPatch,
}

/// Formats the setting's name in Rust.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPoi => "PoiChoice::None",
            Self::Patches | Self::PatchFile => "patches",
            Self::PatchSet | Self::NamedPatch => "patchset",
        })
    }
}

/// A part of an [`Advice::Naming`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvicePart {
    /// Words that are the same in every interface.
    Text(&'static str),
    /// What the interface spells.
    Remedy(Remedy),
}

/// One line of advice, lower case and without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// Words that are the same in every interface.
    Text(Cow<'static, str>),
    /// Words and remedies, in this order and without anything between them.
    Naming(&'static [AdvicePart]),
}

impl Advice {
    /// Returns the advice as a line of text, with each remedy in backticks as `spell` gives it.
    ///
    /// ```
    /// use ns_core::advice::{Advice, AdvicePart, Remedy};
    ///
    /// let advice = Advice::Naming(&[AdvicePart::Text("pass "), AdvicePart::Remedy(Remedy::NoPoi)]);
    /// assert_eq!(advice.worded(|_| "--poi none"), "pass `--poi none`");
    /// assert_eq!(advice.to_string(), "pass `PoiChoice::None`");
    /// ```
    #[must_use]
    pub fn worded<S: fmt::Display>(&self, spell: impl Fn(Remedy) -> S) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Naming(parts) => parts
                .iter()
                .map(|part| match part {
                    AdvicePart::Text(text) => (*text).to_owned(),
                    AdvicePart::Remedy(remedy) => format!("`{}`", spell(*remedy)),
                })
                .collect(),
        }
    }
}

/// Formats the advice with the names that remedies have in Rust.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(|remedy| remedy))
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&'static str> for Advice {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}
