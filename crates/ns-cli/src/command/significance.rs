//! `nextstat significance`: how improbable the data are without signal.

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::SignificanceArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &SignificanceArgs) -> Result<Status, CliError> {
    let answer = analysis(&args.setup, Machine::cpu(&args.threads))?.significance(args.mu)?;
    report::write_json(&answer.document(), &args.output)?;
    let result = &answer.result;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::significance(result));
    Ok(Status::positive_if(result.converged))
}
