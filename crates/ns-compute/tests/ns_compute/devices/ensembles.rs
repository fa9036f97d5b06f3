//! Ensembles of toys with an accelerator: the CPU's results, right counts of who did what, and an
//! end that is no silence when the device fails.

use crate::devices::models::edge_models;
use crate::devices::published;
use crate::devices::{TestDevice, devices};
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::batch::{BatchError, BatchFit, BatchMinimizer, BatchTask};
use ns_inference::FitOptions;
use ns_inference::accelerator::{Accelerator, FitCounts};
use ns_inference::monitor::NoMonitor;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, Ensemble, HypotestSettings, RunStatus, ToyFit, ToyFitter, ToyHypotest, ToyRun, ToySampler, ToySource,
    ToyTest,
};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// The results of a session, call by call.
type Seen = Arc<Mutex<Vec<Vec<BatchFit>>>>;

/// A minimiser that remembers what it found, takes few fits at a time, and fails from some call on.
struct Spy {
    inner: Box<dyn BatchMinimizer>,
    seen: Seen,
    batch_size: usize,
    calls_left: usize,
}

impl BatchMinimizer for Spy {
    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn is_exact(&self) -> bool {
        self.inner.is_exact()
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        if self.calls_left == 0 {
            return Err("the device fell off the bus".into());
        }
        self.calls_left -= 1;
        let found = self.inner.minimize(task)?;
        self.seen.lock().expect("no panic holds it").push(found.clone());
        Ok(found)
    }
}

fn spied(tested: &TestDevice, model: &Model, (batch_size, calls_left): (usize, usize)) -> (Accelerator, Seen) {
    let seen = Seen::default();
    let inner = Box::new(tested.session(model));
    (Accelerator::new(Box::new(Spy { inner, seen: Arc::clone(&seen), batch_size, calls_left })), seen)
}

fn run(accelerator: Option<&Accelerator>) -> ToyRun<'_> {
    ToyRun { accelerator, ..ToyRun::new(NonZeroUsize::new(2).expect("not zero"), &NoMonitor) }
}

/// Returns small models with their names.
fn models() -> Vec<(String, Model)> {
    let small = edge_models().into_iter().filter(|(what, _)| what.contains("local"));
    small.map(|(what, model)| (what.to_owned(), model)).collect()
}

/// Returns a published model of 184 parameters with its name.
fn published_model() -> Vec<(String, Model)> {
    let case = published::cases().into_iter().find(|case| case.name == "atlas_tHu_fcnc");
    case.map(|case| (case.name, case.model)).into_iter().collect()
}

