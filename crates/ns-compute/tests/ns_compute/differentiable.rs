//! The session with replaceable templates against the plain code and against models that were
//! compiled with the new templates.

use ns_compute::{CpuLikelihood, DifferentiableSession};
use ns_core::interpolate::Interpolation;
use ns_core::templates::{LineExpansion, pull_back};
use ns_core::{CompileOptions, Likelihood, Model, TemplateLikelihood, compile};
use ns_testkit::inputs::every_input;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::{assert_all_close, assert_close, formulas};
use proptest::prelude::*;

/// Returns a random model, with formulas and morphing if asked for.
fn model_of(seed: u64, shape: Shape, has_formulas: bool, interpolation: Interpolation) -> Model {
    if !has_formulas {
        return random::model(seed, shape, interpolation);
    }
    let options = CompileOptions { interpolation, ..CompileOptions::default() };
    compile(&formulas::random_workspace(seed, shape), &options).expect("a valid workspace")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_123), ..ProptestConfig::default() })]

    #[test]
    fn replaced_templates_give_the_likelihood_of_a_model_that_has_them(
        seed in any::<u64>(),
        kinked in any::<bool>(),
        has_formulas in any::<bool>(),
    ) {
        let rule = if kinked { Interpolation::KINKED } else { Interpolation::default() };
        // More bins than a tile has, at times.
        let bins = if seed.is_multiple_of(4) { 90 } else { 5 };
        let mut model = model_of(seed, Shape { bins, ..Shape::SMALL }, has_formulas, rule);
        let inputs = every_input(&model);
        let mut random = Random::new(seed);
        let values: Vec<f64> = inputs.values(&model).iter().map(|x| x * random.between(0.9, 1.1)).collect();
        let params = random::point(&model.parameters, &mut random, 1.5);
        let (n_params, n_bins, m) = (model.n_params(), model.n_bins(), inputs.len());
        let mut session = DifferentiableSession::new(&model, inputs.clone());
        session.set_inputs(&values);
        inputs.apply(&values, &mut model);

        let mut compiled = CpuLikelihood::new(&model);
        let (mut gradient, mut by_inputs) = (vec![f64::NAN; n_params], vec![f64::NAN; m]);
        let value = session.nll_and_gradients(&params, &mut gradient, &mut by_inputs);
        prop_assert_eq!(value, compiled.nll_and_grad(&params, &mut vec![0.0; n_params]));
        prop_assert_eq!(session.nll(&params), compiled.nll(&params));
        if !value.is_finite() {
            prop_assert!(gradient.iter().chain(&by_inputs).all(|&g| g == 0.0));
            return Ok(());
        }
        let mut along = LineExpansion::default();
        session.along(&params, &vec![0.0; n_params], &mut along);
        let scale = by_inputs.iter().chain(&gradient).fold(1.0_f64, |m, g| m.max(g.abs()));
        let values_of = |list: &[ns_core::taylor::Taylor]| list.iter().map(|t| t.value).collect::<Vec<_>>();
        assert_all_close(&gradient, &values_of(&along.gradient), 1e-11 * scale, "gradient");
        assert_all_close(&by_inputs, &values_of(&along.by_inputs), 1e-11 * scale, "gradient by inputs");

        let direction: Vec<f64> = (0..n_params).map(|_| random.between(-1.0, 1.0)).collect();
        session.along(&params, &direction, &mut along);
        let changes: Vec<f64> = along.by_inputs.iter().map(|change| change.first).collect();
        let mut found = vec![f64::NAN; m];
        session.inputs_along(&params, &direction, &mut found);
        let scale = changes.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
        assert_all_close(&found, &changes, 1e-11 * scale, "changes of the gradient by inputs");

        let weights: Vec<f64> = (0..n_bins).map(|_| random.between(-1.0, 1.0)).collect();
        session.pull_back(&params, &weights, &mut gradient, &mut by_inputs);
        let mut plain: (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
        pull_back(&model, &inputs, &params, |bin, _| weights[bin], &mut plain);
        let scale = plain.0.iter().chain(&plain.1).fold(1.0_f64, |m, g| m.max(g.abs()));
        assert_all_close(&gradient, &plain.0, 1e-12 * scale, "pulled back to parameters");
        assert_all_close(&by_inputs, &plain.1, 1e-12 * scale, "pulled back to inputs");
    }
}

#[test]
fn sessions_do_not_share_templates() {
    let model = random::model(7, Shape::SMALL, Interpolation::default());
    let inputs = every_input(&model);
    let (params, values) = (model.parameters.init.clone(), inputs.values(&model));
    let mut first = DifferentiableSession::new(&model, inputs);
    let mut second = first.clone();
    let before = second.nll(&params);
    first.set_inputs(&values.iter().map(|x| 1.1 * x).collect::<Vec<_>>());
    assert_eq!(second.nll(&params), before);
    assert!(first.nll(&params) != before);
    first.set_inputs(&values);
    assert_close(first.nll(&params), before, 1e-13, "the first templates again");
}
