//! Derivatives with respect to templates against differences of the plain likelihood, and inputs
//! chosen by name.

use ns_core::interpolate::Interpolation;
use ns_core::likelihood::nll;
use ns_core::model::Model;
use ns_core::spec::{Expression, Modifier, ModifierData, MorphingTerm};
use ns_core::templates::{
    InputError, InputKind, Inputs, LineExpansion, ParameterLine, TemplateSelection, TemplateVariations, along,
    pull_back,
};
use ns_core::{CompileOptions, compile};
use ns_testkit::inputs::every_input;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, sample};
use ns_testkit::{assert_close, formulas};
use proptest::prelude::*;

/// Returns the random model of `seed`, with formulas and morphing if asked for.
fn model_of(seed: u64, has_formulas: bool, interpolation: Interpolation) -> Model {
    if !has_formulas {
        return random::model(seed, Shape::SMALL, interpolation);
    }
    let workspace = formulas::random_workspace(seed, Shape::SMALL);
    let options = CompileOptions { interpolation, ..CompileOptions::default() };
    compile(&workspace, &options).expect("a valid workspace")
}

/// Both gradients of -ln L by the plain code.
fn gradients(model: &Model, inputs: &Inputs, params: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let data = &model.observed;
    let mut out: (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
    let weight = |bin: usize, lambda: &f64| if data.main[bin] == 0.0 { 1.0 } else { 1.0 - data.main[bin] / lambda };
    pull_back(model, inputs, params, weight, &mut out);
    for (&param, &aux) in model.table(model.layout.constraint_param).iter().zip(&data.aux) {
        let constraint = model.parameters.constraint[param as usize].expect("a constrained parameter");
        out.0[param as usize] += constraint.derivatives(aux, params[param as usize]).0;
    }
    (out.0, out.1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_122), ..ProptestConfig::default() })]

    #[test]
    fn gradients_by_templates_match_differences(
        seed in any::<u64>(),
        kinked in any::<bool>(),
        has_formulas in any::<bool>(),
    ) {
        let rule = if kinked { Interpolation::KINKED } else { Interpolation::default() };
        let model = model_of(seed, has_formulas, rule);
        let inputs = every_input(&model);
        let params = random::point(&model.parameters, &mut Random::new(seed), 1.5);
        let values = inputs.values(&model);
        inputs.check(&values).expect("the values of a model can be its inputs");
        prop_assume!(nll(&model, &model.observed, &params).is_finite());
        let (gradient, by_inputs) = gradients(&model, &inputs, &params);
        let hyperdual = ns_core::likelihood::nll_hyperdual(&model, &model.observed, &params);
        for (a, b) in gradient.iter().zip(&hyperdual.gradient) {
            assert_close(*a, *b, 1e-10, "gradient by parameters");
        }
        for i in 0..inputs.len() {
            let at = |step: f64| {
                let mut moved = (model.clone(), values.clone());
                moved.1[i] += step;
                inputs.apply(&moved.1, &mut moved.0);
                nll(&moved.0, &model.observed, &params)
            };
            let h = 1e-4 * values[i].abs().max(0.1);
            let (near, far) = ((at(h) - at(-h)) / (2.0 * h), (at(2.0 * h) - at(-2.0 * h)) / (4.0 * h));
            if near.is_finite() && far.is_finite() {
                // Richardson's: the error of the difference is of fourth order.
                assert_close(by_inputs[i], (4.0 * near - far) / 3.0, 1e-6, &inputs.place(i).0);
            }
        }
    }

    #[test]
    fn change_along_a_line_matches_differences(seed in any::<u64>(), has_formulas in any::<bool>()) {
        let model = model_of(seed, has_formulas, Interpolation::default());
        let inputs = every_input(&model);
        let mut random = Random::new(seed);
        let params: Vec<f64> = random::point(&model.parameters, &mut random, 0.8);
        let direction: Vec<f64> = params.iter().map(|_| random.between(-0.3, 0.3)).collect();
        // The third derivatives jump where an interpolation goes over into its tail.
        prop_assume!(params.iter().all(|x| (x.abs() - 1.0).abs() > 1e-2));
        prop_assume!(nll(&model, &model.observed, &params).is_finite());
        let mut out = LineExpansion::default();
        let line = ParameterLine { start: &params, direction: &direction, input_direction: None };
        along(&model, &inputs, &model.observed, line, &mut out);
        let at = |step: f64| {
            let moved: Vec<f64> = params.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
            gradients(&model, &inputs, &moved)
        };
        let h = 1e-3;
        let [below, here, above] = [-h, 0.0, h].map(at);
        let sides = [(&out.gradient, &below.0, &here.0, &above.0), (&out.by_inputs, &below.1, &here.1, &above.1)];
        for (exact, below, here, above) in sides {
            let scale = exact.iter().fold(1.0_f64, |m, t| m.max(t.value.abs()).max(t.first.abs()).max(t.second.abs()));
            for i in 0..exact.len() {
                assert_close(exact[i].value, here[i], 1e-11 * scale, "value");
                assert_close(exact[i].first, (above[i] - below[i]) / (2.0 * h), 1e-4 * scale, "first");
                let second = (above[i] - 2.0 * here[i] + below[i]) / (h * h);
                assert_close(exact[i].second, second, 1e-3 * scale, "second");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_124), ..ProptestConfig::default() })]

    #[test]
    fn hessian_products_match_differences_of_gradients(seed in any::<u64>(), has_formulas in any::<bool>()) {
        let model = model_of(seed, has_formulas, Interpolation::default());
        let inputs = every_input(&model);
        let mut random = Random::new(seed);
        let (params, values) = (random::point(&model.parameters, &mut random, 0.8), inputs.values(&model));
        prop_assume!(params.iter().all(|x| (x.abs() - 1.0).abs() > 1e-2));
        prop_assume!(nll(&model, &model.observed, &params).is_finite());
        let by_params: Vec<f64> = params.iter().map(|_| random.between(-0.3, 0.3)).collect();
        let by_inputs: Vec<f64> = values.iter().map(|x| x * random.between(-0.1, 0.1)).collect();
        let mut out = LineExpansion::default();
        let line = ParameterLine { start: &params, direction: &by_params, input_direction: Some(&by_inputs) };
        along(&model, &inputs, &model.observed, line, &mut out);
        let moved = |from: &[f64], along: &[f64], step: f64| -> Vec<f64> { from.iter().zip(along).map(|(x, v)| x + step * v).collect() };
        let at = |step: f64| {
            let mut model = model.clone();
            inputs.apply(&moved(&values, &by_inputs, step), &mut model);
            gradients(&model, &inputs, &moved(&params, &by_params, step))
        };
        let h = 1e-4;
        let (below, above) = (at(-h), at(h));
        for (exact, below, above) in [(&out.gradient, &below.0, &above.0), (&out.by_inputs, &below.1, &above.1)] {
            let scale = exact.iter().fold(1.0_f64, |m, t| m.max(t.value.abs()).max(t.first.abs()));
            for i in 0..exact.len() {
                assert_close(exact[i].first, (above[i] - below[i]) / (2.0 * h), 1e-5 * scale, "product");
            }
        }
    }
}

