//! `nextstat toys merge`: the shards of a run joined.

use ns_inference::toys::{HypotestToys, ObservedStatistic, StatisticSamples};
use ns_translate::toys::{MergedToys, merge};
use serde::Deserialize;

use super::record::{FitRecord, TestRecord, is_npy};
use crate::args::{MergeArgs, OutputArgs};
use crate::command::Status;
use crate::error::CliError;
use crate::report::toys::{Document, Tally};
use crate::report::{self, Talk};

pub(super) fn run(args: &MergeArgs) -> Result<Status, CliError> {
    let merged = merge(&args.files)?;
    match merged.identity.kind.as_str() {
        "hypotest" => tests(&merged, args),
        _ => fits(&merged, args),
    }
}

fn fits(merged: &MergedToys, args: &MergeArgs) -> Result<Status, CliError> {
    let record = FitRecord::of(&merged.identity);
    let mut tally = Tally::new(&merged.identity);
    if let Some(path) = args.output.output_file.as_deref().filter(|path| is_npy(path)) {
        merged.write(path)?;
        merged.read(|bytes| {
            tally.add(&record.read(bytes));
            true
        })?;
    } else {
        let mut document = Document::begin(&merged.identity, &args.output)?;
        let mut written = Ok(());
        merged.read(|bytes| {
            let fit = record.read(bytes);
            tally.add(&fit);
            written = document.toy(&fit);
            written.is_ok()
        })?;
        written?;
        document.end(&tally, tally.n_toys(), None)?;
    }
    let alarm = tally.alarm(tally.n_toys(), None);
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |paint| tally.summary(tally.n_toys(), None, paint));
    Ok(Status::positive_if(tally.n_failed() == 0))
}

/// The observed statistic, as the document beside a file has it.
#[derive(Deserialize)]
struct WrittenObserved {
    test_stat: String,
    mu: f64,
    q: f64,
    mu_hat: f64,
}

fn tests(merged: &MergedToys, args: &MergeArgs) -> Result<Status, CliError> {
    let mut samples = StatisticSamples::default();
    merged.read(|bytes| {
        let record = TestRecord::read(bytes);
        samples.push(record.unit.which, record.value);
        true
    })?;
    let observed = serde_json::from_value::<WrittenObserved>(merged.identity.settings["observed"].clone()).ok();
    let observed = observed.and_then(|written| {
        let test_statistic = report::hypotest_toys::statistic(&written.test_stat)?;
        Some(ObservedStatistic { test_statistic, mu: written.mu, value: written.q, mu_hat: written.mu_hat })
    });
    let Some(observed) = observed else {
        return Err(CliError::NoObserved { name: format!("`{}`", args.files[0].display()) });
    };
    let result = HypotestToys::new(observed, &samples);
    let to_file = args.output.output_file.as_deref().filter(|path| is_npy(path));
    if let Some(path) = to_file {
        merged.write(path)?;
    }
    let output_file = args.output.output_file.clone().filter(|_| to_file.is_none());
    let output = OutputArgs { output_file, summary: args.output.summary, quiet: args.output.quiet };
    report::hypotest_toys::write(&merged.identity, result, None, (None, &output))
}
