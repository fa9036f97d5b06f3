//! Files that a verb reads and writes: a result must not replace one of its inputs.

use super::InputArgs;
use crate::error::CliError;
use crate::output::OutputArgs;
use ns_translate::DocumentSource;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a verb.
#[derive(Default)]
pub(crate) struct Files<'a> {
    read: Vec<&'a Path>,
    written: Vec<PathBuf>,
    /// The results: not two to one place.
    results: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    /// Returns the files of a verb that reads a workspace with its patches.
    pub(crate) fn new(input: &'a InputArgs, output: &'a OutputArgs) -> Self {
        let documents = input.workspace.named().into_iter().chain(&input.patch);
        let read = documents.filter_map(DocumentSource::path_on_disk).chain(input.patchset.as_deref()).collect();
        Self::reads(read, output)
    }

    /// Returns the files of a verb that reads `sources`.
    pub(crate) fn of(sources: &[Option<&'a DocumentSource>], output: &'a OutputArgs) -> Self {
        let read = sources.iter().copied().flatten().filter_map(DocumentSource::path_on_disk).collect();
        Self::reads(read, output)
    }

    fn reads(read: Vec<&'a Path>, output: &OutputArgs) -> Self {
        let written: Vec<PathBuf> = output.output_file.iter().cloned().collect();
        Self { read, results: written.clone(), written }
    }

    /// Adds the place of the result, which may be standard output.
    pub(crate) fn with_result(mut self, output: &OutputArgs) -> Self {
        self.results = vec![output.output_file.clone().unwrap_or_else(|| PathBuf::from("-"))];
        self
    }

    /// Adds a document that is read.
    pub(crate) fn reading(mut self, source: Option<&'a DocumentSource>) -> Self {
        self.read.extend(source.and_then(DocumentSource::path_on_disk));
        self
    }

    /// Adds files that are read.
    pub(crate) fn reading_paths(mut self, paths: &'a [PathBuf]) -> Self {
        self.read.extend(paths.iter().map(PathBuf::as_path));
        self
    }

    /// Adds a file that is written.
    pub(crate) fn writing(mut self, path: Option<&PathBuf>) -> Self {
        self.written.extend(path.cloned());
        self.results.extend(path.cloned());
        self
    }

    /// Adds the files that nextstat writes beside files of toys.
    pub(crate) fn with_documents(mut self) -> Self {
        let is_npy = |path: &&PathBuf| super::is_npy(path);
        let beside = |path: &PathBuf| [".json", ".part", ".part.json"].map(|suffix| with_suffix(path, suffix));
        let more: Vec<PathBuf> = self.written.iter().filter(is_npy).flat_map(beside).collect();
        self.written.extend(more);
        self
    }

    /// Refuses files that are read and do not exist.
    ///
    /// # Errors
    /// That of reading the first of them.
    pub(crate) fn require_inputs(&self) -> Result<(), CliError> {
        match self.read.iter().find(|path| !path.exists()) {
            Some(path) => Ok(ns_translate::read_bytes(&DocumentSource::Path(path.to_path_buf())).map(drop)?),
            None => Ok(()),
        }
    }

    /// Refuses a result that would replace an input, and two results in one place.
    ///
    /// # Errors
    /// [`CliError::OutputIsInput`] or [`CliError::OneOutput`] with the name of that file.
    pub(crate) fn require_other_output(&self) -> Result<(), CliError> {
        let is_same = |a: &PathBuf, b: &PathBuf| a == b || same_file::is_same_file(a, b).unwrap_or(false);
        for (i, path) in self.results.iter().enumerate() {
            if self.results[..i].iter().any(|other| is_same(other, path)) {
                return Err(CliError::OneOutput { name: shown(path) });
            }
        }
        let is_file = |path: &&PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file());
        let is_read =
            |path: &&PathBuf| self.read.iter().any(|input| same_file::is_same_file(input, path).unwrap_or(false));
        match self.written.iter().filter(is_file).find(is_read) {
            Some(path) => Err(CliError::OutputIsInput { name: format!("`{}`", path.display()) }),
            None => Ok(()),
        }
    }
}

fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".to_owned() } else { format!("`{}`", path.display()) }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(suffix);
    name.into()
}
