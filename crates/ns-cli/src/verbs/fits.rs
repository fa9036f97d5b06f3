//! `nextstat fits`: many data sets of one's own, fitted, to JSON or to a NumPy file.

use super::fit_runs::{self, RunEnd, end_document};
use super::merge::MergeArgs;
use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::source;
use crate::args::{DeviceArgs, ResultFile, SetupArgs, ShardedArgs, ThreadArgs, is_npy, is_piped, shard};
use crate::error::CliError;
use crate::output::reporter::conditions;
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Paint, Progress, Reporter, RowsDocument, escape};
use crate::status::Status;
use clap::{Args, Subcommand};
use nextstat::fits::{DataSetFits, FitsRequest, FitsSummary, ParameterSummary, row};
use nextstat::number::{counted, measured, optional};
use nextstat::toys::ToyPart;
use nextstat::{Analysis, Error};
use ns_translate::toys::{Shard, ToyFile, ToyFileMode};
use ns_translate::{DocumentError, DocumentSource, NumberTable, read_bytes, read_number_table};
use std::fmt::Write as _;
use std::path::Path;

/// Parameters that the table shows at most.
const SHOWN: usize = 20;

/// Arguments of `fits`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct FitsArgs {
    #[command(subcommand)]
    verb: Option<FitsVerb>,

    #[command(flatten)]
    run: RunArgs,
}

/// Verbs for files of fits.
#[derive(Debug, Subcommand)]
enum FitsVerb {
    /// Join the shards of a run: the result is that of one run of all its data sets
    Merge(MergeArgs),
}

/// Arguments of `fits` without a verb.
#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Data sets, one in each row: the bins of all channels in the order of the model, or these and
    /// the auxiliary data; a NumPy file (.npy, or .npz with one array), text with a row on each
    /// line, or a JSON list of rows; `-` reads standard input
    #[arg(long, value_name = "FILE", value_parser = source(), required = true)]
    data: Option<DocumentSource>,

    /// Write this parameter only; the bare name of a vector writes every element; repeatable
    #[arg(long, value_name = "NAME")]
    parameter: Vec<String>,

    /// Write the standard deviations of the parameters in every data set too
    #[arg(long)]
    uncertainties: bool,

    /// Fit only the K-th of N contiguous shards of the data sets, K from 1; needs a NumPy file;
    /// `fits merge` joins shards
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Shard>,

    /// Continue a run with the same arguments that was interrupted or killed; needs a NumPy file
    #[arg(long)]
    resume: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

impl Command for FitsArgs {
    fn files(&self) -> Files<'_> {
        match &self.verb {
            None => self.run.setup.files(&self.run.output).reading(self.run.data.as_ref()).with_documents(),
            Some(FitsVerb::Merge(merge)) => merge.files(),
        }
    }

    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        self.verb.is_none().then(|| ShardedArgs {
            verb: "fits",
            merged_by: "fits",
            file_option: "--output-file",
            resumes: true,
            division: (self.run.shard, self.run.resume),
            results: vec![ResultFile::of(&self.run.output)],
            is_table: false,
            is_piped: is_piped(&self.run.setup, self.run.data.as_ref()),
            threads: self.run.threads.given(),
        })
    }

    fn run(self) -> Result<Status, CliError> {
        match self.verb {
            None => self.run.run(),
            Some(FitsVerb::Merge(merge)) => merge.run(),
        }
    }
}

impl RunArgs {
    fn run(self) -> Result<Status, CliError> {
        let file = self.output.output_file.as_deref().filter(|path| is_npy(path));
        let needs_file = self.shard.map(|_| "--shard").or_else(|| self.resume.then_some("--resume"));
        if let Some(option) = needs_file.filter(|_| file.is_none()) {
            return Err(CliError::NeedsToyFile { option, file: "--output-file OUT.npy" });
        }
        let table = self.table()?;
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let mut fits = self.prepare(&analysis, table)?;
        match file {
            Some(path) => self.to_file(path, &mut fits)?,
            None => self.to_json(&analysis, &mut fits)?,
        }
        let summary = fits.summary();
        let data = escape(&self.data().name());
        report(summary, format!("data sets: {data}\nnominal {}", conditions(&analysis)), file, &self.output);
        Ok(if summary.is_interrupted() { Status::Interrupted } else { Status::done_if(summary.converged()) })
    }

    /// Returns the source of the data sets; without a verb the parser requires one.
    fn data(&self) -> DocumentSource {
        self.data.clone().unwrap_or(DocumentSource::Stdin)
    }

    /// Reads the table of data sets.
    fn table(&self) -> Result<NumberTable, CliError> {
        let input = &self.setup.model.input;
        let workspace = input.workspace.source()?;
        let mut documents = input.patch.iter().chain([&workspace]);
        let data = self.data();
        if data == DocumentSource::Stdin && documents.any(|source| *source == DocumentSource::Stdin) {
            return Err(CliError::TwoFromStdin);
        }
        let table = read_number_table(&read_bytes(&data)?);
        Ok(table.map_err(|error| DocumentError::from(error).in_file(&data.name()))?)
    }

