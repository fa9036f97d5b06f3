//! Tests that the starting point of fits changes only the run time: warm starts, starts from the
//! minima of a device, and a device that fails.

use super::{GENTLE, Quantity, SHAPE, Session, inputs_of, session_of, tight, walk};
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::batch::{BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask, TemplateMinimizer};
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData;
use ns_core::templates::TemplateVariations;
use ns_inference::FitOptions;
use ns_inference::differentiable::{DifferentiableOptions, FitStart};
use ns_inference::minimize::MinimizeOptions;
use ns_inference::options::domain_and_start;
use ns_inference::search::{Candidates, Search, suspects};
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::assert_close;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, sample};
use std::sync::Arc;

#[test]
fn warm_starts_rarely_change_the_minimum() {
    let (mut n_compared, mut n_requested, mut n_different) = (0, 0, 0);
    // Models that may hide minima are fitted without warm starts, and take much longer.
    let models =
        [(GENTLE, 0..12), (SHAPE, 2..4)].into_iter().flat_map(|(shape, seeds)| seeds.map(move |seed| (shape, seed)));
    for (shape, seed) in models {
        let model = random::model(seed, shape, Interpolation::default());
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let session = |start| {
            let options = DifferentiableOptions { start, ..DifferentiableOptions::default() };
            session_of(&model, inputs.clone(), options)
        };
        let mut sessions = [session(FitStart::Warm), session(FitStart::Initial)];
        let mut gradients = [vec![0.0; inputs.len()], vec![0.0; inputs.len()]];
        for (step, values) in walk(&model, &inputs, (20, 0.02), seed).iter().enumerate() {
            sessions.iter_mut().for_each(|session| session.set_inputs(values).expect("inputs"));
            for quantity in Quantity::all() {
                n_requested += 1;
                let [warm, initial] =
                    [0, 1].map(|i| quantity.of(&mut sessions[i], Some(&mut gradients[i])).map_err(|e| e.to_string()));
                let (Ok(warm), Ok(initial)) = (warm.clone(), initial.clone()) else {
                    n_different += usize::from(warm.is_ok() != initial.is_ok());
                    continue;
                };
                let what = format!("model {seed}, step {step}, {quantity:?}");
                // Fits stop within 4e-8 standard deviations of the minimum, on whose position σ
                // depends.
                if (warm - initial).abs() > 1e-7 * initial.abs().max(1e-2) {
                    n_different += 1;
                    continue;
                }
                // The derivative of a p-value has √q₀ in its denominator, which magnifies the
                // rounding of a small q₀.
                let tolerance = if matches!(quantity, Quantity::Cls(TestStatistic::Q0, ..)) { 1e-4 } else { 1e-5 };
                for (a, b) in gradients[0].iter().zip(&gradients[1]) {
                    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what}: derivatives {a}, {b}");
                }
                n_compared += 1;
            }
        }
    }
    assert!(10 * n_compared > 9 * n_requested, "{n_compared} of {n_requested} compared");
    // These models have no suspects. Others might have several minima, which is why warm starts are
    // off by default.
    assert!(20 * n_different < n_requested, "{n_different} of {n_requested} ended in other minima");
    println!("{n_compared} the same, {n_different} different, of {n_requested}");
}

/// A device that reports every starting point, shifted by this much, as a minimum; without a shift,
/// it fails.
struct ShiftingDevice(Option<f64>);

impl BatchMinimizer for ShiftingDevice {
    fn batch_size(&self) -> usize {
        1
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        let Some(shift) = self.0 else { return Err("out of order".into()) };
        let (BatchFixed::Shared(fixed) | BatchFixed::Each(fixed)) = task.fixed;
        let moved = |(i, &x): (usize, &f64)| {
            if fixed[i] { x } else { (x + shift).clamp(task.lower[i], task.upper[i]) }
        };
        let params = task.starts.iter().enumerate().map(moved).collect();
        Ok(vec![BatchFit { params, nll: 0.0, edm: 0.0, converged: true, variance: None, iterations: 0 }])
    }
}

impl TemplateMinimizer for ShiftingDevice {
    fn replace_templates(&mut self, _: &Model) -> Result<(), BatchError> {
        Ok(())
    }
}

