//! Parameters, expected data and likelihoods of random workspaces, compared with what pyhf 0.7.6
//! makes of the same documents.

use ns_core::interpolate::Interpolation;
use ns_core::{CompileOptions, compile, expected, likelihood};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<Option<f64>> {
    value.as_array().expect("a list").iter().map(Value::as_f64).collect()
}

fn all_numbers(value: &Value) -> Vec<f64> {
    numbers(value).into_iter().map(|x| x.expect("a number")).collect()
}

fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what}: {a} is not {b}");
}

fn check_setting(case: usize, setting: &str, interpolation: Interpolation, document: &Value, reference: &Value) {
    let workspace = ns_translate::pyhf::from_value(document).expect("pyhf reads it");
    let options = CompileOptions { interpolation, ..CompileOptions::default() };
    let model = compile(&workspace, &options).unwrap_or_else(|e| panic!("case {case}: {e}"));
    let at = |what: &str| format!("case {case}, {setting}: {what}");
    let names: Vec<&str> =
        reference["par_names"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(model.parameters.names, names, "{}", at("names"));
    assert_eq!(model.parameters.init, all_numbers(&reference["init"]), "{}", at("init"));
    let fixed: Vec<bool> = reference["fixed"].as_array().expect("a list").iter().filter_map(Value::as_bool).collect();
    assert_eq!(model.parameters.fixed, fixed, "{}", at("fixed"));
    for (i, bounds) in reference["bounds"].as_array().expect("a list").iter().enumerate() {
        assert_eq!(vec![model.parameters.lower[i], model.parameters.upper[i]], all_numbers(bounds), "{}", at("bounds"));
    }
    let data: Vec<f64> = model.observed.main.iter().chain(&model.observed.aux).copied().collect();
    for (&ours, theirs) in data.iter().zip(all_numbers(&reference["data"])) {
        assert_close(ours, theirs, 1e-14, &at("data"));
    }
    for point in reference["points"].as_array().expect("a list") {
        let params = all_numbers(&point["params"]);
        let expected = expected::expected_data(&model, &params);
        for (&ours, theirs) in expected.iter().zip(all_numbers(&point["expected_data"])) {
            assert_close(ours, theirs, 1e-12, &at("expected data"));
        }
        let ours = 2.0 * likelihood::nll(&model, &model.observed, &params);
        match point["twice_nll"].as_f64() {
            // pyhf's own form loses digits to cancellation: 1e-10 of a sum of terms of size 1e3.
            Some(theirs) => assert_close(ours, theirs, 1e-10, &at("2NLL")),
            None => assert_eq!(ours, f64::INFINITY, "{}", at("2NLL where pyhf has none")),
        }
    }
}

#[test]
fn models_and_likelihoods_are_those_of_pyhf() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/pyhf/cases.json");
    let document: Value =
        serde_json::from_slice(&std::fs::read(file).expect("the file is in the repository")).expect("JSON");
    let cases = document["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 16);
    for (i, case) in cases.iter().enumerate() {
        let reference = &case["reference"];
        check_setting(i, "default", Interpolation::default(), &case["workspace"], &reference["default"]);
        check_setting(i, "code1_code0", Interpolation::KINKED, &case["workspace"], &reference["code1_code0"]);
    }
}
