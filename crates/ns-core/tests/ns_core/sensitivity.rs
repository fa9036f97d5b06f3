//! Derivatives of yields against the plain reference with second-order dual numbers, on random
//! models with every modifier.

use ns_core::expected::cell_yields;
use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::scalar::HyperDual;
use ns_core::sensitivity::{DerivativeColumns, derivatives};
use ns_core::{Model, Parameters};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Random, Shape};
use proptest::prelude::*;

const RULES: [Interpolation; 3] = [
    Interpolation::KINKED,
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::SmoothLinear },
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::Quadratic },
];

/// A random point at which some factors, gammas included, are exactly zero.
fn point(parameters: &Parameters, random: &mut Random, spread: f64) -> Vec<f64> {
    let mut point = random::point(parameters, random, spread);
    for (i, x) in point.iter_mut().enumerate() {
        if parameters.init[i] == 1.0 && random.one_in(6) {
            *x = 0.0;
        }
    }
    point
}

/// Compares every template of `model`, with the columns of its channel, with dual numbers.
fn compare(model: &Model, params: &[f64]) {
    let reference = cell_yields(model, &HyperDual::variables(params));
    for channel in 0..model.channels.len() {
        let columns = DerivativeColumns::of(model, model.channel_templates(channel));
        for template in model.channel_templates(channel) {
            let cells = model.part(model.layout.template_cell, template);
            let mut yields = vec![f64::NAN; cells.len()];
            let mut out = vec![f64::NAN; columns.len() * cells.len()];
            derivatives(model, template, params, &columns, &mut yields, &mut out);
            for (bin, cell) in cells.clone().enumerate() {
                let mut gradient = vec![0.0; params.len()];
                (0..columns.len()).for_each(|c| gradient[columns.param(c, bin)] += out[c * cells.len() + bin]);
                assert_close(yields[bin], reference[cell].value, 1e-14, "yield");
                let exact = |i: usize| reference[cell].gradient.get(i).copied().unwrap_or(0.0);
                for i in 0..params.len() {
                    assert_close(gradient[i], exact(i), 1e-12, &model.parameters.names[i]);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    #[test]
    fn derivatives_match_dual_numbers_also_where_factors_vanish(seed in any::<u64>(), rule in 0..3_usize, spread in 0.1..2.5_f64) {
        let model = random::model(seed, Shape::SMALL, RULES[rule]);
        let params = point(&model.parameters, &mut Random::new(seed ^ 1), spread);
        compare(&model, &params);
    }
}

#[test]
fn a_factor_of_zero_leaves_the_others_without_derivative() {
    // mu and xs act on the signal alone: at mu = 0 nothing depends on xs, and the derivative along
    // mu stays.
    let model = random::model(3, Shape { rules: false, ..Shape::SMALL }, Interpolation::default());
    let mut params = model.parameters.init.clone();
    params[model.poi().expect("random models have one")] = 0.0;
    compare(&model, &params);
}

#[test]
fn a_kink_has_the_mean_derivative_of_its_sides() {
    let model = random::model(7, Shape::SMALL, Interpolation::KINKED);
    let columns = DerivativeColumns::of(&model, 0..model.n_templates());
    let start = model.parameters.init.clone();
    let kinked = model.kinked();
    for template in 0..model.n_templates() {
        let cells = model.part(model.layout.template_cell, template);
        let at = |side: f64| {
            let params: Vec<f64> = start.iter().zip(&kinked).map(|(x, k)| if *k { side } else { *x }).collect();
            let (mut yields, mut out) = (vec![0.0; cells.len()], vec![0.0; columns.len() * cells.len()]);
            derivatives(&model, template, &params, &columns, &mut yields, &mut out);
            out
        };
        let (below, on, above) = (at(-1e-13), at(0.0), at(1e-13));
        for i in 0..on.len() {
            assert_close(on[i], 0.5 * (below[i] + above[i]), 1e-9, "derivative");
        }
    }
}
