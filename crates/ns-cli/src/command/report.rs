//! `nextstat report`: one fit and everything that an analysis shows of it.

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::ReportArgs;
use crate::error::CliError;
use crate::report::overview::Overview;
use crate::report::{self, Talk};

pub(super) fn run(args: &ReportArgs) -> Result<Status, CliError> {
    let found = analysis(&args.setup, Machine::cpu(&args.threads))?.report()?;
    report::write_json(&found.document(), &args.output)?;
    let (result, overview) = (&found.yields.fit.result, Overview(&found));
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output)
        .say_or_warn(alarm.as_deref(), |paint| overview.summary(args.correlation_threshold, args.bins, paint));
    Ok(Status::positive_if(result.converged))
}