#[test]
fn minima_of_a_device_are_only_starting_points_of_the_host() {
    for (seed, shift) in [(1, 0.4), (2, -0.7), (3, 2.0)] {
        let model = random::model(seed, GENTLE, Interpolation::default());
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let default_session = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
        let mut sessions = [
            default_session(),
            default_session().on_device(Box::new(ShiftingDevice(Some(shift))), model.observed.clone()),
        ];
        for quantity in Quantity::all() {
            let [host, device] = sessions.each_mut().map(|session| quantity.of(session, None).ok());
            assert_eq!(host.is_some(), device.is_some(), "{quantity:?}");
            let (Some(host), Some(device)) = (host, device) else { continue };
            assert!((host - device).abs() <= 1e-7 * host.abs().max(1e-2), "{quantity:?}: {host}, {device}");
        }
        assert!(sessions[1].n_device_fits() > 10);
    }
}

/// Large nonlinear effects may hide minima, and such models are not fitted on the device. This
/// device would fail.
#[test]
fn the_host_fits_models_that_may_hide_minima() {
    for seed in [1, 2, 3] {
        let model = random::model(seed, SHAPE, Interpolation::default());
        assert!(!suspects(&model).is_empty(), "seed {seed}");
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let default_session = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
        let mut sessions =
            [default_session(), default_session().on_device(Box::new(ShiftingDevice(None)), model.observed.clone())];
        let mut n_compared = 0;
        for quantity in Quantity::all() {
            let [host, device] = sessions.each_mut().map(|session| quantity.of(session, None).ok());
            assert_eq!(host.is_some(), device.is_some(), "{quantity:?}");
            let (Some(host), Some(device)) = (host, device) else { continue };
            assert!((host - device).abs() <= 1e-7 * host.abs().max(1e-2), "{quantity:?}: {host}, {device}");
            n_compared += 1;
        }
        assert_eq!(sessions[1].n_device_fits(), 0);
        assert!(n_compared > 5, "{n_compared} compared");
    }
}

/// Models that may hide minima are fitted without warm starts, and as tightly as with them.
#[test]
fn gradients_with_warm_starts_match_tight_fits() {
    let mut n_compared = [0; 2];
    for (shape, n_compared) in [SHAPE, GENTLE].into_iter().zip(&mut n_compared) {
        for seed in 0..8 {
            let model = random::model(seed, shape, Interpolation::default());
            let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
            let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
            let warm_start = DifferentiableOptions { start: FitStart::Warm, ..DifferentiableOptions::default() };
            let options = [warm_start, tight(DifferentiableOptions::default().asimov)];
            let mut sessions = options.map(|options| session_of(&model, inputs.clone(), options));
            let mut gradients = [vec![0.0; inputs.len()], vec![0.0; inputs.len()]];
            for values in walk(&model, &inputs, (3, 0.01), seed) {
                sessions.iter_mut().for_each(|session| session.set_inputs(&values).expect("inputs"));
                for quantity in [Quantity::Nll(None), Quantity::Observed(TestStatistic::Q, 1.5)] {
                    let found = [0, 1].map(|i| quantity.of(&mut sessions[i], Some(&mut gradients[i])));
                    let [Ok(_), Ok(_)] = found else { continue };
                    for (a, b) in gradients[0].iter().zip(&gradients[1]) {
                        let is_close = (a - b).abs() <= 1e-8 * b.abs().max(1.0);
                        assert!(is_close, "{seed}, {quantity:?}: derivatives {a}, {b}");
                    }
                    *n_compared += 1;
                }
            }
        }
    }
    assert!(n_compared.iter().all(|&n| n > 24), "{n_compared:?} compared");
}

/// Returns the bits of `quantity` at `values`.
fn bits(session: &mut Session, values: &[f64], quantity: Quantity) -> Option<u64> {
    session.set_inputs(values).expect("inputs");
    quantity.of(session, None).ok().map(f64::to_bits)
}

#[test]
fn results_without_warm_starts_do_not_depend_on_earlier_calls() {
    assert_independent_of_earlier_calls(SHAPE);
    assert_independent_of_earlier_calls(GENTLE);
}

