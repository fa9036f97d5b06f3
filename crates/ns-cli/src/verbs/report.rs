//! `nextstat report`: one fit with its pulls, correlations, yields and goodness.

use super::fit::{fitted_model, parameters, strongest_pulls, verdict};
use super::{Command, EXIT_CODES, gof};
use crate::args::files::Files;
use crate::args::values::threshold;
use crate::args::{PredictionArgs, SetupArgs, ThreadArgs, in_fit, stored_fit};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, warnings};
use crate::output::table::{Align, table};
use crate::output::{Paint, Progress, Reporter, ResultArgs, escape, with_command, write};
use crate::status::Status;
use clap::Args;
use nextstat::alarm::Alarm;
use nextstat::full_report::{FullReport, FullReportRequest, require_page};
use nextstat::number::{fitted, significant};
use nextstat::yields::Overview;
use nextstat::{Analysis, Answer, Face};
use ns_inference::yields::{ChannelPrediction, Prediction};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Report the fit that `nextstat fit --covariance` or `nextstat report` wrote to this file,
    /// matched by name, instead of fitting; data are compared with its prediction
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "bounds", "multi_start", "fit_blinded"])]
    from: Option<PathBuf>,

    #[command(flatten)]
    shown: PredictionArgs,

    /// Write a page for a browser to this file, which also has the ranking, scans and limits,
    /// instead of JSON to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Smallest correlation that puts a parameter into the correlation matrix of the summary; the
    /// result has all
    #[arg(long, value_name = "SIZE", value_parser = threshold, default_value_t = 0.3, allow_hyphen_values = true)]
    correlation_threshold: f64,

    /// Show the yields of every bin in the summary, not only their sums over each channel; the
    /// result has both
    #[arg(long)]
    bins: bool,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl Command for ReportArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).reading_paths(self.from.as_slice()).writing(self.html.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        self.html.as_deref().map_or(Ok(()), require_page)?;
        let analysis = match &self.from {
            None => self.setup.prediction(&self.threads, &self.shown)?,
            Some(_) => self.setup.projection(&self.threads, &self.shown)?,
        };
        if let Some(path) = &self.html {
            let full = self.page(&analysis, path)?.result;
            if self.output.is_asked_for() {
                self.output.write(&full.overview.document())?;
            }
            let notice = Notice { alarm: full.alarm(), is_failure: !full.converged() };
            self.report(&full.overview.result, notice, &full.alarms_of_parts());
            return Ok(if full.is_complete() { Status::done_if(full.converged()) } else { Status::Interrupted });
        }
        let answer = match &self.from {
            None => analysis.report()?,
            Some(path) => analysis.report_from(&stored_fit(path)?).map_err(in_fit(path))?,
        };
        self.output.write(&answer.document())?;
        let is_good = answer.result.yields.fit.result.converged;
        let notice = Notice { alarm: answer.result.alarm(), is_failure: !is_good };
        self.report(&answer.result, notice, &[]);
        Ok(Status::done_if(is_good))
    }
}

impl ReportArgs {
    /// Writes the summary of `overview` with warnings of what else was computed, or the warning of
    /// `notice`.
    fn report(&self, overview: &Overview, notice: Notice, of_others: &[String]) {
        Reporter::new(&self.output).summary_or_warning(notice, |paint| {
            Summary(overview).text(self.correlation_threshold, self.bins, paint) + &warnings(of_others)
        });
    }

    /// Writes the page to `path`. Returns what is on it.
    fn page(&self, analysis: &Analysis, path: &Path) -> Result<Answer<FullReport>, CliError> {
        let fit = self.from.as_deref().map(stored_fit).transpose()?.map(Arc::new);
        let request = FullReportRequest { fit, face: Face::Command, ..FullReportRequest::default() };
        let progress = Progress::new(Reporter::new(&self.output), "fits");
        let answer = match &self.from {
            None => analysis.full_report(&request, &progress)?,
            Some(fit) => analysis.full_report(&request, &progress).map_err(in_fit(fit))?,
        };
        drop(progress);
        let mut data = ns_report::data(&answer);
        data["report"] = with_command(&data["report"]).into_owned();
        write(ns_report::page(&data).as_bytes(), Some(path))?;
        Ok(answer)
    }
}

/// Largest correlation matrix in the summary.
const WIDEST: usize = 12;

/// The summary of one fit.
#[derive(Debug)]
struct Summary<'a>(&'a Overview);

