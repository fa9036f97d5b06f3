//! Output of results larger than memory: written in pieces to standard output, or to a file that
//! gets its name when it is complete.

use super::OutputArgs;
use super::{require_stdout, stdout_error};
use crate::error::CliError;
use ns_translate::whole_file::{OutputTarget, ReplacementFile};
use std::io::{self, BufWriter, Read, Write};

/// The output.
pub(crate) struct Stream {
    writer: BufWriter<Box<dyn Write>>,
    /// The file, until it is complete.
    replacement: Option<ReplacementFile>,
}

impl Stream {
    /// Opens the output that the arguments name; a terminal that gets a table gets nothing else.
    pub(crate) fn open(output: &OutputArgs) -> Result<Self, CliError> {
        let path = output.output_file.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = path else {
            require_stdout()?;
            let is_table = output.has_table_on_stdout();
            let stdout: Box<dyn Write> = if is_table { Box::new(io::sink()) } else { Box::new(io::stdout()) };
            return Ok(Self { writer: BufWriter::new(stdout), replacement: None });
        };
        let opened = OutputTarget::open(path).and_then(|target| match target {
            OutputTarget::Special(file) => Ok((file, None)),
            OutputTarget::Replacement(replacement) => Ok((replacement.file().try_clone()?, Some(replacement))),
        });
        let (file, replacement) =
            opened.map_err(|source| CliError::Unwritable { name: format!("`{}`", path.display()), source })?;
        Ok(Self { writer: BufWriter::new(Box::new(file)), replacement })
    }

    /// Writes a piece.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.writer.write_all(text.as_bytes());
        written.map_err(|source| self.failed(source))
    }

    /// Writes everything in `from`.
    pub(crate) fn copy(&mut self, from: &mut impl Read) -> Result<(), CliError> {
        io::copy(from, &mut self.writer).map(|_| ()).map_err(|source| self.failed(source))
    }

    /// Flushes the output and gives the file its name.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        self.writer.flush().map_err(|source| self.failed(source))?;
        let Some(replacement) = self.replacement else { return Ok(()) };
        let name = format!("`{}`", replacement.path().display());
        replacement.finish().map_err(|source| CliError::Unwritable { name, source })
    }

    fn failed(&self, source: io::Error) -> CliError {
        match &self.replacement {
            None => stdout_error(source),
            Some(replacement) => CliError::Unwritable { name: format!("`{}`", replacement.path().display()), source },
        }
    }
}