#[test]
fn nominal_yields_move_alone() {
    let model = random::model(5, Shape::SMALL, Interpolation::default());
    let inputs = every_input(&model);
    let mut values = inputs.values(&model);
    let block = inputs.blocks().iter().find(|b| matches!(b.kind, InputKind::HistoSysHi(_))).expect("a histosys");
    let before = values[block.range.start];
    let nominal = inputs.blocks().iter().find(|b| b.name == format!("{}/{}", block.channel, block.sample));
    values[nominal.expect("its nominal yields").range.start] += 1.0;
    let mut moved = model.clone();
    inputs.apply(&values, &mut moved);
    assert_close(inputs.values(&moved)[block.range.start], before, 1e-13, "yield at +1σ");
}

#[test]
fn names_that_are_not_there_are_explained() {
    let model = random::model(5, Shape::SMALL, Interpolation::default());
    let named = |sample: &str, channel: Option<&str>, variations| TemplateSelection {
        sample: sample.to_owned(),
        channel: channel.map(str::to_owned),
        variations,
    };
    let error = |selections: &[TemplateSelection]| Inputs::new(&model, selections).expect_err("a mistake");
    let unknown = error(&[named("Signal", None, TemplateVariations::None)]);
    assert_eq!(unknown.to_string(), "the model has no sample `Signal`");
    assert_eq!(unknown.hint().as_deref(), Some("names are case sensitive; did you mean `signal`?"));
    let nowhere = error(&[named("signal", Some("nowhere"), TemplateVariations::None)]);
    assert!(matches!(nowhere, InputError::UnknownTemplate { ref channels, .. } if !channels.is_empty()));
    let twice =
        error(&[named("signal", None, TemplateVariations::None), named("signal", None, TemplateVariations::All)]);
    assert!(matches!(twice, InputError::Twice { .. }));
    let variation = error(&[named("signal", None, TemplateVariations::Named(vec!["xz".to_owned()]))]);
    assert!(matches!(variation, InputError::UnknownVariation { .. }));
    assert_eq!(error(&[]), InputError::Nothing);
}

#[test]
fn blocks_have_names_of_their_own() {
    let jes = [
        ("jes", ModifierData::HistoSys { lo_data: vec![9.0], hi_data: vec![11.0] }),
        ("jes", ModifierData::NormSys { lo: 0.9, hi: 1.1 }),
    ];
    let mut signal = sample("signal", &[10.0], &jes);
    for name in ["first", "second", "third"] {
        signal.modifiers.push(formulas::morphing(name, vec![("mu", vec![1.0])]));
    }
    let arguments = Some(vec!["mu".to_owned(), "jes".to_owned()]);
    let coefficient = Expression { text: "@0*@1".to_owned(), parameters: arguments };
    let term = MorphingTerm { coefficient, data: vec![0.5] };
    signal.modifiers.push(Modifier::new("with_positions", ModifierData::Morphing(vec![term])));
    signal.modifiers.push(Modifier::new("mu", ModifierData::NormFactor));
    let model = one_channel(vec![signal], &[12.0]);
    let selection = TemplateSelection {
        sample: "signal".to_owned(),
        channel: None,
        variations: TemplateVariations::Named(["jes", "mu", "mu*jes"].map(str::to_owned).to_vec()),
    };
    let inputs = Inputs::new(&model, &[selection]).expect("names of the model");
    let names: Vec<&str> = inputs.blocks().iter().map(|block| block.name.trim_start_matches(&*block.channel)).collect();
    let wanted = [
        "/signal",
        "/signal/jes/hi",
        "/signal/jes/lo",
        "/signal/jes/hi (normsys)",
        "/signal/jes/lo (normsys)",
        "/signal/mu",
        "/signal/mu (2)",
        "/signal/mu (3)",
        "/signal/mu*jes",
    ];
    assert_eq!(names, wanted);
}
