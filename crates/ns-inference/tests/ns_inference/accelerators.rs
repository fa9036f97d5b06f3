//! Tests that procedures reach the same results with accelerators that do not converge or report
//! wrong minima.

use ns_compute::CpuLikelihood;
use ns_core::batch::{BatchData, BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask};
use ns_core::{Data, DataLikelihood, Likelihood, Model};
use ns_inference::accelerator::{Accelerator, BatchFitter};
use ns_inference::minimize::{Domain, MinimizeOptions, Minimizer};
use ns_inference::monitor::NoMonitor;
use ns_inference::parallel::ExecutionContext;
use ns_inference::ranking::{RankingMethods, RankingOptions, ranking};
use ns_inference::scan::{ScanAxis, ScanValues, grid, scan};
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, CoverageMethod, CoverageSettings, Ensemble, HypotestSettings, ToyFit, ToyFitter, ToyRun, ToySampler,
    ToySource, ToysError, coverage, hypotest_toys,
};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::random::{self, Shape};
use rayon::prelude::*;
use std::convert::Infallible;
use std::num::NonZeroUsize;

/// A fault of an accelerator.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AcceleratorFault {
    /// Every fit stays at its start and reports that it did not converge.
    Idle,
    /// Every fit reports convergence at a point that is not a minimum.
    Wrong,
    /// Every call fails.
    Failing,
}

struct Faulty(AcceleratorFault);

impl BatchMinimizer for Faulty {
    fn batch_size(&self) -> usize {
        7
    }

    fn is_exact(&self) -> bool {
        // Minima in single precision are only starting points, so that wrong ones are corrected.
        self.0 != AcceleratorFault::Wrong
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        if self.0 == AcceleratorFault::Failing {
            return Err("out of order".into());
        }
        let n_params = task.lower.len();
        if let BatchData::Each(sets) = task.data {
            assert_eq!(sets.len() * n_params, task.starts.len());
        }
        let is_fixed = |fit: usize, i: usize| match task.fixed {
            BatchFixed::Shared(fixed) => fixed[i],
            BatchFixed::Each(fixed) => fixed[fit * n_params + i],
        };
        let end = |fit: usize, start: &[f64]| {
            let moved = |(i, x): (usize, &f64)| {
                let stays = is_fixed(fit, i) || self.0 == AcceleratorFault::Idle;
                if stays { *x } else { (x + 0.3).clamp(task.lower[i], task.upper[i]) }
            };
            start.iter().enumerate().map(moved).collect()
        };
        let batch_fit = |(fit, start): (usize, &[f64])| BatchFit {
            params: end(fit, start),
            nll: 0.0,
            edm: 0.0,
            converged: self.0 == AcceleratorFault::Wrong,
            variance: None,
            iterations: 1,
        };
        Ok(task.starts.chunks_exact(n_params).enumerate().map(batch_fit).collect())
    }
}

/// A device that finds the minima of toys, but no variance.
struct WithoutVariance(CpuLikelihood);

impl BatchMinimizer for WithoutVariance {
    fn batch_size(&self) -> usize {
        7
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        let (BatchData::Each(sets), BatchFixed::Shared(fixed)) = (task.data, task.fixed) else {
            return Err("toys only".into());
        };
        let domain = Domain {
            lower: task.lower.to_vec(),
            upper: task.upper.to_vec(),
            fixed: fixed.to_vec(),
            kinked: task.kinked.to_vec(),
        };
        let fit = |(data, start): (&Data, &[f64])| {
            self.0.set_data(data);
            let mut minimizer = Minimizer::new(&self.0.structure());
            let found = minimizer.minimize(&mut self.0, start, &domain, &MinimizeOptions::default());
            let converged = found.converged();
            BatchFit { params: found.params, nll: found.nll, edm: found.edm, converged, variance: None, iterations: 1 }
        };
        Ok(sets.iter().zip(task.starts.chunks_exact(task.lower.len())).map(fit).collect())
    }
}

fn faulty(fault: AcceleratorFault) -> Accelerator {
    Accelerator::new(Box::new(Faulty(fault)))
}

/// Models whose likelihoods have kinks and several minima.
fn models() -> Vec<Model> {
    models_of(Shape::SMALL)
}

