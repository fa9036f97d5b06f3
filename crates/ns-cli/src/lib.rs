//! The `nextstat` command: arguments, one library call, one report.
//!
//! `args` says what can be asked, `command` has one file per verb, `report` writes what came out. Standard output is data, standard error is
//! talk; exit codes are those of `command::Status`.

mod args;
mod command;
mod error;
mod report;
mod usage;

use std::ffi::OsString;

use clap::Parser;

use args::Cli;
use error::CliError;

/// Exit code of a command that could not be done: bad input or usage.
pub(crate) const UNUSABLE: u8 = 2;

/// Does what `arguments` ask, the first of which is the command's own name, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // The parser quotes arguments as they are; it makes the same error of escaped ones.
            let arguments = ns_terminal::escape_arguments(&arguments);
            let error = Cli::try_parse_from(&arguments).err().unwrap_or(error);
            return usage::explain(&error, &arguments);
        }
    };
    if let Some(warning) = ns_terminal::unknown_instruction_set() {
        report::talk::warning(&warning);
    }
    exit_code(cli.verb.require_other_output().and_then(|()| command::run(cli.verb)))
}

/// The exit code of a command that ended so, after saying why it could not be done.
fn exit_code(ended: Result<command::Status, CliError>) -> u8 {
    match ended {
        Ok(status) => status.code(),
        // Whoever reads the output has read enough.
        Err(CliError::BrokenPipe) => 0,
        Err(error) => {
            report::talk::error(&error);
            UNUSABLE
        }
    }
}
