//! `nextstat interval`: confidence intervals by toys.

use super::toy_limits::status;
use super::{Command, EXIT_CODES, every_poi};
use crate::args::files::Files;
use crate::args::values::{FixedValues, fixed_values, n_toys, number};
use crate::args::{AdaptiveToyArgs, DeviceArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, warnings};
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::Answer;
use nextstat::alarm::Alarm;
use nextstat::intervals::{IntervalRequest, Region, RegionContours, RegionRequest};
use nextstat::number::{best_fit, optional, significant};
use ns_inference::toys::{AcceptedRegion, Construction, IntervalEnd, ToyInterval};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Arguments of `interval`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct IntervalArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Which values the interval consists of
    #[arg(long, value_enum, default_value_t)]
    construction: ConstructionArg,

    /// Confidence level, 0.95 if not given; with `--grid` repeatable, 0.68 and 0.95 if not given
    #[arg(long, value_name = "CL", value_parser = number, allow_hyphen_values = true)]
    cl: Vec<f64>,

    /// Find the region of two parameters on a grid: this option twice, each with the POINTS values
    /// of one parameter from START to STOP
    #[arg(long, value_name = "NAME=START:STOP:POINTS", value_parser = fixed_values, conflicts_with = "construction")]
    grid: Vec<FixedValues>,

    /// Throw toys until the Monte Carlo error of each end is below TOLERANCE standard deviations of
    /// the parameter, 0.02 if not given; or of the p-values next to a contour, 0.05 if not given
    #[arg(long, value_name = "TOLERANCE", value_parser = number, allow_hyphen_values = true)]
    tolerance: Option<f64>,

    /// Largest number of toys: 200,000 if not given, and 2,000,000 for a region
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    max_toys: Option<u64>,

    #[command(flatten)]
    run: AdaptiveToyArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// Which values an interval consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ConstructionArg {
    /// Feldman-Cousins: those at which t_μ of the data is not among the largest 1 - CL of the toys
    #[default]
    Fc,
    /// Those at which the data are not among the lowest or the highest half of 1 - CL of the toys
    Central,
    /// An upper limit: those at which the data are not among the lowest 1 - CL of the toys
    Upper,
}

impl From<ConstructionArg> for Construction {
    fn from(arg: ConstructionArg) -> Self {
        match arg {
            ConstructionArg::Fc => Self::FeldmanCousins,
            ConstructionArg::Central => Self::Central,
            ConstructionArg::Upper => Self::Upper,
        }
    }
}

impl Command for IntervalArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        match self.grid.as_slice() {
            [] => self.interval(),
            [a, b] => self.region([a, b]),
            grid => Err(CliError::NotTwoAxes { found: grid.len() }),
        }
    }
}

impl IntervalArgs {
    fn region(&self, axes: [&FixedValues; 2]) -> Result<Status, CliError> {
        let usual = RegionRequest::new(axes.map(|axis| (axis.name.clone(), axis.values.clone())));
        let request = RegionRequest {
            cls: if self.cl.is_empty() { usual.cls } else { self.cl.clone() },
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
            max_toys: self.max_toys.unwrap_or(usual.max_toys),
            options: self.run.options(),
            ..usual
        };
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        let answer = analysis.region(&request, &progress)?;
        drop(progress);
        self.output.write(&answer.document())?;
        let toys = &answer.result.toys;
        let notice = Notice { alarm: answer.result.alarm(), is_failure: !toys.converged };
        Reporter::new(&self.output)
            .summary_or_warning(notice, |_| conditions(&answer.analysis) + &region_summary(&answer.result));
        Ok(status(std::iter::once((toys.is_complete, toys.converged))))
    }

    fn interval(&self) -> Result<Status, CliError> {
        let usual = IntervalRequest::default();
        let cl = match self.cl.as_slice() {
            [] => usual.cl,
            [cl] => *cl,
            several => return Err(CliError::SeveralLevels { found: several.len() }),
        };
        let request = IntervalRequest {
            construction: self.construction.into(),
            cl,
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
            max_toys: self.max_toys.unwrap_or(usual.max_toys),
            options: self.run.options(),
        };
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        let answer = analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.interval(&request, &progress))?;
        drop(progress);
        every_poi::write(&answer, &self.output, |answer, _| summary(answer))?;
        let results = answer.result.answers.iter().map(|answer| &answer.result);
        Ok(status(results.map(|result| (result.is_complete, result.converged))))
    }
}

/// Formats the extent of each contour.
fn region_summary(region: &Region) -> String {
    let toys = &region.toys;
    let [a, b] = toys.parameters.each_ref().map(|name| escape(name));
    let mut text = format!("region of `{a}` and `{b}`, by {} toys\n\n", toys.n_toys);
    let row = |contours: &RegionContours| {
        let vertices = || contours.region.iter().flatten();
        let extent = |k: usize| {
            let [low, high] = vertices().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], vertex| {
                [low.min(vertex[k]), high.max(vertex[k])]
            });
            if low > high { "none".to_owned() } else { format!("{} to {}", significant(low, 4), significant(high, 4)) }
        };
        vec![format!("{} %", significant(100.0 * contours.cl, 4)), extent(0), extent(1)]
    };
    let rows: Vec<Vec<String>> = region.contours.iter().map(row).collect();
    text.push_str(&table(&[("", Align::Left), (&a, Align::Right), (&b, Align::Right)], &rows));
    let [best_a, best_b] = toys.bestfit.map(|value| significant(value, 5));
    let _ = writeln!(text, "\n  best fit {best_a} and {best_b}");
    text + &warnings(&toys.warnings)
}

/// Formats the accepted regions with their errors.
fn summary(answer: &Answer<ToyInterval>) -> String {
    let result = &answer.result;
    let name = escape(&result.poi.name);
    let construction = match result.construction {
        Construction::FeldmanCousins => "Feldman-Cousins interval",
        Construction::Central => "central interval",
        Construction::Upper => "upper limit",
    };
    let mut text = String::new();
    let percent = significant(100.0 * result.cl, 4);
    let _ = writeln!(text, "{construction} of `{name}` at {percent} % confidence level, by {} toys\n", result.n_toys);
    let row = |region: &AcceptedRegion| vec![end(&region.lower), end(&region.upper)];
    let rows: Vec<Vec<String>> = result.regions.iter().map(row).collect();
    text.push_str(&table(&[("from", Align::Right), ("to", Align::Right)], &rows));
    let [lower, upper] = result.asymptotic.map(|value| optional(value, 5));
    let _ = writeln!(text, "\n  best fit {}, asymptotic ends {lower} and {upper}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}

/// Formats an end with its error.
fn end(end: &IntervalEnd) -> String {
    let value = optional(end.value, 5);
    match end.error {
        Some(error) => format!("{value} ± {}", significant(error, 2)),
        None => value,
    }
}
