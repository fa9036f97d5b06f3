//! A document with a list of rows that may be larger than memory.

use super::{OutputArgs, Stream};
use crate::error::CliError;
use ns_translate::python_json;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

/// A document one entry of which is a long list. Its rows are kept in a temporary file, because
/// entries that are sorted before them are known only at the end.
pub(crate) struct RowsDocument {
    stream: Stream,
    key: &'static str,
    rows: BufWriter<File>,
    has_rows: bool,
}

impl RowsDocument {
    /// Opens the output of a document whose entry `key` has the rows.
    pub(crate) fn begin(output: &OutputArgs, key: &'static str) -> Result<Self, CliError> {
        let stream = Stream::open(output)?;
        let rows = BufWriter::new(tempfile::tempfile().map_err(temporary)?);
        Ok(Self { stream, key, rows, has_rows: false })
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: &Value) -> Result<(), CliError> {
        let comma = if std::mem::replace(&mut self.has_rows, true) { "," } else { "" };
        let text = format!("{comma}\n{}", text_of(row)?).replace('\n', "\n        ");
        self.rows.write_all(text.as_bytes()).map_err(temporary)
    }

    /// Writes the rows in `document`, where the entry of the rows is empty.
    pub(crate) fn end(mut self, document: &Value) -> Result<(), CliError> {
        let start = format!("\n    \"{}\": [", self.key);
        let text = text_of(document)?;
        let (before, after) = text.split_once(&start).unwrap_or((&text, ""));
        self.stream.write(before)?;
        self.stream.write(&start)?;
        let mut rows = self.rows.into_inner().map_err(|error| temporary(error.into_error()))?;
        rows.seek(SeekFrom::Start(0)).map_err(temporary)?;
        self.stream.copy(&mut rows)?;
        self.stream.write(if self.has_rows { "\n    " } else { "" })?;
        self.stream.write(after)?;
        self.stream.write("\n")?;
        self.stream.end()
    }
}

fn text_of(value: &impl Serialize) -> Result<String, CliError> {
    python_json(value).map_err(|error| temporary(error.into()))
}

/// Returns the error of the temporary file.
fn temporary(source: io::Error) -> CliError {
    CliError::Unwritable { name: "a temporary file".to_owned(), source }
}
