//! What a workspace has and a format has not.

use std::fmt;

/// Content of a workspace that a format cannot hold, with its place in the workspace as pyhf JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRepresentable {
    /// What it is, with its article.
    pub what: &'static str,
    /// The name of the modifier, parameter or measurement.
    pub name: String,
    /// The JSON pointer.
    pub pointer: String,
}

impl fmt::Display for NotRepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, pointer } = self;
        write!(f, "{what} `{name}` (`{pointer}`)")
    }
}

/// Collects what a format cannot hold.
#[derive(Default)]
pub(crate) struct Lacking(Vec<NotRepresentable>);

impl Lacking {
    /// Adds something, unless it is known.
    pub(crate) fn add(&mut self, what: &'static str, name: &str, pointer: String) {
        let item = NotRepresentable { what, name: name.to_owned(), pointer };
        if !self.0.contains(&item) {
            self.0.push(item);
        }
    }

    /// Returns what was added, or `()` if nothing was.
    pub(crate) fn into_result(self) -> Result<(), Vec<NotRepresentable>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
