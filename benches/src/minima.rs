//! Default results against an exhaustive search: random models of every cause of several minima,
//! and published cases.

mod inject;
mod published;

use clap::Args;
use ns_compute::CpuLikelihood;
use ns_core::{DataLikelihood, Model, expected};
use ns_inference::hypotest::ProfileRatioTest;
use ns_inference::minimize::Minimum;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::exhaustive::{self, Effort};
use ns_testkit::multimodal::{self, Cause};
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A default result that is higher than this above the exhaustive one, in 2NLL, is wrong.
const TOLERANCE: f64 = 2e-6;

#[derive(Debug, Args)]
pub(crate) struct MinimaArgs {
    /// Models per cause
    #[arg(long, default_value_t = 200)]
    models: u64,
    /// The first model
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Random starts of the exhaustive search
    #[arg(long, default_value_t = 200)]
    starts: usize,
    /// Only causes whose name contains this
    #[arg(long, default_value = "")]
    cause: String,
    /// Put the causes among many ordinary systematics
    #[arg(long)]
    crowded: bool,
    /// Print every wrong model
    #[arg(long)]
    list: bool,
    /// Only time the default procedures
    #[arg(long)]
    no_oracle: bool,
    /// Search the published cases instead
    #[arg(long, conflicts_with = "inject")]
    published: bool,
    /// Give a small sample of the published cases a huge normsys, in `--models` ways each, and
    /// compare those instead
    #[arg(long)]
    inject: bool,
    /// Where the published workspaces are
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Only this published case; repeatable
    #[arg(long)]
    case: Vec<String>,
    /// Write the minima of the published cases to this file, as JSON
    #[arg(long, requires = "published")]
    write: Option<PathBuf>,
}

/// What one model's default results are above the exhaustive ones by, in 2NLL, and whether they
/// warn.
#[derive(Debug, Default, Clone)]
struct Comparison {
    /// Free fit, μ = 0, μ = 1, and μ = 1 of the Asimov data set.
    above: [f64; 4],
    warned: bool,
    default: Duration,
    exhaustive: Duration,
}

const KINDS: [&str; 4] = ["free", "mu=0", "mu=1", "Asimov"];

pub(crate) fn run(arguments: &MinimaArgs) -> Result<(), Box<dyn Error>> {
    if arguments.published {
        return published::run(arguments);
    }
    if arguments.inject {
        return inject::run(arguments);
    }
    println!(
        "{:18} {:>6} {:>7} {:>7} {:>7} {:>7} {:>9} {:>10} {:>10} {:>10}",
        "cause", "models", KINDS[0], KINDS[1], KINDS[2], KINDS[3], "unwarned", "largest", "default ms", "oracle ms"
    );
    for cause in Cause::ALL.into_iter().filter(|cause| cause.name().contains(&arguments.cause)) {
        let mut wrong = [0; 4];
        let (mut unwarned, mut largest) = (0, 0.0_f64);
        let (mut default, mut oracle) = (Duration::ZERO, Duration::ZERO);
        for seed in arguments.first..arguments.first + arguments.models {
            let model =
                if arguments.crowded { multimodal::crowded(cause, seed) } else { multimodal::model(cause, seed) };
            let effort = Effort { n_starts: arguments.starts, ..Effort::default() };
            let found = compare(&model, effort, arguments.no_oracle);
            let is_wrong = found.above.map(|above| above > TOLERANCE);
            (0..4).for_each(|k| wrong[k] += usize::from(is_wrong[k]));
            unwarned += usize::from(is_wrong.contains(&true) && !found.warned);
            largest = found.above.into_iter().fold(largest, f64::max);
            default += found.default;
            oracle += found.exhaustive;
            if arguments.list && is_wrong.contains(&true) {
                println!(
                    "  {} {seed}: {:?} P={} warned: {}",
                    cause.name(),
                    found.above,
                    model.n_params(),
                    found.warned
                );
            }
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3 / arguments.models as f64;
        println!(
            "{:18} {:>6} {:>7} {:>7} {:>7} {:>7} {:>9} {:>10.2e} {:>10.3} {:>10.1}",
            cause.name(),
            arguments.models,
            wrong[0],
            wrong[1],
            wrong[2],
            wrong[3],
            unwarned,
            largest,
            ms(default),
            ms(oracle)
        );
    }
    Ok(())
}

fn compare(model: &Model, effort: Effort, no_oracle: bool) -> Comparison {
    let poi = model.poi().expect("random models have one");
    let begin = Instant::now();
    let mut likelihood = CpuLikelihood::new(model);
    let options = FitOptions::default();
    let fitted = fit(&mut Problem::new(model, &mut likelihood, &options));
    let mut scratch = likelihood.clone();
    let mut tester = ProfileRatioTest::new(
        Problem::new(model, &mut likelihood, &options),
        &mut scratch,
        TestStatistic::QTilde,
        poi,
        0.0,
    );
    let pair = tester.at(1.0);
    let warnings = tester.warnings(Some(1.0), &pair);
    let at_asimov = tester.asimov_params.clone();
    let default = begin.elapsed();
    if no_oracle {
        return Comparison { default, ..Comparison::default() };
    }
    let begin = Instant::now();
    let mut own = CpuLikelihood::new(model);
    let oracle = exhaustive::search(model, &mut own, Some(poi), &[0.0, 1.0], effort);
    // The Asimov data set of the default's own conditional fit.
    let mut asimov = CpuLikelihood::new(model);
    asimov.set_data(&expected::asimov(model, &at_asimov));
    let of_asimov = exhaustive::search(model, &mut asimov, Some(poi), &[1.0], effort);
    let exhaustive = begin.elapsed();
    let mut evaluate = |params: &[f64]| ns_core::Likelihood::nll(&mut own, params);
    let above = |nll: f64, minimum: &Minimum| if minimum.converged() { 2.0 * (nll - minimum.nll) } else { 0.0 };
    let above = [
        above(fitted.nll, &oracle.free),
        above(evaluate(&at_asimov), &oracle.conditional[0]),
        above(evaluate(&pair.observed.conditional), &oracle.conditional[1]),
        above(ns_core::Likelihood::nll(&mut asimov, &pair.asimov.conditional), &of_asimov.conditional[0]),
    ];
    let warned = [&fitted.warnings, &warnings].into_iter().flatten().any(|warning| is_of_minima(warning));
    Comparison { above, warned, default, exhaustive }
}

/// Whether `warning` says that there are several minima, or one below the best fit.
///
/// Others name a minimum, too: where the domain ends, or where a fit has stopped.
fn is_of_minima(warning: &str) -> bool {
    ["minima", "below the best fit"].iter().any(|said| warning.contains(said))
}
