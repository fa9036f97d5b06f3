//! `nextstat fit`: the maximum-likelihood fit of a model.

use nextstat::FitRequest;
use nextstat::fit::Matrices;
use ns_inference::Uncertainties;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::FitArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &FitArgs) -> Result<Status, CliError> {
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    let wanted = Matrices { covariance: args.covariance, correlation: args.correlation };
    let uncertainties = if wanted == Matrices::default() { Uncertainties::Hessian } else { Uncertainties::Covariance };
    let fit = analysis.fit(&FitRequest { uncertainties, minos: args.minos.clone() })?.diagnosed();

    report::write_json(&fit.document(wanted), &args.output)?;
    let result = &fit.result;
    Talk::new(&args.output).warn(&args.ignored.warnings());
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output)
        .say_or_warn(alarm.as_deref(), |paint| report::fit::summary(analysis.model(), analysis.data(), result, paint));
    Ok(Status::positive_if(result.converged))
}