fn assert_independent_of_earlier_calls(shape: Shape) {
    let model = random::model(1, shape, Interpolation::default());
    let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
    let inputs = inputs_of(&model, &samples, &TemplateVariations::None);
    let values = inputs.values(&model);
    let other: Vec<f64> = values.iter().map(|value| 1.1 * value).collect();
    let default_session = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
    let device = || default_session().on_device(Box::new(ShiftingDevice(Some(0.1))), model.observed.clone());
    let mut n_compared = 0;
    for make in [&default_session as &dyn Fn() -> Session, &device] {
        for quantity in Quantity::all() {
            let fresh = bits(&mut make(), &values, quantity);
            let mut used = make();
            bits(&mut used, &other, quantity);
            assert_eq!(bits(&mut used, &values, quantity), fresh, "{quantity:?}");
            n_compared += usize::from(fresh.is_some());
        }
    }
    assert!(n_compared > 30, "{n_compared} compared");
}

#[test]
fn a_failing_device_returns_an_error_and_writes_no_gradient() {
    let model = random::model(1, GENTLE, Interpolation::default());
    let inputs = inputs_of(&model, &[model.samples[0].as_str()], &TemplateVariations::None);
    let mut session = session_of(&model, inputs.clone(), DifferentiableOptions::default())
        .on_device(Box::new(ShiftingDevice(None)), model.observed.clone());
    let mut gradient = vec![7.0; inputs.len()];
    let error = session.statistic(TestStatistic::Q0, 0.0, Some(&mut gradient)).expect_err("the device fails");
    assert_eq!(error.to_string(), "the device failed: out of order");
    assert!(gradient.iter().all(|&derivative| derivative == 7.0));
}

/// Returns a model of a signal, a background, and a small sample with a normsys of the given
/// factors, down and up.
fn with_small_sample(small: &[f64], observed: &[f64], [lo, hi]: [f64; 2]) -> Model {
    let samples = vec![
        sample("signal", &[3.0, 6.0, 2.0], &[("mu", ModifierData::NormFactor)]),
        sample("background", &[50.0, 40.0, 30.0], &[("kb", ModifierData::NormSys { lo: 0.96, hi: 1.05 })]),
        sample("small", small, &[("a", ModifierData::NormSys { lo, hi })]),
    ];
    one_channel(samples, observed)
}

/// A session created with a small normsys searches for hidden minima once the normsys is very
/// large.
#[test]
fn fits_search_for_the_hidden_minima_of_the_current_inputs() {
    let mut random = Random::new(7);
    let (mut n_compared, mut n_hidden) = (0, 0);
    for _ in 0..200 {
        let small = [0; 3].map(|_| random.between(0.02, 0.3));
        let mu = random.between(0.0, 2.0);
        let observed = [(50.0, 3.0), (40.0, 6.0), (30.0, 2.0)].map(|(background, signal): (f64, f64)| {
            let excess = background.sqrt() * random.between(-3.0, 3.0);
            (background + mu * signal + excess).max(1.0).round()
        });
        let [small_effect, large] =
            [[0.9, 1.1], [0.01, 40.0]].map(|factors| with_small_sample(&small, &observed, factors));
        let [mut began_small, mut began_large] = [&small_effect, &large].map(|model| {
            let inputs = inputs_of(model, &["small"], &TemplateVariations::All);
            session_of(model, inputs, DifferentiableOptions::default())
        });
        let values = began_large.inputs().values(&large);
        assert!(suspects(&small_effect).is_empty() && !suspects(&large).is_empty());
        let (domain, start) = domain_and_start(&large, &FitOptions::default());
        let candidates = Candidates { suspects: Arc::default(), ..Candidates::of(&large) };
        let mut likelihood = CpuLikelihood::new(&large);
        let unexplored = Search::new(&mut likelihood, domain, candidates, MinimizeOptions::default()).run(&start).nll;
        let lowest = began_large.profiled_nll(None, None).expect("a fit")[0];
        n_hidden += usize::from(unexplored > lowest + 1e-6);
        began_small.set_inputs(&values).expect("inputs");
        for mu in [None, Some(1.0)] {
            let [one, other] =
                [&mut began_small, &mut began_large].map(|session| session.profiled_nll(mu, None).expect("a fit")[0]);
            assert_close(one, other, 1e-9, "the lower minimum");
            n_compared += 1;
        }
    }
    assert!(n_hidden > 0 && n_compared == 400, "{n_hidden} minima were hidden");
}
