//! `nextstat inspect`: what a workspace contains.

use ns_core::summary::summarize;

use super::{Status, model};
use crate::args::InspectArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &InspectArgs) -> Result<Status, CliError> {
    let (workspace, name) = model::workspace(&args.input)?;
    let summary = summarize(&workspace, args.measurement.as_deref()).map_err(|error| model::in_file(name, error))?;
    report::write_json(&report::to_document(&summary), &args.output)?;
    Talk::new(&args.output).say(|_| report::inspect::tables(&summary));
    Ok(Status::Done)
}
