//! `nextstat simplify`: the background of a few channels as a small workspace.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::{SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, warnings};
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Progress, Reporter, escape, write_json, write_report};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::number::optional;
use nextstat::patchsets::GridRequest;
use nextstat::simplify::{Simplified, SimplifiedComparison, SimplifiedForm, SimplifyRequest};
use nextstat::{Analysis, Face, Settings};
use ns_inference::parallel::ExecutionContext;
use ns_translate::pyhf::write_workspace;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `simplify`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SimplifyArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Simplify a channel, or all whose names match a pattern (`SR*`); repeatable. The background
    /// is fitted to the others
    #[arg(short, long, value_name = "NAME", required = true)]
    channel: Vec<String>,

    /// Form of the yields
    #[arg(long, value_enum, default_value_t)]
    form: FormArg,

    /// Compare CLs with those of the full model: of the signal, or with a patch set of all its
    /// signals
    #[arg(long)]
    compare: bool,

    /// Write the moments of the yields and the comparison as JSON to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

/// Forms of simplified yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum FormArg {
    /// Linear in normal variables, with the covariance to first order; pyhf reads the workspace
    #[default]
    Linear,
    /// Quadratic, with means, covariance and third moments to second order
    ThirdMoments,
}

impl FormArg {
    fn form(self) -> SimplifiedForm {
        match self {
            Self::Linear => SimplifiedForm::Linear,
            Self::ThirdMoments => SimplifiedForm::ThirdMoments,
        }
    }
}

impl Command for SimplifyArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).writing(self.report.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let request = SimplifyRequest { channels: self.channel.clone(), form: self.form.form(), compare: self.compare };
        let reporter = Reporter::new(&self.output);
        let found = if self.setup.model.input.names_grid() {
            let grid = self.setup.model.input.grid("simplify")?;
            let progress = Progress::new(reporter, "signals");
            let of_all = GridRequest {
                options: &self.setup.model.options()?,
                settings: &self.setup.settings_of_several()?,
                face: Face::Command,
            };
            grid.simplify(&of_all, &request, ExecutionContext::new(self.threads.count(), &progress))?
        } else {
            let settings = Settings { threads: Some(self.threads.count()), ..self.setup.settings_of_several()? };
            Analysis::new(&self.setup.model.model()?, &settings)?.simplify(&request)?
        };
        write_json(&write_workspace(&found.workspace()), &self.output)?;
        write_report(&found.document(), self.report.as_deref())?;
        let is_failure = found.comparison.as_ref().is_some_and(|comparison| !comparison.converged());
        reporter.summary_or_warning(Notice { alarm: found.alarm(), is_failure }, |_| summary(&found));
        let is_complete = found.comparison.as_ref().is_none_or(SimplifiedComparison::is_complete);
        Ok(if is_complete { Status::done_if(!is_failure) } else { Status::Interrupted })
    }
}

/// Formats the moments of the yields, and the comparison.
fn summary(found: &Simplified) -> String {
    let document = found.document();
    let mut columns = vec![
        ("channel", Align::Left),
        ("bin", Align::Right),
        ("data", Align::Right),
        ("background", Align::Right),
        ("uncertainty", Align::Right),
        ("skewness", Align::Right),
    ];
    if found.signal.is_some() {
        columns.push(("signal", Align::Right));
    }
    let channels = document["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = channels.iter().flat_map(|channel| bins(channel, found.form)).collect();
    let mut text = table(&columns, &rows);
    if let Some(comparison) = &found.comparison {
        text += "\n";
        text += &compared(comparison);
    }
    let mut all = found.warnings.clone();
    all.extend(found.comparison.as_ref().and_then(SimplifiedComparison::warning));
    text + &warnings(&all)
}

/// Returns the rows of a channel.
fn bins(channel: &Value, form: SimplifiedForm) -> Vec<Vec<String>> {
    let [mean, width] = match form {
        SimplifiedForm::Linear => ["yields", "linear_uncertainties"],
        SimplifiedForm::ThirdMoments => ["means", "uncertainties"],
    };
    let number = |key: &str, bin: usize| optional(channel[key][bin].as_f64(), 4);
    let row = |bin: usize| {
        let mut cells = vec![escape(channel["channel"].as_str().unwrap_or_default()), bin.to_string()];
        cells.extend(["data", mean, width, "skewness"].map(|key| number(key, bin)));
        if channel["signal"].is_array() {
            cells.push(number("signal", bin));
        }
        cells
    };
    (0..channel["data"].as_array().map_or(0, Vec::len)).map(row).collect()
}

/// Formats CLs in the full model and in the simplified ones.
fn compared(comparison: &SimplifiedComparison) -> String {
    let columns = [
        ("signal", Align::Left),
        ("CLs", Align::Right),
        ("linear", Align::Right),
        ("third moments", Align::Right),
        ("expected CLs", Align::Right),
        ("linear", Align::Right),
        ("third moments", Align::Right),
    ];
    let row = |signal: &Value| {
        let test = |model: &str| &signal["tests"][model];
        let models = ["full", "linear", "third_moments"];
        let mut cells = vec![signal["patch"].as_str().map_or_else(String::new, escape)];
        cells.extend(models.map(|model| optional(test(model)["CLs_obs"].as_f64(), 4)));
        cells.extend(models.map(|model| optional(test(model)["CLs_exp"][2].as_f64(), 4)));
        cells
    };
    let rows: Vec<_> = comparison.signals.iter().map(row).collect();
    let mut text = table(&columns, &rows);
    if !comparison.is_complete() {
        let (n_done, n) = (comparison.signals.len(), comparison.n_signals);
        let _ = writeln!(text, "  interrupted after {n_done} of {n} signals");
    }
    for (form, name) in [(SimplifiedForm::Linear, "linear"), (SimplifiedForm::ThirdMoments, "third moments")] {
        let [observed, expected] = comparison.largest_differences(form).map(|difference| optional(difference, 2));
        let _ = writeln!(text, "  largest difference of CLs, {name}: {observed}, expected {expected}");
    }
    text
}
