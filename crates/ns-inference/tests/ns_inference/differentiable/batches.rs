//! Tests batches of templates that stay on a device: what the host computes from the minima of its
//! fits, and which elements it has to complete. The device is the CPU, with optional faults.
//!
//! Legend: N batch elements, M inputs.

use super::{GENTLE, Session, inputs_of, session_of, walk};
use ns_compute::DifferentiableSession;
use ns_core::batch::{BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask, TemplateBatchMinimizer};
use ns_core::interpolate::Interpolation;
use ns_core::templates::TemplateVariations;
use ns_core::{Data, Likelihood, Model, TemplateLikelihood};
use ns_inference::differentiable::{DifferentiableError, DifferentiableOptions};
use ns_inference::minimize::{Domain, MinimizeOptions, Minimizer};
use ns_inference::search::suspects;
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{one_channel, sample};

/// A device with one likelihood per batch element. Fits of the elements `lost` never converge, and
/// `raised` is added to -ln L of free fits.
struct HostDevice {
    likelihoods: Vec<DifferentiableSession>,
    poi: usize,
    lost: Vec<usize>,
    raised: f64,
    is_exact: bool,
    fails: bool,
}

impl HostDevice {
    /// Creates a device for the inputs `batch` (N × M) of `model`.
    fn new(model: &Model, session: &Session, batch: &[f64]) -> HostDevice {
        let inputs = session.inputs();
        let of = |values: &[f64]| {
            let mut likelihood = DifferentiableSession::new(model, inputs.clone());
            likelihood.set_inputs(values);
            likelihood
        };
        let likelihoods = batch.chunks(inputs.len()).map(of).collect();
        HostDevice {
            likelihoods,
            poi: model.poi().expect("it has one"),
            lost: Vec::new(),
            raised: 0.0,
            is_exact: true,
            fails: false,
        }
    }
}

impl BatchMinimizer for HostDevice {
    fn batch_size(&self) -> usize {
        7
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        if self.fails {
            return Err("out of order".into());
        }
        let BatchFixed::Each(fixed) = task.fixed else { panic!("every fit has its own fixed parameters") };
        let (n_params, n_batch) = (task.lower.len(), self.likelihoods.len());
        let fits = task.starts.chunks(n_params).zip(fixed.chunks(n_params)).enumerate();
        let fit = |(k, (start, fixed)): (usize, (&[f64], &[bool]))| {
            let fixed_poi = fixed[self.poi];
            let (lower, upper, fixed) = (task.lower.to_vec(), task.upper.to_vec(), fixed.to_vec());
            let domain = Domain { lower, upper, fixed, kinked: Vec::new() };
            let likelihood = &mut self.likelihoods[k % n_batch];
            let mut minimizer = Minimizer::new(&likelihood.structure());
            let found = minimizer.minimize(likelihood, start, &domain, &MinimizeOptions::default());
            let converged = found.converged() && !self.lost.contains(&(k % n_batch));
            let nll = found.nll + if fixed_poi { 0.0 } else { self.raised };
            BatchFit { params: found.params, nll, edm: found.edm, converged, variance: None, iterations: 1 }
        };
        Ok(fits.map(fit).collect())
    }
}

impl TemplateBatchMinimizer for HostDevice {
    fn n_batch(&self) -> usize {
        self.likelihoods.len()
    }

