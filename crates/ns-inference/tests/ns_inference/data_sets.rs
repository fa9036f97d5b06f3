//! Fits of many data sets: those of single fits, the same bits for any threads, batches and order,
//! and nothing finite where a fit failed. Bootstrap replicas against exact moments.

use crate::common::StopAfter;
use ns_compute::CpuLikelihood;
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData::{NormFactor, ShapeSys};
use ns_core::{Data, DataLikelihood, Model};
use ns_inference::bootstrap::{BootstrapEvents, EventId, bootstrap};
use ns_inference::data_sets::{DataSetFit, DataSetFitter, DataTable};
use ns_inference::minimize::Outcome;
use ns_inference::monitor::NoMonitor;
use ns_inference::parallel::ExecutionContext;
use ns_inference::replicas::ReplicaMoments;
use ns_inference::toys::{AuxTreatment, Ensemble, RunStatus, ToyRun, ToySampler, ToySource};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::multimodal::{self, Cause};
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{one_channel, sample};
use std::convert::Infallible;
use std::num::NonZeroUsize;

/// The fits of a table, and what they need.
struct Fits<'a> {
    model: &'a Model,
    values: &'a [f64],
    n_columns: usize,
}

impl Fits<'_> {
    fn run(&self, run: &ToyRun<'_>) -> (Vec<DataSetFit>, RunStatus) {
        let (model, options) = (self.model, FitOptions::default());
        let mut likelihood = CpuLikelihood::new(model);
        let nominal = fit(&mut Problem::new(model, &mut likelihood, &options));
        let (values, n_columns, n_bins, aux) = (self.values, self.n_columns, model.n_bins(), &model.observed.aux[..]);
        let table = DataTable { values, n_columns, n_bins, masked: None, aux };
        let start = &nominal.bestfit[..];
        let fitter = DataSetFitter { model, options: &options, table, start, wants_uncertainties: true };
        let mut all = Vec::new();
        let Ok(ended) = fitter.run(&likelihood, 0..table.n_sets() as u64, run, |fits| {
            all.extend(fits);
            Ok::<(), Infallible>(())
        });
        (all, ended)
    }

    fn all(&self) -> Vec<DataSetFit> {
        self.run(&on(1, 16)).0
    }
}

fn on(threads: usize, batch: usize) -> ToyRun<'static> {
    let [threads, batch] = [threads, batch].map(|n| NonZeroUsize::new(n).expect("not zero"));
    ToyRun { batch, ..ToyRun::new(threads, &NoMonitor) }
}

