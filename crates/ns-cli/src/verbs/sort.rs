//! `nextstat sort`: a workspace sorted by name.

use super::Command;
use super::combine::counts;
use crate::args::SourceArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, write_json};
use crate::status::Status;
use clap::Args;
use ns_translate::workspace::sort;

/// Arguments of `sort`.
#[derive(Debug, Args)]
pub(crate) struct SortArgs {
    #[command(flatten)]
    workspace: SourceArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for SortArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[self.workspace.named()], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let (document, _) = self.workspace.rewritable()?;
        let sorted = sort(document);
        write_json(&sorted, &self.output)?;
        Reporter::new(&self.output).note(|| counts(&sorted));
        Ok(Status::Done)
    }
}
