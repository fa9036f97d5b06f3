//! Diagnosis and provenance of answers, and the order of checks.

use crate::model;
use nextstat::curves::{AxisRequest, ScanRequest};
use nextstat::error::SettingsError;
use nextstat::fit::IntervalTarget;
use nextstat::hypothesis::HypotestRequest;
use nextstat::{Analysis, CompiledModel, DataSource, Error, FitRequest, Settings};
use ns_device::Backend;
use ns_inference::monitor::NoMonitor;
use ns_inference::scan::ScanValues;
use ns_translate::digest::{DigestAlgorithm, digest};
use serde_json::json;

#[test]
fn provenance_names_everything_that_numbers_depend_on() {
    let settings = Settings {
        fixed: vec![("stat".to_owned(), 1.0)],
        multi_start: Some(3),
        seed: 7,
        data: DataSource::Asimov(Default::default()),
        ..Settings::default()
    };
    let fit = Analysis::new(&model(), &settings).and_then(|analysis| analysis.fit(&FitRequest::default()));
    let fit = fit.expect("a fit");
    let provenance = json!(fit.provenance());
    assert_eq!(provenance["settings"], json!({"fixed": {"stat[0]": 1.0, "stat[1]": 1.0}, "multi_start": 3}));
    assert_eq!(provenance["data"], json!({"source": "asimov", "parameters": {"mu": 1.0}}));
    assert_eq!((&provenance["seed"], &provenance["device"]), (&json!(7), &json!("cpu")));
    assert_eq!((&provenance["pois"], &provenance["measurement"]), (&json!(["mu"]), &json!("m")));
    assert_eq!(fit.document()["provenance"], provenance);
}

#[test]
fn the_digest_of_a_model_is_that_of_its_document() {
    let text = std::fs::read("../../examples/simple.json").expect("an example");
    let model = CompiledModel::from_json(&text, &Default::default()).expect("a sound workspace");
    let expected = digest(&text, DigestAlgorithm::Sha256).expect("valid JSON");
    assert_eq!(model.workspace_sha256(), expected);
}

#[test]
fn requests_are_checked_before_devices_are_opened() {
    let settings = Settings { device: Some(Backend::Metal.into()), ..Settings::default() };
    let analysis = Analysis::new(&model(), &settings).expect("settings that fit the model");
    let error = analysis.hypotest(&HypotestRequest { mu: Some(f64::NAN), ..Default::default() }).expect_err("no value");
    assert!(matches!(error, Error::Settings(SettingsError::Untestable { .. })), "{error}");
    let error = analysis.hypotest(&HypotestRequest::default()).expect_err("CPU only");
    assert!(matches!(error, Error::OnCpuOnly { .. }), "{error}");
}

#[test]
fn a_scan_outside_the_range_of_a_parameter_warns() {
    let analysis = Analysis::new(&model(), &Settings::default()).expect("sound settings");
    let scan = |start, stop| {
        let axis = AxisRequest { parameter: None, values: ScanValues::between(start, stop, 3) };
        analysis.scan(&ScanRequest { axes: vec![axis], ..ScanRequest::default() }, &NoMonitor).expect("a scan")
    };
    let outside = scan(-1.0, 11.0);
    assert!(outside.result.leaves_range);
    assert_eq!(outside.document()["warnings"], json!(["values of `mu` outside its range, 0 to 10: 2 of 3"]));
    assert_eq!(scan(0.0, 10.0).document()["warnings"], json!([]));
}

#[test]
fn intervals_end_where_the_profile_has_risen_to_their_level() {
    let analysis = |fixed: Vec<(String, f64)>| {
        Analysis::new(&model(), &Settings { fixed, ..Settings::default() }).expect("sound settings")
    };
    let request =
        FitRequest { minos: vec![IntervalTarget::OfInterest], minos_cls: vec![0.6827, 0.9], ..FitRequest::default() };
    let fit = analysis(Vec::new()).fit(&request).expect("a fit").result;
    assert_eq!(fit.minos.len(), 2);
    // χ² of one degree of freedom at these levels.
    for (interval, rise) in fit.minos.iter().zip([1.000_043, 2.705_543]) {
        for end in [interval.down, interval.up].into_iter().flatten() {
            let conditional = analysis(vec![("mu".to_owned(), interval.bestfit + end)]).fit(&FitRequest::default());
            let found = conditional.expect("a fit").result.twice_nll - fit.twice_nll;
            assert!((found - rise).abs() < 2e-6, "{} at {end}: {found}", interval.cl);
        }
    }
    let nonsense = FitRequest { minos_cls: vec![1.5], ..request };
    assert!(analysis(Vec::new()).fit(&nonsense).is_err());
}
