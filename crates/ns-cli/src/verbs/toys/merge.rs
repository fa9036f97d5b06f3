//! `nextstat toys merge`: the shards of a run joined.

use super::report;
use crate::args::files::Files;
use crate::args::is_npy;
use crate::error::CliError;
use crate::output::{OutputArgs, RowsDocument, write_result};
use crate::status::Status;
use crate::verbs::{Command, hypotest_toys};
use clap::Args;
use nextstat::fits;
use nextstat::toy_tests::{ToyTestResult, observed};
use nextstat::toys::{ToysSummary, row};
use ns_inference::toys::{HypotestToys, StatisticSamples};
use ns_translate::toys::{FitRecordFormat, MergedToys, ToyTestRecord, merge};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Arguments of `toys merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// Files of all shards, in any order, each with its `.json` beside it
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for MergeArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[], &self.output).reading_paths(&self.files).with_documents()
    }

    fn run(self) -> Result<Status, CliError> {
        let merged = merge(&self.files)?;
        match merged.identity.kind.as_str() {
            "hypotest" => self.tests(&merged),
            fits::KIND => Err(CliError::NotDivided { name: format!("`{}`", self.files[0].display()) }),
            _ => self.fits(&merged),
        }
    }
}

impl MergeArgs {
    /// Returns the NumPy file that the result goes to, if any.
    fn file(&self) -> Option<&Path> {
        self.output.output_file.as_deref().filter(|path| is_npy(path))
    }

    fn fits(&self, merged: &MergedToys) -> Result<Status, CliError> {
        let format = FitRecordFormat::of(&merged.identity);
        let mut summary = ToysSummary::new(&merged.identity, 0);
        if let Some(path) = self.file() {
            merged.write(path)?;
            merged.read(|bytes| {
                summary.add(&format.decode(bytes));
                true
            })?;
        } else {
            let mut document = RowsDocument::begin(&self.output, "toys")?;
            let mut written = Ok(());
            merged.read(|bytes| {
                let fit = format.decode(bytes);
                summary.add(&fit);
                written = document.row(&row(&fit));
                written.is_ok()
            })?;
            written?;
            document.end(&summary.document(Value::Null))?;
        }
        report(&summary, None, None, &self.output);
        Ok(Status::done_if(summary.n_failed() == 0))
    }

    fn tests(&self, merged: &MergedToys) -> Result<Status, CliError> {
        let mut samples = StatisticSamples::default();
        merged.read(|bytes| {
            let record = ToyTestRecord::decode(bytes);
            samples.push(usize::from(record.hypothesis), record.value);
            true
        })?;
        let no_observed = || CliError::NoObserved { name: format!("`{}`", self.files[0].display()) };
        let observed = observed(&merged.identity).ok_or_else(no_observed)?;
        let result = ToyTestResult::new(merged.identity.clone(), HypotestToys::new(observed, &samples), None);
        let file = self.file();
        if let Some(path) = file {
            merged.write(path)?;
        }
        let output_file = self.output.output_file.clone().filter(|_| file.is_none());
        let OutputArgs { json, summary, quiet, .. } = self.output;
        let output = OutputArgs { output_file, json, summary, quiet };
        write_result(&result.merged_document(), &output)?;
        Ok(hypotest_toys::report(&result, None, &output))
    }
}
