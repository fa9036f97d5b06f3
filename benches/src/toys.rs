//! Toys of published cases: an ensemble fitted, and CLs by toys, on one thread and on all.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_inference::minimize::Outcome;
use ns_inference::monitor::Silent;
use ns_inference::parallel::all_threads;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{Aux, Ensemble, FitToys, HypotestSettings, Run, Source, Thrower, hypotest_toys};
use ns_inference::{FitOptions, fit};
use std::convert::Infallible;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Instant;

const N_TOYS: u64 = 1000;

/// Prints what an ensemble of fits and a test with as many toys of each hypothesis take.
pub(crate) fn print_rows(name: &str, model: &Model) -> Result<(), Box<dyn Error>> {
    for threads in [NonZeroUsize::MIN, all_threads()] {
        let run = Run::new(threads, &Silent);
        let start = Instant::now();
        let n_failed = fits(model, &run)?;
        println!(
            "{name:34} {N_TOYS} toys fitted on {threads} threads: {:.3} s, {n_failed} did not converge",
            start.elapsed().as_secs_f64()
        );
        let start = Instant::now();
        let n_failed = test(model, &run)?;
        println!(
            "{name:34} CLs by {N_TOYS} + {N_TOYS} toys on {threads} threads: {:.3} s, {n_failed} did not converge",
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

fn fits(model: &Model, run: &Run<'_>) -> Result<usize, Box<dyn Error>> {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let truth = fit(model, &model.observed, &mut likelihood, &options).bestfit;
    let source = Source { seed: 0, ensemble: Ensemble::Fits, aux: Aux::Fluctuated };
    let thrower = Thrower::new(model, &model.observed, &truth, source).map_err(|reason| reason.to_string())?;
    let toys = FitToys { model, options: &options, thrower: &thrower, uncertainty_of: None };
    let mut n_failed = 0;
    let Ok(_) = toys.run(&likelihood, 0..N_TOYS, run, |fits| {
        n_failed += fits.iter().filter(|fit| fit.outcome != Outcome::Converged).count();
        Ok::<_, Infallible>(())
    });
    Ok(n_failed)
}

fn test(model: &Model, run: &Run<'_>) -> Result<u64, Box<dyn Error>> {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let poi = model.poi().ok_or("a case without a parameter of interest")?;
    let (test_statistic, aux) = (TestStatistic::QTilde, Aux::Fluctuated);
    let settings = HypotestSettings { test_statistic, poi, mu: 1.0, n_toys: [N_TOYS; 2], seed: 0, aux };
    let result = hypotest_toys(model, (&model.observed, &mut likelihood), &options, settings, (run, None))?;
    Ok(result.n_failed[0] + result.n_failed[1])
}
