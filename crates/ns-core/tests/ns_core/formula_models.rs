//! Formulas in workspaces: which names they may have, how their parameters are declared, and the
//! messages of wrong ones.

use ns_core::spec::{Channel, Expression, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
use ns_core::{CompileError, CompileOptions, Model, compile};
use ns_testkit::formulas::{declared, formula, morphing};

/// Returns a workspace of two bins whose only sample has `modifiers`, with `c` declared.
fn workspace(modifiers: Vec<Modifier>) -> Workspace {
    let sample = Sample { name: "signal".into(), data: vec![5.0, 6.0], modifiers, ..Default::default() };
    Workspace {
        channels: vec![Channel { name: "SR".into(), samples: vec![sample] }],
        observations: vec![Observation { name: "SR".into(), data: vec![4.0, 8.0] }],
        measurements: vec![Measurement {
            name: "m".into(),
            poi: Some("mu".into()),
            parameters: vec![declared("c", 0.5, [-2.0, 2.0])],
            ..Measurement::default()
        }],
    }
}

fn compiled(modifiers: Vec<Modifier>) -> Result<Model, CompileError> {
    compile(&workspace(modifiers), &CompileOptions::default())
}

fn normfactor(name: &str) -> Modifier {
    Modifier::new(name, ModifierData::NormFactor)
}

/// Returns message and hint of the error for `modifiers`.
fn fault(modifiers: Vec<Modifier>) -> (String, String) {
    let error = compiled(modifiers).expect_err("a wrong formula");
    (error.to_string(), error.advice().map_or_else(String::new, |advice| advice.to_string()))
}

#[test]
fn parameters_of_formulas_have_the_defaults_of_normfactors_or_those_of_the_measurement() {
    let model = compiled(vec![formula("f", "mu*c^2")]).unwrap();
    assert_eq!(model.parameters.names, ["mu", "c"]);
    assert_eq!((model.parameters.init[0], model.parameters.lower[0], model.parameters.upper[0]), (1.0, 0.0, 10.0));
    assert_eq!((model.parameters.init[1], model.parameters.lower[1], model.parameters.upper[1]), (0.5, -2.0, 2.0));
    assert_eq!(ns_core::expected::expected_main(&model, &[2.0, -1.0]), [10.0, 12.0]);
}

#[test]
fn morphing_terms_are_added_before_factors() {
    let terms = vec![("c", vec![1.0, 2.0]), ("c*mu", vec![0.5, 0.0])];
    let model = compiled(vec![morphing("eft", terms), normfactor("mu")]).unwrap();
    // (5 + 2·1 + 2·3·0.5)·3, (6 + 2·2)·3
    assert_eq!(ns_core::expected::expected_main(&model, &[2.0, 3.0]), [30.0, 30.0]);
    // A coefficient that is a parameter needs no derived quantity.
    assert_eq!(model.derived.names, ["c*mu"]);
}

#[test]
fn equal_coefficients_share_a_derived_quantity_and_equal_names_a_formula() {
    let mut workspace = workspace(vec![morphing("eft", vec![("c*mu", vec![1.0, 2.0])]), formula("f", "c+1")]);
    let mut other = workspace.channels[0].samples[0].clone();
    other.name = "other".into();
    workspace.channels[0].samples.push(other);
    let model = compile(&workspace, &CompileOptions::default()).unwrap();
    assert_eq!(model.derived.names, ["c*mu", "f"]);
}

#[test]
fn a_parameter_that_scales_a_sample_twice_is_squared() {
    let model = compiled(vec![normfactor("mu"), formula("again", "mu")]).unwrap();
    assert_eq!(ns_core::expected::expected_main(&model, &[3.0]), [45.0, 54.0]);
}

#[test]
fn unknown_names_have_place_and_hint() {
    let (message, hint) = fault(vec![normfactor("mu"), formula("f", "1 + mu*d")]);
    assert_eq!(
        message,
        "/channels/0/samples/0/modifiers/1/data/expression: channel `SR`, sample `signal`: the formula names `d` at \
         column 8, which is no parameter or formula"
    );
    assert!(hint.contains("{\"name\": \"d\", \"inits\": [0.0], \"bounds\": [[-5.0, 5.0]]}"), "{hint}");
    let (_, hint) = fault(vec![normfactor("kappa_lambda"), formula("f", "mu*kappa_lamda")]);
    assert_eq!(hint, "did you mean `kappa_lambda`?");
}

#[test]
fn wrong_formulas_have_pointer_and_column() {
    let (message, hint) = fault(vec![formula("f", "mu * (1 +")]);
    assert!(message.starts_with("/channels/0/samples/0/modifiers/0/data/expression: "), "{message}");
    assert!(message.ends_with("found the end at column 10 of `mu * (1 +`"), "{message}");
    assert_eq!(hint, "");
    let (message, _) = fault(vec![morphing("eft", vec![("mu", vec![1.0, 2.0]), ("mu**", vec![1.0, 2.0])])]);
    assert!(message.starts_with("/channels/0/samples/0/modifiers/0/data/terms/1/expression: "), "{message}");
    let (message, _) = fault(vec![morphing("eft", vec![("mu", vec![1.0])])]);
    assert!(message.contains("/data/terms/0/data") && message.contains("morphing `eft` has 1 number"), "{message}");
}

#[test]
fn formulas_that_depend_on_themselves_are_refused() {
    for modifiers in [
        vec![formula("mu", "mu")],
        vec![formula("f", "g*mu"), formula("g", "f+1")],
        vec![formula("f", "g"), formula("g", "h"), formula("h", "f")],
    ] {
        let (message, hint) = fault(modifiers);
        assert!(message.ends_with("depends on itself"), "{message}");
        assert_eq!(hint, "give the formula another name than those in its text");
    }
}

#[test]
fn names_of_formulas_are_unique() {
    let (message, _) = fault(vec![formula("f", "mu"), normfactor("f")]);
    assert!(message.contains("`f` is used as formula here and as normfactor elsewhere"), "{message}");
    let mut workspace = workspace(vec![formula("f", "mu")]);
    workspace.channels[0].samples.push(Sample {
        name: "other".into(),
        data: vec![1.0, 1.0],
        modifiers: vec![formula("f", "mu^2")],
        ..Default::default()
    });
    let error = compile(&workspace, &CompileOptions::default()).expect_err("two formulas of one name");
    assert!(matches!(error, CompileError::FormulaDiffers { .. }), "{error}");
}

#[test]
fn the_name_of_a_formula_is_not_that_of_a_parameter_with_settings() {
    let (message, hint) = fault(vec![formula("f", "2*mu"), formula("c", "mu"), normfactor("mu")]);
    let wanted = "/measurements/0/config/parameters/0: `c` is a formula (/channels/0/samples/0/modifiers/1), which has \
                  no settings, and not a parameter";
    assert_eq!(
        (message.as_str(), hint.as_str()),
        (wanted, "give the formula a name of its own, or leave out the settings")
    );
}

#[test]
fn elements_of_vectors_have_their_index() {
    let stat = || Modifier::new("stat", ModifierData::StatError(vec![0.5, 0.6]));
    let model = compiled(vec![stat(), normfactor("mu"), formula("f", "1 + 0.1*stat[1]")]).unwrap();
    assert_eq!(model.derived.tapes[0].arguments(), [2]);
    let (message, hint) = fault(vec![stat(), normfactor("mu"), formula("f", "stat")]);
    assert!(message.ends_with("the formula names `stat`, a vector of 2 elements"), "{message}");
    assert_eq!(hint, "name one of them, such as `stat[0]`");
    let (message, _) = fault(vec![stat(), normfactor("mu"), formula("f", "stat[2]")]);
    assert!(message.contains("names `stat[2]` at column 1"), "{message}");
}

#[test]
fn positions_are_those_of_the_list_of_parameters() {
    let expression = Expression { text: "@0 + x[1]".into(), parameters: Some(vec!["mu".into(), "c".into()]) };
    let model = compiled(vec![Modifier::new("f", ModifierData::Formula(expression))]).unwrap();
    assert_eq!(ns_core::expected::expected_main(&model, &[1.0, 1.0]), [10.0, 12.0]);
}

#[test]
fn bins_are_left_out_with_their_formulas() {
    let terms = vec![("c", vec![1.0, 2.0])];
    let model = compiled(vec![morphing("eft", terms), formula("f", "mu^2")]).unwrap();
    let masked = model.without_bins(&[true, false]).unwrap();
    assert_eq!(ns_core::expected::expected_main(&masked, &[1.0, 2.0]), [32.0]);
    assert_eq!(masked.parameters.fixed, [false, false]);
}
