//! Rows of templates that stay on a device: what the host makes of where its fits ended, and which rows it has to finish. The device is the CPU, or one that lies.

use crate::{GENTLE, Session, inputs_of, session_of, walk};
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

/// One likelihood for each row; fits of rows that `lost` names never arrive, and free ones may be said to be higher than they are.
struct OnHost {
    rows: Vec<DifferentiableSession>,
    poi: usize,
    lost: Vec<usize>,
    raised: f64,
    is_exact: bool,
    fails: bool,
}

impl OnHost {
    /// The rows (R × M) of `model`.
    fn new(model: &Model, session: &Session, rows: &[f64]) -> OnHost {
        let inputs = session.inputs();
        let of = |row: &[f64]| {
            let mut likelihood = DifferentiableSession::new(model, inputs.clone());
            likelihood.set_inputs(row);
            likelihood
        };
        let rows = rows.chunks(inputs.len()).map(of).collect();
        OnHost {
            rows,
            poi: model.poi().expect("it has one"),
            lost: Vec::new(),
            raised: 0.0,
            is_exact: true,
            fails: false,
        }
    }
}

impl BatchMinimizer for OnHost {
    fn batch_size(&self) -> usize {
        7
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        if self.fails {
            return Err("it is on fire".into());
        }
        let BatchFixed::Each(fixed) = task.fixed else { panic!("every fit holds parameters of its own") };
        let (n_params, n_rows) = (task.lower.len(), self.rows.len());
        let fits = task.starts.chunks(n_params).zip(fixed.chunks(n_params)).enumerate();
        let fit = |(k, (start, fixed)): (usize, (&[f64], &[bool]))| {
            let fixed_poi = fixed[self.poi];
            let (lower, upper, fixed) = (task.lower.to_vec(), task.upper.to_vec(), fixed.to_vec());
            let domain = Domain { lower, upper, fixed, kinked: Vec::new() };
            let likelihood = &mut self.rows[k % n_rows];
            let mut minimizer = Minimizer::new(&likelihood.structure());
            let found = minimizer.minimize(likelihood, start, &domain, &MinimizeOptions::default());
            let converged = found.converged() && !self.lost.contains(&(k % n_rows));
            let nll = found.nll + if fixed_poi { 0.0 } else { self.raised };
            BatchFit { params: found.params, nll, edm: found.edm, converged, variance: None, iterations: 1 }
        };
        Ok(fits.map(fit).collect())
    }
}

impl TemplateBatchMinimizer for OnHost {
    fn n_batch(&self) -> usize {
        self.rows.len()
    }

    fn batch_gradients(&mut self, _: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError> {
        let (n_params, n_rows) = (self.rows[0].n_params(), self.rows.len());
        let mut gradients = vec![0.0; points.len()];
        let each = points.chunks(n_params).zip(gradients.chunks_mut(n_params)).enumerate();
        let values = each.map(|(k, (point, gradient))| self.rows[k % n_rows].nll_and_grad(point, gradient)).collect();
        Ok((values, gradients))
    }
}

/// A random model with rows of inputs near its own (R × M).
fn rows_of(seed: u64, n: usize) -> (Model, Session, Vec<f64>) {
    rows_of_shape(GENTLE, seed, n)
}

fn rows_of_shape(shape: Shape, seed: u64, n: usize) -> (Model, Session, Vec<f64>) {
    let model = random::model(seed, shape, Interpolation::default());
    let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
    let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
    let rows = walk(&model, &inputs, (n, 0.04), seed).concat();
    let session = session_of(&model, inputs, DifferentiableOptions::default());
    (model, session, rows)
}

#[test]
fn statistics_of_rows_are_those_of_fits_on_the_host() {
    statistics_of_rows_of(GENTLE, 0..30);
}

/// With so many systematics that not every fold is crossed.
#[test]
fn statistics_of_rows_of_large_models_are_those_of_fits_on_the_host() {
    statistics_of_rows_of(Shape { systematics: 40, ..GENTLE }, 0..10);
}

fn statistics_of_rows_of(shape: Shape, seeds: std::ops::Range<u64>) {
    let (mut n_found, mut n_asked) = (0, 0);
    for seed in seeds {
        let (model, mut session, rows) = rows_of_shape(shape, seed, 3);
        let mut device = OnHost::new(&model, &session, &rows);
        let mu = [0.7, 1.4, 2.1];
        let data = model.observed.clone();
        let found = session
            .statistic_of_batch(&mut device, &data, TestStatistic::QTilde, &mu)
            .expect("the device does not fail");
        let minima = session.profiled_nll_of_batch(&mut device, &data, None).expect("the device does not fail");
        for (k, row) in rows.chunks(session.inputs().len()).enumerate() {
            n_asked += 1;
            session.set_inputs(row).expect("sound templates");
            let Some(compared) = &found[k] else { continue };
            let Ok([q, _]) = session.statistic(TestStatistic::QTilde, mu[k], None) else { continue };
            if !suspects(session.model()).is_empty() {
                // The host judges by the row's templates, which stay on the device.
                continue;
            }
            n_found += 1;
            assert!((compared.q - q).abs() <= 1e-7 * q.max(1.0), "seed {seed}: {} is not {q}", compared.q);
            let [nll, _] = session.profiled_nll(None, None).expect("as above");
            let minimum = minima[k].as_ref().expect("the same fit");
            assert!((minimum.nll - nll).abs() <= 1e-9 * nll.abs().max(1.0), "{} is not {nll}", minimum.nll);
        }
    }
    println!("{n_found} of {n_asked}");
    assert!(3 * n_found > n_asked, "{n_found} of {n_asked} were not left to the host");
}

#[test]
fn rows_that_have_not_arrived_and_those_with_a_lower_minimum_are_left_to_the_host() {
    let (model, mut session, rows) = rows_of(2, 3);
    let data = model.observed.clone();
    let mut of = |change: &dyn Fn(&mut OnHost)| {
        let mut device = OnHost::new(&model, &session, &rows);
        change(&mut device);
        session.statistic_of_batch(&mut device, &data, TestStatistic::Q, &[2.0; 3])
    };
    let is_found = |found: Result<Vec<_>, _>| -> Vec<bool> {
        let found: Vec<Option<_>> = found.expect("the device does not fail");
        found.iter().map(Option::is_some).collect()
    };
    let usual = is_found(of(&|_| {}));
    assert_eq!(usual, [true; 3]);
    let lost = is_found(of(&|device| device.lost = vec![1]));
    assert_eq!(lost, [true, false, true]);
    // A free minimum above the conditional one is not the lowest.
    assert_eq!(is_found(of(&|device| device.raised = 50.0)), [false; 3]);
    assert_eq!(is_found(of(&|device| device.is_exact = false)), [false; 3]);
    let error = of(&|device| device.fails = true).expect_err("it fails");
    assert_eq!(error, DifferentiableError::Device { reason: "it is on fire".to_owned() });
}

/// Two minima at ±α of a systematic that moves the yields the same way at both ends: where the one that was found is the higher one, that is seen.
#[test]
fn a_lower_minimum_across_a_fold_is_the_hosts_to_find() {
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
        let mut device = OnHost::new(&model, &session, &values);
        let found = session.profiled_nll_of_batch(&mut device, &model.observed, None).expect("it does not fail");
        let [lowest, _] = session.profiled_nll(None, None).expect("the host finds it");
        match &found[0] {
            Some(minimum) => assert!((minimum.nll - lowest).abs() < 1e-9, "{} is not {lowest}", minimum.nll),
            None => n_left += 1,
        }
    }
    assert!(n_left >= 1, "one of the two starts leads to the higher minimum");
}
