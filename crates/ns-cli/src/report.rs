//! What commands write: JSON and text to standard output or a file, summaries and errors to standard error.

pub(crate) mod check;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod gof;
pub(crate) mod hypotest;
pub(crate) mod hypotest_toys;
pub(crate) mod inspect;
pub(crate) mod overview;
pub(crate) mod patchset;
pub(crate) mod ranking;
pub(crate) mod scan;
pub(crate) mod talk;
pub(crate) mod toys;
pub(crate) mod workspace;

mod number;
mod output;
mod progress;
mod stream;
mod table;
mod yields;

pub(crate) use output::{require_stdout, stdout_error, to_document, write_json, write_stdout, write_text};
pub(crate) use progress::Progress;
pub(crate) use talk::Talk;