/// Returns the main and auxiliary data of toys thrown at the starting values (N × (B + K)).
fn toys(model: &Model, n_toys: u64) -> Vec<f64> {
    let source = ToySource { seed: 3, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let Ok(sampler) = ToySampler::new(model, &model.observed, &model.parameters.init, source) else {
        return Vec::new();
    };
    let mut data = Data::default();
    let mut row = |toy| {
        sampler.throw(toy, &mut data);
        [&data.main[..], &data.aux].concat()
    };
    (0..n_toys).flat_map(&mut row).collect()
}

fn single_fit(model: &Model, row: &[f64]) -> ns_inference::FitResult {
    let (main, aux) = row.split_at(model.n_bins());
    let mut likelihood = CpuLikelihood::new(model);
    likelihood.set_data(&Data { main: main.to_vec(), aux: aux.to_vec() });
    fit(&mut Problem::new(model, &mut likelihood, &FitOptions::default()))
}

/// Compares with single fits, and returns how many of the minima are lower.
fn compare_with_single_fits(model: &Model, what: &str) -> usize {
    let (values, n_columns) = (toys(model, 6), model.n_bins() + model.n_aux());
    let fits = Fits { model, values: &values, n_columns }.all();
    let mut n_lower = 0;
    for (found, row) in fits.iter().zip(values.chunks_exact(n_columns)) {
        let single = single_fit(model, row);
        let what = format!("{what}, data set {}", found.data_set);
        assert_eq!(found.outcome == Outcome::Converged, single.converged, "{what}");
        if !single.converged {
            continue;
        }
        if found.twice_nll < single.twice_nll - 1e-6 {
            n_lower += 1;
            continue;
        }
        assert_close(found.twice_nll, single.twice_nll, 1e-10, &what);
        let uncertainties = found.uncertainties.as_deref().expect("they were wanted");
        for (i, name) in model.parameters.names.iter().enumerate() {
            // The edge of the domain, bounds and flat directions have no such accuracy.
            let Some(sigma) = single.uncertainties[i].filter(|_| single.flat_directions.is_empty()) else { continue };
            assert!((found.bestfit[i] - single.bestfit[i]).abs() < 1e-6 * sigma, "{what}, {name}");
            assert_close(uncertainties[i] / sigma, 1.0, 1e-6, &format!("{what}, uncertainty of {name}"));
        }
    }
    n_lower
}

#[test]
fn fits_are_those_of_single_fits() {
    let shape = Shape { oddities: false, ..Shape::SMALL };
    for seed in 0..25 {
        let n_lower =
            compare_with_single_fits(&random::model(seed, shape, Interpolation::default()), &seed.to_string());
        assert_eq!(n_lower, 0, "{seed}");
    }
}

#[test]
fn minima_are_sought_as_single_fits_seek_them() {
    for cause in Cause::ALL {
        for seed in 0..2 {
            // Two starting points may find a lower minimum than one, and never a higher one.
            compare_with_single_fits(&multimodal::model(cause, seed), cause.name());
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads_batches_or_the_other_data_sets() {
    for model in [
        random::model(5, Shape::SMALL, Interpolation::default()),
        multimodal::model(Cause::ALL[0], 0),
        multimodal::model(Cause::ALL[3], 1),
    ] {
        let (values, n_columns) = (toys(&model, 40), model.n_bins() + model.n_aux());
        let bits = |fit: &DataSetFit| -> Vec<u64> {
            let uncertainties = fit.uncertainties.iter().flatten();
            [fit.twice_nll].iter().chain(&fit.bestfit).chain(uncertainties).map(|x| x.to_bits()).collect()
        };
        let of = |values: &[f64], run: &ToyRun<'_>| -> Vec<Vec<u64>> {
            Fits { model: &model, values, n_columns }.run(run).0.iter().map(bits).collect()
        };
        let all = of(&values, &on(1, 16));
        assert_eq!(all.len(), values.len() / n_columns);
        for (threads, batch) in [(2, 16), (5, 16), (5, 1), (1, 7)] {
            assert_eq!(of(&values, &on(threads, batch)), all, "{threads} threads, batches of {batch}");
        }
        let reversed: Vec<f64> = values.chunks_exact(n_columns).rev().flatten().copied().collect();
        let mut backwards = of(&reversed, &on(2, 16));
        backwards.reverse();
        assert_eq!(backwards, all);
        assert_eq!(of(&values[..n_columns], &on(1, 16)), all[..1]);
    }
}

#[test]
fn numbers_of_failed_fits_are_not_finite() {
    // The second bin expects nothing, so an event there has no probability.
    let samples = vec![sample("signal", &[5.0, 0.0], &[("mu", NormFactor)]), sample("background", &[50.0, 0.0], &[])];
    let model = one_channel(samples, &[50.0, 0.0]);
    let fits = Fits { model: &model, values: &[60.0, 0.0, 60.0, 1.0], n_columns: 2 }.all();
    assert_eq!([fits[0].outcome, fits[1].outcome], [Outcome::Converged, Outcome::NotFinite]);
    assert_close(fits[0].bestfit[0], 2.0, 1e-7, "mu");
    let DataSetFit { twice_nll, bestfit, uncertainties: Some(uncertainties), .. } = &fits[1] else {
        panic!("{fits:?}")
    };
    assert!(twice_nll.is_nan() && bestfit[0].is_nan() && uncertainties[0].is_nan(), "{fits:?}");
}

#[test]
fn rows_without_auxiliary_data_have_the_nominal_ones() {
    let background = sample("background", &[50.0], &[("gamma", ShapeSys(vec![5.0]))]);
    let model = one_channel(vec![sample("signal", &[5.0], &[("mu", NormFactor)]), background], &[60.0]);
    let aux = model.observed.aux[0];
    let bins = Fits { model: &model, values: &[70.0, 55.0], n_columns: 1 }.all();
    let both = Fits { model: &model, values: &[70.0, aux, 55.0, aux], n_columns: 2 }.all();
    assert_eq!(bins, both);
    let other = Fits { model: &model, values: &[70.0, 0.5 * aux], n_columns: 2 }.all();
    // γ̂ = a/τ where the signal is free.
    assert_close(other[0].bestfit[1], 0.5, 1e-7, "gamma");
}

#[test]
fn a_cancelled_run_returns_the_first_fits() {
    let model = one_channel(vec![sample("signal", &[5.0], &[("mu", NormFactor)])], &[5.0]);
    let values: Vec<f64> = (1..200).map(f64::from).collect();
    let monitor = StopAfter::new(3);
    let run = ToyRun { batch: NonZeroUsize::MIN, ..ToyRun::new(NonZeroUsize::MIN, &monitor) };
    let (fits, ended) = Fits { model: &model, values: &values, n_columns: 1 }.run(&run);
    assert_eq!((fits.len(), ended), (3, RunStatus::Cancelled));
}

/// Returns replicas of the number of events with numbers in `events`.
fn counts(events: std::ops::Range<u64>, n_replicas: u32, seed: u64) -> Vec<f64> {
    let numbers: Vec<u64> = events.collect();
    let bins = vec![Some(0); numbers.len()];
    let events = BootstrapEvents { bins: &bins, events: &numbers, runs: &[300_000], weights: &[] };
    bootstrap(&events, 1, seed, 0..n_replicas, ExecutionContext::SINGLE_THREADED).expect("not cancelled")
}

#[test]
fn weights_have_the_moments_of_the_poisson_distribution() {
    let n_events = 20_000_u64;
    let mut weights = [0; 100];
    let mut sums = [0.0; 4];
    let mut neighbours = [0.0; 2];
    let mut before = [1; 100];
    for event in 0..n_events {
        EventId { run: 1, event }.weights(0, 0, &mut weights);
        for (replica, &weight) in weights.iter().enumerate() {
            let x = f64::from(weight) - 1.0;
            sums.iter_mut().zip(1..).for_each(|(sum, power)| *sum += x.powi(power));
            neighbours[0] += x * (f64::from(before[replica]) - 1.0);
            neighbours[1] += x * (f64::from(weights[(replica + 1) % 100]) - 1.0);
        }
        before = weights;
    }
    let n = n_events as f64 * 100.0;
    // Central moments of Poisson(1) are 0, 1, 1, 4, 11, 41, 162, 715: the variance of the mean of
    // (x - 1)^k is (m_2k - m_k²)/n.
    let moments = [0.0, 1.0, 1.0, 4.0, 11.0, 41.0, 162.0, 715.0];
    for (k, sum) in (0..).zip(sums) {
        let error = ((moments[2 * k + 1] - moments[k] * moments[k]) / n).sqrt();
        assert!((sum / n - moments[k]).abs() < 4.0 * error, "moment {}: {} ± {error}", k + 1, sum / n);
    }
    for sum in neighbours {
        assert!((sum / n).abs() < 4.0 / n.sqrt(), "neighbouring events or replicas are correlated: {}", sum / n);
    }
}

#[test]
fn sums_of_events_fluctuate_and_correlate_as_their_events_do() {
    // 300 events of a and 400 of b, of which 200 are common: ρ = 200/√(300·400).
    let n_replicas = 20_000;
    let mut moments = ReplicaMoments::new(3);
    let (a, b, other) = (counts(0..300, n_replicas, 0), counts(100..500, n_replicas, 0), counts(0..300, n_replicas, 1));
    for i in 0..n_replicas as usize {
        moments.add(&[a[i], b[i], other[i]]);
    }
    let n = f64::from(n_replicas);
    for (i, events) in [(0, 300.0_f64), (1, 400.0)] {
        assert!((moments.mean()[i] - events).abs() < 4.0 * (events / n).sqrt(), "{}", moments.mean()[i]);
        let variance = moments.covariance(i, i).expect("many replicas");
        // The variance of a sample variance of N Poisson(1) numbers, nearly (2N² + N)/n.
        assert!((variance - events).abs() < 4.0 * ((2.0 * events * events + events) / n).sqrt(), "{variance}");
    }
    let (rho, error) = (moments.correlation(0, 1).expect("both vary"), moments.correlation_error(0, 1));
    let exact = 200.0 / (300.0_f64 * 400.0).sqrt();
    assert!((rho - exact).abs() < 4.0 * error.expect("both vary"), "{rho} is not {exact}");
    let (rho, error) = (moments.correlation(0, 2).expect("both vary"), moments.correlation_error(0, 2));
    assert!(rho.abs() < 4.0 * error.expect("both vary"), "replicas of two seeds are correlated: {rho}");
}
