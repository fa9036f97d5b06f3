//! `nextstat limit`: upper limits on the parameter of interest, observed and expected.

use nextstat::hypothesis::LimitRequest;
use nextstat::{Analysis, Answer};
use ns_inference::limit::LimitResult;

use super::setup::{Machine, analysis};
use super::{Status, each_patch};
use crate::args::LimitArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: &LimitArgs) -> Result<Status, CliError> {
    if args.patches.every_patch {
        return each_patch::run(&args.setup, (&args.output, &args.threads), |analysis| {
            let answer = find(args, &analysis)?;
            Ok((answer.document(), answer.result.converged))
        });
    }
    let answer = find(args, &analysis(&args.setup, Machine::cpu(&args.threads))?)?;
    report::write_json(&answer.document(), &args.output)?;
    let result = &answer.result;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::limit(result));
    Ok(Status::positive_if(result.converged))
}

fn find(args: &LimitArgs, analysis: &Analysis) -> Result<Answer<LimitResult>, CliError> {
    let request = LimitRequest { level: args.level, statistic: args.test_stat.into(), grid: grid(args)? };
    Ok(analysis.limit(&request)?)
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