fn models_of(shape: Shape) -> Vec<Model> {
    (0..8).map(|seed| random::model(seed, shape, Default::default())).collect()
}

/// Returns those of `models` whose fits converge, with their best fits.
fn fitted(models: Vec<Model>) -> Vec<(Model, Vec<f64>)> {
    let best = |model: Model| {
        let found = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()));
        found.converged.then_some((model, found.bestfit))
    };
    models.into_iter().filter_map(best).collect()
}

fn run(accelerator: Option<&Accelerator>) -> ToyRun<'_> {
    ToyRun { accelerator, ..ToyRun::new(NonZeroUsize::new(2).expect("not zero"), &NoMonitor) }
}

fn fit_toys(model: &Model, params: &[f64], accelerator: Option<&Accelerator>) -> Vec<ToyFit> {
    let source = ToySource { seed: 3, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(model, &model.observed, params, source).expect("yields are positive");
    let options = FitOptions::default();
    let toys = ToyFitter { model, options: &options, sampler: &sampler, uncertainty_of: model.poi() };
    let mut fits = Vec::new();
    let Ok(_) = toys.run(&CpuLikelihood::new(model), 0..30, &run(accelerator), |some| {
        fits.extend(some);
        Ok::<_, Infallible>(())
    });
    fits
}

#[test]
fn toys_that_did_not_converge_match_the_cpu_to_the_bit() {
    for (model, best) in fitted(models()) {
        let accelerator = faulty(AcceleratorFault::Idle);
        assert_eq!(fit_toys(&model, &best, Some(&accelerator)), fit_toys(&model, &best, None));
        let counts = accelerator.share();
        assert_eq!(counts.n_left, 30, "{counts:?}");
    }
}

#[test]
fn the_cpu_computes_variances_that_a_device_lacks() {
    // The host searches again where a likelihood has kinks or several minima.
    let smooth = Shape { rules: false, gentle: true, ..Shape::SMALL };
    let (mut n_uncertain, mut n_differ, mut n_kept) = (0, 0, 0);
    for (model, best) in fitted(models_of(smooth)) {
        let accelerator = Accelerator::new(Box::new(WithoutVariance(CpuLikelihood::new(&model))));
        let (accelerated, cpu) = (fit_toys(&model, &best, Some(&accelerator)), fit_toys(&model, &best, None));
        let poi = model.poi().expect("one");
        let (lower, upper) = (model.parameters.lower[poi], model.parameters.upper[poi]);
        let is_inside = |toy: &&ToyFit| lower < toy.params[poi] && toy.params[poi] < upper;
        // Rounding decides whether a fit ends on a bound or next to it.
        let is_same = |(a, b): &(&ToyFit, &ToyFit)| {
            is_inside(a) == is_inside(b) && a.params.iter().zip(&b.params).all(|(a, b)| (a - b).abs() < 1e-4)
        };
        for (accelerated, cpu) in accelerated.iter().zip(&cpu).filter(is_same) {
            let is_equal = match (accelerated.uncertainty, cpu.uncertainty) {
                (Some(one), Some(other)) => (one - other).abs() <= 0.01 * other,
                (one, other) => one == other,
            };
            n_uncertain += usize::from(cpu.uncertainty.is_some());
            n_differ += usize::from(!is_equal);
        }
        let n_inside = accelerated.iter().filter(is_inside).count() as u64;
        let n_left = accelerator.share().n_left;
        assert!(n_left >= n_inside, "{n_left} fits ended on the CPU, {n_inside} lack a variance");
        n_kept += 30 - n_left;
    }
    // Rounding also decides whether a matrix that is nearly singular is positive definite.
    assert!(n_uncertain > 100 && 50 * n_differ <= n_uncertain, "{n_differ} of {n_uncertain} uncertainties differ");
    assert!(n_kept > 5, "{n_kept} fits stayed on the device: at a bound there is no variance");
}

#[test]
fn coverages_on_an_idle_accelerator_match_the_cpu() {
    for (model, _) in fitted(models()).into_iter().take(1) {
        let settings = CoverageSettings {
            poi: model.poi().expect("every model here has one"),
            true_values: vec![1.0],
            methods: CoverageMethod::ALL.to_vec(),
            cl: 0.9,
            n_toys: 5,
            max_inner_toys: 16,
            tolerance: 0.02,
            seed: 1,
            aux: AuxTreatment::Fluctuated,
        };
        let find = |accelerator: Option<&Accelerator>| {
            let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
            coverage(&mut Problem::new(&model, &mut likelihood, &options), &settings, &run(accelerator))
        };
        assert_eq!(find(Some(&faulty(AcceleratorFault::Idle))), find(None));
        assert_eq!(find(Some(&faulty(AcceleratorFault::Failing))), Err(ToysError::Accelerator));
    }
}

/// Some of these likelihoods have several minima, and another start may lead to another one.
#[test]
fn fits_from_wrong_minima_return_to_the_minimum() {
    let (mut n_higher, mut n) = (0, 0);
    for (model, best) in fitted(models()) {
        let (accelerated, cpu) =
            (fit_toys(&model, &best, Some(&faulty(AcceleratorFault::Wrong))), fit_toys(&model, &best, None));
        n_higher += accelerated.iter().zip(&cpu).filter(|(a, b)| a.nll > b.nll + 1e-7).count();
        n += accelerated.len();
    }
    assert!(50 * n_higher <= n, "{n_higher} of {n} toys ended higher");
}

#[test]
fn scans_grids_and_rankings_verify_warm_starts() {
    fitted(models()).into_par_iter().for_each(|(model, _)| {
        let accelerator = faulty(AcceleratorFault::Wrong);
        let accelerated = ExecutionContext {
            batch_fitter: Some(BatchFitter { accelerator: &accelerator, data: &model.observed }),
            ..ExecutionContext::SINGLE_THREADED
        };
        let mut likelihood = CpuLikelihood::new(&model);
        let options = FitOptions::default();
        let poi = model.poi().expect("every model here has one");
        let axis = |parameter| ScanAxis { parameter, values: ScanValues::Given(vec![0.0, 0.7, 1.5]) };
        let lines = [ExecutionContext::SINGLE_THREADED, accelerated]
            .map(|execution| scan(&mut Problem::new(&model, &mut likelihood.clone(), &options), &axis(poi), execution));
        assert_not_above(&lines[1].twice_delta_nll, &lines[0].twice_delta_nll);
        let free = (0..model.n_params()).find(|&i| i != poi && !model.parameters.fixed[i]);
        if let Some(other) = free {
            let axes = [axis(poi), axis(other)];
            let grids = [ExecutionContext::SINGLE_THREADED, accelerated]
                .map(|execution| grid(&Problem::new(&model, &mut likelihood, &options), axes.each_ref(), execution));
            assert_not_above(&grids[1].twice_delta_nll, &grids[0].twice_delta_nll);
        }
        let wanted = RankingOptions { poi, methods: RankingMethods::ALL, minos: false, groups: Vec::new() };
        let ranked = ranking(&Problem::new(&model, &mut likelihood, &options), &wanted, accelerated);
        let n_free = model.parameters.fixed.iter().filter(|fixed| !**fixed).count();
        assert_eq!((ranked.entries.len(), ranked.is_complete), (n_free - 1, true));
        assert!(accelerator.share().n_fits > 0);
    });
}

fn assert_not_above(accelerated: &[Option<f64>], cpu: &[Option<f64>]) {
    for (accelerated, cpu) in accelerated.iter().zip(cpu) {
        if let (Some(accelerated), Some(cpu)) = (accelerated, cpu) {
            assert!(*accelerated <= cpu + 1e-6, "{accelerated} is above {cpu}");
        }
        assert!(accelerated.is_some() || cpu.is_none());
    }
}

#[test]
fn a_test_by_toys_on_a_failing_accelerator_returns_an_error() {
    let (model, _) = fitted(models()).swap_remove(0);
    let accelerator = faulty(AcceleratorFault::Failing);
    let settings = HypotestSettings {
        test_statistic: TestStatistic::QTilde,
        poi: model.poi().expect("every model here has one"),
        mu: 1.0,
        n_toys: [10, 10],
        seed: 1,
        aux: AuxTreatment::Fluctuated,
    };
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let problem = &mut Problem::new(&model, &mut likelihood, &options);
    let found = hypotest_toys(problem, settings, &run(Some(&accelerator)), None);
    assert_eq!(found, Err(ToysError::Accelerator));
    assert_eq!(accelerator.failure().map(|error| error.to_string()).as_deref(), Some("out of order"));
}
