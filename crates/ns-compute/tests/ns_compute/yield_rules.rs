//! Models with rules of yields: the evaluators against dual numbers, and what has no such models.

use ns_compute::cpu::isa;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::curvature::{Arrowhead, Curvature, GaussNewton};
use ns_core::interpolate::Interpolation;
use ns_core::likelihood::{nll, nll_hyperdual};
use ns_core::spec::ModifierData;
use ns_core::{Likelihood, LimitKinks, Model, SearchLikelihood, expected};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, sample};
use ns_testkit::{assert_all_close, assert_close};
use proptest::prelude::*;

/// The largest number of -ln L and its derivatives, at least 1.
fn size(values: &[f64]) -> f64 {
    values.iter().fold(1.0, |largest: f64, value| largest.max(value.abs()))
}

fn check_derivatives(model: &Model, params: &[f64]) {
    let reference = nll_hyperdual(model, &model.observed, params);
    let n = model.n_params();
    for isa in isa::available() {
        let mut likelihood = CpuLikelihood::new(model).with_isa(isa);
        let mut gradient = vec![f64::NAN; n];
        let mut exact = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
        let value = likelihood.nll_and_curvature(params, &mut gradient, &mut exact);
        if !reference.value.is_finite() {
            assert_eq!(value, f64::INFINITY);
            continue;
        }
        assert_close(value, reference.value, 1e-12, "nll with derivatives");
        assert_close(likelihood.nll(params), reference.value, 1e-12, "nll");
        let expected = expected::expected_main(model, params);
        let mut lambda = vec![0.0; model.n_bins()];
        likelihood.expected_main(params, &mut lambda);
        assert_all_close(&lambda, &expected, 1e-12 * size(&expected), "expected counts");
        assert_all_close(&gradient, &reference.gradient, 1e-11 * size(&reference.gradient), "gradient");
        let Curvature::Exact(exact) = exact else { unreachable!() };
        assert_all_close(&exact.to_dense(), &reference.hessian, 1e-11 * size(&reference.hessian), "Hessian");
        let mut rows = Curvature::GaussNewton(GaussNewton::zeros(model.n_bins(), n));
        likelihood.nll_and_curvature(params, &mut gradient, &mut rows);
        assert_all_close(&gradient, &reference.gradient, 1e-11 * size(&reference.gradient), "gradient with rows");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_125), ..ProptestConfig::default() })]

    #[test]
    fn value_gradient_and_hessian_match_dual_numbers(seed in any::<u64>(), kinked in any::<bool>(), spread in 0.1..2.5_f64) {
        let interpolation = if kinked { Interpolation::KINKED } else { Interpolation::default() };
        let model = random::model(seed, Shape::YIELD_RULES, interpolation);
        check_derivatives(&model, &random::point(&model.parameters, &mut Random::new(seed ^ 1), spread));
    }

    #[test]
    fn channels_of_several_tiles_match_the_reference(seed in any::<u64>()) {
        let shape = Shape { bins: 150, channels: 2, ..Shape::YIELD_RULES };
        let model = random::model(seed, shape, Interpolation::default());
        let params = random::point(&model.parameters, &mut Random::new(seed ^ 2), 1.0);
        let mut likelihood = CpuLikelihood::new(&model);
        let reference = nll(&model, &model.observed, &params);
        let mut gradient = vec![0.0; model.n_params()];
        assert_close(likelihood.nll(&params), reference, 1e-11, "nll");
        assert_close(likelihood.nll_and_grad(&params, &mut gradient), reference, 1e-11, "nll with gradient");
    }

    #[test]
    fn batches_and_moved_parameters_have_the_bits_of_single_points(seed in any::<u64>()) {
        let model = random::model(seed, Shape::YIELD_RULES, Interpolation::default());
        let mut random = Random::new(seed ^ 3);
        let points: Vec<Vec<f64>> = (0..11).map(|_| random::point(&model.parameters, &mut random, 1.0)).collect();
        let mut likelihood = CpuLikelihood::new(&model);
        let mut batch = CpuBatch::new(likelihood.plan().clone());
        let data = BatchDataSet::new(batch.plan(), model.observed.clone());
        let (mut nll, mut gradients) = (vec![0.0; points.len()], vec![0.0; points.len() * model.n_params()]);
        batch.nll_and_grad(BatchDataSets::Shared(&data), &points.concat(), &mut nll, &mut gradients);
        let mut gradient = vec![0.0; model.n_params()];
        for (k, point) in points.iter().enumerate() {
            prop_assert_eq!(nll[k].to_bits(), likelihood.nll_and_grad(point, &mut gradient).to_bits());
            prop_assert_eq!(&gradients[k * model.n_params()..][..model.n_params()], &gradient[..]);
        }
        let mut moved = Vec::new();
        likelihood.nll_and_derivative_moved(&points[0], &[(0, 0.3)], &mut moved);
        let mut point = points[0].clone();
        point[0] = 0.3;
        prop_assert_eq!(moved[0], [likelihood.nll_and_grad(&point, &mut gradient), gradient[0]]);
    }
}

