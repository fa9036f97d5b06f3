//! Usage errors: clap's messages, with hints about common mistakes.

use crate::error::CliError;
use crate::output::reporter::hint;
use crate::verbs::{Cli, Status};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};
use std::ffi::OsString;
use std::io::{self, Write as _};

/// Options whose value is optional and therefore needs an equals sign.
const JOINED: [&str; 3] = ["--minos", "--multi-start", "--asimov"];

/// Prints help and version to standard output, and usage errors to standard error with exit code 2.
/// A closed pipe is not an error.
pub(crate) fn explain(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if !error.use_stderr() {
        return crate::exit_code(print(error));
    }
    // A closed standard error is ignored.
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument {
        if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
            && ["--gpu", "--device"].contains(&argument.as_str())
        {
            hint(&format!("this verb runs on the CPU; `{argument}` is an option of {}", on_devices().join(", ")));
        }
        let given = arguments.iter().find_map(|arg| JOINED.into_iter().find(|option| arg == *option));
        if let Some(option) = given {
            hint(&format!("write a value of `{option}` with an equals sign: `{option}=VALUE`"));
        }
    }
    crate::UNUSABLE
}

/// Prints help or the version.
fn print(error: &clap::Error) -> Result<Status, CliError> {
    crate::output::require_stdout()?;
    error.print().and_then(|()| io::stdout().flush()).map_err(crate::output::stdout_error)?;
    Ok(Status::Done)
}

/// Returns the verbs that can compute on an accelerator.
fn on_devices() -> Vec<String> {
    let has_devices = |verb: &&Command| verb.get_arguments().any(|argument| argument.get_id() == "gpu");
    Cli::command().get_subcommands().filter(has_devices).map(|verb| format!("`{}`", verb.get_name())).collect()
}
