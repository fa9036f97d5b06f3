//! -ln L and its gradient at given points.

use crate::devices::models::{data_sets, edge_models, points, random_model};
use crate::devices::{TestDevice, bits, constants, devices, expansion};
use ns_compute::CpuLikelihood;
use ns_compute::accel::{BatchPoints, DeviceSession};
use ns_core::batch::BatchData;
use ns_core::spec::ModifierData::NormFactor;
use ns_core::spec::{ConstraintTerm, LogNormalDensity, ParameterConfig};
use ns_core::{Data, Model};
use ns_testkit::random::Random;
use ns_testkit::small::{self, region, sample};

/// How far values and derivatives were off, as parts of what is allowed.
#[derive(Debug, Default)]
pub(crate) struct Off {
    pub(crate) nll: f64,
    pub(crate) gradient: f64,
    pub(crate) n_outside: usize,
}

/// Compares what `tested` makes of `points` (N × P) with the CPU; `each` has as many data sets as
/// there are points, or one.
pub(crate) fn compare(tested: &TestDevice, model: &Model, each: &[Data], points: &[f64], off: &mut Off) {
    let n_params = model.n_params();
    let points = tested.all_rounded(points);
    let each: Vec<Data> = each
        .iter()
        .map(|data| Data { main: tested.all_rounded(&data.main), aux: tested.all_rounded(&data.aux) })
        .collect();
    let mut session = tested.session(model);
    let data = if let [one] = &each[..] { BatchData::Shared(one) } else { BatchData::Each(&each) };
    let items = BatchPoints { data, points: &points };
    let (values, gradients) = session.nll_and_grad(&items).expect("the device computes");
    let alone = session.nll(&items).expect("the device computes");
    assert_eq!(bits(&alone), bits(&values), "-ln L alone and with its gradient");
    let (mut likelihood, mut expected) = (CpuLikelihood::new(model), vec![0.0; model.observed.main.len()]);
    for (i, point) in points.chunks(n_params).enumerate() {
        let data = &each[i % each.len()];
        let cpu = expansion(&mut likelihood, data, point, true);
        let gradient = &gradients[i * n_params..(i + 1) * n_params];
        if !cpu.value.is_finite() {
            off.n_outside += 1;
            assert_eq!(values[i], f64::INFINITY, "outside the domain");
            assert!(gradient.iter().all(|&derivative| derivative == 0.0), "{gradient:?}");
            continue;
        }
        let varying = (cpu.value - constants(model, data)).abs();
        likelihood.expected_main(point, &mut expected);
        let excess: f64 = expected.iter().zip(&data.main).map(|(lambda, n)| (lambda - n).abs()).sum();
        let size = if tested.is_single() { (1e-3 * varying.max(excess)).max(1.0) } else { cpu.value.abs().max(1.0) };
        off.nll = off.nll.max((values[i] - cpu.value).abs() / size / tested.parity.nll);
        let steepness = |p: usize| {
            let derivative = cpu.gradient[p].abs();
            if tested.is_single() {
                1e-3 * derivative.max(cpu.matrix[p * n_params + p].abs() * point[p].abs().max(1.0))
            } else {
                derivative
            }
        };
        let scale = (0..n_params).map(steepness).fold(1.0, f64::max);
        for (ours, theirs) in gradient.iter().zip(&cpu.gradient) {
            off.gradient = off.gradient.max((ours - theirs).abs() / scale / tested.parity.gradient);
        }
        assert!(off.nll <= 1.0, "-ln L of point {i}: {} is not {}", values[i], cpu.value);
        assert!(off.gradient <= 1.0, "gradient of point {i}: {gradient:?} is not {:?}, scale {scale:e}", cpu.gradient);
    }
}

fn compare_random(seeds: std::ops::Range<u64>) {
    for tested in devices() {
        let mut off = Off::default();
        for seed in seeds.clone() {
            let model = random_model(seed);
            let mut random = Random::new(seed ^ 7);
            let points = points(&model, &mut random, 11);
            compare(&tested, &model, &data_sets(&model, &mut random, 11), &points, &mut off);
            compare(&tested, &model, std::slice::from_ref(&model.observed), &points, &mut off);
        }
        println!("{}: {off:?} of what is allowed", tested.device.precision());
        assert!(off.n_outside > 50, "points outside the domain: {}", off.n_outside);
    }
}

#[test]
fn values_and_gradients_of_random_models_are_the_cpus() {
    compare_random(0..180);
}

#[test]
fn values_and_gradients_of_odd_models_are_the_cpus() {
    for tested in devices() {
        for (what, model) in edge_models() {
            println!("{what}");
            let mut random = Random::new(3);
            let points = points(&model, &mut random, 40);
            compare(&tested, &model, &data_sets(&model, &mut random, 40), &points, &mut Off::default());
        }
    }
}

#[test]
fn no_items_are_no_work() {
    for tested in devices() {
        let model = random_model(1);
        let mut session = tested.session(&model);
        let launches = tested.device.counters().launches;
        for data in [BatchData::Shared(&model.observed), BatchData::Each(&[])] {
            let items = BatchPoints { data, points: &[] };
            assert_eq!(session.nll(&items), Ok(Vec::new()));
            assert_eq!(session.nll_and_grad(&items), Ok((Vec::new(), Vec::new())));
        }
        assert_eq!(tested.device.counters().launches, launches);
    }
}

#[test]
fn terms_that_kernels_do_not_have_are_refused_by_name() {
    let term = ConstraintTerm::LogNormal { kappa: 1.1, density: LogNormalDensity::Datum };
    let setting = ParameterConfig { name: "k".to_owned(), constraints: Some(vec![term]), ..Default::default() };
    let samples = vec![sample("signal", &[5.0], &[("mu", NormFactor)]), sample("b", &[50.0], &[("k", NormFactor)])];
    let model = small::model(vec![region("c", samples, &[56.0])], vec![setting]);
    for tested in devices() {
        let error = DeviceSession::new(&tested.device, &model).expect_err("kernels have no such term");
        assert_eq!(error.to_string(), "devices do not have the lognormal constraint term of `k`");
        assert_eq!(error.hint().as_deref(), Some("the CPU can do it"));
    }
}

#[test]
fn rules_of_yields_are_refused_by_name() {
    let errors = ns_core::spec::ModifierData::McStat(vec![1.0]);
    let modifiers = [("mu", NormFactor), ("stat", errors)];
    let model = small::model(vec![region("c", vec![sample("signal", &[5.0], &modifiers)], &[6.0])], Vec::new());
    for tested in devices() {
        let error = DeviceSession::new(&tested.device, &model).expect_err("kernels have no such term");
        assert!(error.to_string().contains("mcstat modifiers"), "{error}");
    }
}
