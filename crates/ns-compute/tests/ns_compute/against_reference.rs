//! The CPU evaluator against the plain reference: values, gradients, Hessians, on random models
//! with every modifier.

use ns_compute::CpuLikelihood;
use ns_compute::cpu::isa;
use ns_core::curvature::{Arrowhead, Curvature, GaussNewton};
use ns_core::interpolate::{HistoSysInterpolation, Interpolation};
use ns_core::likelihood::{nll, nll_hyperdual};
use ns_core::{Data, DataLikelihood, Likelihood, Model, SearchLikelihood, expected};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::{assert_all_close, assert_close};
use proptest::prelude::*;

const RULES: [Interpolation; 3] = [
    Interpolation::KINKED,
    Interpolation {
        normsys: ns_core::interpolate::NormSysInterpolation::SmoothExponential,
        histosys: HistoSysInterpolation::SmoothLinear,
    },
    Interpolation {
        normsys: ns_core::interpolate::NormSysInterpolation::SmoothExponential,
        histosys: HistoSysInterpolation::Quadratic,
    },
];

fn evaluators(model: &Model, data: &Data) -> Vec<CpuLikelihood> {
    let base = CpuLikelihood::with_plan(CpuLikelihood::new(model).plan().clone(), data);
    isa::available().into_iter().map(|isa| base.clone().with_isa(isa)).collect()
}

