//! Results too long for memory: written piece by piece to standard output, or to a file that gets its name when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::output::{beside, stdout_error};
use crate::args::OutputArgs;
use crate::error::CliError;

/// Where the pieces go.
pub(crate) struct Stream {
    writer: BufWriter<Box<dyn Write>>,
    /// The file in the making and what it is to be called.
    target: Option<(PathBuf, PathBuf)>,
}

impl Stream {
    /// Opens what the arguments name.
    pub(crate) fn open(output: &OutputArgs) -> Result<Self, CliError> {
        let path = output.output_file.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = path else {
            return Ok(Self { writer: BufWriter::new(Box::new(io::stdout())), target: None });
        };
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let is_special = fs::metadata(&path).is_ok_and(|existing| !existing.is_file());
        let at = if is_special { path.clone() } else { beside(&path) };
        let file = if is_special { File::options().write(true).open(&at) } else { File::create(&at) };
        let file = file.map_err(|source| CliError::Unwritable { name: format!("`{}`", path.display()), source })?;
        let target = (!is_special).then_some((at, path));
        Ok(Self { writer: BufWriter::new(Box::new(file)), target })
    }

    /// Writes a piece.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.writer.write_all(text.as_bytes());
        written.map_err(|source| self.failed(source))
    }

    /// Writes what is left and gives the file its name.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        let flushed = self.writer.flush();
        let moved = flushed.and_then(|()| self.target.as_ref().map_or(Ok(()), |(at, path)| fs::rename(at, path)));
        moved.map_err(|source| self.failed(source))?;
        self.target = None;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> CliError {
        match &self.target {
            None => stdout_error(source),
            Some((_, path)) => CliError::Unwritable { name: format!("`{}`", path.display()), source },
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some((at, _)) = &self.target {
            let _ = fs::remove_file(at);
        }
    }
}
