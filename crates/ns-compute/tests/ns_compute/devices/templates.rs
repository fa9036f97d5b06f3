//! Templates that are replaced on a device: -ln L, its gradients by parameters and inputs, and
//! fits, of many rows at once, against the CPU with each row's templates.

use crate::devices::models::{edge_models, points, random_model};
use crate::devices::{TestDevice, bits, devices, open};
use ns_compute::accel::{AccelError, BatchGradients, DeviceGradients, DeviceInput, DeviceSession};
use ns_compute::{CpuLikelihood, DifferentiableSession};
use ns_core::batch::{BatchData, BatchFixed, BatchTask, TemplateBatchMinimizer, TemplateMinimizer};
use ns_core::templates::{InputError, Inputs, TemplateSelection, TemplateVariations};
use ns_core::{DataLikelihood, Likelihood, Model, TemplateLikelihood};
use ns_device::{Device, EmulationOptions, ExternalBuffer, LaneSchedule, Precision};
use ns_inference::FitOptions;
use ns_inference::options::domain_and_start;
use ns_testkit::random::Random;

/// Every sample with variations; those of every third model's first one stay.
pub(crate) fn inputs_of(model: &Model, seed: u64) -> Inputs {
    let selection = |(i, sample): (usize, &String)| {
        let stays = i == 0 && seed.is_multiple_of(3);
        let variations = if stays { TemplateVariations::None } else { TemplateVariations::All };
        TemplateSelection { sample: sample.clone(), channel: None, variations }
    };
    Inputs::new(model, &model.samples.iter().enumerate().map(selection).collect::<Vec<_>>()).expect("its samples")
}

/// Input vectors (R × M) near those of the model, as the device has them.
pub(crate) fn rows_of(tested: &TestDevice, model: &Model, inputs: &Inputs, random: &mut Random, n: usize) -> Vec<f64> {
    let values = inputs.values(model);
    (0..n)
        .flat_map(|_| values.iter().map(|x| tested.rounded(x * random.between(0.93, 1.07))).collect::<Vec<_>>())
        .collect()
}

pub(crate) fn session(tested: &TestDevice, model: &Model, inputs: &Inputs) -> DeviceSession {
    DeviceSession::with_inputs(&tested.device, model, inputs.clone()).expect("the model fits on the device")
}

/// How far values, derivatives by parameters and derivatives by inputs were off: of -ln L, and of a
/// point's largest derivative of the kind.
#[derive(Debug, Default)]
pub(crate) struct Off {
    nll: f64,
    by_params: f64,
    by_inputs: f64,
    n_outside: usize,
}

/// Compares the gradients of `rows` (R × M) at `points` (R × P) with the CPU.
pub(crate) fn compare(
    tested: &TestDevice,
    model: &Model,
    inputs: &Inputs,
    (rows, points): (&[f64], &[f64]),
    off: &mut Off,
) {
    let (p, m) = (model.n_params(), inputs.len());
    let points = tested.all_rounded(points);
    let mut device = session(tested, model, inputs);
    device.set_input_batch(DeviceInput::Host(rows)).expect("templates of their kind");
    let found =
        device.nll_and_gradients(&model.observed, DeviceInput::Host(&points), rows.len() / m).expect("it computes");
    let mut cpu = DifferentiableSession::new(model, inputs.clone());
    let (mut by_params, mut by_inputs) = (vec![0.0; p], vec![0.0; m]);
    for (i, (row, point)) in rows.chunks(m).zip(points.chunks(p)).enumerate() {
        cpu.set_inputs(row);
        let value = cpu.nll_and_gradients(point, &mut by_params, &mut by_inputs);
        let (ours, of_inputs) = (&found.by_params[i * p..(i + 1) * p], &found.by_inputs[i * m..(i + 1) * m]);
        if !value.is_finite() {
            off.n_outside += 1;
            assert_eq!(found.values[i], f64::INFINITY, "outside the domain");
            assert!(ours.iter().chain(of_inputs).all(|derivative| derivative.is_nan()), "{ours:?} {of_inputs:?}");
            continue;
        }
        off.nll = off.nll.max((found.values[i] - value).abs() / value.abs().max(1.0));
        let largest =
            |derivatives: &[f64]| derivatives.iter().fold(1.0_f64, |most, derivative| most.max(derivative.abs()));
        let scales = [largest(&by_params), largest(&by_inputs)];
        for (ours, theirs) in ours.iter().zip(&by_params) {
            off.by_params = off.by_params.max((ours - theirs).abs() / scales[0]);
        }
        for (ours, theirs) in of_inputs.iter().zip(&by_inputs) {
            off.by_inputs = off.by_inputs.max((ours - theirs).abs() / scales[1]);
        }
    }
    // Some thousand roundings of numbers that add up to the largest.
    let most = if tested.is_single() { 1e-4 } else { 1e-12 };
    let worst = off.nll.max(off.by_params).max(off.by_inputs);
    assert!(worst <= most, "{off:?}");
}

