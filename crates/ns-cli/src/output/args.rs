//! Arguments that say where the result goes.

use clap::Args;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Where the result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write the result as JSON to a file instead of standard output, completely or not at all
    #[arg(short, long, alias = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) output_file: Option<PathBuf>,

    /// Write JSON to standard output even if it is a terminal, which gets a table otherwise
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print the table even if neither standard output nor standard error is a terminal, as in the
    /// log of a batch job
    #[arg(long, overrides_with = "quiet", help_heading = "Output")]
    pub(crate) summary: bool,

    /// Print no table and no advice; errors and failures are still printed
    #[arg(short, long, overrides_with = "summary", help_heading = "Output")]
    pub(crate) quiet: bool,
}

impl OutputArgs {
    /// The names of the option for the file of the result.
    pub(crate) const FILE_OPTIONS: &'static [&'static str] = &["--output-file", "--output", "-o"];

    /// Returns `true` if standard output is a terminal that gets the table of a result and not its
    /// JSON.
    pub(crate) fn has_table_on_stdout(&self) -> bool {
        !self.quiet && !self.json && !self.is_to_stdout() && io::stdout().is_terminal()
    }

    /// Returns `true` if the arguments name standard output for the result.
    fn is_to_stdout(&self) -> bool {
        self.output_file.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}