impl Summary<'_> {
    /// Formats the verdict, the goodness, pulls, correlations of at least `threshold`, yields and
    /// warnings. A bad verdict is repeated at the end.
    fn text(&self, threshold: f64, has_bins: bool, paint: Paint) -> String {
        let fit = &self.0.yields.fit;
        let (result, model) = (&fit.result, fit.model());
        let mut text = conditions(&fit.analysis);
        let _ = writeln!(text, "{}\n", fitted_model(model, result));
        let comparison = self.0.comparison.as_ref();
        let said = comparison.map_or_else(|| verdict(result, paint), |_| "  a stored fit, not fitted again".to_owned());
        let _ = writeln!(text, "{said}");
        if result.twice_nll.is_finite() {
            let _ = writeln!(text, "  2NLL  {}", significant(result.twice_nll, 10));
        }
        text.push_str(&parameters(model, result, paint));
        let pulls = strongest_pulls(model, fit.analysis.data(), result);
        let goodness = self.0.goodness.as_ref();
        let fitted = goodness.map(|goodness| gof::tables(goodness, None, paint));
        // Of hidden data there is nothing to compare.
        let compared = comparison.filter(|comparison| comparison.test.n_dof > 0);
        let predicted = compared.map(|comparison| gof::comparison(&comparison.test, paint));
        for part in [fitted.or(predicted).unwrap_or_default(), pulls, self.correlations(threshold)] {
            if !part.is_empty() {
                let _ = write!(text, "\n{part}");
            }
        }
        let yields = &self.0.yields;
        text.push_str(&tables(&fit.analysis, &yields.prefit, &yields.postfit, has_bins));
        text.push_str(&warnings(&self.0.warnings()));
        if !result.converged {
            let _ = writeln!(text, "\n{}", verdict(result, paint));
        }
        text
    }

    /// Formats the correlations of parameters with a correlation of at least `threshold`, strongest
    /// first.
    fn correlations(&self, threshold: f64) -> String {
        let result = &self.0.yields.fit.result;
        let n = result.par_names.len();
        let Some(matrix) = result.correlation() else { return String::new() };
        let strongest = |i: usize| (0..n).filter(|&k| k != i).map(|k| matrix[i * n + k].abs()).fold(0.0, f64::max);
        let mut shown: Vec<(usize, f64)> = (0..n).map(|i| (i, strongest(i))).filter(|(_, c)| *c >= threshold).collect();
        shown.retain(|(i, _)| result.uncertainties[*i].is_some());
        shown.sort_by(|a, b| b.1.total_cmp(&a.1));
        if shown.is_empty() {
            return format!("  no two parameters have a correlation of {threshold} or more\n");
        }
        let n_left = shown.len().saturating_sub(WIDEST);
        shown.truncate(WIDEST);
        let numbers: Vec<String> = (1..=shown.len()).map(|k| k.to_string()).collect();
        let mut columns = vec![("", Align::Right), ("correlations", Align::Left)];
        columns.extend(numbers.iter().map(|k| (k.as_str(), Align::Right)));
        let row = |(k, &(i, _)): (usize, &(usize, f64))| {
            let cells = shown.iter().map(|&(j, _)| format!("{:.2}", matrix[i * n + j]));
            [numbers[k].clone(), escape(&result.par_names[i])].into_iter().chain(cells).collect()
        };
        let mut text = table(&columns, &shown.iter().enumerate().map(row).collect::<Vec<Vec<String>>>());
        if n_left > 0 {
            let _ = writeln!(
                text,
                "  {n_left} more parameters with a correlation of {threshold} or more are in the result"
            );
        }
        text
    }
}

/// One channel before and after the fit, with its data.
#[derive(Debug, Clone, Copy)]
struct ChannelYields<'a> {
    data: &'a [f64],
    /// What the data are called.
    label: &'a str,
    prefit: &'a ChannelPrediction,
    postfit: &'a ChannelPrediction,
}

impl ChannelYields<'_> {
    /// Formats the table of the channel: sums over its bins, or every bin as well.
    fn table(&self, has_bins: bool) -> String {
        let mut rows = Vec::new();
        let (before, after) = (self.prefit.rows(), self.postfit.rows());
        for ((name, before), (_, after)) in before.into_iter().zip(after) {
            add(&mut rows, &escape(name), before, after, has_bins);
        }
        add(&mut rows, "total", &self.prefit.total, &self.postfit.total, has_bins);
        // A sum over hidden data is hidden, too.
        let shown = |count: f64| if count.is_nan() { "blinded".to_owned() } else { significant(count, 6) };
        let data = |bin: &str, count: f64| vec![self.label.to_owned(), bin.to_owned(), shown(count), String::new()];
        if has_bins {
            rows.extend(self.data.iter().enumerate().map(|(bin, count)| data(&bin.to_string(), *count)));
        }
        rows.push(data("all", self.data.iter().sum()));
        let name = escape(&self.prefit.channel);
        let columns = [
            (name.as_str(), Align::Left),
            ("bin", Align::Right),
            ("pre-fit", Align::Right),
            ("post-fit", Align::Right),
        ];
        if has_bins {
            return table(&columns, &rows);
        }
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
        table(&[columns[0], columns[2], columns[3]], &rows)
    }
}

/// Appends the rows of a sample: name, bin, pre-fit and post-fit yield.
fn add(rows: &mut Vec<Vec<String>>, name: &str, before: &Prediction, after: &Prediction, has_bins: bool) {
    let bins = if has_bins { 0..before.yields.len() } else { 0..0 };
    for bin in bins {
        let of = |p: &Prediction| fitted(p.yields[bin], p.uncertainties[bin], None);
        rows.push(vec![name.to_owned(), bin.to_string(), of(before), of(after)]);
    }
    let sum = |p: &Prediction| fitted(p.sum, p.sum_uncertainty, None);
    rows.push(vec![name.to_owned(), "all".to_owned(), sum(before), sum(after)]);
}

/// Formats the tables of all channels.
pub(super) fn tables(
    analysis: &Analysis,
    prefit: &[ChannelPrediction],
    postfit: &[ChannelPrediction],
    has_bins: bool,
) -> String {
    let (model, data) = (analysis.whole_model(), analysis.shown_data());
    let label = analysis.settings().data.counts_label();
    let mut text = String::new();
    for (channel, (prefit, postfit)) in prefit.iter().zip(postfit).enumerate() {
        let channel = ChannelYields { data: &data.main[model.channel_bins(channel)], label, prefit, postfit };
        let _ = write!(text, "\n{}", channel.table(has_bins));
    }
    text
}