#[test]
fn gradients_by_templates_of_random_models_are_the_cpus() {
    for tested in devices() {
        let mut off = Off::default();
        for seed in 0..120 {
            let model = random_model(seed);
            let inputs = inputs_of(&model, seed);
            let mut random = Random::new(seed ^ 11);
            let rows = rows_of(&tested, &model, &inputs, &mut random, 7);
            compare(&tested, &model, &inputs, (&rows, &points(&model, &mut random, 7)), &mut off);
        }
        println!("{}: {off:?}", tested.device.precision());
        assert!(off.n_outside > 10, "points outside the domain: {}", off.n_outside);
    }
}

#[test]
fn gradients_by_templates_of_odd_models_are_the_cpus() {
    for tested in devices() {
        for (what, model) in edge_models() {
            println!("{what}");
            let inputs = inputs_of(&model, 1);
            let mut random = Random::new(5);
            let rows = rows_of(&tested, &model, &inputs, &mut random, 20);
            compare(&tested, &model, &inputs, (&rows, &points(&model, &mut random, 20)), &mut Off::default());
        }
    }
}

/// Compares `ours` with `theirs`, to rounding beside the largest of them.
fn require_close(ours: &[f64], theirs: &[f64], what: &str) {
    let finite = theirs.iter().filter(|value| value.is_finite());
    let scale = finite.fold(0.0, |most: f64, value| most.max(value.abs()));
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(ours == theirs || (ours - theirs).abs() <= 1e-13 * scale, "{what}: {ours} and {theirs}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// A model whose templates were replaced there is the model that was uploaded with them.
#[test]
fn replaced_templates_are_those_of_a_model_that_has_them() {
    for tested in devices().into_iter().filter(|tested| !tested.is_single()) {
        for seed in 0..30 {
            let mut model = random_model(seed);
            let inputs = inputs_of(&model, seed);
            let mut random = Random::new(seed);
            let row = rows_of(&tested, &model, &inputs, &mut random, 1);
            let mut replaced = session(&tested, &model, &inputs);
            replaced.set_input_batch(DeviceInput::Host(&row)).expect("templates of their kind");
            inputs.apply(&row, &mut model);
            let mut compiled = tested.session(&model);
            let at = points(&model, &mut random, 5);
            let data = model.observed.clone();
            let (ours, derivatives) = replaced.batch_gradients(&data, &at).expect("it computes");
            let (theirs, expected) = compiled.batch_gradients(&data, &at).expect("it computes");
            // The same bits where products and sums are rounded apart, as the host does; where they
            // are fused, as on NVIDIA GPUs, the tables have other roundings.
            require_close(&ours, &theirs, &format!("seed {seed}"));
            require_close(&derivatives, &expected, &format!("derivatives, seed {seed}"));
            // Through the trait that fits of gradients use: the same but for the rounding of what
            // is absolute.
            replaced.replace_templates(&model).expect("it computes");
            let (again, _) = replaced.batch_gradients(&data, &at).expect("it computes");
            for (ours, theirs) in again.iter().zip(&theirs) {
                assert!(ours == theirs || (ours - theirs).abs() <= 1e-12 * theirs.abs(), "{ours} and {theirs}");
            }
        }
    }
}

/// Item i is of row i modulo R, also where a launch does some of the fits only.
#[test]
fn fits_of_rows_end_in_each_rows_minimum() {
    for tested in devices().into_iter().filter(|tested| !tested.is_single()) {
        for seed in [1, 4, 7, 9] {
            let model = random_model(seed);
            let inputs = inputs_of(&model, seed);
            let mut random = Random::new(seed);
            let rows = rows_of(&tested, &model, &inputs, &mut random, 3);
            let mut device = session(&tested, &model, &inputs);
            device.set_input_batch(DeviceInput::Host(&rows)).expect("templates of their kind");
            let (domain, start) = domain_and_start(&model, &FitOptions::default());
            let task = BatchTask {
                data: BatchData::Shared(&model.observed),
                starts: &start.repeat(8),
                lower: &domain.lower,
                upper: &domain.upper,
                fixed: BatchFixed::Shared(&domain.fixed),
                kinked: &domain.kinked,
                variance_of: None,
            };
            let device_fits = device.fit(&task).expect("it computes");
            let mut cpu = DifferentiableSession::new(&model, inputs.clone());
            for (i, device_fit) in device_fits.iter().enumerate().filter(|(_, device_fit)| device_fit.converged) {
                cpu.set_inputs(&rows[i % 3 * inputs.len()..][..inputs.len()]);
                let value = cpu.nll(&device_fit.params);
                assert!(
                    (value - device_fit.nll).abs() <= 1e-11 * value.abs().max(1.0),
                    "{value} is not {}",
                    device_fit.nll
                );
                assert_eq!(device_fit.nll.to_bits(), device_fits[i % 3].nll.to_bits(), "the same row");
            }
            assert!(device_fits.iter().filter(|device_fit| device_fit.converged).count() > 4, "seed {seed}");
        }
    }
}

/// Host memory as the emulated device's.
#[expect(unsafe_code, reason = "memory of the test stands for a tensor's")]
fn foreign(device: &Device, numbers: &mut [f64]) -> ExternalBuffer<f64> {
    // SAFETY: the emulated device's addresses are the host's; no other code uses `numbers` while
    // the result lives, for which the tests below see to it.
    unsafe { device.external_buffer(numbers.as_mut_ptr() as u64, numbers.len()) }.expect("memory of the host")
}

#[test]
fn memory_that_somebody_else_owns_is_read_and_written_where_it_is() {
    let device = open(Precision::Double, EmulationOptions::default());
    let tested = devices().remove(0);
    let model = random_model(4);
    let inputs = inputs_of(&model, 4);
    let (p, m, n) = (model.n_params(), inputs.len(), 5);
    let mut random = Random::new(3);
    let mut rows = rows_of(&tested, &model, &inputs, &mut random, n);
    let mut at = points(&model, &mut random, n);
    let mut session = DeviceSession::with_inputs(&device, &model, inputs).expect("the model fits on the device");
    session.set_input_batch(DeviceInput::Host(&rows)).expect("templates of their kind");
    let expected = session.nll_and_gradients(&model.observed, DeviceInput::Host(&at), n).expect("it computes");
    let before = device.counters();
    let mut found = BatchGradients { values: vec![0.0; n], by_params: vec![0.0; n * p], by_inputs: vec![0.0; n * m] };
    session.set_input_batch(DeviceInput::Resident(&foreign(&device, &mut rows))).expect("templates of their kind");
    let mut out = [&mut found.values, &mut found.by_params, &mut found.by_inputs].map(|part| foreign(&device, part));
    let [values, by_params, by_inputs] = &mut out;
    let points = foreign(&device, &mut at);
    let out = DeviceGradients { values, by_params, by_inputs };
    session.nll_and_gradients_into(&model.observed, DeviceInput::Resident(&points), out).expect("it computes");
    let spent = device.counters();
    assert_eq!(bits(&found.values), bits(&expected.values));
    assert_eq!(bits(&found.by_params), bits(&expected.by_params));
    assert_eq!(bits(&found.by_inputs), bits(&expected.by_inputs));
    // What passes through the host: which inputs no template can have, one number for each row; the
    // data, and their part of -ln L.
    assert_eq!(spent.download_bytes - before.download_bytes, 8 * n as u64);
    let data = model.observed.main.len() + model.observed.aux.len() + 1;
    assert_eq!(spent.upload_bytes - before.upload_bytes, 8 * data as u64);
}

#[test]
fn inputs_that_no_template_can_have_are_refused_by_row_and_block() {
    for tested in devices() {
        let model = random_model(5);
        let inputs = inputs_of(&model, 1);
        let m = inputs.len();
        let mut device = session(&tested, &model, &inputs);
        let good = rows_of(&tested, &model, &inputs, &mut Random::new(1), 3);
        let factor = inputs.blocks().iter().find(|block| block.range.len() == 1).expect("it has a normsys");
        for (at, value) in [(m + 2, f64::NAN), (2 * m + factor.range.start, -0.5), (2 * m + factor.range.start, 0.0)] {
            let mut rows = good.clone();
            rows[at] = value;
            let (block, element) = inputs.place(at % m);
            let error = InputError::Refused { block, element };
            let expected = AccelError::Input { batch_element: at / m, n_batch: 3, error };
            assert_eq!(device.set_input_batch(DeviceInput::Host(&rows)), Err(expected));
            assert_eq!(device.n_batch(), 1, "the model's own templates are there again");
        }
        assert!(matches!(device.set_input_batch(DeviceInput::Host(&good[1..])), Err(AccelError::Size { .. })));
    }
}

#[test]
fn rows_depend_on_neither_blocks_nor_the_order_of_lanes() {
    let tested = devices().remove(0);
    let model = random_model(8);
    let inputs = inputs_of(&model, 8);
    let mut random = Random::new(2);
    let (rows, at) = (rows_of(&tested, &model, &inputs, &mut random, 9), points(&model, &mut random, 9));
    let run = |options: EmulationOptions, lanes: Option<u32>| {
        let device = open(Precision::Double, options);
        let mut session =
            DeviceSession::with_inputs(&device, &model, inputs.clone()).expect("the model fits on the device");
        lanes.into_iter().for_each(|lanes| session.set_lanes(lanes));
        session.set_input_batch(DeviceInput::Host(&rows)).expect("templates of their kind");
        let found = session.nll_and_gradients(&model.observed, DeviceInput::Host(&at), 9).expect("it computes");
        [bits(&found.values), bits(&found.by_params), bits(&found.by_inputs)]
    };
    let expected = run(EmulationOptions::default(), None);
    for schedule in [LaneSchedule::Descending, LaneSchedule::Shuffled] {
        assert!(run(EmulationOptions { schedule, ..EmulationOptions::default() }, None) == expected, "{schedule:?}");
    }
    assert!(run(EmulationOptions { memory_bytes: 1 << 20, ..EmulationOptions::default() }, None) == expected);
    let [_, _, by_inputs] = run(EmulationOptions::default(), Some(128));
    assert!(by_inputs == expected[2], "the derivative of an input is one lane's sum");
}

/// A point, or a row of inputs, that all items share.
#[test]
fn one_point_and_one_row_serve_all_items() {
    for tested in devices() {
        let model = random_model(2);
        let inputs = inputs_of(&model, 2);
        let (p, n) = (model.n_params(), 4);
        let mut random = Random::new(9);
        let (rows, at) = (rows_of(&tested, &model, &inputs, &mut random, n), points(&model, &mut random, n));
        let mut device = session(&tested, &model, &inputs);
        let mut both = |rows: &[f64], at: &[f64]| {
            device.set_input_batch(DeviceInput::Host(rows)).expect("templates of their kind");
            let found = device.nll_and_gradients(&model.observed, DeviceInput::Host(at), n).expect("it computes");
            bits(&found.by_inputs)
        };
        assert!(both(&rows, &at[..p]) == both(&rows, &at[..p].repeat(n)));
        assert!(both(&rows[..inputs.len()], &at) == both(&rows[..inputs.len()].repeat(n), &at));
    }
}

/// Launches of the kernels for templates, small ones, for the sanitizers.
pub(crate) fn recorded(device: &Device) {
    for seed in [2, 3, 5] {
        let model = random_model(seed);
        let inputs = inputs_of(&model, seed);
        let rows = inputs.values(&model).repeat(2);
        let mut session = DeviceSession::with_inputs(device, &model, inputs).expect("the model fits on the device");
        session.set_input_batch(DeviceInput::Host(&rows)).expect("templates of their kind");
        let at = model.parameters.init.repeat(2);
        session.nll_and_gradients(&model.observed, DeviceInput::Host(&at), 2).expect("it computes");
    }
}

/// The data of a session are the CPU's too.
#[test]
fn other_data_than_the_observed_ones_are_used() {
    let tested = devices().remove(0);
    let model = random_model(6);
    let inputs = inputs_of(&model, 6);
    let mut data = model.observed.clone();
    data.main.iter_mut().for_each(|count| *count += 3.0);
    let mut device = session(&tested, &model, &inputs);
    let point = &model.parameters.init;
    let found = device.nll_and_gradients(&data, DeviceInput::Host(point), 1).expect("it computes");
    let mut cpu = CpuLikelihood::new(&model);
    cpu.set_data(&data);
    let value = cpu.nll(point);
    assert!((found.values[0] - value).abs() <= 1e-12 * value.abs(), "{} is not {value}", found.values[0]);
}
