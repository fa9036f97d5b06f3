//! Accelerators that arrive nowhere, or in the wrong place: procedures end where they end without one.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::batch::{BatchData, BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask};
use ns_inference::accelerator::{Accelerator, BatchFitter};
use ns_inference::monitor::NoMonitor;
use ns_inference::parallel::ExecutionContext;
use ns_inference::ranking::{RankingMethods, RankingOptions, ranking};
use ns_inference::scan::{ScanAxis, ScanValues, grid, scan};
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, Ensemble, HypotestSettings, ToyFit, ToyFitter, ToyRun, ToySampler, ToySource, ToysError,
    hypotest_toys,
};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::random::{self, Shape};
use rayon::prelude::*;
use std::convert::Infallible;
use std::num::NonZeroUsize;

/// What is wrong with an accelerator.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Every fit stays at its start and says so.
    Lame,
    /// Every fit says that it arrived, at a point that is none.
    Lying,
    /// It always fails.
    Broken,
}

struct Faulty(Fault);

impl BatchMinimizer for Faulty {
    fn batch_size(&self) -> usize {
        7
    }

    fn is_exact(&self) -> bool {
        // Nobody may believe a liar in single precision: its minima are starting points.
        self.0 != Fault::Lying
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        if self.0 == Fault::Broken {
            return Err("no such luck".into());
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
                let is_held = is_fixed(fit, i) || self.0 == Fault::Lame;
                if is_held { *x } else { (x + 0.3).clamp(task.lower[i], task.upper[i]) }
            };
            start.iter().enumerate().map(moved).collect()
        };
        let arrival = |(fit, start): (usize, &[f64])| BatchFit {
            params: end(fit, start),
            nll: 0.0,
            edm: 0.0,
            converged: self.0 == Fault::Lying,
            variance: None,
            iterations: 1,
        };
        Ok(task.starts.chunks_exact(n_params).enumerate().map(arrival).collect())
    }
}

fn faulty(fault: Fault) -> Accelerator {
    Accelerator::new(Box::new(Faulty(fault)))
}

fn models() -> Vec<Model> {
    (0..8).map(|seed| random::model(seed, Shape::SMALL, Default::default())).collect()
}

/// Models whose data can be fitted, with the best fit.
fn fitted() -> Vec<(Model, Vec<f64>)> {
    let best = |model: Model| {
        let found = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()));
        found.converged.then_some((model, found.bestfit))
    };
    models().into_iter().filter_map(best).collect()
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
fn toys_that_did_not_arrive_are_the_cpus_to_the_bit() {
    for (model, best) in fitted() {
        let accelerator = faulty(Fault::Lame);
        assert_eq!(fit_toys(&model, &best, Some(&accelerator)), fit_toys(&model, &best, None));
        let share = accelerator.share();
        assert_eq!(share.n_left, 30, "{share:?}");
    }
}

/// Some of these likelihoods have several minima, and another start may lead to another one.
#[test]
fn starting_points_beside_the_minimum_lead_back_to_it() {
    let (mut n_higher, mut n) = (0, 0);
    for (model, best) in fitted() {
        let (own, cpu) = (fit_toys(&model, &best, Some(&faulty(Fault::Lying))), fit_toys(&model, &best, None));
        n_higher += own.iter().zip(&cpu).filter(|(a, b)| a.nll > b.nll + 1e-7).count();
        n += own.len();
    }
    assert!(50 * n_higher <= n, "{n_higher} of {n} toys ended higher");
}

#[test]
fn scans_grids_and_rankings_do_not_believe_a_hint() {
    fitted().into_par_iter().for_each(|(model, _)| {
        let accelerator = faulty(Fault::Lying);
        let assisted = ExecutionContext {
            batch_fitter: Some(BatchFitter { accelerator: &accelerator, data: &model.observed }),
            ..ExecutionContext::SINGLE_THREADED
        };
        let mut likelihood = CpuLikelihood::new(&model);
        let options = FitOptions::default();
        let poi = model.poi().expect("every model here has one");
        let axis = |parameter| ScanAxis { parameter, values: ScanValues::Given(vec![0.0, 0.7, 1.5]) };
        let lines = [ExecutionContext::SINGLE_THREADED, assisted]
            .map(|execution| scan(&mut Problem::new(&model, &mut likelihood.clone(), &options), &axis(poi), execution));
        assert_not_above(&lines[1].twice_delta_nll, &lines[0].twice_delta_nll);
        let free = (0..model.n_params()).find(|&i| i != poi && !model.parameters.fixed[i]);
        if let Some(other) = free {
            let axes = [axis(poi), axis(other)];
            let grids = [ExecutionContext::SINGLE_THREADED, assisted]
                .map(|execution| grid(&Problem::new(&model, &mut likelihood, &options), axes.each_ref(), execution));
            assert_not_above(&grids[1].twice_delta_nll, &grids[0].twice_delta_nll);
        }
        let wanted = RankingOptions { poi, methods: RankingMethods::ALL, minos: false, groups: Vec::new() };
        let rankings = [ExecutionContext::SINGLE_THREADED, assisted]
            .map(|execution| ranking(&Problem::new(&model, &mut likelihood, &options), &wanted, execution));
        assert_eq!(rankings[1].entries.len(), rankings[0].entries.len());
        assert!(accelerator.share().n_fits > 0);
    });
}

fn assert_not_above(own: &[Option<f64>], cpu: &[Option<f64>]) {
    for (own, cpu) in own.iter().zip(cpu) {
        if let (Some(own), Some(cpu)) = (own, cpu) {
            assert!(*own <= cpu + 1e-6, "{own} is above {cpu}");
        }
        assert!(own.is_some() || cpu.is_none());
    }
}

#[test]
fn a_test_by_toys_on_a_broken_accelerator_is_an_error() {
    let (model, _) = fitted().swap_remove(0);
    let accelerator = faulty(Fault::Broken);
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
    assert_eq!(accelerator.failure().map(|error| error.to_string()).as_deref(), Some("no such luck"));
}
