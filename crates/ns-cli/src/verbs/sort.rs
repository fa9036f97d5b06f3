//! `nextstat sort`: a workspace sorted by name.

use super::combine::counts;
use super::{Command, Status};
use crate::args::{OutputArgs, SourceArgs};
use crate::error::CliError;
use crate::output::{Reporter, write_json};
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
    fn run(self) -> Result<Status, CliError> {
        let (document, _) = self.workspace.rewritable()?;
        let sorted = sort(document);
        write_json(&sorted, &self.output)?;
        Reporter::new(&self.output).note(|| counts(&sorted));
        Ok(Status::Done)
    }
}
