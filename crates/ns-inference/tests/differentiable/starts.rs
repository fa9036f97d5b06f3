//! Where fits begin changes nothing but time: fits that follow each other, fits that a device
//! begins, and a device that fails.

use crate::{GENTLE, Quantity, SHAPE, Session, inputs_of, session_of, tight, walk};
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
fn fits_that_follow_each_other_nearly_always_end_where_those_from_the_starting_values_do() {
    let (mut n_compared, mut n_asked, mut n_elsewhere) = (0, 0, 0);
    // Fits of models that may hide minima do not follow each other, and take much longer.
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
                n_asked += 1;
                let [followed, initial] =
                    [0, 1].map(|i| quantity.of(&mut sessions[i], Some(&mut gradients[i])).map_err(|e| e.to_string()));
                let (Ok(followed), Ok(initial)) = (followed.clone(), initial.clone()) else {
                    n_elsewhere += usize::from(followed.is_ok() != initial.is_ok());
                    continue;
                };
                let what = format!("model {seed}, step {step}, {quantity:?}");
                // Fits stop within 4e-8 standard deviations of the minimum, and σ depends on where
                // that is.
                if (followed - initial).abs() > 1e-7 * initial.abs().max(1e-2) {
                    n_elsewhere += 1;
                    continue;
                }
                // The derivative of a p-value has √q₀ in its denominator, which magnifies the rounding
                // of a small q₀.
                let tolerance = if matches!(quantity, Quantity::Cls(TestStatistic::Q0, ..)) { 1e-4 } else { 1e-5 };
                for (a, b) in gradients[0].iter().zip(&gradients[1]) {
                    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what}: slopes {a}, {b}");
                }
                n_compared += 1;
            }
        }
    }
    assert!(10 * n_compared > 9 * n_asked, "{n_compared} of {n_asked} compared");
    // These models hide no minima, as far as their effects tell. Others might have several: that is
    // why following has to be asked for.
    assert!(20 * n_elsewhere < n_asked, "{n_elsewhere} of {n_asked} ended in other minima");
    println!("{n_compared} the same, {n_elsewhere} elsewhere, of {n_asked}");
}

/// A device that says of every starting point, moved by so much, that it is a minimum; or that
/// fails.
struct Liar(Option<f64>);

impl BatchMinimizer for Liar {
    fn batch_size(&self) -> usize {
        1
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        let Some(shift) = self.0 else { return Err("it is on fire".into()) };
        let (BatchFixed::Shared(fixed) | BatchFixed::Each(fixed)) = task.fixed;
        let moved = |(i, &x): (usize, &f64)| {
            if fixed[i] { x } else { (x + shift).clamp(task.lower[i], task.upper[i]) }
        };
        let params = task.starts.iter().enumerate().map(moved).collect();
        Ok(vec![BatchFit { params, nll: 0.0, edm: 0.0, converged: true, variance: None, iterations: 0 }])
    }
}

impl TemplateMinimizer for Liar {
    fn replace_templates(&mut self, _: &Model) -> Result<(), BatchError> {
        Ok(())
    }
}

#[test]
fn what_a_device_finds_is_only_where_the_host_goes_on() {
    for (seed, shift) in [(1, 0.4), (2, -0.7), (3, 2.0)] {
        let model = random::model(seed, GENTLE, Interpolation::default());
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let usual = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
        let mut sessions = [usual(), usual().on_device(Box::new(Liar(Some(shift))), model.observed.clone())];
        for quantity in Quantity::all() {
            let [host, device] = sessions.each_mut().map(|session| quantity.of(session, None).ok());
            assert_eq!(host.is_some(), device.is_some(), "{quantity:?}");
            let (Some(host), Some(device)) = (host, device) else { continue };
            assert!((host - device).abs() <= 1e-7 * host.abs().max(1e-2), "{quantity:?}: {host}, {device}");
        }
        assert!(sessions[1].n_device_fits() > 10);
    }
}

