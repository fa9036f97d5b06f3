//! `nextstat sort`: a workspace in the order of its names.

use ns_translate::workspace::sort;

use super::Status;
use super::document::document;
use crate::args::SortArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &SortArgs) -> Result<Status, CliError> {
    let source = args.workspace.source()?;
    let document = document(&source)?;
    let sorted = sort(document);
    report::write_json(&sorted, &args.output)?;
    Talk::new(&args.output).say(|_| report::workspace::summary(&sorted));
    Ok(Status::Done)
}
