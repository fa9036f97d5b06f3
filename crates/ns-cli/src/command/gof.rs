//! `nextstat gof`: how well the best fit describes the data.

use ns_inference::fit;
use ns_inference::gof::goodness_of_fit;

use super::Status;
use super::setup::{Setup, setup};
use crate::args::GofArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &GofArgs) -> Result<Status, CliError> {
    let Setup { model, data, mut likelihood, options, .. } = setup(&args.setup)?;
    let result = fit(&model, &data, &mut likelihood, &options);
    let goodness = goodness_of_fit(&model, &data, &mut likelihood, (&result, &options), args.threads.count());

    report::write_json(&report::gof::document(&model, &result, &goodness), &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output)
        .say_or_warn(alarm.as_deref(), |paint| report::gof::summary(&model, &result, &goodness, paint));
    Ok(Status::positive_if(result.converged))
}
