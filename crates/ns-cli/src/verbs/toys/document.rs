//! An ensemble of toys as a document that may be larger than memory.

use crate::error::CliError;
use crate::output::OutputArgs;
use crate::output::Stream;
use nextstat::toys::{ToysSummary, row};
use ns_translate::python_json;
use ns_translate::toys::ToyFitRecord;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

/// The document of an ensemble. Toys are kept in a temporary file, because entries that are sorted
/// before them are known only at the end.
pub(super) struct ToysDocument {
    stream: Stream,
    toys: BufWriter<File>,
    has_toys: bool,
}

impl ToysDocument {
    /// Opens the output.
    pub(super) fn begin(output: &OutputArgs) -> Result<Self, CliError> {
        let stream = Stream::open(output)?;
        let toys = BufWriter::new(tempfile::tempfile().map_err(temporary)?);
        Ok(Self { stream, toys, has_toys: false })
    }

    /// Adds a toy.
    pub(super) fn toy(&mut self, fit: &ToyFitRecord) -> Result<(), CliError> {
        let comma = if std::mem::replace(&mut self.has_toys, true) { "," } else { "" };
        let text = format!("{comma}\n{}", text_of(&row(fit))?).replace('\n', "\n        ");
        self.toys.write_all(text.as_bytes()).map_err(temporary)
    }

    /// Writes the document with the entries of `summary` and `others`.
    pub(super) fn end(mut self, summary: &ToysSummary, others: Map<String, Value>) -> Result<(), CliError> {
        const TOYS: &str = "\n    \"toys\": [";
        let mut fields = summary.fields();
        fields.extend(others);
        let text = text_of(&fields)?;
        let (before, after) = text.split_once(TOYS).unwrap_or((&text, ""));
        self.stream.write(before)?;
        self.stream.write(TOYS)?;
        let mut toys = self.toys.into_inner().map_err(|error| temporary(error.into_error()))?;
        toys.seek(SeekFrom::Start(0)).map_err(temporary)?;
        self.stream.copy(&mut toys)?;
        self.stream.write(if self.has_toys { "\n    " } else { "" })?;
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
