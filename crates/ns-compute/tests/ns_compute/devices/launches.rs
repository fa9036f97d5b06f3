//! That no result depends on how many blocks there are, on which host thread runs them, or on the
//! order of lanes; and launches for the sanitizers.

use crate::devices::models::{data_sets, edge_models, points, random_model, toys};
use crate::devices::{bits, devices, open};
use ns_compute::accel::{BatchPoints, DeviceSession};
use ns_core::batch::{BatchData, BatchFixed, BatchTask};
use ns_core::{Data, Model};
use ns_device::{Backend, Device, EmulationOptions, LaneSchedule, Precision};
use ns_inference::FitOptions;
use ns_inference::options::domain_and_start;
use ns_testkit::random::Random;

/// Every number that every kernel writes, for some items.
fn everything(device: &Device, model: &Model, n: usize) -> Vec<u64> {
    bits(&with_lanes(device, model, n, None))
}

/// The same with blocks of `lanes` lanes (the default if `None`): -ln L and its gradient come
/// first.
fn with_lanes(device: &Device, model: &Model, n: usize, lanes: Option<u32>) -> Vec<f64> {
    let mut random = Random::new(17);
    let (points, each) = (points(model, &mut random, n), data_sets(model, &mut random, n));
    let mut session = DeviceSession::new(device, model).expect("the model fits on the device");
    lanes.into_iter().for_each(|lanes| session.set_lanes(lanes));
    let items = BatchPoints { data: BatchData::Each(&each), points: &points };
    let (values, gradients) = session.nll_and_grad(&items).expect("the device computes");
    let mut all = [values, gradients, session.nll(&items).expect("the device computes")].concat();
    let each: Vec<Data> = toys(model, &mut random, n);
    let (domain, start) = domain_and_start(model, &FitOptions::default());
    let starts = start.repeat(n);
    let task = BatchTask {
        data: BatchData::Each(&each),
        starts: &starts,
        lower: &domain.lower,
        upper: &domain.upper,
        fixed: BatchFixed::Shared(&domain.fixed),
        kinked: &domain.kinked,
        variance_of: Some(0),
    };
    for exact in [false, true] {
        all.extend(session.newton_steps(&task, exact).expect("the device computes"));
    }
    for device_fit in session.fit(&task).expect("the device computes") {
        all.extend(device_fit.params);
        all.extend([device_fit.nll, device_fit.edm, device_fit.variance.unwrap_or(-1.0), device_fit.iterations as f64]);
    }
    all
}

#[test]
fn results_depend_on_neither_blocks_nor_threads_nor_the_order_of_lanes() {
    let few = |memory_bytes| EmulationOptions { memory_bytes, ..EmulationOptions::default() };
    let of = |schedule| EmulationOptions { schedule, ..EmulationOptions::default() };
    for precision in [Precision::Double, Precision::Single] {
        for seed in [1, 3, 8, 12] {
            let model = random_model(seed);
            let usual = open(precision, EmulationOptions::default());
            let expected = everything(&usual, &model, 23);
            let others = [
                of(LaneSchedule::Descending),
                of(LaneSchedule::Shuffled),
                EmulationOptions { host_threads: 3, ..EmulationOptions::default() },
                // Room for a few blocks only: each does several items.
                few(1 << 20),
                few(300 << 10),
            ];
            for options in others {
                let what = format!("{options:?}");
                assert!(everything(&open(precision, options), &model, 23) == expected, "{what}");
            }
        }
    }
}

#[test]
fn lanes_as_threads_compute_the_same() {
    let model = random_model(3);
    let threads = EmulationOptions { schedule: LaneSchedule::Threads, ..EmulationOptions::default() };
    let expected = everything(&open(Precision::Double, EmulationOptions::default()), &model, 2);
    assert!(everything(&open(Precision::Double, threads), &model, 2) == expected);
}

/// The emulation's blocks are one warp, a GPU's are four.
#[test]
fn four_warps_compute_what_one_does() {
    for tested in devices() {
        for seed in [1, 3, 8] {
            let (model, n) = (random_model(seed), 5);
            let one = with_lanes(&tested.device, &model, n, None);
            let four = with_lanes(&tested.device, &model, n, Some(128));
            // Sums are in another order: the same but for rounding.
            let size = |x: f64| if x.is_finite() { x.abs().max(1.0) } else { 1.0 };
            let scale = one[..n * (1 + model.n_params())].iter().fold(1.0, |most: f64, &x| most.max(size(x)));
            for (a, b) in one.iter().zip(&four).take(n * (1 + model.n_params())) {
                assert!(a == b || (a - b).abs() <= tested.parity.gradient * scale, "{a} and {b}");
            }
            let is_emulated = tested.device.backend() == Backend::Emulated;
            for schedule in [LaneSchedule::Descending, LaneSchedule::Shuffled].into_iter().filter(|_| is_emulated) {
                let options = EmulationOptions { schedule, ..EmulationOptions::default() };
                let again = with_lanes(&open(tested.device.precision(), options), &model, n, Some(128));
                assert!(bits(&again) == bits(&four), "{schedule:?}");
            }
        }
    }
}

/// Small launches of every kernel: `make kernels-sanitize` records and replays them. One block
/// works in memory of exactly its size.
#[test]
fn recorded_for_the_sanitizers() {
    for precision in [Precision::Double, Precision::Single] {
        let device = open(precision, EmulationOptions::default());
        for (_, model) in edge_models() {
            everything(&device, &model, 1);
        }
        for seed in [1, 3, 8] {
            everything(&device, &random_model(seed), 1);
        }
        everything(&device, &random_model(4), 3);
        with_lanes(&device, &random_model(3), 2, Some(128));
        crate::devices::templates::recorded(&device);
    }
}
