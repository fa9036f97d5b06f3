//! Many points at once against one at a time, on random models with every modifier; and that no
//! lane knows of another.

use ns_compute::cpu::isa;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::spec::{ModifierData, Workspace};
use ns_core::{CompileOptions, Data, DataLikelihood, Likelihood, Model, compile};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Random, Shape};
use proptest::prelude::*;

const RULES: [Interpolation; 3] = [
    Interpolation::KINKED,
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::SmoothLinear },
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::Quadratic },
];

/// Not a multiple of the number of lanes.
const N_POINTS: usize = 19;

fn batches(likelihood: &CpuLikelihood) -> Vec<(CpuBatch, CpuLikelihood)> {
    let with = |isa| (CpuBatch::new(likelihood.plan().clone()).with_isa(isa), likelihood.clone().with_isa(isa));
    isa::available().into_iter().map(with).collect()
}

/// Points inside the bounds, with signed zeros, factors of zero and points outside the domain among
/// them; row by row.
fn points(model: &Model, random: &mut Random, spread: f64) -> Vec<f64> {
    let point = |i: usize, random: &mut Random| {
        let mut point = random::point(&model.parameters, random, spread);
        for (p, value) in point.iter_mut().enumerate() {
            let is_alpha = model.parameters.init[p] == 0.0;
            match random.below(12) {
                0 if is_alpha => *value = 0.0,
                1 if is_alpha => *value = -0.0,
                2 if is_alpha => *value = if random.one_in(2) { 1.0 } else { -1.0 },
                3 if i % 4 == 1 => *value = 0.0,
                _ => {}
            }
            if i % 7 == 3 && model.poi() == Some(p) {
                *value = -1e6;
            }
        }
        point
    };
    (0..N_POINTS).flat_map(|i| point(i, random)).collect()
}

/// Other data for each point, empty bins among them.
fn data_sets(model: &Model, random: &mut Random) -> Vec<Data> {
    let mut vary = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|v| if random.one_in(15) { 0.0 } else { v * random.between(0.5, 1.5) }).collect()
    };
    (0..N_POINTS).map(|_| Data { main: vary(&model.observed.main), aux: vary(&model.observed.aux) }).collect()
}

struct Results {
    nll: Vec<f64>,
    gradient: Vec<f64>,
}

fn evaluate(batch: &mut CpuBatch, data: BatchDataSets<'_>, params: &[f64], n_params: usize) -> Results {
    let n = params.len() / n_params;
    let mut results = Results { nll: vec![f64::NAN; n], gradient: vec![f64::NAN; params.len()] };
    batch.nll_and_grad(data, params, &mut results.nll, &mut results.gradient);
    results
}

