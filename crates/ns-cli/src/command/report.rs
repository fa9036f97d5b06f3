//! `nextstat report`: one fit and everything that an analysis shows of it.

use ns_inference::fit::domain_and_start;
use ns_inference::gof::goodness_of_fit;
use ns_inference::pulls::pulls;
use ns_inference::{Errors, FitOptions, fit, yields};

use super::Status;
use super::fit::negative_yield;
use super::setup::{Setup, setup};
use crate::args::ReportArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &ReportArgs) -> Result<Status, CliError> {
    let Setup { model, data, mut likelihood, options, .. } = setup(&args.setup)?;
    let options = FitOptions { errors: Errors::Covariance, ..options };
    let threads = args.threads.count();
    let mut result = fit(&model, &data, &mut likelihood, &options);
    if result.nll.is_finite() {
        result.warnings.extend(negative_yield(&model, &result.bestfit));
    }
    let (domain, _) = domain_and_start(&model, &options);
    let overview = report::overview::Overview {
        pulls: pulls(&model, &data, &result, &domain.fixed),
        goodness: goodness_of_fit(&model, &data, &mut likelihood, (&result, &options), threads),
        prefit: yields::prefit(&model, &data, &options, threads),
        postfit: yields::postfit(&model, &mut likelihood, &result, &options, threads),
        model: &model,
        data: &data,
        result: &result,
    };

    report::write_json(&overview.document(), &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output)
        .say_or_warn(alarm.as_deref(), |paint| overview.summary(args.correlation_threshold, args.bins, paint));
    Ok(Status::positive_if(result.converged))
}
