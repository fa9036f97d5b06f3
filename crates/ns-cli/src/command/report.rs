//! `nextstat report`: one fit and everything that an analysis shows of it.

use ns_inference::FitResult;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::ReportArgs;
use crate::error::CliError;
use crate::report::overview::Overview;
use crate::report::{self, Talk};

pub(super) fn run(args: &ReportArgs) -> Result<Status, CliError> {
    let found = analysis(&args.setup, Machine::cpu(&args.threads))?.report()?;
    report::write_json(&found.document(), &args.output)?;
    let fit = &found.yields.fit;
    let result = FitResult { warnings: fit.warnings(), ..fit.result.clone() };
    let overview = Overview { found: &found, result: &result };
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output)
        .say_or_warn(alarm.as_deref(), |paint| overview.summary(args.correlation_threshold, args.bins, paint));
    Ok(Status::positive_if(result.converged))
}
