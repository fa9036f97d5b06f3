//! `nextstat hypotest`: CLs of one value of the parameter of interest, observed and expected.

use nextstat::{Analysis, Answer};
use ns_inference::hypotest::HypotestResult;

use super::setup::{Machine, analysis};
use super::{Status, each_patch, hypotest_toys};
use crate::args::{CalculatorArg, HypotestArgs};
use crate::error::CliError;
use crate::report::{self, Talk};

pub(super) fn run(args: HypotestArgs) -> Result<Status, CliError> {
    Talk::new(&args.output).warn(&args.ignored.warnings());
    if args.calctype == CalculatorArg::Toybased {
        return hypotest_toys::run(&args.by_toys().map_err(|option| CliError::NotByToys { option })?);
    }
    by_formulas(&args)
}

fn by_formulas(args: &HypotestArgs) -> Result<Status, CliError> {
    if args.patches.every_patch {
        return each_patch::run(&args.setup, (&args.output, &args.threads), |analysis| {
            let answer = test(args, &analysis)?;
            Ok((answer.document(), answer.result.converged))
        });
    }
    let answer = test(args, &analysis(&args.setup, Machine::cpu(&args.threads))?)?;
    report::write_json(&answer.document(), &args.output)?;
    let result = &answer.result;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::summary(result));
    Ok(Status::positive_if(result.converged))
}

fn test(args: &HypotestArgs, analysis: &Analysis) -> Result<Answer<HypotestResult>, CliError> {
    Ok(analysis.hypotest(args.test_stat.into(), args.mu)?)
}
