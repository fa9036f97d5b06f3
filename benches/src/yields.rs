//! Yields with uncertainties, and the goodness of fit, of one generated model: what a report takes
//! beside its fit.

use crate::family::{Kind, workspace_of_samples};
use crate::measure::{Times, repeat};
use clap::Args;
use ns_compute::CpuLikelihood;
use ns_core::{CompileOptions, compile};
use ns_inference::gof::goodness_of_fit;
use ns_inference::yields::{PredictionRequest, YieldPropagation};
use ns_inference::{FitOptions, FitResult, Problem, fit, parallel, yields};
use serde_json::json;
use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct YieldsArgs {
    /// Bins, each with a gamma
    #[arg(long, default_value_t = 1000)]
    bins: usize,
    /// Parameters beside the gammas
    #[arg(long, default_value_t = 200)]
    params: usize,
    /// Samples of each channel
    #[arg(long, default_value_t = 10)]
    samples: usize,
    /// Milliseconds spent on each number
    #[arg(long, default_value_t = 2000)]
    budget: u64,
    /// Threads; all if not given
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures each part of a report of `problem`, whose fit is `result`.
fn times(
    problem: &mut Problem<'_, CpuLikelihood>,
    result: &FitResult,
    threads: NonZeroUsize,
    budget: Duration,
) -> [(&'static str, Times); 4] {
    let request =
        PredictionRequest { model: problem.model, groups: &[], propagation: YieldPropagation::default(), threads };
    [
        ("fit with uncertainties", repeat(budget, || drop(black_box(fit(problem))))),
        ("yields before the fit", repeat(budget, || drop(black_box(yields::prefit(problem, request))))),
        ("yields after the fit", repeat(budget, || drop(black_box(yields::postfit(problem, result, request))))),
        ("goodness of fit", repeat(budget, || drop(black_box(goodness_of_fit(problem, result, threads))))),
    ]
}

pub(crate) fn run(arguments: &YieldsArgs) -> Result<(), Box<dyn Error>> {
    let YieldsArgs { bins, params, samples, .. } = *arguments;
    let model = compile(&workspace_of_samples(Kind::Gammas, params + bins, bins, samples), &CompileOptions::default())?;
    let threads = arguments.threads.unwrap_or_else(parallel::all_threads);
    let budget = Duration::from_millis(arguments.budget);
    let options = FitOptions::default();
    let mut likelihood = CpuLikelihood::new(&model);
    let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
    if !result.converged {
        return Err(result.warnings.join("; ").into());
    }
    let size =
        format!("{} bins, {samples} samples, {} parameters, {threads} threads", model.n_bins(), model.n_params());
    let rows = times(&mut Problem::new(&model, &mut likelihood, &options), &result, threads, budget);
    if arguments.json {
        println!("{}", json!({ "model": size, "threads": threads, "rows": rows }));
        return Ok(());
    }
    println!("{size}");
    for (what, times) in rows {
        println!(
            "{what:32} {:>9.2} ms (median of {}, least {:.2})",
            times.median_us / 1e3,
            times.n,
            times.min_us / 1e3
        );
    }
    Ok(())
}
