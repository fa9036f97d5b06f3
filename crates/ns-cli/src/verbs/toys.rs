//! `nextstat toys`: an ensemble of toys, thrown and fitted, to JSON or to a NumPy file.

use super::fit_runs::{self, RunEnd, end_document};
use super::{Command, EXIT_CODES, merge};
use crate::args::files::Files;
use crate::args::values::{finite, n_toys};
use crate::args::{DeviceArgs, ResultFile, SetupArgs, ShardedArgs, ThreadArgs, ToyRunArgs, is_npy, is_piped};
use crate::error::CliError;
use crate::output::reporter::conditions;
use crate::output::{OutputArgs, Paint, Progress, Reporter, RowsDocument, escape};
use crate::status::Status;
use clap::{Args, Subcommand, ValueEnum};
use nextstat::Analysis;
use nextstat::number::{counted, significant};
use nextstat::toys::{ThrowAt, ToyEnsemble, ToysRequest, ToysSummary, row};
use ns_translate::toys::{FitRecordFormat, ToyFile};
use std::fmt::Write as _;
use std::path::Path;

/// Arguments of `toys`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ToysArgs {
    #[command(subcommand)]
    verb: Option<ToysVerb>,

    #[command(flatten)]
    throw: ThrowArgs,
}

/// Verbs for files of toys.
#[derive(Debug, Subcommand)]
enum ToysVerb {
    /// Join the shards of a run of `toys` or `hypotest-toys`: the result is that of one run of all
    /// its toys
    Merge(merge::MergeArgs),
}

/// Arguments of `toys` without a verb.
#[derive(Debug, Args)]
struct ThrowArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Number of toys
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "1000", allow_hyphen_values = true)]
    n_toys: u64,

    /// Where to throw the toys
    #[arg(long, value_name = "POINT", value_enum, default_value_t)]
    throw_at: ThrowAtArg,

    /// Throw the toys with the parameter of interest at MU and the other parameters at their best
    /// fit for it
    #[arg(long, value_name = "MU", value_parser = finite, allow_hyphen_values = true)]
    mu: Option<f64>,

    /// Write this parameter only; the bare name of a vector writes every element; repeatable
    #[arg(long, value_name = "NAME")]
    parameter: Vec<String>,

    /// Write the standard deviation of the parameter of interest too
    #[arg(long)]
    poi_uncertainty: bool,

    #[command(flatten)]
    run: ToyRunArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// Where toys are thrown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ThrowAtArg {
    /// At the best fit to the data
    #[default]
    Mle,
    /// At the model's starting values
    Init,
}

impl Command for ToysArgs {
    fn files(&self) -> Files<'_> {
        match &self.verb {
            None => self.throw.setup.files(&self.throw.output).with_documents(),
            Some(ToysVerb::Merge(merge)) => merge.files(),
        }
    }

    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        self.verb.is_none().then(|| ShardedArgs {
            verb: "toys",
            merged_by: "toys",
            file_option: "--output-file",
            resumes: true,
            division: self.throw.run.division(),
            results: vec![ResultFile::of(&self.throw.output)],
            is_table: false,
            is_piped: is_piped(&self.throw.setup, None),
            threads: self.throw.threads.given(),
        })
    }

    fn run(self) -> Result<Status, CliError> {
        match self.verb {
            None => self.throw.run(),
            Some(ToysVerb::Merge(merge)) => merge.run(),
        }
    }
}

impl ThrowArgs {
    fn run(self) -> Result<Status, CliError> {
        let file = self.output.output_file.as_deref().filter(|path| is_npy(path));
        if file.is_none() {
            self.run.require_no_file_options("--output-file OUT.npy")?;
        }
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let mut toys = analysis.toys(&self.request())?;
        match file {
            Some(path) => self.to_file(path, &mut toys)?,
            None => self.to_json(&analysis, &mut toys)?,
        }
        let summary = toys.summary();
        report(summary, Some(&analysis), file, &self.output);
        Ok(if summary.is_interrupted() { Status::Interrupted } else { Status::done_if(summary.n_failed() == 0) })
    }

    fn request(&self) -> ToysRequest {
        let mu = self.mu;
        ToysRequest {
            n_toys: self.n_toys,
            throw_at: match self.throw_at {
                ThrowAtArg::Mle => ThrowAt::BestFit { mu },
                ThrowAtArg::Init => ThrowAt::Init { mu },
            },
            parameters: self.parameter.clone(),
            poi_uncertainty: self.poi_uncertainty,
            options: self.run.options(),
        }
    }

    /// Appends the fits to a file, after those that are in it.
    fn to_file(&self, path: &Path, toys: &mut ToyEnsemble) -> Result<(), CliError> {
        let format = FitRecordFormat::of(toys.identity());
        let is_of = |toy, bytes: &[u8]| format.is_of(bytes, toy);
        let mut file = ToyFile::open(path, toys.identity().clone(), self.run.mode(), is_of)?;
        file.read(|bytes| {
            toys.resume(&format.decode(bytes));
            true
        })?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        toys.run(&progress, |toys, fits| {
            let mut bytes = Vec::with_capacity(fits.len() * format.record_bytes());
            fits.iter().for_each(|fit| format.encode(&toys.record(fit), &mut bytes));
            Ok::<_, CliError>(file.append(&bytes)?)
        })?;
        drop(progress);
        toys.answer()?;
        if !toys.summary().is_interrupted() {
            file.finish()?;
        }
        Ok(())
    }

    /// Writes the fits to a document. If the device fails, the document ends with the error.
    fn to_json(&self, analysis: &Analysis, toys: &mut ToyEnsemble) -> Result<(), CliError> {
        let mut document = RowsDocument::begin(&self.output, "toys")?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        toys.run(&progress, |toys, fits| fits.iter().try_for_each(|fit| document.row(&row(&toys.record(fit)))))?;
        drop(progress);
        end_document(document, analysis, toys.answer(), |provenance| toys.summary().document(provenance))
    }
}

/// Writes the summary of a run, whose result goes to `file` if that is given.
pub(super) fn report(toys: &ToysSummary, analysis: Option<&Analysis>, file: Option<&Path>, output: &OutputArgs) {
    let head = analysis.map(conditions).unwrap_or_default();
    let (is_interrupted, is_failure) = (toys.is_interrupted(), toys.n_failed() > 0);
    let ended = RunEnd { head, file, is_interrupted, is_failure, warnings: toys.warnings() };
    fit_runs::report(ended, output, |alarm, paint| summary(toys, alarm, paint));
}

/// Formats the counts, the parameter of interest and the warnings.
fn summary(toys: &ToysSummary, alarm: Option<&str>, paint: Paint) -> String {
    let mut text = format!("  {}, {} converged\n", counted(toys.n_toys(), "toy"), toys.n_converged());
    if let Some((name, mean, width)) = toys.poi() {
        let error = width / (toys.n_converged() as f64).sqrt();
        let [mean, error, width] = [(mean, 5), (error, 2), (width, 4)].map(|(n, digits)| significant(n, digits));
        let _ = writeln!(text, "  {}: mean {mean} ± {error}, width {width}", escape(name));
    }
    if let Some(alarm) = alarm {
        let _ = writeln!(text, "{} {}", paint.alarm("warning:"), escape(alarm));
    }
    text
}