    fn batch_gradients(&mut self, _: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError> {
        let (n_params, n_batch) = (self.likelihoods[0].n_params(), self.likelihoods.len());
        let mut gradients = vec![0.0; points.len()];
        let each = points.chunks(n_params).zip(gradients.chunks_mut(n_params)).enumerate();
        let values =
            each.map(|(k, (point, gradient))| self.likelihoods[k % n_batch].nll_and_grad(point, gradient)).collect();
        Ok((values, gradients))
    }
}

/// Returns a random model and a batch of inputs near its own (N × M).
fn batch_of(seed: u64, n: usize) -> (Model, Session, Vec<f64>) {
    batch_of_shape(GENTLE, seed, n)
}

fn batch_of_shape(shape: Shape, seed: u64, n: usize) -> (Model, Session, Vec<f64>) {
    let model = random::model(seed, shape, Interpolation::default());
    let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
    let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
    let batch = walk(&model, &inputs, (n, 0.04), seed).concat();
    let session = session_of(&model, inputs, DifferentiableOptions::default());
    (model, session, batch)
}

#[test]
fn statistics_of_a_batch_match_fits_on_the_host() {
    assert_statistics_match_the_host(GENTLE, 0..30);
}

/// With 40 systematics, the host does not minimise from every reflected point.
#[test]
fn statistics_of_a_batch_of_large_models_match_fits_on_the_host() {
    assert_statistics_match_the_host(Shape { systematics: 40, ..GENTLE }, 0..10);
}

fn assert_statistics_match_the_host(shape: Shape, seeds: std::ops::Range<u64>) {
    let (mut n_found, mut n_requested) = (0, 0);
    for seed in seeds {
        let (model, mut session, batch) = batch_of_shape(shape, seed, 3);
        let mut device = HostDevice::new(&model, &session, &batch);
        let mu = [0.7, 1.4, 2.1];
        let data = model.observed.clone();
        let found = session
            .statistic_of_batch(&mut device, &data, TestStatistic::QTilde, &mu)
            .expect("the device does not fail");
        let minima = session.profiled_nll_of_batch(&mut device, &data, None).expect("the device does not fail");
        for (k, values) in batch.chunks(session.inputs().len()).enumerate() {
            n_requested += 1;
            session.set_inputs(values).expect("valid templates");
            let Some(compared) = &found[k] else { continue };
            let Ok([q, _]) = session.statistic(TestStatistic::QTilde, mu[k], None) else { continue };
            if !suspects(session.model()).is_empty() {
                // On the host, suspects depend on the templates of the element, which stay on the
                // device.
                continue;
            }
            n_found += 1;
            assert!((compared.q - q).abs() <= 1e-7 * q.max(1.0), "seed {seed}: {} is not {q}", compared.q);
            let [nll, _] = session.profiled_nll(None, None).expect("as above");
            let minimum = minima[k].as_ref().expect("the same fit");
            assert!((minimum.nll - nll).abs() <= 1e-9 * nll.abs().max(1.0), "{} is not {nll}", minimum.nll);
        }
    }
    println!("{n_found} of {n_requested}");
    assert!(3 * n_found > n_requested, "{n_found} of {n_requested} were not left to the host");
}

#[test]
fn elements_without_convergence_or_with_a_lower_minimum_are_left_to_the_host() {
    let (model, mut session, batch) = batch_of(2, 3);
    let data = model.observed.clone();
    let mut of = |change: &dyn Fn(&mut HostDevice)| {
        let mut device = HostDevice::new(&model, &session, &batch);
        change(&mut device);
        session.statistic_of_batch(&mut device, &data, TestStatistic::Q, &[2.0; 3])
    };
    let is_found = |found: Result<Vec<_>, _>| -> Vec<bool> {
        let found: Vec<Option<_>> = found.expect("the device does not fail");
        found.iter().map(Option::is_some).collect()
    };
    let default_device = is_found(of(&|_| {}));
    assert_eq!(default_device, [true; 3]);
    let lost = is_found(of(&|device| device.lost = vec![1]));
    assert_eq!(lost, [true, false, true]);
    // A free minimum above the conditional one is not the lowest.
    assert_eq!(is_found(of(&|device| device.raised = 50.0)), [false; 3]);
    assert_eq!(is_found(of(&|device| device.is_exact = false)), [false; 3]);
    let error = of(&|device| device.fails = true).expect_err("it fails");
    assert_eq!(error, DifferentiableError::Device { reason: "out of order".to_owned() });
}

/// A same-sign systematic has minima on both sides of zero. If the higher one is found, that is
/// detected.
#[test]
fn a_lower_reflected_minimum_is_left_to_the_host() {
    use ns_core::spec::ModifierData::{HistoSys, NormFactor};
    let shift = HistoSys { hi_data: vec![60.0, 50.0], lo_data: vec![60.0, 52.0] };
    let background = sample("b", &[50.0, 50.0], &[("shift", shift)]);
    let model = one_channel(vec![sample("s", &[0.5, 0.5], &[("mu", NormFactor)]), background], &[64.0, 53.0]);
    let mut options = DifferentiableOptions::default();
    let shift = model.parameters.index_of("shift").expect("a parameter of the model");
    let mut n_left = 0;
    for start in [-1.0, 1.0] {
        let mut init = model.parameters.init.clone();
        init[shift] = start;
        options.fit.start = Some(init);
        let inputs = inputs_of(&model, &["s", "b"], &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs, options.clone());
        let mut device = HostDevice::new(&model, &session, &values);
        let found = session.profiled_nll_of_batch(&mut device, &model.observed, None).expect("it does not fail");
        let [lowest, _] = session.profiled_nll(None, None).expect("a fit on the host");
        match &found[0] {
            Some(minimum) => assert!((minimum.nll - lowest).abs() < 1e-9, "{} is not {lowest}", minimum.nll),
            None => n_left += 1,
        }
    }
    assert!(n_left >= 1, "one of the two starts leads to the higher minimum");
}
