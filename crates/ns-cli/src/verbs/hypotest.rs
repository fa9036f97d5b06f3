//! `nextstat hypotest`: CLs of one value of the parameter of interest, observed and expected.

use super::every_patch::{EveryPatchArgs, GridArgs};
use super::hypotest_toys::HypotestToysArgs;
use super::{Command, EXIT_CODES, every_poi};
use crate::args::files::Files;
use crate::args::values::number;
use crate::args::{IgnoredArgs, SetupArgs, ShardedArgs, ThreadArgs, ToyStatistic};
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::Answer;
use nextstat::hypothesis::HypotestRequest;
use nextstat::number::{best_fit, optional, significant};
use nextstat::patchsets::GridShard;
use ns_inference::hypotest::HypotestResult;
use ns_inference::test_statistic::TestStatistic;
use ns_translate::toys::Shard;
use serde_json::json;
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Labels of the five expected values.
pub(super) const BAND: [&str; 5] = ["-2 sigma", "-1 sigma", "expected", "+1 sigma", "+2 sigma"];

/// Arguments of `hypotest`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct HypotestArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Tested value of the parameter of interest; 1 if not given, and 0 for `q0`, which tests no
    /// other
    #[arg(long, visible_alias = "test-poi", value_name = "MU", value_parser = number, allow_hyphen_values = true)]
    mu: Option<f64>,

    /// Test statistic
    #[arg(long, visible_alias = "teststat", value_enum, default_value_t)]
    test_stat: StatisticArg,

    /// How to find the distributions of the test statistic
    #[arg(long, value_enum, default_value_t)]
    calctype: CalculatorArg,

    #[command(flatten)]
    patches: EveryPatchArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Calculators by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum CalculatorArg {
    /// By asymptotic formulas
    #[default]
    Asymptotics,
    /// By 2000 toys of each hypothesis; `hypotest-toys` has more options
    Toybased,
}

/// Test statistics by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StatisticArg {
    /// q̃_μ, for upper limits on a parameter that is not negative
    #[default]
    Qtilde,
    /// q_μ, for upper limits
    Q,
    /// q₀, for a discovery
    Q0,
    /// t_μ, two-sided
    T,
    /// t̃_μ, two-sided for a parameter that is not negative
    Ttilde,
}

impl From<StatisticArg> for TestStatistic {
    fn from(arg: StatisticArg) -> Self {
        match arg {
            StatisticArg::Qtilde => Self::QTilde,
            StatisticArg::Q => Self::Q,
            StatisticArg::Q0 => Self::Q0,
            StatisticArg::T => Self::T,
            StatisticArg::Ttilde => Self::TTilde,
        }
    }
}

impl Command for HypotestArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        self.patches.sharded("hypotest", &self.setup, &self.output, &self.threads)
    }

    fn run(self) -> Result<Status, CliError> {
        Reporter::new(&self.output).warn(&self.ignored.warnings());
        if self.calctype == CalculatorArg::Toybased {
            return self.by_toys()?.run();
        }
        let request = HypotestRequest { mu: self.mu, statistic: self.test_stat.into() };
        if self.patches.every_patch {
            let question = json!({"verb": "hypotest", "mu": request.mu, "test_stat": request.statistic.name()});
            let part = GridShard { shard: self.patches.shard.unwrap_or(Shard::WHOLE), question };
            let grid = GridArgs { setup: &self.setup, threads: &self.threads, output: &self.output, part };
            return grid.run(|analysis| analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.hypotest(&request)));
        }
        let analysis = self.setup.on_cpu(&self.threads)?;
        let answer = analysis.every_poi(self.threads.count(), |analysis| analysis.hypotest(&request))?;
        every_poi::write(&answer, &self.output, |answer, _| summary(answer))?;
        Ok(Status::done_if(answer.result.answers.iter().all(|answer| answer.result.converged)))
    }
}

impl HypotestArgs {
    /// Returns the same test by toys, with pyhf's default number of them.
    fn by_toys(self) -> Result<HypotestToysArgs, CliError> {
        let refused = |option| Err(CliError::NotByToys { option });
        let statistic = match self.test_stat {
            StatisticArg::Qtilde => ToyStatistic::Qtilde,
            StatisticArg::Q => ToyStatistic::Q,
            StatisticArg::Q0 => ToyStatistic::Q0,
            StatisticArg::T => return refused("--test-stat t"),
            StatisticArg::Ttilde => return refused("--test-stat ttilde"),
        };
        if self.patches.every_patch {
            return refused("--every-patch");
        }
        Ok(HypotestToysArgs::like_pyhf(self.setup, self.mu, statistic, self.output, self.threads))
    }
}

/// Formats CLs, its expected band, and the warnings.
fn summary(answer: &Answer<HypotestResult>) -> String {
    let result = &answer.result;
    let name = escape(&result.poi.name);
    let mut text = String::new();
    let _ = writeln!(text, "test of `{name}` = {}\n", significant(result.mu, 6));
    let mut rows =
        vec![row(answer.analysis.settings().data.label(), [result.cls_obs, result.clsb_obs, result.clb_obs])];
    for (i, label) in BAND.iter().enumerate() {
        let at = |band: Option<[f64; 5]>| band.map(|band| band[i]);
        rows.extend(
            result.cls_exp.is_some().then(|| row(label, [at(result.cls_exp), at(result.clsb_exp), at(result.clb_exp)])),
        );
    }
    let columns = [("", Align::Left), ("CLs", Align::Right), ("CLs+b", Align::Right), ("CLb", Align::Right)];
    text.push_str(&table(&columns, &rows));
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}

fn row(label: &str, values: [Option<f64>; 3]) -> Vec<String> {
    std::iter::once(label.to_owned()).chain(values.map(|value| optional(value, 4))).collect()
}
