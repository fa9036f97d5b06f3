//! `nextstat gof`: how well the best fit describes the data.

use ns_inference::gof::{goodness_of_fit, saturated_deviance};
use ns_inference::toys::{Ended, Ensemble, GoodnessToys, Run, Source, Thrower, ToysError, goodness_toys};
use ns_inference::{FitResult, fit};

use super::Status;
use super::device::{Chosen, choose};
use super::setup::{Setup, setup};
use crate::args::GofArgs;
use crate::error::CliError;
use crate::report::gof::{ByToys, Report};
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &GofArgs) -> Result<Status, CliError> {
    let mut setup = setup(&args.setup)?;
    let Setup { model, data, likelihood, options, .. } = &mut setup;
    let result = fit(model, data, likelihood, options);
    let goodness = goodness_of_fit(model, data, likelihood, (&result, options), args.threads.count());
    let chosen = choose(&args.device, &setup.model)?;
    if !chosen.is_cpu() && args.toys.is_none() {
        return Err(CliError::OnCpuOnly { what: "goodness of fit without `--toys`" });
    }
    let by_toys = by_toys(args, &setup, &chosen, &result)?;
    let is_good = result.converged && by_toys.as_ref().is_none_or(|(toys, _)| toys.n_failed == 0);
    let is_cut_short = by_toys.as_ref().is_some_and(|(_, ended)| *ended == Ended::Cancelled);

    let toys = by_toys.as_ref().map(|(toys, _)| ByToys::new(args, toys));
    let report = Report { model: &setup.model, result: &result, goodness: &goodness, toys };
    report::write_json(&chosen.sign(report.document())?, &args.output)?;
    Talk::new(&args.output).say_or_warn(report.alarm().as_deref(), |paint| report.summary(paint));
    Ok(if is_cut_short { Status::Interrupted } else { Status::positive_if(is_good) })
}

/// The toys that are asked for; of a fit that did not converge there are none.
fn by_toys(
    args: &GofArgs,
    setup: &Setup,
    chosen: &Chosen,
    result: &FitResult,
) -> Result<Option<(GoodnessToys, Ended)>, CliError> {
    let Some(n_toys) = args.toys.filter(|_| result.converged) else { return Ok(None) };
    let Setup { model, data, likelihood, options, .. } = setup;
    let source = Source { seed: args.setup.seed, ensemble: Ensemble::Goodness, aux: args.aux.aux() };
    let thrower = Thrower::new(model, data, &result.bestfit, source).map_err(ToysError::from)?;
    let fixed = ns_inference::fit::domain_and_start(model, options).0.fixed;
    let observed = saturated_deviance(model, data, &result.bestfit, &fixed);
    let progress = Progress::new(Talk::new(&args.output), "toys");
    let run = Run { accelerator: chosen.accelerator(), ..Run::new(args.threads.count(), &progress) };
    Ok(Some(goodness_toys((model, likelihood, options), &thrower, 0..n_toys, &run, &observed)))
}