/// D + JᵀJ from its factors, dense.
fn multiply_out(factors: &GaussNewton) -> Vec<f64> {
    let n = factors.diagonal.len();
    let mut dense = vec![0.0; n * n];
    for i in 0..n {
        dense[i * n + i] = factors.diagonal[i];
        for j in 0..n {
            dense[i * n + j] +=
                (0..factors.n_rows).map(|r| factors.rows[r * n + i] * factors.rows[r * n + j]).sum::<f64>();
        }
    }
    dense
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    #[test]
    fn value_gradient_and_hessian_match_dual_numbers(seed in any::<u64>(), rule in 0..3_usize, spread in 0.1..2.5_f64) {
        let model = random::model(seed, Shape::SMALL, RULES[rule]);
        let mut random = Random::new(seed ^ 1);
        let params = random::point(&model.parameters, &mut random, spread);
        let reference = nll_hyperdual(&model, &model.observed, &params);
        let n = model.n_params();
        for mut likelihood in evaluators(&model, &model.observed) {
            let mut gradient = vec![f64::NAN; n];
            let partition = likelihood.plan().partition().clone();
            let mut exact = Curvature::Exact(Arrowhead::zeros(partition.clone()));
            let value = likelihood.nll_and_curvature(&params, &mut gradient, &mut exact);
            if !reference.value.is_finite() {
                prop_assert_eq!(value, f64::INFINITY);
                prop_assert!(gradient.iter().all(|&g| g == 0.0));
                continue;
            }
            assert_close(value, reference.value, 1e-12, "nll with derivatives");
            assert_close(likelihood.nll(&params), reference.value, 1e-12, "nll");
            let scale = reference.gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
            assert_all_close(&gradient, &reference.gradient, 1e-11 * scale, "gradient");
            let Curvature::Exact(exact) = exact else { unreachable!() };
            let scale = reference.hessian.iter().fold(1.0, |m: f64, h| m.max(h.abs()));
            assert_all_close(&exact.to_dense(), &reference.hessian, 1e-11 * scale, "Hessian");

            let mut rows = Curvature::GaussNewton(GaussNewton::zeros(model.n_bins(), n));
            let mut product = Curvature::GaussNewtonProduct(Arrowhead::zeros(partition));
            likelihood.nll_and_curvature(&params, &mut gradient, &mut rows);
            likelihood.nll_and_curvature(&params, &mut gradient, &mut product);
            let (Curvature::GaussNewton(rows), Curvature::GaussNewtonProduct(product)) = (rows, product) else { unreachable!() };
            assert_all_close(&multiply_out(&rows), &product.to_dense(), 1e-11 * scale, "Gauss-Newton");
        }
    }

    #[test]
    fn gradient_alone_is_the_gradient(seed in any::<u64>()) {
        let model = random::model(seed, Shape { bins: 90, ..Shape::SMALL }, Interpolation::default());
        let params = random::point(&model.parameters, &mut Random::new(seed), 0.5);
        for mut likelihood in evaluators(&model, &model.observed) {
            let (mut alone, mut beside) = (vec![0.0; model.n_params()], vec![0.0; model.n_params()]);
            let value = likelihood.nll_and_grad(&params, &mut alone);
            let mut exact = Curvature::Exact(Arrowhead::zeros(likelihood.plan().partition().clone()));
            prop_assert_eq!(value, likelihood.nll_and_curvature(&params, &mut beside, &mut exact));
            prop_assert_eq!(&alone, &beside);
            let reference = nll(&model, &model.observed, &params);
            if reference.is_finite() {
                assert_close(value, reference, 1e-12, "nll");
            }
        }
    }

    #[test]
    fn with_one_parameter_moved_value_and_derivative_are_those_of_that_point(seed in any::<u64>(), rule in 0..3_usize) {
        let model = random::model(seed, Shape { bins: 90, ..Shape::SMALL }, RULES[rule]);
        let params = random::point(&model.parameters, &mut Random::new(seed), 0.5);
        for mut likelihood in evaluators(&model, &model.observed) {
            let (mut gradient, mut all) = (vec![0.0; model.n_params()], Vec::new());
            // Each parameter twice: mirrored, and moved by a little.
            let mirrored = (0..model.n_params()).rev().map(|i| (i, -params[i]));
            let near = (0..model.n_params()).map(|i| (i, params[i] + 0.1));
            let moves: Vec<(usize, f64)> = mirrored.chain(near).collect();
            for floor in [None, Some(1e-2)] {
                likelihood.set_floor(floor);
                likelihood.nll_and_derivative_moved(&params, &moves, &mut all);
                prop_assert_eq!(all.len(), moves.len());
                for (&(i, moved_to), &[value, derivative]) in moves.iter().zip(&all) {
                    let mut moved = params.clone();
                    moved[i] = moved_to;
                    let wanted = likelihood.nll_and_grad(&moved, &mut gradient);
                    if wanted.is_finite() {
                        assert_close(value, wanted, 1e-11, "nll");
                        let scale = gradient[i].abs().max(1e-3 * model.n_bins() as f64);
                        prop_assert!((derivative - gradient[i]).abs() <= 1e-9 * scale, "{}: {} for {}", i, derivative, gradient[i]);
                    } else {
                        prop_assert_eq!([value, derivative], [f64::INFINITY, 0.0]);
                    }
                }
            }
        }
    }

    #[test]
    fn replaced_data_give_the_likelihood_of_those_data(seed in any::<u64>()) {
        let model = random::model(seed, Shape::SMALL, Interpolation::default());
        let mut random = Random::new(seed);
        let params = random::point(&model.parameters, &mut random, 0.3);
        let data = Data {
            main: expected::expected_main(&model, &params),
            aux: expected::expected_aux(&model, &params),
        };
        let mut likelihood = CpuLikelihood::new(&model);
        likelihood.set_data(&data);
        assert_close(likelihood.nll(&params), nll(&model, &data, &params), 1e-12, "nll");
        let mut lambda = vec![0.0; model.n_bins()];
        likelihood.expected_main(&params, &mut lambda);
        assert_all_close(&lambda, &data.main, 1e-13, "expected");
    }
}

#[test]
fn a_negative_expectation_is_infinite_with_zero_gradient() {
    let model = random::model(3, Shape::SMALL, Interpolation::default());
    let mut params = model.parameters.init.clone();
    for set in model.parameters.sets.iter().filter(|s| s.name == "mu") {
        params[set.first] = -1e6;
    }
    let mut gradient = vec![1.0; model.n_params()];
    let mut likelihood = CpuLikelihood::new(&model);
    assert_eq!(likelihood.nll(&params), f64::INFINITY);
    assert_eq!(likelihood.nll_and_grad(&params, &mut gradient), f64::INFINITY);
    assert!(gradient.iter().all(|&g| g == 0.0));
}
