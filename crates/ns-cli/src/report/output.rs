//! Results as data: JSON as Python's `json.dumps(indent=4, sort_keys=True)` writes it, to standard output or whole to a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ns_translate::python_json;
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
        Some(path) => write_file(path, bytes)
            .map_err(|source| CliError::Unwritable { name: format!("`{}`", path.display()), source }),
    }
}

/// Writes to standard output.
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(stdout_error)
}

pub(super) fn stdout_error(source: io::Error) -> CliError {
    match source.kind() {
        io::ErrorKind::BrokenPipe => CliError::BrokenPipe,
        _ => CliError::Unwritable { name: "standard output".to_owned(), source },
    }
}

/// Writes a file whole or not at all: beside its place first, then moved there. Pipes and devices are written to as they are.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through links, so that the file behind one is replaced and not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&path).is_ok_and(|existing| !existing.is_file()) {
        return OpenOptions::new().write(true).open(&path)?.write_all(bytes);
    }
    let temporary = beside(&path);
    let written = File::create_new(&temporary).and_then(|mut file| file.write_all(bytes));
    let moved = written.and_then(|()| fs::rename(&temporary, &path));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    moved
}

pub(super) fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
