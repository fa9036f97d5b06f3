//! Documents that the command writes, for other faces of the library: the same keys and words, whoever asks.

pub use crate::command::check::{document as check, expected_likelihood};
pub use crate::command::fit::negative_yield;
pub use crate::report::gof::document as goodness;
pub use crate::report::patchset::{document as patchset, verification};
pub use crate::report::ranking::document as ranking;