/// Goes from `params` to kink `k` of those near it by Newton steps along its normal. Returns the
/// kinks there, or `None` where the list has changed on the way.
fn on_kink(likelihood: &mut CpuLikelihood, params: &mut [f64], k: usize) -> Option<LimitKinks> {
    let mut kinks = LimitKinks::default();
    likelihood.kinks(params, &mut kinks);
    let (n_kinks, which) = (kinks.len(), kinks.get(k).params.to_vec());
    for _ in 0..30 {
        let kink = kinks.get(k);
        let square: f64 = kink.rates.iter().map(|rate| rate * rate).sum();
        let step = -kink.value / square;
        kink.params.iter().zip(kink.rates).for_each(|(&param, rate)| params[param as usize] += step * rate);
        likelihood.kinks(params, &mut kinks);
        if kinks.len() != n_kinks || kinks.get(k).params != which {
            return None;
        }
    }
    (kinks.get(k).value.abs() < 1e-12 * size(params)).then_some(kinks)
}

/// Returns the derivative of -ln L along `direction` (P), that much beside `params` (P).
fn derivative(likelihood: &mut CpuLikelihood, params: &[f64], direction: &[f64], distance: f64) -> f64 {
    let beside: Vec<f64> = params.iter().zip(direction).map(|(x, d)| x + distance * d).collect();
    let mut gradient = vec![0.0; params.len()];
    likelihood.nll_and_grad(&beside, &mut gradient);
    gradient.iter().zip(direction).map(|(g, d)| g * d).sum()
}

#[test]
fn derivatives_jump_by_the_weights_of_kinks() {
    let mut n_checked = 0;
    for seed in 0..400 {
        let model = random::model(seed, Shape::YIELD_RULES, Interpolation::default());
        let mut likelihood = CpuLikelihood::new(&model);
        let params = random::point(&model.parameters, &mut Random::new(seed ^ 5), 1.0);
        let mut kinks = LimitKinks::default();
        likelihood.kinks(&params, &mut kinks);
        for k in 0..kinks.len() {
            let mut at = params.clone();
            let Some(there) = on_kink(&mut likelihood, &mut at, k) else { continue };
            // Where two kinks meet, both jump.
            let is_alone = (0..there.len()).all(|other| other == k || there.get(other).value.abs() > 1e-4);
            if !is_alone || !likelihood.nll(&at).is_finite() {
                continue;
            }
            let kink = there.get(k);
            let square: f64 = kink.rates.iter().map(|rate| rate * rate).sum();
            let mut normal = vec![0.0; at.len()];
            kink.params.iter().zip(kink.rates).for_each(|(&param, rate)| normal[param as usize] = rate / square);
            let [above, below] = [1e-7, -1e-7].map(|distance| derivative(&mut likelihood, &at, &normal, distance));
            assert_close(above - below, kink.weight, 1e-4 * (1.0 + above.abs().max(below.abs())), "jump");
            n_checked += 1;
        }
    }
    assert!(n_checked > 60, "{n_checked} kinks");
}

#[test]
fn kinks_are_those_of_bins_that_can_reach_their_limit() {
    // 2 (1 - α) + 3 ν in the first bin, and much more in the second.
    let shift = ModifierData::HistoSys { lo_data: vec![4.0, 60.0], hi_data: vec![0.0, 40.0] };
    let statistical = ("stat", ModifierData::McStat(vec![3.0, 5.0]));
    let samples = vec![
        sample("b", &[2.0, 50.0], &[("a", shift), statistical]),
        sample("s", &[0.0, 1.0], &[("mu", ModifierData::NormFactor)]),
    ];
    let mut model = one_channel(samples, &[0.0, 50.0]);
    model.rules.clip_bins = Some(1e-9);
    let mut likelihood = CpuLikelihood::new(&model);
    let index = |name: &str| model.parameters.index_of(name).expect("a parameter");
    let (a, nu) = (index("a"), model.parameters.names.iter().position(|name| name.contains("bin0")).expect("ν"));
    let mut point = model.parameters.init.clone();
    let mut kinks = LimitKinks::default();
    for (alpha, value) in [(0.25, 1.5), (1.25, -0.5)] {
        point[a] = alpha;
        likelihood.kinks(&point, &mut kinks);
        assert_eq!(kinks.len(), 1, "{kinks:?}");
        let kink = kinks.get(0);
        assert_close(kink.value, value - 1e-9, 1e-14, "excess");
        assert_eq!((kink.weight, kink.params, kink.rates), (1.0, &[a as u32, nu as u32][..], &[-2.0, 3.0][..]));
    }
}
