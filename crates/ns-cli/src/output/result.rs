//! Arguments of verbs whose results have tables for papers, instead of JSON.

use super::{OutputArgs, write_result, write_text};
use crate::error::CliError;
use clap::builder::PossibleValue;
use clap::error::Error as ClapError;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use nextstat::tables::{Table, TableFormat, TableRequest};
use serde_json::Value;
use std::ops::Deref;

/// Where a result goes, and in which format.
#[derive(Debug)]
pub(crate) struct ResultArgs {
    output: OutputArgs,
    table: TableArgs,
}

/// Which format, and which table.
#[derive(Debug, Args)]
struct TableArgs {
    /// Write a table of the result instead of JSON
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json", help_heading = "Output")]
    format: Option<FormatArg>,

    /// Which table, where the result has several; the first one if not given: `nextstat table
    /// --help` lists them
    #[arg(long, value_name = "TABLE", requires = "format", help_heading = "Output")]
    table: Option<String>,
}

/// Formats of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatArg {
    Json,
    Table(TableFormat),
}

impl FormatArg {
    /// Returns the format of a table; `None` for JSON.
    fn of_table(self) -> Option<TableFormat> {
        match self {
            Self::Json => None,
            Self::Table(format) => Some(format),
        }
    }
}

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        const FORMATS: [FormatArg; 4] = [
            FormatArg::Json,
            FormatArg::Table(TableFormat::Latex),
            FormatArg::Table(TableFormat::Csv),
            FormatArg::Table(TableFormat::Markdown),
        ];
        &FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Json => PossibleValue::new("json").help("The whole result"),
            Self::Table(format) => PossibleValue::new(format.name()).help(format.description()),
        })
    }
}

impl TableArgs {
    /// Returns the format of a table; `None` for JSON.
    fn format(&self) -> Result<Option<TableFormat>, CliError> {
        let format = self.format.and_then(FormatArg::of_table);
        match &self.table {
            Some(_) if format.is_none() => Err(CliError::NeedsFormat),
            _ => Ok(format),
        }
    }
}

impl ResultArgs {
    /// Writes the result, as JSON or as a table of it, to the output that the arguments name.
    pub(crate) fn write(&self, document: &Value) -> Result<(), CliError> {
        let Some(format) = self.table.format()? else { return write_result(document, &self.output) };
        let request = TableRequest { table: self.table.table.clone(), ..TableRequest::default() };
        let table = Table::of(document, &request);
        let table = table.map_err(CliError::ResultTable)?;
        write_text(&table.text(format), &self.output)
    }

    /// Returns `true` if the result is written as a table.
    pub(crate) fn is_table(&self) -> bool {
        self.table.format.is_some_and(|format| format.of_table().is_some())
    }

    /// Returns `true` if the arguments ask for the result, and not only for what else the verb
    /// writes.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.table.format.is_some() || self.output.json || self.output.output_file.is_some()
    }
}

impl Deref for ResultArgs {
    type Target = OutputArgs;

    fn deref(&self) -> &OutputArgs {
        &self.output
    }
}

impl FromArgMatches for ResultArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let (mut output, table) = (OutputArgs::from_arg_matches(matches)?, TableArgs::from_arg_matches(matches)?);
        // Who names a format gets it at a terminal, too.
        output.json |= table.format.is_some();
        Ok(Self { output, table })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ResultArgs {
    fn augment_args(command: Command) -> Command {
        TableArgs::augment_args(OutputArgs::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
