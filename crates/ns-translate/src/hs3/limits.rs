//! Bounds what a hostile document can ask for: short references name many things.

use super::Hs3Error;
use super::document::Read;
use crate::json::JsonCursor;

/// Settings of parameters, and ranges, of all analyses but the first: 1 GB. The first one has no
/// more of them than the document has numbers.
const MOST_SETTINGS: usize = 1_000_000;

/// What is left of the limit.
#[derive(Debug)]
pub(super) struct Limits {
    settings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { settings: MOST_SETTINGS }
    }
}

impl Limits {
    /// Takes `wanted` settings for the analysis at `cursor`.
    pub(super) fn settings(&mut self, wanted: usize, cursor: &JsonCursor<'_>) -> Read<()> {
        let Some(rest) = self.settings.checked_sub(wanted) else {
            let what = "settings of analyses after the first";
            return Err(Hs3Error::TooMuch { what, limit: MOST_SETTINGS, place: cursor.place() });
        };
        self.settings = rest;
        Ok(())
    }
}
