//! HS3 documents mean what ROOT and pyhs3 make of them (testdata/hs3/generate.py, evaluate.py,
//! evaluate_pyhs3.py).

use std::path::PathBuf;

use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::{CompileOptions, Model, compile};
use ns_translate::{DocumentSource, LoadRequest, LoadedWorkspace, TargetFormat, convert, full_message, load_document};
use serde_json::{Map, Value};

/// Differences of -ln L up to some tens.
const NLL: f64 = 1e-9;

/// ROOT writes uncertainties of samples with seven digits.
const ROUNDED: f64 = 1e-5;

/// ROOT's reader of HS3 takes code 4 for every `histosys`.
const NOT_IN_ROOT: [&str; 2] = ["histosys_linear", "histosys_quadratic"];

/// The model whose vector cannot have the names that ROOT gives to elements.
const OTHER_ELEMENTS: &str = "names";

/// ROOT's Gaussian of width 100, which it writes as a constraint term.
const WRITTEN_OTHERWISE: [&str; 1] = ["uniform"];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn cases(path: &str) -> Map<String, Value> {
    let document: Value = serde_json::from_slice(&std::fs::read(folder(path)).expect("readable")).expect("JSON");
    document["cases"].as_object().expect("cases").clone()
}

fn loaded(path: &str) -> LoadedWorkspace {
    load_document(&LoadRequest::new(DocumentSource::Path(folder(path))))
        .unwrap_or_else(|error| panic!("{}", full_message(&error)))
}

fn model(path: &str) -> Model {
    compile(&loaded(path).workspace, &CompileOptions::default()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Returns the point of a model at which its parameters have the values of ROOT's.
fn point_of_root(model: &Model, values: &Value) -> Vec<f64> {
    let mut point = model.parameters.init.clone();
    for (name, value) in values.as_object().expect("parameters") {
        let here = match (name.as_str(), name.strip_prefix("alpha_"), name.rsplit_once("_bin_")) {
            ("Lumi", ..) => "lumi".to_owned(),
            (_, Some(systematic), _) => systematic.to_owned(),
            (_, _, Some((vector, bin))) => {
                let vector = vector.replace("gamma_stat_", "staterror_").replace("gamma_", "");
                format!("{vector}[{bin}]")
            }
            (name, ..) => name.to_owned(),
        };
        match model.parameters.index_of(&here) {
            Some(index) => point[index] = number(value),
            None => assert_eq!(here, "lumi", "`{name}` is missing"),
        }
    }
    point
}

/// Returns the differences to the first value.
fn rises(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value - values[0]).collect()
}

fn far(name: &str, found: &[f64], wanted: &[f64], tolerance: f64) -> Vec<String> {
    let pairs = found.iter().zip(wanted).enumerate();
    // A difference that is not a number is not within the tolerance.
    let is_near = |found: f64, wanted: f64| (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
    let far = pairs.filter(|(_, (found, wanted))| !is_near(**found, **wanted));
    far.map(|(point, (found, wanted))| format!("{name}, point {point}: {found:e} and {wanted:e}")).collect()
}

#[test]
fn what_is_not_a_number_is_far_from_every_number() {
    assert_eq!(far("NaN", &[f64::NAN, 1.0, 2.0], &[1.0, f64::NAN, 2.0], NLL).len(), 2);
}

#[test]
fn documents_that_root_exports_are_its_models() {
    let reference = cases("histfactory/reference.json");
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for (name, case) in &reference {
        let path = format!("hs3/root/{name}.json");
        if !folder(&path).exists() || WRITTEN_OTHERWISE.contains(&name.as_str()) {
            continue;
        }
        let model = model(&path);
        let points = case["points"].as_array().expect("points");
        let values: Vec<Vec<f64>> = points.iter().map(|one| point_of_root(&model, &one["parameters"])).collect();
        for (one, point) in points.iter().zip(&values) {
            let expected = expected_main(&model, point);
            let of_root =
                model.channels.iter().flat_map(|channel| one["expected"][channel].as_array().expect("counts"));
            let of_root: Vec<f64> = of_root.map(number).collect();
            wrong.extend(far(&format!("{name}: yields"), &expected, &of_root, 1e-12));
        }
        let found: Vec<f64> = values.iter().map(|point| 2.0 * nll(&model, &model.observed, point)).collect();
        let wanted: Vec<f64> = points.iter().map(|one| number(&one["twice_nll"])).collect();
        let has_errors = std::fs::read_to_string(folder(&path)).expect("readable").contains("\"errors\"");
        wrong.extend(far(name, &rises(&found), &rises(&wanted), if has_errors { ROUNDED } else { NLL }));
        n_compared += 1;
    }
    assert!(n_compared > 25, "only {n_compared} documents");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_of_the_test_data_are_those_that_are_written() {
    for name in cases("hs3/reference.json").keys() {
        let model = loaded(&format!("hs3/models/{name}.json"));
        let written =
            convert(&model.workspace, &model.kept, TargetFormat::Hs3).unwrap_or_else(|error| panic!("{error}"));
        let value = |text: &[u8]| -> Value {
            let mut value: Value = serde_json::from_slice(text).expect("JSON");
            // The version changes with each release.
            value["metadata"]["packages"] = Value::Null;
            value
        };
        let stored = std::fs::read(folder(&format!("hs3/written/{name}.json"))).expect("readable");
        assert_eq!(value(written.text.as_bytes()), value(&stored), "{name}: run testdata/hs3/evaluate.py");
    }
}

/// Returns what differs from the values that another program has for the documents, and how many
/// documents were compared.
fn compared(program: &str, left_out: &[&str]) -> (Vec<String>, usize) {
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for (name, case) in cases("hs3/reference.json") {
        let Some(values) = case[program].as_array().filter(|_| !left_out.contains(&name.as_str())) else { continue };
        let models = [model(&format!("hs3/models/{name}.json")), model(&format!("hs3/written/{name}.json"))];
        let wanted: Vec<f64> = values.iter().map(number).collect();
        for model in models {
            let nll_at = |values: &Value| {
                let element = if name == OTHER_ELEMENTS { "_" } else { "_bin_" };
                let value_of = |name: &String| number(&values[name.replace('[', element).trim_end_matches(']')]);
                let point: Vec<f64> = model.parameters.names.iter().map(value_of).collect();
                nll(&model, &model.observed, &point)
            };
            let found: Vec<f64> = case["points"].as_array().expect("points").iter().map(nll_at).collect();
            let (found, wanted) = (rises(&found), rises(&wanted));
            assert!(wanted.iter().all(|value| value.is_finite()), "{name}: {wanted:?}");
            wrong.extend(far(&name, &found, &wanted, NLL));
        }
        n_compared += 1;
    }
    (wrong, n_compared)
}

#[test]
fn root_reads_what_is_written() {
    let (wrong, n_compared) = compared("root", &NOT_IN_ROOT);
    assert!(n_compared > 20, "only {n_compared} documents");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `vals` of a `shapesys` are absolute in pyhs3, a `normsys` has a unit Gaussian around 0 whatever
/// it names, and only codes 1 and 4; code 2 of a `histosys` jumps at ±1; templates may be negative.
const NOT_IN_PYHS3: [&str; 8] = [
    "shapesys",
    "names",
    "clipped",
    "gaussian_of_a_systematic",
    "shifted_systematic",
    "normsys_linear",
    "normsys_quadratic",
    "histosys_quadratic",
];

#[test]
fn pyhs3_reads_what_is_written() {
    let (wrong, n_compared) = compared("pyhs3", &NOT_IN_PYHS3);
    assert!(n_compared > 12, "only {n_compared} documents");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