/// Where effects that are far from linear may hide minima, the device is not asked: this one would
/// fail.
#[test]
fn fits_of_models_that_may_hide_minima_are_the_hosts() {
    for seed in [1, 2, 3] {
        let model = random::model(seed, SHAPE, Interpolation::default());
        assert!(!suspects(&model).is_empty(), "seed {seed}");
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let usual = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
        let mut sessions = [usual(), usual().on_device(Box::new(Liar(None)), model.observed.clone())];
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

/// Fits of models that may hide minima do not follow each other, and end as tight as those that do.
#[test]
fn gradients_of_sessions_that_follow_are_those_of_tight_fits_whether_or_not_minima_may_hide() {
    let mut n_compared = [0; 2];
    for (shape, n_compared) in [SHAPE, GENTLE].into_iter().zip(&mut n_compared) {
        for seed in 0..8 {
            let model = random::model(seed, shape, Interpolation::default());
            let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
            let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
            let followed = DifferentiableOptions { start: FitStart::Warm, ..DifferentiableOptions::default() };
            let options = [followed, tight(DifferentiableOptions::default().asimov)];
            let mut sessions = options.map(|options| session_of(&model, inputs.clone(), options));
            let mut gradients = [vec![0.0; inputs.len()], vec![0.0; inputs.len()]];
            for values in walk(&model, &inputs, (3, 0.01), seed) {
                sessions.iter_mut().for_each(|session| session.set_inputs(&values).expect("inputs"));
                for quantity in [Quantity::Nll(None), Quantity::Observed(TestStatistic::Q, 1.5)] {
                    let found = [0, 1].map(|i| quantity.of(&mut sessions[i], Some(&mut gradients[i])));
                    let [Ok(_), Ok(_)] = found else { continue };
                    for (a, b) in gradients[0].iter().zip(&gradients[1]) {
                        let is_close = (a - b).abs() <= 1e-8 * b.abs().max(1.0);
                        assert!(is_close, "{seed}, {quantity:?}: slopes {a}, {b}");
                    }
                    *n_compared += 1;
                }
            }
        }
    }
    assert!(n_compared.iter().all(|&n| n > 24), "{n_compared:?} compared");
}

/// What `session` says of `quantity` at `values`, to the bit.
fn bits(session: &mut Session, values: &[f64], quantity: Quantity) -> Option<u64> {
    session.set_inputs(values).expect("inputs");
    quantity.of(session, None).ok().map(f64::to_bits)
}

#[test]
fn without_following_nothing_depends_on_what_was_asked_before() {
    require_independence_of_what_was_asked_before(SHAPE);
    require_independence_of_what_was_asked_before(GENTLE);
}

fn require_independence_of_what_was_asked_before(shape: Shape) {
    let model = random::model(1, shape, Interpolation::default());
    let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
    let inputs = inputs_of(&model, &samples, &TemplateVariations::None);
    let values = inputs.values(&model);
    let other: Vec<f64> = values.iter().map(|value| 1.1 * value).collect();
    let usual = || session_of(&model, inputs.clone(), DifferentiableOptions::default());
    let device = || usual().on_device(Box::new(Liar(Some(0.1))), model.observed.clone());
    let mut n_compared = 0;
    for make in [&usual as &dyn Fn() -> Session, &device] {
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
fn a_device_that_fails_ends_in_an_error_and_no_gradient() {
    let model = random::model(1, GENTLE, Interpolation::default());
    let inputs = inputs_of(&model, &[model.samples[0].as_str()], &TemplateVariations::None);
    let mut session = session_of(&model, inputs.clone(), DifferentiableOptions::default())
        .on_device(Box::new(Liar(None)), model.observed.clone());
    let mut gradient = vec![7.0; inputs.len()];
    let error = session.statistic(TestStatistic::Q0, 0.0, Some(&mut gradient)).expect_err("the device fails");
    assert_eq!(error.to_string(), "the device failed: it is on fire");
    assert!(gradient.iter().all(|&slope| slope == 7.0));
}

/// A signal, a background, and a small sample with a normsys of `factors`, down and up.
fn with_small_sample(small: &[f64], observed: &[f64], [lo, hi]: [f64; 2]) -> Model {
    let samples = vec![
        sample("signal", &[3.0, 6.0, 2.0], &[("mu", ModifierData::NormFactor)]),
        sample("background", &[50.0, 40.0, 30.0], &[("kb", ModifierData::NormSys { lo: 0.96, hi: 1.05 })]),
        sample("small", small, &[("a", ModifierData::NormSys { lo, hi })]),
    ];
    one_channel(samples, observed)
}

/// A session that began with a gentle normsys looks for hidden minima once the normsys is violent.
#[test]
fn which_minima_may_be_hidden_is_judged_by_the_inputs_of_the_fit() {
    let mut random = Random::new(7);
    let (mut n_compared, mut n_hidden) = (0, 0);
    for _ in 0..200 {
        let small = [0; 3].map(|_| random.between(0.02, 0.3));
        let mu = random.between(0.0, 2.0);
        let observed = [(50.0, 3.0), (40.0, 6.0), (30.0, 2.0)].map(|(background, signal): (f64, f64)| {
            let excess = background.sqrt() * random.between(-3.0, 3.0);
            (background + mu * signal + excess).max(1.0).round()
        });
        let [gentle, violent] = [[0.9, 1.1], [0.01, 40.0]].map(|factors| with_small_sample(&small, &observed, factors));
        let [mut began_gentle, mut began_violent] = [&gentle, &violent].map(|model| {
            let inputs = inputs_of(model, &["small"], &TemplateVariations::All);
            session_of(model, inputs, DifferentiableOptions::default())
        });
        let values = began_violent.inputs().values(&violent);
        assert!(suspects(&gentle).is_empty() && !suspects(&violent).is_empty());
        let (domain, start) = domain_and_start(&violent, &FitOptions::default());
        let candidates = Candidates { suspects: Arc::default(), ..Candidates::of(&violent) };
        let mut likelihood = CpuLikelihood::new(&violent);
        let unexplored = Search::new(&mut likelihood, domain, candidates, MinimizeOptions::default()).run(&start).nll;
        let lowest = began_violent.profiled_nll(None, None).expect("a fit")[0];
        n_hidden += usize::from(unexplored > lowest + 1e-6);
        began_gentle.set_inputs(&values).expect("inputs");
        for mu in [None, Some(1.0)] {
            let [one, other] = [&mut began_gentle, &mut began_violent]
                .map(|session| session.profiled_nll(mu, None).expect("a fit")[0]);
            assert_close(one, other, 1e-9, "the lower minimum");
            n_compared += 1;
        }
    }
    assert!(n_hidden > 0 && n_compared == 400, "{n_hidden} minima were hidden");
}
