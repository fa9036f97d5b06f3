//! `nextstat limit`: upper limits on the parameter of interest, observed and expected.

use ns_inference::limit::{LimitOptions, LimitResult, limit, limit_from_grid};

use super::setup::{Setup, setup};
use super::{Status, each_patch};
use crate::args::LimitArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &LimitArgs) -> Result<Status, CliError> {
    if args.patches.every_patch {
        return each_patch::run(&args.setup, (&args.output, &args.threads), |setup| {
            let result = find(args, setup)?;
            Ok((report::to_document(&result), result.converged))
        });
    }
    let result = find(args, setup(&args.setup)?)?;
    report::write_json(&report::to_document(&result), &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::limit(&result));
    Ok(Status::positive_if(result.converged))
}

fn find(args: &LimitArgs, mut setup: Setup) -> Result<LimitResult, CliError> {
    let poi = setup.tested_poi("limit")?;
    let grid = grid(args)?;
    let wanted = LimitOptions { level: args.level, statistic: args.test_stat.into() };
    let Setup { model, likelihood, options, .. } = &mut setup;
    let result = match &grid {
        None => limit(model, likelihood, options, poi, wanted),
        Some(grid) => limit_from_grid(model, likelihood, options, poi, (wanted, grid)),
    };
    Ok(result)
}

/// The values to interpolate from, if they are given.
fn grid(args: &LimitArgs) -> Result<Option<Vec<f64>>, CliError> {
    let Some((start, stop)) = args.start.zip(args.stop) else { return Ok(None) };
    if start >= stop {
        return Err(CliError::EmptyGrid { start, stop });
    }
    let last = args.points - 1;
    Ok(Some((0..=last).map(|i| start + (stop - start) * f64::from(i) / f64::from(last)).collect()))
}
