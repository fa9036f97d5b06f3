//! `nextstat significance`: the significance of a discovery, observed and expected.

use super::{Command, EXIT_CODES, every_poi, toy_limits};
use crate::args::files::Files;
use crate::args::values::{n_toys, number};
use crate::args::{AdaptiveToyArgs, DeviceArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::Answer;
use nextstat::hypothesis::SignificanceRequest;
use nextstat::number::{best_fit, optional, significant};
use nextstat::toy_limits::ToySignificanceRequest;
use ns_inference::hypotest::SignificanceResult;
use std::fmt::Write;

/// Arguments of `significance`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SignificanceArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Value of the parameter of interest that the expected significance is given for
    #[arg(long, value_name = "MU", value_parser = number, default_value_t = 1.0, allow_hyphen_values = true)]
    mu: f64,

    #[command(flatten)]
    toys: ToySignificanceArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// How a significance is found by toys.
#[derive(Debug, Args)]
#[command(next_help_heading = "Toys")]
#[command(mut_arg("aux", |aux| aux.requires("toys")), mut_arg("batch", |batch| batch.requires("toys")))]
struct ToySignificanceArgs {
    /// Find the observed significance by toys of the background, with its Monte Carlo error;
    /// `hypotest-toys --test-stat q0` has the expected one, too
    #[arg(long, conflicts_with = "mu")]
    toys: bool,

    /// Throw toys until the Monte Carlo error of the p-value is below TOLERANCE times the p-value
    #[arg(long, value_name = "TOLERANCE", value_parser = number, default_value_t = 0.1, requires = "toys", allow_hyphen_values = true)]
    tolerance: f64,

    /// Largest number of toys
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "100000", requires = "toys", allow_hyphen_values = true)]
    max_toys: u64,

    /// Also throw toys with a signal, and weight them: small p-values then take thousands of toys
    /// instead of millions
    #[arg(long, requires = "toys")]
    importance_sampling: bool,

    #[command(flatten)]
    run: AdaptiveToyArgs,
}

impl Command for SignificanceArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        if self.toys.toys {
            let ToySignificanceArgs { tolerance, max_toys, importance_sampling, ref run, .. } = self.toys;
            let request = ToySignificanceRequest { tolerance, max_toys, importance_sampling, options: run.options() };
            return toy_limits::significance(&analysis, &request, &self.output);
        }
        let request = SignificanceRequest { mu: self.mu };
        let answer = analysis.every_poi(self.threads.count(), |analysis| analysis.significance(&request))?;
        every_poi::write(&answer, &self.output, |answer, _| summary(answer))?;
        Ok(Status::done_if(answer.result.answers.iter().all(|answer| answer.result.converged)))
    }
}

/// Formats Z and p, observed and expected.
fn summary(answer: &Answer<SignificanceResult>) -> String {
    let result = &answer.result;
    let name = escape(&result.poi.name);
    let expected = format!("expected at `{name}` = {}", significant(result.mu_expected, 6));
    let median = result.p0_exp.map(|band| band[2]);
    let rows = [
        vec![answer.analysis.settings().data.label().to_owned(), optional(result.z_obs, 4), optional(result.p0_obs, 4)],
        vec![expected, optional(result.z_exp, 4), optional(median, 4)],
    ];
    let mut text = String::new();
    let _ = writeln!(text, "significance of `{name}` > 0\n");
    text.push_str(&table(&[("", Align::Left), ("Z", Align::Right), ("p-value", Align::Right)], &rows));
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}
