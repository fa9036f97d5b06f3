//! The `torchless` command: arguments, one library call, one report.
//!
//! Standard output is data, standard error is messages. Exit codes: 0 done, 1 done and `verify`
//! found a difference or a prompt without a reference, 2 bad input or usage.

mod args;
mod bench;
mod command;
mod encode;
mod reference;
mod score;
mod verify;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;
use ns_terminal::{escape, escape_arguments};

use crate::error::{Error, quoted};
use args::Cli;

/// Why a command failed. All are exit code 2.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Model(#[from] Error),
    #[error("cannot write the answer: {0}")]
    Unwritable(io::Error),
    #[error("neither --tokens nor --prompt is given")]
    NothingGiven,
    #[error("`{name}` in `{path}` {problem}", name = quoted(.name), path = .path.display())]
    Events { path: PathBuf, name: String, problem: &'static str },
    #[error("event {index} of {list} in `{path}`: {source}", list = quoted(.list), path = .path.display())]
    Event { path: PathBuf, index: usize, list: String, source: Box<Error> },
    #[error("--edges are at least two numbers, each above the one before")]
    Edges,
    #[error("the model has no token that ends a text")]
    NoEnd,
    #[error("`{path}` has no prompts, and not one folder beside it has all of its tensors' prompts", path = .path.display())]
    NoPrompts { path: PathBuf },
    #[error("`{path}` has nothing that can be compared with a prompt of `{prompts}`", path = .path.display(), prompts = .prompts.display())]
    NothingStored { path: PathBuf, prompts: PathBuf },
    #[error("`{path}` is a reference for {sets}, and not for {wanted}", path = .path.display())]
    NoSet { path: PathBuf, sets: String, wanted: String },
    #[error("`{path}` has no sets, and so not {wanted}", path = .path.display())]
    NoSets { path: PathBuf, wanted: String },
    #[error("cannot write `{path}`: {source}", path = .path.display())]
    Output { path: PathBuf, source: io::Error },
    #[error("`{path}` has no array `{name}`", path = .path.display(), name = quoted(.name))]
    NoArray { path: PathBuf, name: String },
    #[error("the mask `{mask}` of `{path}` is 0 everywhere: no event has a particle", path = .path.display(), mask = quoted(.mask))]
    NoParticles { path: PathBuf, mask: String },
    #[error("the model has {n_outputs} outputs, and `{path}` holds one", path = .path.display())]
    OneOutput { path: PathBuf, n_outputs: usize },
    #[error("outputs and gradients cannot both be written to `{path}`", path = .path.display())]
    SameFile { path: PathBuf },
    #[error("`{path}` would be overwritten, and it is read", path = .path.display())]
    Overwrites { path: PathBuf },
    #[error("`{0}` is not a valid size")]
    Size(String),
}

impl CliError {
    fn hint(&self) -> Option<&'static str> {
        match self {
            CliError::Model(error) => error.hint(),
            CliError::Events { .. } => Some("events are lists of token ids, in a list or in an object of named lists"),
            CliError::NoArray { .. } => {
                Some("arrays have the names of the model's inputs; `torchless info` lists them")
            }
            CliError::SameFile { .. } => Some("give `--output` and `--gradients` different names"),
            CliError::Overwrites { .. } => Some("give what is written another name"),
            CliError::NoParticles { .. } => Some("the mask is 1 for particles, and 0 for padding"),
            CliError::OneOutput { .. } => Some("name an archive, as out.npz"),
            CliError::NoPrompts { .. } => Some("name the folder whose reference.json has them with --prompts DIR"),
            CliError::NothingStored { .. } => {
                Some("tensors are NAME.logits, NAME.last_logits and NAME.hidden0 …, with NAMEs of prompts")
            }
            CliError::NoSet { .. } => Some("name the one that is meant with --set NAME"),
            CliError::Size(_) => Some("a size is a number of bytes, or a number with KiB, MiB or GiB"),
            CliError::NoEnd => Some("name it with --end ID, or score without one with --no-end"),
            _ => None,
        }
    }
}

/// Runs the command of `arguments`, the first of which is its own name, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                return exit_code(print_help(&error).map(|()| true));
            }
            // The parser quotes arguments as they are; it makes the same error of escaped ones.
            let error = Cli::try_parse_from(escape_arguments(&arguments)).err().unwrap_or(error);
            // Nothing can be done about a standard error that is closed.
            let _ = error.print();
            return 2;
        }
    };
    if let Some(warning) = ns_terminal::unknown_instruction_set() {
        eprintln!("warning: {warning}");
    }
    exit_code(command::run(cli.verb))
}

/// Prints help or the version.
fn print_help(error: &clap::Error) -> Result<(), CliError> {
    let is_open = stdout().map(drop);
    is_open.and_then(|()| error.print()).and_then(|()| io::stdout().flush()).map_err(CliError::Unwritable)
}

/// Returns the exit code of a command, after printing why it failed.
fn exit_code(ended: Result<bool, CliError>) -> u8 {
    match ended {
        Ok(is_good) => u8::from(!is_good),
        // The reader of the output has closed it.
        Err(CliError::Unwritable(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("error: {}", escape(&error.to_string()));
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                if !error.to_string().contains(&cause.to_string()) {
                    eprintln!("  {}", escape(&cause.to_string()));
                }
                source = cause.source();
            }
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            2
        }
    }
}

/// Locks standard output, if there is one.
fn stdout() -> io::Result<io::StdoutLock<'static>> {
    if ns_terminal::is_stdout_closed() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "standard output is closed"));
    }
    Ok(io::stdout().lock())
}

/// Writes one document of JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(stdout().map_err(CliError::Unwritable)?);
    let written = serde_json::to_writer(&mut out, value).map_err(io::Error::from);
    written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).map_err(CliError::Unwritable)
}

fn print_text(text: &str) -> Result<(), CliError> {
    let mut out = stdout().map_err(CliError::Unwritable)?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Unwritable)
}
