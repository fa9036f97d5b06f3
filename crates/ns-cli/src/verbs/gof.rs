//! `nextstat gof`: the goodness of the best fit.

use super::fit::verdict;
use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::n_toys;
use crate::args::{AuxChoice, DeviceArgs, SetupArgs, ThreadArgs, in_fit, stored_fit};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, warnings};
use crate::output::table::{Align, table};
use crate::output::{Paint, Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::Answer;
use nextstat::alarm::Alarm;
use nextstat::comparison::Comparison;
use nextstat::goodness::{Goodness, GoodnessRequest};
use nextstat::number::{counted, optional, significant};
use ns_inference::gof::{ChannelGoodness, GoodnessOfFit};
use ns_inference::monitor::{Monitor, NoMonitor};
use ns_inference::prediction_test::{ChannelTest, PredictionTest};
use ns_inference::toys::{GoodnessToys, RunStatus, ToyPValue};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `gof`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct GofArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Throw N toys at the best fit and fit each of them, for p-values that do not assume large
    /// counts
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    toys: Option<u64>,

    /// Auxiliary data of toys
    #[arg(long, value_name = "AUX", value_enum, default_value_t, requires = "toys")]
    aux: AuxChoice,

    /// Compare the data with what the fit in this file predicts, instead of fitting: χ² with the
    /// covariance of that fit, which must not have used the data; --mask and --fit-channels choose
    /// the bins
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["fix", "bounds", "multi_start", "toys", "aux"]
    )]
    from: Option<PathBuf>,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

impl Command for GofArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).reading_paths(self.from.as_slice())
    }

    fn run(self) -> Result<Status, CliError> {
        if let Some(path) = &self.from {
            return self.compare(path);
        }
        let reporter = Reporter::new(&self.output);
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        // Without toys there is nothing to keep when Ctrl-C ends the command.
        let progress = self.toys.map(|_| Progress::new(reporter, "toys"));
        let monitor: &dyn Monitor = progress.as_ref().map_or(&NoMonitor, |progress| progress);
        let answer = analysis.goodness(&GoodnessRequest { n_toys: self.toys, aux: self.aux.aux() }, monitor)?;
        drop(progress);
        self.output.write(&answer.document())?;
        let (goodness, toys) = (&answer.result, answer.result.toys.as_ref());
        let is_good = goodness.fit.converged && toys.is_none_or(|toys| toys.p_values.n_failed == 0);
        let notice = Notice { alarm: goodness.alarm(), is_failure: !is_good };
        reporter.summary_or_warning(notice, |paint| summary(&answer, paint));
        if toys.is_some_and(|toys| toys.ended == RunStatus::Cancelled) {
            return Ok(Status::Interrupted);
        }
        Ok(Status::done_if(is_good))
    }
}

impl GofArgs {
    /// Compares the data with the fit in the file `path`.
    fn compare(&self, path: &Path) -> Result<Status, CliError> {
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let answer = analysis.compare(&stored_fit(path)?).map_err(in_fit(path))?;
        self.output.write(&answer.document())?;
        Reporter::new(&self.output).summary(|paint| {
            let Comparison { test, warnings: said, .. } = &answer.result;
            conditions(&answer.analysis) + "\n" + &comparison(test, paint) + &warnings(said)
        });
        Ok(Status::Done)
    }
}

/// Formats how well a stored fit predicts the data.
pub(super) fn comparison(test: &PredictionTest, paint: Paint) -> String {
    let [statistic, p_value] = [optional(test.statistic, 5), optional(test.p_value, 3)];
    let bins = counted(test.n_dof, "bin");
    let said = format!("data and prediction: χ² = {statistic} for {bins}, p = {p_value}");
    let columns = [("channel", Align::Left), ("bins", Align::Right), ("χ²", Align::Right), ("p-value", Align::Right)];
    let row = |channel: &ChannelTest| {
        let numbers = [optional(channel.statistic, 4), optional(channel.p_value, 3)];
        [escape(&channel.channel), channel.n_dof.to_string()].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = test.channels.iter().map(row).collect();
    format!("  {}\n\n{}", paint.strong(&said), table(&columns, &rows))
}

/// Formats the verdict, the statistic, the channels and the warnings.
fn summary(answer: &Answer<Goodness>, paint: Paint) -> String {
    let Goodness { fit, goodness, toys } = &answer.result;
    let mut text = conditions(&answer.analysis);
    let _ = writeln!(text, "measurement `{}`\n\n{}", escape(&answer.model().measurement), verdict(fit, paint));
    text.push_str(&tables(goodness, toys.as_ref().map(|toys| &toys.p_values), paint));
    text.push_str(&warnings(&[&fit.warnings[..], &answer.result.warnings()].concat()));
    if !fit.converged {
        let _ = writeln!(text, "\n{}", verdict(fit, paint));
    }
    text
}

/// Formats the statistic and the channels.
pub(super) fn tables(goodness: &GoodnessOfFit, toys: Option<&GoodnessToys>, paint: Paint) -> String {
    let GoodnessOfFit { n_bins, n_constraints, n_free, n_undetermined, .. } = goodness;
    let p_value = goodness.p_value.map_or_else(|| "no p-value".to_owned(), |p| format!("p = {}", significant(p, 3)));
    let mut text = format!(
        "  {}\n",
        paint.strong(&format!(
            "goodness of fit: q = {} with {} degree{} of freedom, {p_value}",
            optional(goodness.statistic, 5),
            goodness.n_dof,
            if goodness.n_dof == 1 { "" } else { "s" }
        ))
    );
    let counts = [(*n_bins, "bin"), (*n_constraints, "constraint term"), (*n_free, "free parameter")];
    let [bins, constraints, free] = counts.map(|(n, what)| counted(n, what));
    let _ = write!(text, "  {bins} + {constraints} - {free}");
    if *n_undetermined > 0 {
        let _ = write!(text, " + {n_undetermined} that the data do not determine");
    }
    let _ = writeln!(text, "; the constraint terms contribute {} to q\n", optional(goodness.constraint_deviance, 4));
    if let Some(GoodnessToys { total, .. }) = toys {
        let _ = writeln!(text, "  by {}: p = {}\n", counted(total.n_toys, "toy"), with_error(total));
    }
    let mut columns = vec![
        ("channel", Align::Left),
        ("bins", Align::Right),
        ("deviance", Align::Right),
        ("ndf", Align::Right),
        ("p-value", Align::Right),
    ];
    columns.extend(toys.map(|_| ("by toys", Align::Right)));
    let rows: Vec<_> = (goodness.channels.iter().enumerate())
        .map(|(c, channel)| row(channel, toys.map(|toys| &toys.channels[c])))
        .collect();
    text + &table(&columns, &rows)
}

fn with_error(p: &ToyPValue) -> String {
    format!("{} ± {}", significant(p.value, 3), significant(p.error, 2))
}

fn row(channel: &ChannelGoodness, by_toys: Option<&ToyPValue>) -> Vec<String> {
    let mut row = vec![
        escape(&channel.channel),
        channel.n_bins.to_string(),
        optional(channel.deviance, 4),
        optional(channel.n_dof, 3),
        optional(channel.p_value, 3),
    ];
    row.extend(by_toys.map(with_error));
    row
}
