//! Fit and contour of an effective field theory: quadratic morphing with many coefficients.

use crate::measure::{Times, repeat};
use clap::Args;
use ns_compute::CpuLikelihood;
use ns_core::{CompileOptions, compile};
use ns_inference::contour::{ContourOptions, contours};
use ns_inference::parallel::ExecutionContext;
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::formulas::{OperatorShape, operators};
use serde_json::json;
use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct OperatorsArgs {
    /// Bins
    #[arg(long, default_value_t = 300)]
    bins: usize,
    /// Coefficients of operators
    #[arg(long, default_value_t = 8)]
    operators: usize,
    /// Nuisance parameters
    #[arg(long, default_value_t = 200)]
    nuisances: usize,
    /// Milliseconds spent on each number
    #[arg(long, default_value_t = 2000)]
    budget: u64,
    /// Write the workspace there instead of measuring it
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &OperatorsArgs) -> Result<(), Box<dyn Error>> {
    let OperatorsArgs { bins, operators: n, nuisances, .. } = *arguments;
    let truth: Vec<f64> = (0..n).map(|i| 0.3 - 0.05 * i as f64).collect();
    let shape = OperatorShape { bins, operators: n, nuisances, has_staterror: false };
    let workspace = operators(5, shape, &truth);
    if let Some(path) = &arguments.write {
        return Ok(std::fs::write(path, ns_translate::pyhf::write_workspace(&workspace).to_string())?);
    }
    let model = compile(&workspace, &CompileOptions::default())?;
    let (options, budget) = (FitOptions::default(), Duration::from_millis(arguments.budget));
    let mut likelihood = CpuLikelihood::new(&model);
    let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
    if !result.converged {
        return Err(result.warnings.join("; ").into());
    }
    let wanted = ContourOptions { parameters: [model.pois[0], model.pois[0] + 1], levels: vec![0.95], n_points: 40 };
    let mut rows: Vec<(&str, Times)> = Vec::new();
    rows.push((
        "fit with uncertainties",
        repeat(budget, || {
            drop(black_box(fit(&mut Problem::new(&model, &mut likelihood, &options))));
        }),
    ));
    rows.push((
        "contour of 40 points, 1 thread",
        repeat(budget, || {
            let problem = Problem::new(&model, &mut likelihood, &options);
            drop(black_box(contours(&problem, &wanted, ExecutionContext::with_threads(NonZeroUsize::MIN))));
        }),
    ));
    let size = format!(
        "{bins} bins, {n} coefficients, {} parameters, {} minima, {} evaluations per fit",
        model.n_params(),
        result.minima.len(),
        result.n_evaluations
    );
    if arguments.json {
        println!("{}", json!({ "model": size, "rows": rows }));
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
