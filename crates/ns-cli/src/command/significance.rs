//! `nextstat significance`: how improbable the data are without signal.

use ns_inference::hypotest::significance;

use super::Status;
use super::setup::{Setup, setup};
use crate::args::SignificanceArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &SignificanceArgs) -> Result<Status, CliError> {
    let mut setup = setup(&args.setup)?;
    let poi = setup.tested_poi("significance")?;
    let Setup { model, likelihood, options, .. } = &mut setup;
    let result = significance(model, likelihood, options, poi, args.mu);
    report::write_json(&report::to_document(&result), &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::significance(&result));
    Ok(Status::positive_if(result.converged))
}
