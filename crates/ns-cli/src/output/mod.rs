//! Output: JSON as Python's `json.dumps(indent=4, sort_keys=True)` writes it, to standard output or
//! to a file; tables, on standard output if it is a terminal and on standard error if not;
//! warnings, errors and progress on standard error.

mod args;
pub(crate) mod combination;
mod progress;
pub(crate) mod reporter;
mod result;
mod rows;
mod stream;
pub(crate) mod table;

pub(crate) use args::OutputArgs;
pub(crate) use progress::Progress;
pub(crate) use reporter::{Paint, Reporter, escape};
pub(crate) use result::ResultArgs;
pub(crate) use rows::RowsDocument;
pub(crate) use stream::Stream;

use crate::error::CliError;
use ns_translate::python_json;
use ns_translate::whole_file::{NewFile, NewFileError, write_all_whole, write_whole};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the result of a verb that has a table, too: as JSON to the output that the arguments
/// name, but not to a terminal that gets the table.
pub(crate) fn write_result(document: &Value, output: &OutputArgs) -> Result<(), CliError> {
    if output.output_file.is_none() && output.has_table_on_stdout() {
        return require_stdout();
    }
    write_json(&with_command(document), output)
}

/// Returns `document` with the command line in its provenance, if it has one.
pub(crate) fn with_command(document: &Value) -> Cow<'_, Value> {
    let mut document = Cow::Borrowed(document);
    if document.get("provenance").is_some_and(Value::is_object) {
        document.to_mut()["provenance"]["command"] = json!(crate::command_line());
    }
    document
}

/// Writes the report of a verb whose result is a workspace, to the file that was named for it.
pub(crate) fn write_report(document: &Value, path: Option<&Path>) -> Result<(), CliError> {
    if path.is_none() {
        return Ok(());
    }
    write(text_of(&with_command(document))?.as_bytes(), path)
}

/// Writes a document to the output that the arguments name.
pub(crate) fn write_json(document: &impl Serialize, output: &OutputArgs) -> Result<(), CliError> {
    write_text(&text_of(document)?, output)
}

fn text_of(document: &impl Serialize) -> Result<String, CliError> {
    Ok(python_json(document).map_err(io::Error::from).map_err(stdout_error)? + "\n")
}

/// Writes text to the output that the arguments name.
pub(crate) fn write_text(text: &str, output: &OutputArgs) -> Result<(), CliError> {
    write(text.as_bytes(), output.output_file.as_deref())
}

/// Writes text to a file, or to standard output without one.
pub(crate) fn write_text_to(text: &str, path: Option<&Path>) -> Result<(), CliError> {
    write(text.as_bytes(), path)
}

/// Writes to a file, or to standard output without one.
pub(crate) fn write(bytes: &[u8], path: Option<&Path>) -> Result<(), CliError> {
    match path {
        None => write_stdout(bytes),
        Some(path) if path.as_os_str() == "-" => write_stdout(bytes),
        Some(path) => write_whole(path, bytes)
            .map_err(|source| CliError::Unwritable { name: format!("`{}`", path.display()), source }),
    }
}

/// Writes several files, each whole and none before the contents of all are on the disk. They must
/// not replace any of `read`.
pub(crate) fn write_files(files: &[NewFile], read: &[PathBuf]) -> Result<(), CliError> {
    let name = |path: &Path| format!("`{}`", path.display());
    write_all_whole(files, read).map_err(|error| match error {
        NewFileError::IsInput { path } => CliError::OutputIsInput { name: name(&path) },
        NewFileError::SamePlace { path } => CliError::OneOutput { name: name(&path) },
        NewFileError::Unwritable { path, source } => CliError::Unwritable { name: name(&path), source },
    })
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

/// Refuses a closed standard output, where results would be lost without an error.
pub(crate) fn require_stdout() -> Result<(), CliError> {
    if ns_terminal::is_stdout_closed() {
        let source = io::Error::new(io::ErrorKind::NotFound, "it is closed");
        return Err(CliError::Unwritable { name: "standard output".to_owned(), source });
    }
    Ok(())
}
