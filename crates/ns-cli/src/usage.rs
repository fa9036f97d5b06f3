//! What is said when the arguments themselves are wrong, beyond what clap says.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};

use crate::args::Cli;
use crate::command::Status;
use crate::error::CliError;

/// Options whose value is optional and therefore needs an equals sign.
const JOINED: [&str; 3] = ["--minos", "--multi-start", "--asimov"];

/// Verbs of pyhf's that only the `nextstat` of the Python package has: they need ROOT files, or the network.
const IN_PYTHON: [&str; 3] = ["xml2json", "json2xml", "contrib"];

/// Help and version go to standard output, usage errors to standard error with exit code 2; a closed pipe is no fault.
pub(crate) fn explain(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if !error.use_stderr() {
        return crate::exit_code(print(error));
    }
    // Nothing can be done about a standard error that is closed.
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument {
        if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
            && ["--gpu", "--device"].contains(&argument.as_str())
        {
            let hint = format!("this verb runs on the CPU; {} take `{argument}`", on_devices().join(", "));
            crate::report::talk::hint(&hint);
        }
        let given = arguments.iter().find_map(|arg| JOINED.into_iter().find(|option| arg == *option));
        if let Some(option) = given {
            crate::report::talk::hint(&format!("a value of `{option}` follows an equals sign: `{option}=VALUE`"));
        }
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let verb = arguments.get(1).and_then(|arg| IN_PYTHON.into_iter().find(|verb| arg == *verb));
        if let Some(verb) = verb {
            let hint = format!(
                "`{verb}` comes with the Python package: `pip install 'nextstat-rs[xmlio]'`, then `nextstat {verb}`"
            );
            crate::report::talk::hint(&hint);
        }
    }
    crate::UNUSABLE
}

/// Prints help or the version.
fn print(error: &clap::Error) -> Result<Status, CliError> {
    crate::report::require_stdout()?;
    error.print().and_then(|()| io::stdout().flush()).map_err(crate::report::stdout_error)?;
    Ok(Status::Done)
}

/// Verbs that can compute on an accelerator.
fn on_devices() -> Vec<String> {
    let has_devices = |verb: &&Command| verb.get_arguments().any(|argument| argument.get_id() == "gpu");
    Cli::command().get_subcommands().filter(has_devices).map(|verb| format!("`{}`", verb.get_name())).collect()
}
