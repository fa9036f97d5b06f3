//! `nextstat coverage`: how often intervals contain the true value.

use super::toy_limits::status;
use super::{Command, EXIT_CODES, every_poi};
use crate::args::files::Files;
use crate::args::values::{n_toys, number};
use crate::args::{AdaptiveToyArgs, DeviceArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::Answer;
use nextstat::coverage::CoverageRequest;
use nextstat::number::{best_fit, optional, significant};
use ns_inference::toys::{Coverage, CoverageMethod, CoveragePoint};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Arguments of `coverage`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CoverageArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// True values of the parameter of interest, at which toys are thrown: several are separated by
    /// commas, or this option is repeated
    #[arg(long = "true", value_name = "VALUE", value_parser = number, value_delimiter = ',', required = true, allow_hyphen_values = true)]
    true_values: Vec<f64>,

    /// Method that makes the intervals: repeatable; hessian, minos and cls if not given
    #[arg(long, value_name = "METHOD", value_enum, value_delimiter = ',')]
    method: Vec<MethodArg>,

    /// Confidence level of the intervals
    #[arg(long, value_name = "CL", value_parser = number, default_value_t = 0.95, allow_hyphen_values = true)]
    cl: f64,

    /// Number of toys at each true value
    #[arg(long, visible_alias = "toys", value_name = "N", value_parser = n_toys, default_value = "5000", allow_hyphen_values = true)]
    n_toys: u64,

    /// Largest number of inner toys of each toy, for `fc`: they are thrown until it is clear
    /// whether the interval contains the true value
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "10000", allow_hyphen_values = true)]
    max_inner_toys: u64,

    /// Deviation of the coverage from the confidence level that is small enough
    #[arg(long, value_name = "TOLERANCE", value_parser = number, default_value_t = 0.02, allow_hyphen_values = true)]
    tolerance: f64,

    #[command(flatten)]
    run: AdaptiveToyArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// What makes intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    /// z standard deviations by the Hessian on both sides of the best fit
    Hessian,
    /// The profile likelihood: MINOS
    Minos,
    /// Upper limits by the asymptotic CLs of q̃_μ
    Cls,
    /// Feldman-Cousins intervals by toys
    Fc,
}

impl From<MethodArg> for CoverageMethod {
    fn from(arg: MethodArg) -> Self {
        match arg {
            MethodArg::Hessian => Self::Hessian,
            MethodArg::Minos => Self::Minos,
            MethodArg::Cls => Self::Cls,
            MethodArg::Fc => Self::FeldmanCousins,
        }
    }
}

impl Command for CoverageArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let usual = CoverageRequest::new(self.true_values.clone());
        let methods: Vec<CoverageMethod> = self.method.iter().map(|method| (*method).into()).collect();
        let request = CoverageRequest {
            methods: if methods.is_empty() { usual.methods } else { methods },
            cl: self.cl,
            n_toys: self.n_toys,
            max_inner_toys: self.max_inner_toys,
            tolerance: self.tolerance,
            options: self.run.options(),
            ..usual
        };
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        let answer = analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.coverage(&request, &progress))?;
        drop(progress);
        every_poi::write(&answer, &self.output, |answer, _| summary(answer))?;
        let results = answer.result.answers.iter().map(|answer| &answer.result);
        Ok(status(results.map(|result| (result.is_complete, result.converged))))
    }
}

/// Formats the coverages, and what they say of each method.
fn summary(answer: &Answer<Coverage>) -> String {
    let result = &answer.result;
    let name = escape(&result.poi.name);
    let percent = significant(100.0 * result.cl, 4);
    let mut text =
        format!("coverage of {percent} % intervals of `{name}`, by {} toys at each true value\n\n", result.n_toys);
    let row = |point: &CoveragePoint| {
        let range = point.coverage_bounds.map_or_else(String::new, |[low, high]| format!("{low:.4} to {high:.4}"));
        vec![
            significant(point.true_value, 6),
            point.method.name().to_owned(),
            optional(point.coverage, 4),
            optional(point.coverage_error, 2),
            range,
            optional(point.deviation, 3),
        ]
    };
    let rows: Vec<Vec<String>> = result.points.iter().map(row).collect();
    let columns = [
        (&*name, Align::Right),
        ("method", Align::Left),
        ("coverage", Align::Right),
        ("error", Align::Right),
        ("95 % bounds", Align::Right),
        ("standard errors", Align::Right),
    ];
    text.push_str(&table(&columns, &rows));
    text.push('\n');
    for method in &result.methods {
        let _ = writeln!(text, "  {}: {}", method.method.name(), method.statement);
    }
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}