/// One at a time; the scale of a gradient is its largest derivative.
fn assert_agrees(results: &Results, likelihood: &mut CpuLikelihood, data: &[Data], params: &[f64]) {
    let n_params = likelihood.n_params();
    let mut gradient = vec![0.0; n_params];
    for (i, point) in params.chunks(n_params).enumerate() {
        likelihood.set_data(&data[i]);
        let value = likelihood.nll_and_grad(point, &mut gradient);
        assert_close(results.nll[i], value, 1e-13, &format!("nll of point {i}"));
        let scale = gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        let ours = &results.gradient[i * n_params..(i + 1) * n_params];
        for (p, (a, b)) in ours.iter().zip(&gradient).enumerate() {
            assert!((a - b).abs() <= 1e-11 * scale, "derivative {p} of point {i}: {a} is not {b}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    #[test]
    fn many_points_with_their_own_data_match_one_at_a_time(seed in any::<u64>(), rule in 0..3_usize, spread in 0.1..2.5_f64) {
        let model = random::model(seed, Shape::SMALL, RULES[rule]);
        let mut random = Random::new(seed ^ 1);
        let params = points(&model, &mut random, spread);
        let data = data_sets(&model, &mut random);
        for (mut batch, mut likelihood) in batches(&CpuLikelihood::new(&model)) {
            let sets: Vec<BatchDataSet> = data.iter().map(|data| BatchDataSet::new(batch.plan(), data.clone())).collect();
            let each: Vec<&BatchDataSet> = sets.iter().collect();
            let results = evaluate(&mut batch, BatchDataSets::Each(&each), &params, model.n_params());
            assert_agrees(&results, &mut likelihood, &data, &params);
        }
    }

    #[test]
    fn channels_of_several_tiles_match_too(seed in any::<u64>()) {
        let shape = Shape { channels: 2, bins: 150, ..Shape::SMALL };
        let model = random::model(seed, shape, Interpolation::default());
        let params = points(&model, &mut Random::new(seed), 0.5);
        for (mut batch, mut likelihood) in batches(&CpuLikelihood::new(&model)) {
            let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
            let results = evaluate(&mut batch, BatchDataSets::Shared(&observed), &params, model.n_params());
            assert_agrees(&results, &mut likelihood, &vec![model.observed.clone(); N_POINTS], &params);
        }
    }

    #[test]
    fn a_point_has_the_same_bits_in_any_company(seed in any::<u64>(), rule in 0..3_usize) {
        let model = random::model(seed, Shape::SMALL, RULES[rule]);
        let n_params = model.n_params();
        let mut random = Random::new(seed ^ 2);
        let params = points(&model, &mut random, 1.5);
        let data = data_sets(&model, &mut random);
        for (mut batch, _) in batches(&CpuLikelihood::new(&model)) {
            let sets: Vec<BatchDataSet> = data.iter().map(|data| BatchDataSet::new(batch.plan(), data.clone())).collect();
            let each: Vec<&BatchDataSet> = sets.iter().collect();
            let together = evaluate(&mut batch, BatchDataSets::Each(&each), &params, n_params);
            let mut values = vec![f64::NAN; N_POINTS];
            batch.nll(BatchDataSets::Each(&each), &params, &mut values);
            prop_assert_eq!(bits(&values), bits(&together.nll), "value alone");
            for i in 0..N_POINTS {
                // Alone, and from here on, so that it is in every lane once.
                let alone = evaluate(&mut batch, BatchDataSets::Shared(each[i]), &params[i * n_params..(i + 1) * n_params], n_params);
                prop_assert_eq!(bits(&alone.nll), bits(&together.nll[i..=i]));
                prop_assert_eq!(bits(&alone.gradient), bits(&together.gradient[i * n_params..(i + 1) * n_params]));
                let rest = evaluate(&mut batch, BatchDataSets::Each(&each[i..]), &params[i * n_params..], n_params);
                prop_assert_eq!(bits(&rest.nll), bits(&together.nll[i..]));
                prop_assert_eq!(bits(&rest.gradient), bits(&together.gradient[i * n_params..]));
            }
        }
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_point_outside_the_domain_is_infinite_with_zero_gradient_and_alone_in_that() {
    let model = random::model(3, Shape::SMALL, Interpolation::default());
    let poi = model.poi().expect("random models have one");
    let n_params = model.n_params();
    for lane in 0..8 {
        for bad in [-1e6, f64::NAN, f64::INFINITY] {
            let mut params = model.parameters.init.repeat(8);
            params[lane * n_params + poi] = bad;
            for (mut batch, _) in batches(&CpuLikelihood::new(&model)) {
                let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
                let results = evaluate(&mut batch, BatchDataSets::Shared(&observed), &params, n_params);
                for (i, (nll, gradient)) in results.nll.iter().zip(results.gradient.chunks(n_params)).enumerate() {
                    assert_eq!(*nll == f64::INFINITY, i == lane);
                    assert_eq!(nll.is_finite(), i != lane);
                    assert_eq!(gradient.iter().all(|&derivative| derivative == 0.0), i == lane);
                }
            }
        }
    }
}

#[test]
fn no_points_are_no_work() {
    let model = random::model(3, Shape::SMALL, Interpolation::default());
    let mut batch = CpuBatch::new(CpuLikelihood::new(&model).plan().clone());
    let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
    batch.nll_and_grad(BatchDataSets::Shared(&observed), &[], &mut [], &mut []);
    batch.nll(BatchDataSets::Each(&[]), &[], &mut []);
}

/// A random workspace whose shapesys have next to no uncertainty, so that their auxiliary counts
/// are up to 1e12.
fn with_large_counts(seed: u64) -> Workspace {
    let mut workspace = random::workspace(seed, Shape::SMALL);
    let samples = workspace.channels.iter_mut().flat_map(|channel| &mut channel.samples);
    for (s, sample) in samples.enumerate() {
        let yields = sample.data.clone();
        for modifier in &mut sample.modifiers {
            if let ModifierData::ShapeSys(errors) = &mut modifier.data {
                let relative = [1e-6, 1e-4, 2e-3][s % 3];
                errors.iter_mut().zip(&yields).for_each(|(error, y)| *error = y * relative);
            }
        }
    }
    workspace
}

#[test]
fn huge_auxiliary_counts_keep_their_digits() {
    let mut n_large = 0;
    for seed in 0..60 {
        let model = compile(&with_large_counts(seed), &CompileOptions::default()).expect("random workspaces are sound");
        n_large += model.observed.aux.iter().filter(|&&a| a > 1e9).count();
        let mut random = Random::new(seed);
        let mut params = points(&model, &mut random, 2.0);
        for (p, value) in params.iter_mut().enumerate() {
            // Far from its auxiliary datum, too.
            if model.parameters.names[p % model.n_params()].starts_with("shapesys") && random.one_in(4) {
                *value = random.between(0.4, 2.0);
            }
        }
        for (mut batch, mut likelihood) in batches(&CpuLikelihood::new(&model)) {
            let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
            let results = evaluate(&mut batch, BatchDataSets::Shared(&observed), &params, model.n_params());
            assert_agrees(&results, &mut likelihood, &vec![model.observed.clone(); N_POINTS], &params);
        }
    }
    assert!(n_large > 20, "only {n_large} large counts");
}
