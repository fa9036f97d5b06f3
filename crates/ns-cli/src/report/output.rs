//! Results as data: JSON as Python's `json.dumps(indent=4, sort_keys=True)` writes it, to standard output or whole to a file.

use std::io::{self, Write};

use ns_translate::python_json;
use ns_translate::whole_file::write_whole;
use serde::Serialize;
use serde_json::Value;

use crate::args::OutputArgs;
use crate::error::CliError;

/// A result as a document: keys sorted, numbers that are not finite `null`.
pub(crate) fn to_document(result: &impl Serialize) -> Value {
    // Results have text keys, and that is all that could go wrong.
    serde_json::to_value(result).unwrap_or(Value::Null)
}

/// Writes a document where the arguments want it.
pub(crate) fn write_json(document: &impl Serialize, output: &OutputArgs) -> Result<(), CliError> {
    let text = python_json(document).map_err(io::Error::from).map_err(stdout_error)?;
    write_text(&(text + "\n"), output)
}

/// Writes lines where the arguments want them.
pub(crate) fn write_text(text: &str, output: &OutputArgs) -> Result<(), CliError> {
    write(text.as_bytes(), output)
}

fn write(bytes: &[u8], output: &OutputArgs) -> Result<(), CliError> {
    match &output.output_file {
        None => write_stdout(bytes),
        Some(path) if path.as_os_str() == "-" => write_stdout(bytes),
        Some(path) => write_whole(path, bytes)
            .map_err(|source| CliError::Unwritable { name: format!("`{}`", path.display()), source }),
    }
}

/// Writes to standard output.
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<(), CliError> {
    require_stdout()?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(stdout_error)
}

pub(crate) fn stdout_error(source: io::Error) -> CliError {
    match source.kind() {
        io::ErrorKind::BrokenPipe => CliError::BrokenPipe,
        _ => CliError::Unwritable { name: "standard output".to_owned(), source },
    }
}

/// Finds out whether there is a standard output: what is written to a closed one would be lost without an error.
pub(crate) fn require_stdout() -> Result<(), CliError> {
    if ns_terminal::is_stdout_closed() {
        let source = io::Error::new(io::ErrorKind::NotFound, "it is closed");
        return Err(CliError::Unwritable { name: "standard output".to_owned(), source });
    }
    Ok(())
}
