//! Why there is no answer: a message and advice, as the page shows them.

use crate::archive::ArchiveError;
use nextstat::exclusion::ExclusionError;
use nextstat::{Error, Face, Hint};
use ns_core::CompileError;
use ns_translate::{DocumentError, full_message};
use serde::Serialize;

/// A message with its place, and advice where there is any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// What is wrong, and where.
    pub message: String,
    /// One line of advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl EngineError {
    /// Returns the error of a question that is not a valid one.
    pub(crate) fn question(error: &serde_json::Error) -> Self {
        Self { message: format!("the question is not valid: {error}"), hint: None }
    }
}

impl From<Error> for EngineError {
    fn from(error: Error) -> Self {
        // Settings have the names of questions, which are those of Python. What is said of a file
        // that was dropped is what the command says of it.
        let face = if matches!(error, Error::Document(_)) { Face::Command } else { Face::Library };
        Self { message: error.full_message(face), hint: error.hint(face) }
    }
}

impl From<DocumentError> for EngineError {
    fn from(error: DocumentError) -> Self {
        Error::from(error).into()
    }
}

impl From<CompileError> for EngineError {
    fn from(error: CompileError) -> Self {
        Error::from(error).into()
    }
}

impl From<ArchiveError> for EngineError {
    fn from(error: ArchiveError) -> Self {
        Self { message: full_message(&error), hint: None }
    }
}

impl From<ExclusionError> for EngineError {
    fn from(error: ExclusionError) -> Self {
        Self { message: full_message(&error), hint: error.hint(Face::Library) }
    }
}
