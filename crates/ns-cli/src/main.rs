//! The `nextstat` command: arguments, one library call, one report.
//!
//! `args` says what can be asked, `command` has one file per verb, `report` writes what came out. Standard output is data, standard error is
//! talk; exit codes are those of [`command::Status`].

mod args;
mod command;
mod error;
mod parameters;
mod report;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use error::CliError;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::explain(&error),
    };
    match command::run(cli.verb) {
        Ok(status) => status.into(),
        // Whoever reads the output has read enough.
        Err(CliError::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            report::talk::error(&error);
            ExitCode::from(2)
        }
    }
}
