//! `nextstat toys merge` and `nextstat fits merge`: the shards of a run joined.

use crate::args::files::Files;
use crate::args::is_npy;
use crate::error::CliError;
use crate::output::{OutputArgs, RowsDocument, write_result};
use crate::status::Status;
use crate::verbs::fits as verb_fits;
use crate::verbs::{Command, hypotest_toys, toys};
use clap::Args;
use nextstat::fits::{self, FitsSummary};
use nextstat::toy_tests::{ToyTestResult, observed};
use nextstat::toys::{ToysSummary, row};
use ns_inference::toys::{HypotestToys, StatisticSamples};
use ns_translate::toys::{FitRecordFormat, MergedToys, ToyTestRecord, merge};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Arguments of `toys merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
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
            fits::KIND => self.data_sets(&merged),
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
        toys::report(&summary, None, None, &self.output);
        Ok(Status::done_if(summary.n_failed() == 0))
    }

    fn data_sets(&self, merged: &MergedToys) -> Result<Status, CliError> {
        let named = |error| CliError::FitsFile { name: format!("`{}`", self.files[0].display()), error };
        let summary = if let Some(path) = self.file() {
            let summary = FitsSummary::of_files(merged, |_| {}).map_err(named)?;
            merged.write(path)?;
            summary
        } else {
            let mut document = RowsDocument::begin(&self.output, "data_sets")?;
            let mut written = Ok(());
            let summary = FitsSummary::of_files(merged, |fit| {
                if written.is_ok() {
                    written = document.row(&fits::row(&fit));
                }
            });
            written?;
            let summary = summary.map_err(named)?;
            document.end(&summary.document(Value::Null))?;
            summary
        };
        verb_fits::report(&summary, String::new(), None, &self.output);
        Ok(Status::done_if(summary.converged()))
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
