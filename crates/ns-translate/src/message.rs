//! Puts an error and its causes into one line.

use std::error::Error;

/// Returns the message of `error` and those of its causes, separated by colons: the outer error
/// says what failed, and its causes why.
///
/// # Example
///
/// ```
/// use ns_translate::pyhf::read_workspace;
/// use ns_translate::{DocumentError, full_message};
///
/// let error = DocumentError::from(read_workspace(b"{").unwrap_err()).in_file("`ws.json`");
/// assert_eq!(error.to_string(), "in `ws.json`");
/// assert_eq!(full_message(&error), "in `ws.json`: the document breaks off at line 1, column 2");
/// ```
#[must_use]
pub fn full_message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(reason) = cause {
        message.push_str(": ");
        message.push_str(&reason.to_string());
        cause = reason.source();
    }
    message
}
