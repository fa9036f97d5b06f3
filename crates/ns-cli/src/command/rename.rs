//! `nextstat rename`: parts of a workspace called by other names.

use ns_translate::workspace::rename;

use super::Status;
use super::document::document;
use crate::args::RenameArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &RenameArgs) -> Result<Status, CliError> {
    let source = args.workspace.source()?;
    let document = document(&source)?;
    let renamed =
        rename(document, &args.wanted()).map_err(|error| CliError::Workspace { name: source.name(), error })?;
    report::write_json(&renamed, &args.output)?;
    Talk::new(&args.output).say(|_| report::workspace::summary(&renamed));
    Ok(Status::Done)
}
