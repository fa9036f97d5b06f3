//! `nextstat table`: a table of a stored result, as LaTeX, CSV or Markdown.

use super::Command;
use crate::args::files::Files;
use crate::args::named_or_piped;
use crate::args::values::source;
use crate::error::CliError;
use crate::output::reporter::warning;
use crate::output::write_text_to;
use crate::status::Status;
use clap::Args;
use nextstat::tables::{Table, TableFormat, TableRequest};
use ns_translate::{DocumentSource, read_bytes};
use std::path::PathBuf;

const TABLES: &str = "\
Tables, the first of each result if --table is not given:
  fit            parameters, correlation, covariance
  report         parameters, pulls, correlation, yields, prefit, postfit, bins, goodness
  yields         yields, prefit, postfit, bins
  ranking        ranking, groups, breakdown
  limit          limits
  hypotest       tests
  hypotest-toys  tests, p_values
  significance   significance
  scan           scan, intervals (of one parameter), contours (of two)
  gof            goodness
  toys           toys
  fits           parameters, data_sets, correlation
  exclusion      points, contours

Results of --every-patch and of several parameters of interest have a row for each.

Exit codes: 0 done, 1 done but a fit of the result did not converge, 2 bad input or usage.";

/// Arguments of `table`.
#[derive(Debug, Args)]
#[command(after_help = TABLES)]
pub(crate) struct TableArgs {
    /// Result that a verb wrote as JSON; `-`, or no file, reads standard input
    #[arg(value_name = "RESULT", value_parser = source())]
    result: Option<DocumentSource>,

    /// Format of the table: `latex`, which is for the packages booktabs, graphicx and siunitx,
    /// `csv` or `md`
    #[arg(long, value_name = "FORMAT", default_value_t = TableFormat::Markdown, help_heading = "Output")]
    format: TableFormat,

    /// Which table; the first one if not given
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,

    /// Only rows with this name, or whose name matches this pattern (`k_*`), and of a matrix such
    /// columns; repeatable
    #[arg(long, value_name = "NAME")]
    rows: Vec<String>,

    /// Caption, as LaTeX or Markdown has it
    #[arg(long, value_name = "TEXT")]
    caption: Option<String>,

    /// Label of LaTeX, instead of `tab:TABLE`
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,

    /// Write the table to a file instead of standard output, completely or not at all
    #[arg(short, long, alias = "output", value_name = "FILE", help_heading = "Output")]
    output_file: Option<PathBuf>,
}

impl Command for TableArgs {
    fn files(&self) -> Files<'_> {
        Files::default().reading(self.result.as_ref()).writing(self.output_file.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let source = named_or_piped(self.result.as_ref())?;
        let Self { table, rows, caption, label, .. } = self;
        let table = Table::from_json(&read_bytes(&source)?, &TableRequest { table, rows, caption, label });
        let table = table.map_err(|error| CliError::Table { name: source.name(), error })?;
        write_text_to(&table.text(self.format), self.output_file.as_deref())?;
        if let Some(alarm) = table.alarm() {
            warning(&alarm);
        }
        Ok(Status::done_if(table.converged))
    }
}
