//! `nextstat completions`: completion scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Status;
use crate::args::Cli;
use crate::error::CliError;
use crate::report;

pub(super) fn run(shell: Shell) -> Result<Status, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nextstat", &mut script);
    report::write_stdout(&script)?;
    Ok(Status::Done)
}
