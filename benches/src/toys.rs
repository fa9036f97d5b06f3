//! Toys of published cases: an ensemble fitted, CLs and goodness of fit by toys, on one thread and
//! on all.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_inference::gof::saturated_deviance;
use ns_inference::minimize::Outcome;
use ns_inference::monitor::NoMonitor;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::all_threads;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, Ensemble, HypotestSettings, HypotestToys, ToyFitter, ToyRun, ToySampler, ToySource, goodness_toys,
    hypotest_toys,
};
use ns_inference::{FitOptions, Problem, fit};
use serde::Serialize;
use std::convert::Infallible;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Instant;

const N_TOYS: u64 = 1000;

/// An ensemble, the fit that it is thrown at included.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Timed<T> {
    pub(crate) seconds: f64,
    pub(crate) threads: NonZeroUsize,
    /// Toys, of all hypotheses.
    pub(crate) n_toys: u64,
    pub(crate) n_failed: u64,
    pub(crate) result: T,
}

/// Prints what an ensemble of fits and a test with as many toys of each hypothesis take.
pub(crate) fn print_rows(name: &str, model: &Model) -> Result<(), Box<dyn Error>> {
    for threads in [NonZeroUsize::MIN, all_threads()] {
        let run = ToyRun::new(threads, &NoMonitor);
        let print = |what: &str, seconds: f64, n_failed: u64| {
            println!("{name:34} {what} on {threads} threads: {seconds:.3} s, {n_failed} did not converge");
        };
        let done = fits(model, &run)?;
        print(&format!("{N_TOYS} toys fitted"), done.seconds, done.n_failed);
        let done = test(model, &run)?;
        print(&format!("CLs by {N_TOYS} + {N_TOYS} toys"), done.seconds, done.n_failed);
    }
    Ok(())
}

/// A thousand toys of the best fit, fitted.
pub(crate) fn fits(model: &Model, run: &ToyRun<'_>) -> Result<Timed<()>, Box<dyn Error>> {
    let start = Instant::now();
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let truth = fit(&mut Problem::new(model, &mut likelihood, &options)).bestfit;
    let sampler = sampler(model, &truth, Ensemble::Fits)?;
    let toys = ToyFitter { model, options: &options, sampler: &sampler, uncertainty_of: None };
    let mut n_failed = 0;
    let Ok(_) = toys.run(&likelihood, 0..N_TOYS, run, |fits| {
        n_failed += fits.iter().filter(|fit| fit.outcome != Outcome::Converged).count() as u64;
        Ok::<_, Infallible>(())
    });
    let seconds = start.elapsed().as_secs_f64();
    Ok(Timed { seconds, threads: run.threads, n_toys: N_TOYS, n_failed, result: () })
}

/// CLs at 1 by a thousand toys of each hypothesis.
pub(crate) fn test(model: &Model, run: &ToyRun<'_>) -> Result<Timed<HypotestToys>, Box<dyn Error>> {
    let start = Instant::now();
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let poi = model.poi().ok_or("a case without a parameter of interest")?;
    let (test_statistic, aux) = (TestStatistic::QTilde, AuxTreatment::Fluctuated);
    let settings = HypotestSettings { test_statistic, poi, mu: 1.0, n_toys: [N_TOYS; 2], seed: 0, aux };
    let result = hypotest_toys(&mut Problem::new(model, &mut likelihood, &options), settings, run, None)?;
    let (seconds, n_failed) = (start.elapsed().as_secs_f64(), result.n_failed.iter().sum());
    Ok(Timed { seconds, threads: run.threads, n_toys: 2 * N_TOYS, n_failed, result })
}

/// The p-value of the goodness of fit by a thousand toys.
pub(crate) fn goodness(model: &Model, run: &ToyRun<'_>) -> Result<Timed<f64>, Box<dyn Error>> {
    let start = Instant::now();
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let best = fit(&mut Problem::new(model, &mut likelihood, &options)).bestfit;
    let sampler = sampler(model, &best, Ensemble::Goodness)?;
    let fixed = domain_and_start(model, &options).0.fixed;
    let observed = saturated_deviance(model, &model.observed, &best, &fixed);
    let (toys, _) = goodness_toys(&Problem::new(model, &mut likelihood, &options), &sampler, 0..N_TOYS, run, &observed);
    let (seconds, result) = (start.elapsed().as_secs_f64(), toys.total.value);
    Ok(Timed { seconds, threads: run.threads, n_toys: N_TOYS, n_failed: toys.n_failed, result })
}

fn sampler(model: &Model, params: &[f64], ensemble: Ensemble) -> Result<ToySampler, Box<dyn Error>> {
    let source = ToySource { seed: 0, ensemble, aux: AuxTreatment::Fluctuated };
    Ok(ToySampler::new(model, &model.observed, params, source).map_err(|reason| reason.to_string())?)
}
