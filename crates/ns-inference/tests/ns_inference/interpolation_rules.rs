//! Tests interpolation rules of single modifiers against ROOT, and Combine's asymmetric lnN against
//! its formula.

use ns_compute::CpuLikelihood;
use ns_core::expected::expected_main;
use ns_core::interpolate::InterpolationRule;
use ns_core::{CompileError, CompileOptions, Model, compile};
use ns_testkit::assert_close;
use ns_translate::pyhf;
use serde_json::{Value, json};
use std::path::Path;

fn compiled(modifiers: &[Value], nominal: f64) -> Result<Model, CompileError> {
    let document = json!({
        "channels": [{"name": "SR", "samples": [{"name": "b", "data": [nominal], "modifiers": modifiers}]}],
        "observations": [{"name": "SR", "data": [1.0]}],
        "measurements": [{"name": "m", "config": {"poi": "", "parameters": []}}],
        "version": "1.0.0",
    });
    compile(&pyhf::from_value(&document).expect("a workspace"), &CompileOptions::default())
}

/// Returns the yield at `alpha`, which must be that of the fast evaluator.
fn yield_at(model: &Model, alpha: f64) -> f64 {
    let expected = expected_main(model, &[alpha])[0];
    let mut fast = [f64::NAN];
    CpuLikelihood::new(model).expected_main(&[alpha], &mut fast);
    assert_close(fast[0], expected, 1e-14, "fast evaluator");
    expected
}

#[test]
fn codes_of_root_give_its_factors_and_yields() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/interpolation/root.json");
    let table: Value = serde_json::from_slice(&std::fs::read(path).expect("in the repository")).expect("JSON");
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
    };
    let points = numbers(&table["points"]);
    let cases = table["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 53);
    for case in cases {
        let code = case["code"].as_u64().expect("a number") as u32;
        let [nominal, lo, hi] = ["nominal", "lo", "hi"].map(|key| case[key].as_f64().expect("a number"));
        let rule = match case["class"].as_str() {
            Some("FlexibleInterpVar") => InterpolationRule::from_flexible_interp_var(code),
            _ => InterpolationRule::from_piecewise_interpolation(code),
        };
        let rule = rule.expect("a code of ROOT").as_str();
        let modifier = if case["class"] == "FlexibleInterpVar" {
            json!({"name": "a", "type": "normsys", "data": {"lo": lo, "hi": hi}, "interpolation": rule})
        } else {
            let data = json!({"lo_data": [lo], "hi_data": [hi]});
            json!({"name": "a", "type": "histosys", "data": data, "interpolation": rule})
        };
        let model = compiled(&[modifier], nominal).expect("sound");
        for (&alpha, expected) in points.iter().zip(numbers(&case["values"])) {
            assert_close(yield_at(&model, alpha), expected, 1e-13 * nominal, &format!("{case} at {alpha}"));
        }
    }
}

#[test]
fn asymmetric_lnn_is_the_formula_of_combine() {
    let (lo, hi) = (0.93_f64, 1.27_f64);
    let modifier = json!({"name": "a", "type": "normsys", "data": {"lo": lo, "hi": hi}, "interpolation": "combine_lnn", "scale": 0.5});
    let model = compiled(&[modifier], 1.0).expect("sound");
    for step in -30..=30 {
        let parameter = 0.1 * f64::from(step);
        let theta = 0.5 * parameter;
        let (above, below) = (hi.ln(), -lo.ln());
        let kappa = if theta >= 0.5 {
            above
        } else if theta <= -0.5 {
            below
        } else {
            let x = 2.0 * theta;
            let smooth = x * (x * x * (3.0 * x * x - 10.0) + 15.0) / 8.0;
            0.5 * ((above + below) + smooth * (above - below))
        };
        assert_close(yield_at(&model, parameter), (theta * kappa).exp(), 1e-14, "lnN");
    }
}

#[test]
fn a_scale_and_a_rule_are_of_one_modifier_only() {
    let plain = json!({"name": "a", "type": "normsys", "data": {"lo": 0.9, "hi": 1.2}});
    let mut own = plain.clone();
    (own["name"], own["interpolation"], own["scale"]) = (json!("b"), json!("exponential"), json!(0.5));
    let model = compiled(&[plain, own], 10.0).expect("sound");
    assert_eq!(model.parameters.names, ["a", "b"]);
    assert_eq!(model.kinked(), [false, true]);
    let at = |params: [f64; 2]| expected_main(&model, &params)[0];
    assert_close(at([1.0, 0.0]), 12.0, 1e-14, "a");
    assert_close(at([0.0, 2.0]), 12.0, 1e-14, "b at half of 2");
    assert_close(at([0.0, 1.0]), 10.0 * 1.2_f64.sqrt(), 1e-14, "b at half of 1");
}

#[test]
fn rules_that_models_do_not_have_are_refused_with_their_place() {
    let normsys = |name: &str, rule: &str| json!({"name": name, "type": "normsys", "data": {"lo": 0.9, "hi": 1.2}, "interpolation": rule});
    let histosys = json!({"name": "a", "type": "histosys", "data": {"lo_data": [0.0], "hi_data": [11.0]}, "interpolation": "smooth_factor"});
    let refused = |modifiers: &[Value]| compiled(modifiers, 10.0).expect_err("not supported").to_string();
    assert_eq!(
        refused(&[histosys]),
        "/channels/0/samples/0/modifiers/0/interpolation: `smooth_factor` scales yields, but bin 0 has the nominal yield 10 \
         and the variations 0 and 11"
    );
    assert_eq!(
        refused(&[normsys("a", "linear"), normsys("b", "quadratic")]),
        "/channels/0/samples/0/modifiers/1/interpolation: a second normsys of the sample with an additive interpolation \
         is not supported"
    );
    let mut zero = normsys("a", "linear");
    zero["scale"] = json!(0.0);
    assert_eq!(
        refused(&[zero]),
        "/channels/0/samples/0/modifiers/0/scale: the scale 0 is not a number other than zero"
    );
}
