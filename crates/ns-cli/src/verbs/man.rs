//! `nextstat man`: manual pages for the command and its verbs.

use super::{Cli, Command};
use crate::error::CliError;
use crate::output::{stdout_error, write_stdout};
use crate::status::Status;
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use ns_core::similarity::similar_name;
use ns_translate::whole_file::write_whole;
use std::path::{Path, PathBuf};

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Verb, such as `fit`; the command itself if not given
    verb: Vec<String>,

    /// Write a page for the command and for every verb to this directory, which is made if it does
    /// not exist
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    directory: Option<PathBuf>,
}

impl Command for ManArgs {
    fn run(self) -> Result<Status, CliError> {
        // `patchset apply` has a page, and `help` has none.
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        match &self.directory {
            Some(directory) => write_all(&command, directory)?,
            None => write_stdout(&page(find(&command, &self.verb)?)?)?,
        }
        Ok(Status::Done)
    }
}

/// Returns the command of a verb.
fn find<'a>(command: &'a clap::Command, verb: &[String]) -> Result<&'a clap::Command, CliError> {
    verb.iter().try_fold(command, |command, word| {
        let similar = || similar_name(word, command.get_subcommands().map(clap::Command::get_name));
        let unknown = || CliError::UnknownVerb { name: word.clone(), similar: similar().map(str::to_owned) };
        command.find_subcommand(word).ok_or_else(unknown)
    })
}

/// Returns the manual page of a command.
fn page(command: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    let man = Man::new(command.clone()).source(concat!("nextstat ", env!("CARGO_PKG_VERSION"))).manual("nextstat");
    man.render(&mut text).map_err(stdout_error)?;
    Ok(text)
}

/// Writes the pages of a command and of its verbs to `directory`.
fn write_all(command: &clap::Command, directory: &Path) -> Result<(), CliError> {
    let unwritable = |path: &Path| {
        let name = format!("`{}`", path.display());
        move |source| CliError::Unwritable { name, source }
    };
    std::fs::create_dir_all(directory).map_err(unwritable(directory))?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = directory.join(format!("{name}.1"));
    write_whole(&file, &page(command)?).map_err(unwritable(&file))?;
    command.get_subcommands().try_for_each(|verb| write_all(verb, directory))
}
