//! `nextstat limit`: upper limits on the parameter of interest, observed and expected.

use super::every_patch::{EveryPatchArgs, GridArgs};
use super::hypotest::BAND;
use super::{Command, EXIT_CODES, every_poi, limit_scan, toy_limits};
use crate::args::files::Files;
use crate::args::values::{FixedValues, finite, fixed_values, n_toys, number};
use crate::args::{AdaptiveToyArgs, DeviceArgs, SetupArgs, ShardedArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::Answer;
use nextstat::hypothesis::{LimitLevel, LimitRequest};
use nextstat::limit_scan::LimitScanRequest;
use nextstat::number::{best_fit, optional, significant};
use nextstat::patchsets::GridShard;
use nextstat::toy_limits::ToyLimitRequest;
use ns_inference::limit::LimitResult;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::LimitCriterion;
use ns_translate::toys::Shard;
use serde_json::json;
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Arguments of `limit`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Confidence level of the limits, such as 0.95
    #[arg(long, value_name = "CL", value_parser = number, conflicts_with = "level", allow_hyphen_values = true)]
    cl: Option<f64>,

    /// CLs at the limit, 1 minus the confidence level
    #[arg(long, value_name = "LEVEL", value_parser = number, default_value_t = 0.05, allow_hyphen_values = true)]
    level: f64,

    /// Test statistic
    #[arg(long, visible_alias = "teststat", value_enum, default_value_t)]
    test_stat: LimitStatisticArg,

    /// Interpolate CLs between values from here on, as pyhf does, instead of finding the limits by
    /// root finding
    #[arg(long, value_name = "MU", value_parser = finite, requires = "stop", allow_hyphen_values = true)]
    start: Option<f64>,

    /// Last value of the grid
    #[arg(long, value_name = "MU", value_parser = finite, requires = "start", allow_hyphen_values = true)]
    stop: Option<f64>,

    /// Number of values in the grid
    #[arg(long, value_name = "N", default_value_t = 41, requires = "start", value_parser = clap::value_parser!(u32).range(2..=1_000_000), allow_hyphen_values = true)]
    points: u32,

    /// Find the limits with another parameter fixed at each of POINTS values from START to STOP
    #[arg(long, value_name = "NAME=START:STOP:POINTS", value_parser = fixed_values, conflicts_with = "every_patch")]
    at: Option<FixedValues>,

    #[command(flatten)]
    patches: EveryPatchArgs,

    #[command(flatten)]
    toys: ToyLimitArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// How limits are found by toys.
#[derive(Debug, Args)]
#[command(next_help_heading = "Toys")]
#[command(mut_arg("aux", |aux| aux.requires("toys")), mut_arg("batch", |batch| batch.requires("toys")))]
struct ToyLimitArgs {
    /// Find the limits by toys instead of asymptotic formulas, each with its Monte Carlo error
    #[arg(long, conflicts_with_all = ["start", "at", "every_patch"])]
    toys: bool,

    /// What falls to the level at a limit by toys
    #[arg(long, value_enum, default_value_t, requires = "toys")]
    criterion: CriterionArg,

    /// Find the observed limit only, with fewer toys
    #[arg(long, requires = "toys")]
    observed_only: bool,

    /// Throw toys until the Monte Carlo error of the observed and of the median expected limit is
    /// below TOLERANCE times the limit; 2.5 and 5 times as much at 1 and 2 standard deviations
    #[arg(long, value_name = "TOLERANCE", value_parser = number, default_value_t = 0.02, requires = "toys", allow_hyphen_values = true)]
    tolerance: f64,

    /// Largest number of toys
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "200000", requires = "toys", allow_hyphen_values = true)]
    max_toys: u64,

    #[command(flatten)]
    run: AdaptiveToyArgs,
}

/// What falls to the level at a limit by toys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum CriterionArg {
    /// CLs = CLs+b/CLb
    #[default]
    Cls,
    /// CLs+b, the p-value of the tested hypothesis
    Clsb,
}

