//! `nextstat prune`: a workspace without some of its parts.

use ns_translate::workspace::prune;

use super::Status;
use super::document::document;
use crate::args::PruneArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &PruneArgs) -> Result<Status, CliError> {
    let source = args.workspace.source()?;
    let document = document(&source)?;
    let pruned = prune(document, &args.wanted()).map_err(|error| CliError::Workspace { name: source.name(), error })?;
    report::write_json(&pruned.document, &args.output)?;
    let talk = Talk::new(&args.output);
    talk.warn(&report::workspace::orphans(&pruned.orphans));
    talk.say(|_| report::workspace::summary(&pruned.document));
    Ok(Status::Done)
}