fn fit_toys(model: &Model, n: u64, accelerator: Option<&Accelerator>) -> (RunStatus, Vec<ToyFit>) {
    let source = ToySource { seed: 5, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(model, &model.observed, &model.parameters.init, source).expect("yields are positive");
    let options = FitOptions::default();
    let toys = ToyFitter { model, options: &options, sampler: &sampler, uncertainty_of: model.poi() };
    let mut fits = Vec::new();
    let sink = |some| -> Result<(), Infallible> {
        fits.extend(some);
        Ok(())
    };
    let Ok(ended) = toys.run(&CpuLikelihood::new(model), 0..n, &run(accelerator), sink);
    (ended, fits)
}

#[test]
fn fitted_toys_are_the_cpus() {
    assert_fitted_toys(&models());
}

#[test]
#[ignore = "needs published likelihoods"]
fn fitted_toys_of_a_published_likelihood_are_the_cpus() {
    assert_fitted_toys(&published_model());
}

fn assert_fitted_toys(models: &[(String, Model)]) {
    const N: u64 = 200;
    for tested in devices() {
        // What follows a fit in single precision is the CPU's own fit, from nearer by.
        let tolerance =
            if tested.is_single() { tested.parity.polished_parameters } else { tested.parity.twice_nll_of_fit };
        for (what, model) in models {
            let (accelerator, _) = spied(&tested, model, (64, usize::MAX));
            let (_, cpu) = fit_toys(model, N, None);
            let (ended, device) = fit_toys(model, N, Some(&accelerator));
            assert_eq!((ended, device.len()), (RunStatus::Done, cpu.len()));
            let (mut n_other, mut n_compared) = (0, 0);
            for (device, cpu) in device.iter().zip(&cpu) {
                assert_eq!(device.toy, cpu.toy);
                if (device.nll - cpu.nll).abs() > tolerance {
                    n_other += 1;
                } else if let (Some(a), Some(b)) = (device.uncertainty, cpu.uncertainty) {
                    n_compared += 1;
                    assert!((a - b).abs() <= 1e-4 * b, "{what}: uncertainty {a} is not {b}");
                }
            }
            let share = accelerator.share();
            println!("{what} {}: {share:?}, {n_other} in another minimum", tested.device.precision());
            assert!(
                n_other <= 1 && n_compared > 100,
                "{what}: {n_other} of {N} in another minimum, {n_compared} compared"
            );
            assert!(share.n_fits == N || share.n_fits == 2 * N, "{share:?}: from one or from two starting points");
        }
    }
}

fn settings(model: &Model, n_toys: u64) -> HypotestSettings {
    let poi = model.poi().expect("every model here has one");
    HypotestSettings {
        test_statistic: TestStatistic::QTilde,
        poi,
        mu: 1.0,
        n_toys: [n_toys; 2],
        seed: 4,
        aux: AuxTreatment::Fluctuated,
    }
}

fn test_toys(
    hypotest: &ToyHypotest<'_>,
    model: &Model,
    accelerator: Option<&Accelerator>,
) -> (RunStatus, Vec<ToyTest>) {
    let mut tests = Vec::new();
    let sink = |some| -> Result<ControlFlow<()>, Infallible> {
        tests.extend(some);
        Ok(ControlFlow::Continue(()))
    };
    let units = 0..hypotest.settings().n_units();
    let Ok(ended) = hypotest.run(&CpuLikelihood::new(model), units, &run(accelerator), sink);
    (ended, tests)
}

#[test]
fn tests_by_toys_are_the_cpus() {
    assert_tests_by_toys(&models());
}

#[test]
#[ignore = "needs published likelihoods"]
fn tests_by_toys_of_a_published_likelihood_are_the_cpus() {
    assert_tests_by_toys(&published_model());
}

fn assert_tests_by_toys(models: &[(String, Model)]) {
    const N: u64 = 100;
    for tested in devices() {
        for (what, model) in models {
            let options = FitOptions::default();
            let mut likelihood = CpuLikelihood::new(model);
            let hypotest =
                ToyHypotest::new(model, &mut likelihood, &options, settings(model, N)).expect("the data can be fitted");
            let (accelerator, seen) = spied(&tested, model, (usize::MAX, usize::MAX));
            let (_, cpu) = test_toys(&hypotest, model, None);
            let (ended, device) = test_toys(&hypotest, model, Some(&accelerator));
            assert_eq!((ended, device.len()), (RunStatus::Done, cpu.len()));
            let mut n_other = 0;
            for (device, cpu) in device.iter().zip(&cpu) {
                assert_eq!((device.unit, device.value.is_some()), (cpu.unit, cpu.value.is_some()));
                // A statistic is twice a difference of two values, each as exact as a fit.
                let off = (device.value.unwrap_or(0.0) - cpu.value.unwrap_or(0.0)).abs();
                n_other += usize::from(off > 2.0 * tested.parity.twice_nll_of_fit.min(1e-7));
            }
            let n_changed = unpolished_changes(&seen, &device, &cpu, &hypotest);
            println!(
                "{what} {}: {:?}, {n_other} other statistics; without the CPU {n_changed} of {} toys would be on the other side of the observed one",
                tested.device.precision(),
                accelerator.share(),
                2 * N
            );
            assert!(n_other <= 2, "{what}: {n_other} of {} statistics differ", 2 * N);
            assert!(n_changed <= if tested.is_single() { 10 } else { 1 }, "{what}: {n_changed}");
            assert_eq!(accelerator.share().n_fits % (2 * N), 0);
        }
    }
}

/// Returns the number of toys that would change sides of the observed statistic with the device's
/// own values.
fn unpolished_changes(seen: &Seen, device: &[ToyTest], cpu: &[ToyTest], hypotest: &ToyHypotest<'_>) -> usize {
    let (observed, poi, mu) = (hypotest.observed().value, hypotest.settings().poi, hypotest.settings().mu);
    let seen = seen.lock().expect("no panic holds it");
    let (conditional, free): (Vec<_>, Vec<_>) =
        seen.iter().partition(|fits| fits.iter().all(|fit| fit.params[poi] == mu));
    let lowest =
        |launches: &[&Vec<BatchFit>], i: usize| launches.iter().map(|fits| fits[i].nll).fold(f64::INFINITY, f64::min);
    let changes = |(i, (device, cpu)): (usize, (&ToyTest, &ToyTest))| {
        let rise = lowest(&conditional, i) - lowest(&free, i);
        let own = if device.mu_hat > mu { 0.0 } else { (2.0 * rise).max(0.0) };
        cpu.value.is_some_and(|value| (value >= observed) != (own >= observed) && (value - observed).abs() > 1e-9)
    };
    device.iter().zip(cpu).enumerate().filter(|pair| changes(*pair)).count()
}

#[test]
fn a_device_that_fails_in_the_middle_is_no_end_and_no_silence() {
    let tested = devices().swap_remove(0);
    let (_, model) = models().swap_remove(0);
    let (accelerator, _) = spied(&tested, &model, (16, 3));
    let (ended, fits) = fit_toys(&model, 200, Some(&accelerator));
    assert_eq!(ended, RunStatus::Failed);
    assert!(accelerator.has_failed() && fits.len() < 200 && fits.len() % 16 == 0, "{}", fits.len());
    assert_eq!(
        fits,
        fit_toys(&model, fits.len() as u64, Some(&spied(&tested, &model, (16, 99)).0)).1,
        "what was done stays"
    );
    assert_eq!(accelerator.share().n_fits, 48);
    let error = accelerator.failure().expect("kept");
    assert_eq!(error.to_string(), "the device fell off the bus");

    let options = FitOptions::default();
    let mut likelihood = CpuLikelihood::new(&model);
    let hypotest =
        ToyHypotest::new(&model, &mut likelihood, &options, settings(&model, 40)).expect("the data can be fitted");
    let (accelerator, _) = spied(&tested, &model, (16, 0));
    let (ended, tests) = test_toys(&hypotest, &model, Some(&accelerator));
    assert_eq!((ended, tests, accelerator.share()), (RunStatus::Failed, Vec::new(), FitCounts::default()));
}
