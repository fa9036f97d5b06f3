//! The `nextstat` command: arguments become settings, one call of the library, and one report.
//!
//! `verbs` has a table of verbs and a file for each of them; `args` has the arguments that they
//! share, and `output` writes JSON, summaries and progress. The work is done by the crate
//! `nextstat`, which the Python package uses as well.
//!
//! Standard output is data, standard error is for people. The exit code is 0 after success, 1 if a
//! fit did not converge or a check failed, 2 for bad input or usage, and 130 after Ctrl-C.
//!
//! ```
//! let digest = ["nextstat", "digest", "../../examples/simple.json", "--output-file", "/dev/null"];
//! assert_eq!(ns_cli::run(digest.map(Into::into)), 0);
//! assert_eq!(ns_cli::run(["nextstat", "fit", "absent.json"].map(Into::into)), 2);
//! ```

mod args;
mod error;
mod output;
mod status;
mod usage;
mod verbs;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser as _};
use error::CliError;
use nextstat::tables::Table;
use output::reporter;
use status::Status;
use std::cell::RefCell;
use std::ffi::OsString;
use verbs::{Cli, Command};

/// Exit code of bad input and bad usage.
pub(crate) const UNUSABLE: u8 = 2;

thread_local! {
    /// The arguments of the command that this thread runs, for the provenance of its result.
    static COMMAND_LINE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Returns the command line, the name of the command included.
pub(crate) fn command_line() -> Vec<String> {
    COMMAND_LINE.with_borrow(|words| {
        let words = words.iter().skip(1).cloned();
        std::iter::once("nextstat".to_owned()).chain(words).collect()
    })
}

/// Runs the command with `arguments`, the first of which is its own name, and returns the exit
/// code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = usage::joined(arguments.into_iter().collect());
    COMMAND_LINE.set(arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect());
    let cli = match parsed(&arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if let Some(warning) = ns_terminal::unknown_instruction_set() {
        reporter::warning(&warning);
    }
    exit_code(cli.verb.files().require_other_output().and_then(|()| cli.verb.run()))
}

/// Returns what `arguments` mean, which [`usage::joined`] returned; or the exit code, after
/// printing help or what is wrong with them.
pub(crate) fn parsed(arguments: &[OsString]) -> Result<Cli, u8> {
    let matches = Cli::command().try_get_matches_from(arguments);
    let parsed = matches.and_then(|mut matches| {
        let table = require_table(&matches);
        Ok((Cli::from_arg_matches_mut(&mut matches)?, table))
    });
    match parsed {
        Ok((cli, Ok(()))) => Ok(cli),
        Ok((_, Err(error))) => Err(exit_code(Err(error))),
        Err(error) => {
            // The parser quotes arguments as they are, so it parses escaped ones again.
            let arguments = ns_terminal::escape_arguments(arguments);
            let error = Cli::try_parse_from(&arguments).err().unwrap_or(error);
            Err(usage::explain(error, &arguments))
        }
    }
}

/// Returns what `words` mean, without the name of the command; or the exit code, as [`parsed`].
pub(crate) fn parsed_words(words: &[String]) -> Result<Cli, u8> {
    let arguments = std::iter::once("nextstat".into()).chain(words.iter().map(OsString::from));
    parsed(&usage::joined(arguments.collect()))
}

/// Refuses a `--table` that no result of the verb has, before the result is computed.
fn require_table(matches: &ArgMatches) -> Result<(), CliError> {
    let Some((verb, arguments)) = matches.subcommand() else { return Ok(()) };
    let table = arguments.try_get_one::<String>("table").ok().flatten();
    // Verbs and the schemas of their results have the same names.
    table.map_or(Ok(()), |table| Table::require(verb, table).map_err(CliError::ResultTable))
}

/// Returns the exit code, after printing an error.
fn exit_code(ended: Result<Status, CliError>) -> u8 {
    match ended {
        Ok(status) => status.code(),
        // The reader of the output has enough of it.
        Err(CliError::BrokenPipe) => 0,
        Err(error) => {
            reporter::error(&error);
            UNUSABLE
        }
    }
}
