//! `nextstat hypotest`: CLs of one value of the parameter of interest, observed and expected.

use ns_inference::hypotest::{HypotestResult, hypotest};
use ns_inference::test_statistic::TestStatistic;

use super::setup::{Setup, setup};
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
        return each_patch::run(&args.setup, (&args.output, &args.threads), |setup| {
            let result = test(args, setup)?;
            Ok((report::to_document(&result), result.converged))
        });
    }
    let result = test(args, setup(&args.setup)?)?;
    report::write_json(&report::to_document(&result), &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |_| report::hypotest::summary(&result));
    Ok(Status::positive_if(result.converged))
}

fn test(args: &HypotestArgs, mut setup: Setup) -> Result<HypotestResult, CliError> {
    let poi = setup.tested_poi("hypotest")?;
    let statistic = TestStatistic::from(args.test_stat);
    let mu = if statistic == TestStatistic::Q0 { 0.0 } else { args.mu };
    let Setup { model, likelihood, options, .. } = &mut setup;
    let result = hypotest(model, likelihood, options, poi, (statistic, mu));
    Ok(result)
}
