//! `nextstat rename`: a workspace with some of its parts renamed.

use super::Command;
use super::combine::counts;
use crate::args::SourceArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, write_json};
use crate::status::Status;
use clap::Args;
use ns_translate::workspace::{NewName, RenameRequest, rename};

/// Arguments of `rename`.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    workspace: SourceArgs,

    /// Rename a channel and its observation; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    channel: Vec<String>,

    /// Rename a sample in every channel; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    sample: Vec<String>,

    /// Rename a modifier and its parameter in every sample and measurement; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    modifier: Vec<String>,

    /// Rename a measurement; repeatable
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    measurement: Vec<String>,

    #[command(flatten)]
    output: OutputArgs,
}

impl RenameArgs {
    fn wanted(&self) -> RenameRequest {
        RenameRequest {
            channels: pairs(&self.channel),
            samples: pairs(&self.sample),
            modifiers: pairs(&self.modifier),
            measurements: pairs(&self.measurement),
        }
    }
}

/// Pairs the values of an option that takes an old and a new name.
fn pairs(names: &[String]) -> Vec<NewName> {
    let (pairs, _) = names.as_chunks::<2>();
    pairs.iter().map(|[from, to]| NewName { from: from.clone(), to: to.clone() }).collect()
}

impl Command for RenameArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[self.workspace.named()], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let (document, name) = self.workspace.rewritable()?;
        let renamed = rename(document, &self.wanted()).map_err(|error| CliError::Workspace { name, error })?;
        write_json(&renamed, &self.output)?;
        Reporter::new(&self.output).note(|| counts(&renamed));
        Ok(Status::Done)
    }
}
