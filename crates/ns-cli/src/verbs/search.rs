//! `nextstat search`: local and global significances of every signal of a patch set.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::n_toys;
use crate::args::{SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions_of, warnings};
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::Face;
use nextstat::number::optional;
use nextstat::patchsets::GridRequest;
use nextstat::signal_search::{Search, SearchRequest};
use ns_inference::global_significance::GlobalPValue;
use ns_inference::parallel::ExecutionContext;
use serde_json::Value;
use std::fmt::Write as _;

/// Arguments of `search`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Throw N toys of the background and fit each under every signal, as a check of the global
    /// p-value that large counts give
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    toys: Option<u64>,

    /// Samples of the field of local significances for each global p-value
    #[arg(long, value_name = "N", default_value_t = SearchRequest::default().n_samples)]
    samples: usize,

    /// Find upper limits on every signal, too
    #[arg(long)]
    limits: bool,

    /// Write the correlations of the local significances, too
    #[arg(long)]
    correlations: bool,

    /// Label along which upcrossings are counted, such as a mass; the only one with a number of its
    /// own for every signal if not given
    #[arg(long, value_name = "LABEL")]
    along: Option<String>,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl Command for SearchArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let grid = self.setup.model.input.grid("search")?;
        let reporter = Reporter::new(&self.output);
        let progress = Progress::new(reporter, "signals");
        let request = GridRequest {
            options: &self.setup.model.options()?,
            settings: &self.setup.settings_of_several()?,
            face: Face::Command,
        };
        let search = SearchRequest {
            n_samples: self.samples,
            n_toys: self.toys.unwrap_or(0),
            limits: self.limits,
            correlations: self.correlations,
            label: self.along,
        };
        let found = grid.search(&request, &search, ExecutionContext::new(self.threads.count(), &progress))?;
        drop(progress);
        self.output.write(&found.document())?;
        let notice = Notice { alarm: found.alarm(), is_failure: !found.converged };
        reporter.summary_or_warning(notice, |_| summary(&found));
        Ok(if found.complete { Status::done_if(found.converged) } else { Status::Interrupted })
    }
}

/// Formats the local significances, and the global p-values of the largest.
fn summary(found: &Search) -> String {
    let mut columns = vec![
        ("patch", Align::Left),
        ("best fit", Align::Right),
        ("Z", Align::Right),
        ("p-value", Align::Right),
        ("linear Z", Align::Right),
    ];
    if found.patches.iter().any(|patch| !patch["limit"].is_null()) {
        columns.extend([("limit", Align::Right), ("expected", Align::Right)]);
    }
    let rows: Vec<_> = found.patches.iter().map(|patch| row(patch, columns.len())).collect();
    let mut text = conditions_of(&found.document()["provenance"]) + &table(&columns, &rows);
    if let Some(strongest) = &found.strongest {
        let _ = writeln!(
            text,
            "\n  largest local significance {} (p-value {}), of `{}`",
            optional(Some(strongest.z), 4),
            optional(Some(strongest.p0), 4),
            escape(&strongest.patch)
        );
    }
    let mut global = |name: &str, found: Option<GlobalPValue>| {
        if let Some(found) = found {
            let error = found.error.map_or(String::new(), |error| format!(" ± {}", optional(Some(error), 2)));
            let (z, p) = (optional(found.significance, 4), optional(Some(found.p_value), 4));
            let _ = writeln!(text, "  global p-value {name}: {p}{error}, Z = {z}");
        }
    };
    global("by the field of local significances", found.field);
    if let Some(upcrossings) = &found.upcrossings {
        global(&format!("by upcrossings along `{}`", escape(&upcrossings.label)), upcrossings.global);
    }
    if let Some(toys) = &found.toys {
        global(&format!("by {} toys", toys.n_toys - toys.n_failed), toys.global);
    }
    if !found.complete {
        let _ = writeln!(text, "  interrupted after {} of {} patches", found.patches.len(), found.n_patches);
    }
    text + &warnings(&found.warnings)
}

fn row(patch: &Value, n_columns: usize) -> Vec<String> {
    let result = &patch["result"];
    let number = |value: &Value| optional(value.as_f64(), 4);
    let mut cells = vec![
        escape(patch["patch"].as_str().unwrap_or_default()),
        number(&result["poi"]["bestfit"]),
        number(&result["Z_obs"]),
        number(&result["p0_obs"]),
        number(&patch["Z_linear"]),
    ];
    cells.extend([number(&patch["limit"]["observed"]), number(&patch["limit"]["expected"][2])]);
    cells.truncate(n_columns);
    cells
}