/// Test statistics for limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum LimitStatisticArg {
    /// q̃_μ, for a parameter that is not negative
    #[default]
    Qtilde,
    /// q_μ
    Q,
}

impl From<LimitStatisticArg> for TestStatistic {
    fn from(arg: LimitStatisticArg) -> Self {
        match arg {
            LimitStatisticArg::Qtilde => Self::QTilde,
            LimitStatisticArg::Q => Self::Q,
        }
    }
}

impl Command for LimitArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        self.patches.sharded("limit", &self.setup, &self.output, &self.threads)
    }

    fn run(self) -> Result<Status, CliError> {
        let request = LimitRequest {
            level: self.cl.map_or(LimitLevel::Cls(self.level), LimitLevel::Confidence),
            statistic: self.test_stat.into(),
            grid: self.grid()?,
        };
        if self.toys.toys {
            let ToyLimitArgs { criterion, observed_only, tolerance, max_toys, ref run, .. } = self.toys;
            let criterion = match criterion {
                CriterionArg::Cls => LimitCriterion::Cls,
                CriterionArg::Clsb => LimitCriterion::Clsb,
            };
            let LimitRequest { level, statistic, .. } = request;
            let (expected, options) = (!observed_only, run.options());
            let request = ToyLimitRequest { level, statistic, criterion, expected, tolerance, max_toys, options };
            let analysis = self.setup.analysis(&self.threads, &self.device)?;
            return toy_limits::limit(&analysis, &request, &self.output);
        }
        if self.patches.every_patch {
            if self.device.name().is_some() {
                return Err(nextstat::Error::OnCpuOnly { what: "a limit" }.into());
            }
            let LimitRequest { level, statistic, grid } = &request;
            let question = json!({"verb": "limit", "level": level.cls(), "test_stat": statistic.name(), "grid": grid});
            let part = GridShard { shard: self.patches.shard.unwrap_or(Shard::WHOLE), question };
            let grid = GridArgs { setup: &self.setup, threads: &self.threads, output: &self.output, part };
            return grid.run(|analysis| analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.limit(&request)));
        }
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        if let Some(FixedValues { name, values }) = self.at {
            let request = LimitScanRequest { limit: request, parameter: name, values };
            return limit_scan::run(&analysis, &request, &self.output);
        }
        let answer = analysis.every_poi(self.threads.count(), |analysis| analysis.limit(&request))?;
        every_poi::write(&answer, &self.output, |answer, _| summary(answer))?;
        Ok(Status::done_if(answer.result.answers.iter().all(|answer| answer.result.converged)))
    }
}

impl LimitArgs {
    /// Returns the values of the grid, if there is one.
    fn grid(&self) -> Result<Option<Vec<f64>>, CliError> {
        let Some((start, stop)) = self.start.zip(self.stop) else { return Ok(None) };
        if start >= stop {
            return Err(CliError::EmptyGrid { start, stop });
        }
        let last = self.points - 1;
        Ok(Some((0..=last).map(|i| start + (stop - start) * f64::from(i) / f64::from(last)).collect()))
    }
}

/// Formats the limits.
fn summary(answer: &Answer<LimitResult>) -> String {
    let result = &answer.result;
    let (name, level) = (escape(&result.poi.name), confidence(result.level));
    let mut text = String::new();
    let _ = writeln!(text, "upper limits on `{name}` at {level} confidence level (CLs)\n");
    let mut rows = vec![vec![answer.analysis.settings().data.label().to_owned(), optional(result.observed, 6)]];
    rows.extend(BAND.iter().zip(result.expected).map(|(label, value)| vec![(*label).to_owned(), optional(value, 6)]));
    text.push_str(&table(&[("", Align::Left), ("limit", Align::Right)], &rows));
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}

/// Formats the confidence level of a limit at which CLs is `level`, such as 95 %. A level that
/// would be rounded to 100 % is written as a difference from 1.
pub(super) fn confidence(level: f64) -> String {
    let percent = significant(100.0 * (1.0 - level), 4);
    if percent == "100" { format!("1 - {}", significant(level, 4)) } else { format!("{percent} %") }
}
