//! Models of HistFactory XML equal those that ROOT makes of it
//! (testdata/histfactory/generate.py).

use std::path::PathBuf;

use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::{CompileOptions, Model, compile};
use ns_translate::{DocumentSource, LoadRequest, LoadedWorkspace, full_message, load_document};
use serde_json::{Map, Value};

/// The same sums in another order: a few roundings of numbers up to 400.
pub(crate) const YIELDS: f64 = 1e-12;

/// Differences of 2NLL up to some hundreds, of which ROOT adds terms up to a thousand.
pub(crate) const TWICE_NLL: f64 = 1e-9;

/// ROOT has a Gaussian of width 100, normalised in -10 … 10, which is flat to this.
pub(crate) const FLAT: f64 = 1e-6;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/histfactory")
}

fn reference() -> Map<String, Value> {
    let text = std::fs::read(folder().join("reference.json")).expect("readable");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    document["cases"].as_object().expect("cases").clone()
}

fn loaded(case: &str) -> LoadedWorkspace {
    let path = folder().join(format!("{case}.xml"));
    load_document(&LoadRequest::new(DocumentSource::Path(path)))
        .unwrap_or_else(|error| panic!("{case}: {}", full_message(&error)))
}

fn model(case: &str, measurement: &str) -> Model {
    let options = CompileOptions { measurement: Some(measurement.to_owned()), ..CompileOptions::default() };
    compile(&loaded(case).workspace, &options).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// Returns the name here of the parameter that ROOT calls `name`, and its value where ROOT has
/// `value`.
fn translated(name: &str, value: f64, case: &Value) -> (String, f64) {
    if name == "Lumi" {
        return ("lumi".to_owned(), value);
    }
    if let Some(systematic) = name.strip_prefix("alpha_") {
        let relative = case["lognormal"][systematic].as_f64();
        let alpha = |relative: f64| ((1.0 + relative).powf(value) - 1.0) / relative;
        return (systematic.to_owned(), relative.map_or(value, alpha));
    }
    if let Some(systematic) = name.strip_prefix("beta_") {
        let relative = case["gamma"][systematic].as_f64().expect("a gamma term");
        return (systematic.to_owned(), (value - 1.0) / relative);
    }
    match name.strip_prefix("gamma_").and_then(|name| name.rsplit_once("_bin_")) {
        Some((vector, bin)) => {
            let channel = vector.strip_prefix("stat_").map(|channel| format!("staterror_{channel}"));
            (format!("{}[{bin}]", channel.unwrap_or_else(|| vector.to_owned())), value)
        }
        None => (name.to_owned(), value),
    }
}

pub(crate) fn point(model: &Model, values: &Value, case: &Value) -> Vec<f64> {
    let mut point = model.parameters.init.clone();
    for (name, value) in values.as_object().expect("parameters") {
        let (name, value) = translated(name, value.as_f64().expect("a number"), case);
        match model.parameters.index_of(&name) {
            Some(index) => point[index] = value,
            // Without a sample that follows it there is no luminosity here.
            None => assert_eq!(name, "lumi", "`{name}` is missing"),
        }
    }
    point
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

pub(crate) fn by_channel(model: &Model, counts: &Value) -> Vec<f64> {
    model.channels.iter().flat_map(|channel| numbers(&counts[channel])).collect()
}

/// Returns what differs by more than `tolerance`, relative to numbers above 1.
pub(crate) fn differences(found: &[f64], wanted: &[f64], tolerance: f64, place: &str) -> Vec<String> {
    assert_eq!(found.len(), wanted.len(), "{place}");
    let pairs = found.iter().zip(wanted).enumerate();
    let far = pairs.filter(|(_, (found, wanted))| (*found - *wanted).abs() > tolerance * wanted.abs().max(1.0));
    far.map(|(index, (found, wanted))| format!("{place}, {index}: {found:e} and ROOT's {wanted:e}")).collect()
}

/// Calls `compare` with every case and its model, and fails with all differences.
fn for_every_case(compare: impl Fn(&str, &Value, &Model) -> Vec<String>) {
    let reference = reference();
    assert!(reference.len() > 30, "only {} cases", reference.len());
    let found: Vec<String> = reference
        .iter()
        .flat_map(|(name, case)| compare(name, case, &model(name, case["measurement"].as_str().expect("a name"))))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn expected_counts_are_those_of_root() {
    for_every_case(|name, case, model| {
        let observed = by_channel(model, &case["observed"]);
        let mut found = differences(&model.observed.main, &observed, YIELDS, &format!("{name}: data"));
        for (index, one) in case["points"].as_array().expect("points").iter().enumerate() {
            let expected = expected_main(model, &point(model, &one["parameters"], case));
            let of_root = by_channel(model, &one["expected"]);
            found.extend(differences(&expected, &of_root, YIELDS, &format!("{name}, point {index}")));
        }
        found
    });
}

#[test]
fn differences_of_the_likelihood_are_those_of_root() {
    for_every_case(|name, case, model| {
        let points = case["points"].as_array().expect("points");
        let value = |one: &Value| 2.0 * nll(model, &model.observed, &point(model, &one["parameters"], case));
        let of_root = |one: &Value| one["twice_nll"].as_f64().expect("a number");
        let found: Vec<f64> = points.iter().map(|one| value(one) - value(&points[0])).collect();
        let wanted: Vec<f64> = points.iter().map(|one| of_root(one) - of_root(&points[0])).collect();
        let tolerance = if name == "uniform" { FLAT } else { TWICE_NLL };
        differences(&found, &wanted, tolerance, name)
    });
}

#[test]
fn parameters_start_and_are_fixed_and_limited_as_in_root() {
    for_every_case(|name, case, model| {
        let of_root = case["parameters"].as_object().expect("parameters").iter();
        of_root.flat_map(|(parameter, of_root)| parameter_differences(name, case, model, parameter, of_root)).collect()
    });
}

fn parameter_differences(name: &str, case: &Value, model: &Model, root_name: &str, of_root: &Value) -> Vec<String> {
    let number = |key: &str| translated(root_name, of_root[key].as_f64().expect("a number"), case);
    let (here, value) = number("value");
    let (parameters, place) = (&model.parameters, format!("{name}: {root_name}"));
    let Some(index) = parameters.index_of(&here) else {
        // Without a sample that follows it there is no luminosity here.
        assert_eq!(here, "lumi", "{name}: `{here}` is missing");
        return Vec::new();
    };
    let mut found = differences(&[parameters.init[index]], &[value], 1e-15, &place);
    if parameters.fixed[index] != of_root["is_const"].as_bool().expect("a flag") {
        found.push(format!("{place}: fixed in one of both"));
    }
    // Constrained gammas have pyhf's limits; those of a ShapeFactor have ROOT's.
    if !root_name.starts_with("gamma_") || parameters.constraint[index].is_none() && !parameters.fixed[index] {
        let limits = [number("low").1, number("high").1];
        found.extend(differences(&[parameters.lower[index], parameters.upper[index]], &limits, 1e-9, &place));
    }
    found
}