    fn prepare(&self, analysis: &Analysis, table: NumberTable) -> Result<DataSetFits, CliError> {
        let request = FitsRequest {
            parameters: self.parameter.clone(),
            uncertainties: self.uncertainties,
            part: ToyPart::Shard(self.shard.unwrap_or(Shard::WHOLE)),
            ..FitsRequest::new(table)
        };
        analysis.fits(&request).map_err(|error| match error {
            Error::DataSets(error) => CliError::DataSets { name: self.data().name(), error },
            other => other.into(),
        })
    }

    /// Appends the fits to a file, after those that are in it.
    fn to_file(&self, path: &Path, fits: &mut DataSetFits) -> Result<(), CliError> {
        let format = fits.format();
        let mode = if self.resume { ToyFileMode::Resume } else { ToyFileMode::Fresh };
        let is_of = |data_set, bytes: &[u8]| format.is_of(bytes, data_set);
        let mut file = ToyFile::open(path, fits.identity().clone(), mode, is_of)?;
        file.read(|bytes| {
            fits.resume(&format.decode(bytes));
            true
        })?;
        let progress = Progress::new(Reporter::new(&self.output), "data sets");
        fits.run(&progress, |fits, more| {
            let mut bytes = Vec::with_capacity(more.len() * format.record_bytes());
            more.iter().for_each(|fit| format.encode(&fits.record(fit), &mut bytes));
            Ok::<_, CliError>(file.append(&bytes)?)
        })?;
        drop(progress);
        fits.answer()?;
        if !fits.summary().is_interrupted() {
            file.finish()?;
        }
        Ok(())
    }

    /// Writes the fits to a document. If the device fails, the document ends with the error.
    fn to_json(&self, analysis: &Analysis, fits: &mut DataSetFits) -> Result<(), CliError> {
        let mut document = RowsDocument::begin(&self.output, "data_sets")?;
        let progress = Progress::new(Reporter::new(&self.output), "data sets");
        fits.run(&progress, |fits, more| more.iter().try_for_each(|fit| document.row(&row(&fits.record(fit)))))?;
        drop(progress);
        end_document(document, analysis, fits.answer(), |provenance| fits.summary().document(provenance))
    }
}

/// Writes the summary of a run below `head`; the result goes to `file` if that is given.
pub(super) fn report(fits: &FitsSummary, head: String, file: Option<&Path>, output: &OutputArgs) {
    let (is_interrupted, is_failure) = (fits.is_interrupted(), !fits.converged());
    let ended = RunEnd { head, file, is_interrupted, is_failure, warnings: fits.warnings() };
    fit_runs::report(ended, output, |alarm, paint| summary(fits, alarm, paint));
}

/// Formats the counts, the parameters that vary, the one of interest first, and the warnings.
fn summary(fits: &FitsSummary, alarm: Option<&str>, paint: Paint) -> String {
    let mut text = format!("  {}, {} converged\n", counted(fits.n_done(), "data set"), fits.n_converged());
    let varies = |parameter: &ParameterSummary| parameter.standard_deviation.is_some_and(|width| width > 0.0);
    let mut varying: Vec<(bool, ParameterSummary)> =
        (0..).zip(fits.parameters()).map(|(i, parameter)| (Some(i) != fits.poi(), parameter)).collect();
    varying.retain(|(_, parameter)| varies(parameter));
    varying.sort_by_key(|(is_other, _)| *is_other);
    if !varying.is_empty() {
        let columns = [
            ("parameter", Align::Left),
            ("nominal", Align::Right),
            ("mean", Align::Right),
            ("standard deviation", Align::Right),
        ];
        let n = fits.n_converged() as f64;
        let rows: Vec<Vec<String>> = varying.iter().take(SHOWN).map(|(_, parameter)| cells(parameter, n)).collect();
        let _ = write!(text, "\n{}", table(&columns, &rows));
    }
    if varying.len() > SHOWN {
        let _ = writeln!(text, "  {} more parameters are in the result", varying.len() - SHOWN);
    }
    if let Some(alarm) = alarm {
        let _ = writeln!(text, "{} {}", paint.alarm("warning:"), escape(alarm));
    }
    text
}

/// Returns the row of a parameter: the fit to the nominal data, and the mean with its error and the
/// standard deviation over `n` fits.
fn cells(parameter: &ParameterSummary, n: f64) -> Vec<String> {
    let ParameterSummary { bestfit, uncertainty, mean, standard_deviation: width, .. } = parameter;
    let nominal = bestfit.map_or_else(|| "-".to_owned(), |bestfit| measured(bestfit, *uncertainty));
    let mean = mean.map_or_else(|| "-".to_owned(), |mean| measured(mean, width.map(|width| width / n.sqrt())));
    vec![escape(&parameter.parameter), nominal, mean, optional(*width, 4)]
}
