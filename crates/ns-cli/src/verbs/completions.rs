//! `nextstat completions`: completion scripts for shells.

use super::{Cli, Command};
use crate::error::CliError;
use crate::output::write_stdout;
use crate::status::Status;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to write the script for
    shell: Shell,
}

impl Command for CompletionsArgs {
    fn run(self) -> Result<Status, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "nextstat", &mut script);
        write_stdout(&script)?;
        Ok(Status::Done)
    }
}
