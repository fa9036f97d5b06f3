//! `nextstat combine`: two workspaces made one.

use ns_translate::workspace::combine;

use super::Status;
use super::document::document;
use crate::args::CombineArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &CombineArgs) -> Result<Status, CliError> {
    let [one, two] = args.sources()?;
    let (left, right) = (document(&one)?, document(&two)?);
    let names = [one.name(), two.name()];
    let combination = combine(left, right, args.join(), args.channels())
        .map_err(|error| CliError::Combine { names: names.clone(), error })?;
    report::write_json(&combination.document, &args.output)?;
    let talk = Talk::new(&args.output);
    talk.warn(&report::workspace::kept(&combination.kept, &names));
    talk.say(|_| report::workspace::summary(&combination.document));
    Ok(Status::Done)
}
