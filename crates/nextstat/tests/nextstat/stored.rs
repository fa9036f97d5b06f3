//! Stored fits: what they predict in other channels, and Asimov data made of them.

use crate::masks::{SHAPE, compiled, masked};
use nextstat::fit::Matrices;
use nextstat::settings::{AsimovPoi, AsimovPoint, Settings};
use nextstat::stored::{StoredFit, StoredFitError};
use nextstat::{Analysis, DataSource, Face, FitRequest, Hint};
use ns_core::spec::Workspace;
use ns_inference::Uncertainties;
use ns_testkit::random::workspace;
use serde_json::{Value, json};
use std::sync::Arc;

/// A workspace with the channel that is left out of its fit.
fn with_region() -> (Workspace, String) {
    let whole = workspace(0, SHAPE);
    let name = whole.channels[0].name.clone();
    (whole, name)
}

fn request() -> FitRequest {
    let matrices = Matrices { covariance: true, correlation: true };
    FitRequest { uncertainties: Uncertainties::Covariance, matrices, ..FitRequest::default() }
}

#[test]
fn a_fit_of_other_channels_predicts_what_a_masked_fit_does() {
    let (whole, name) = with_region();
    let mut control = whole.clone();
    control.channels.retain(|channel| channel.name != name);
    control.observations.retain(|observation| observation.name != name);
    let fit = Analysis::new(&compiled(&control), &Settings::default()).and_then(|analysis| analysis.fit(&request()));
    let document = fit.expect("a fit").document().to_string();
    let stored = StoredFit::from_json(document.as_bytes()).expect("a stored fit");

    let analysis = Analysis::new(&compiled(&whole), &Settings::default()).expect("sound settings");
    let projected = analysis.project(&stored).expect("a projection").result;
    let fitted = Analysis::new(&compiled(&whole), &masked(&[&name])).and_then(|analysis| analysis.yields());
    let fitted = fitted.expect("yields").result;
    assert!(!projected.unmatched.is_empty() && projected.unused.is_empty());
    for (stored, fitted) in projected.postfit.iter().zip(&fitted.postfit) {
        let both = stored.total.uncertainties.iter().zip(&fitted.total.uncertainties);
        for ((here, there), (width, other)) in stored.total.yields.iter().zip(&fitted.total.yields).zip(both) {
            let (width, other) = (width.expect("an uncertainty"), other.expect("an uncertainty"));
            assert!((here - there).abs() < 1e-6 * other, "{}: {here} and {there}", stored.channel);
            assert!((width / other - 1.0).abs() < 1e-6, "{}: {width} and {other}", stored.channel);
        }
    }
}

#[test]
fn covariance_and_correlation_say_the_same() {
    let (whole, _) = with_region();
    let analysis = Analysis::new(&compiled(&whole), &Settings::default()).expect("sound settings");
    let mut document = analysis.fit(&request()).expect("a fit").document();
    let read = |document: &serde_json::Value| StoredFit::from_json(document.to_string().as_bytes()).expect("a fit");
    let by_covariance = analysis.project(&read(&document)).expect("a projection").result;
    document.as_object_mut().expect("an object").remove("covariance");
    let by_correlation = analysis.project(&read(&document)).expect("a projection").result;
    let sums = |prediction: &nextstat::projection::Projection| -> Vec<f64> {
        prediction.postfit.iter().map(|channel| channel.total.sum_uncertainty.expect("known")).collect()
    };
    for (a, b) in sums(&by_covariance).iter().zip(sums(&by_correlation)) {
        assert!((a / b - 1.0).abs() < 1e-9);
    }
    document.as_object_mut().expect("an object").remove("correlation");
    let error = analysis.project(&read(&document)).expect_err("no covariance");
    assert_eq!(error.to_string(), "the fit has neither `covariance` nor `correlation`");
}

#[test]
fn a_changed_number_is_noticed_wherever_it_is() {
    let (whole, _) = with_region();
    let analysis = Analysis::new(&compiled(&whole), &Settings::default()).expect("sound settings");
    let document = analysis.fit(&request()).expect("a fit").document();
    let read = |document: &Value| StoredFit::from_json(document.to_string().as_bytes());
    read(&document).expect("unchanged");
    let n = document["par_names"].as_array().expect("names").len();
    let free = (0..n).find(|k| document["uncertainties"][*k].is_number()).expect("a free parameter");
    let pointers = [
        format!("/bestfit/{free}"),
        format!("/uncertainties/{free}"),
        format!("/covariance/{free}/{free}"),
        format!("/correlation/{free}/{free}"),
    ];
    for pointer in &pointers {
        let mut changed = document.clone();
        let number = changed.pointer_mut(pointer).expect("a number");
        // Too little for anything but a checksum.
        *number = json!(number.as_f64().expect("a number") * (1.0 + 1e-9) + 1e-12);
        let error = read(&changed).expect_err(pointer);
        assert!(
            matches!(error, StoredFitError::Changed { .. }) && error.hint(Face::Library).is_some(),
            "{pointer}: {error}"
        );
        // Who means it removes the checksums.
        changed.as_object_mut().expect("an object").remove("checksums");
        read(&changed).expect("numbers of another program");
    }
    let mut renamed = document.clone();
    renamed["par_names"][free] = json!("another");
    assert!(matches!(read(&renamed), Err(StoredFitError::Changed { .. })));
    // The same numbers, written in another way.
    let rewritten = serde_json::to_string_pretty(&document).expect("JSON");
    StoredFit::from_json(rewritten.as_bytes()).expect("the same numbers");
}

#[test]
fn asimov_data_of_a_fit_are_fitted_where_it_ended() {
    let (whole, _) = with_region();
    let model = compiled(&whole);
    let fit = Analysis::new(&model, &Settings::default()).and_then(|analysis| analysis.fit(&request())).expect("a fit");
    let stored = Arc::new(StoredFit::of(&fit.result).expect("a fit that converged"));
    let point = AsimovPoint { fit: Some(stored), poi: AsimovPoi::At(0.5), parameters: Vec::new() };
    let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    let again = Analysis::new(&model, &settings).and_then(|analysis| analysis.fit(&request())).expect("a fit");
    let poi = model.model().poi().expect("a parameter of interest");
    for (i, name) in again.result.par_names.iter().enumerate() {
        let wanted = if i == poi { 0.5 } else { fit.result.bestfit[i] };
        let width = again.result.uncertainties[i].unwrap_or(1.0);
        assert!((again.result.bestfit[i] - wanted).abs() < 1e-5 * width, "{name}: {}", again.result.bestfit[i]);
    }
}

/// A fit of `a` and `b` with `"key": value` instead of the sound one.
fn damaged(key: &str, value: &str) -> String {
    let sound = [
        ("par_names", r#"["a", "b"]"#),
        ("bestfit", "[1, 2]"),
        ("uncertainties", "[0.5, 2]"),
        ("covariance", "[[0.25, 0.1], [0.1, 4]]"),
        ("correlation", "[[1, 0.1], [0.1, 1]]"),
        ("converged", "true"),
    ];
    let member = |(name, sound): (&str, &str)| format!(r#""{name}": {}"#, if name == key { value } else { sound });
    format!("{{{}}}", sound.map(member).join(", "))
}

#[test]
fn documents_that_are_not_fits_are_refused() {
    let read = |text: &str| StoredFit::from_json(text.as_bytes()).expect_err("no fit");
    assert!(matches!(read("{}"), StoredFitError::NotAFit { .. }));
    assert_eq!(read(&damaged("converged", "false")), StoredFitError::NotConverged);
    let foreign = StoredFit::from_json(damaged("", "").as_bytes()).expect("a fit");
    let error = Analysis::new(&crate::model(), &Settings::default()).expect("sound").project(&foreign);
    assert_eq!(error.expect_err("nothing in common").to_string(), "the model has none of the 2 parameters of the fit");
}

#[test]
fn damaged_fits_are_refused_with_the_place() {
    for (key, value, said) in [
        ("par_names", r#"["a", "a"]"#, "the fit has the parameter `a` twice, at `/par_names/1`"),
        ("par_names", r#"["a"]"#, "the document is not a fit: expected 1 entries, found 2 at `/bestfit`"),
        ("bestfit", "[null, 2]", "the document is not a fit: expected a number, found `null` at `/bestfit/0`"),
        ("bestfit", "[1, NaN]", "the document is not a fit: `NaN` is not a JSON number, at `/bestfit/1`"),
        ("bestfit", "[1, 1e300]", "1e300 is not a value of `b` that a fit finds, at `/bestfit/1`"),
        ("uncertainties", "[0.5, -2]", "the uncertainty of `b` is -2, which is negative, at `/uncertainties/1`"),
        ("uncertainties", "[0.5, 3]", "the variance of `b` is 4, and its uncertainty 3, at `/covariance/1/1`"),
        ("uncertainties", "[0.5, 1e200]", "1e200 is not a value of `b` that a fit finds, at `/uncertainties/1`"),
        (
            "covariance",
            "[[0.25, 0.1], [0.1, -4]]",
            "the variance of `b` is -4, which is negative, at `/covariance/1/1`",
        ),
        (
            "covariance",
            "[[0.25, 1.5], [1.5, 4]]",
            "the correlation of `a` and `b` is 1.5, which is not between -1 and 1, at `/covariance/0/1`",
        ),
        (
            "covariance",
            "[[0.25, 0.2], [0.1, 4]]",
            "the matrix is not symmetric: 0.2 for `a` and `b`, and 0.1 the other way round, at `/covariance/0/1`",
        ),
        (
            "covariance",
            "[[0.25, 0.1], [0.1]]",
            "the document is not a fit: expected 2 entries, found 1 at `/covariance/1`",
        ),
        ("correlation", "[[0.5, 0.1], [0.1, 1]]", "the correlation of `a` with itself is 0.5 at `/correlation/0/0`"),
        (
            "correlation",
            "[[1, -2], [-2, 1]]",
            "the correlation of `a` and `b` is -2, which is not between -1 and 1, at `/correlation/0/1`",
        ),
    ] {
        let error = StoredFit::from_json(damaged(key, value).as_bytes()).expect_err("damaged").to_string();
        assert!(error.starts_with(said), "{key}: {value}: {error}");
    }
}

#[test]
fn a_matrix_that_no_fit_has_is_refused() {
    // Each correlation is possible; all three together have the eigenvalue 1 - 2 · 0.9.
    let fit = |r: f64| {
        format!(
            r#"{{"fit": {{"par_names": ["a", "b", "c"], "bestfit": [0, 0, 0], "uncertainties": [1, 1, 1],
            "correlation": [[1, {r}, {r}], [{r}, 1, {r}], [{r}, {r}, 1]]}}}}"#
        )
    };
    let error = StoredFit::from_json(fit(-0.9).as_bytes()).expect_err("no covariance");
    assert_eq!(error.to_string(), "the matrix is not positive semidefinite at `/fit/correlation`");
    assert!(error.hint(Face::Library).is_some());
    // At -0.5 one eigenvalue is 0.
    StoredFit::from_json(fit(-0.5).as_bytes()).expect("a possible matrix");
}

#[test]
fn predictions_warn_of_what_the_stored_fit_did_not_determine() {
    let whole = crate::example("shapes");
    let fit = Analysis::new(&whole, &masked(&["signal_region"])).and_then(|analysis| analysis.fit(&request()));
    let document = fit.expect("a fit").document().to_string();
    let stored = StoredFit::from_json(document.as_bytes()).expect("a stored fit");
    let projected = Analysis::new(&whole, &Settings::default()).and_then(|analysis| analysis.project(&stored));
    let projected = projected.expect("a projection").result;
    assert!(projected.postfit[0].total.uncertainties[0].is_none());
    let warning = projected.warnings.iter().find(|warning| warning.contains("did not determine `norm_ttbar`"));
    assert!(warning.is_some(), "{:?}", projected.warnings);
}

#[test]
fn asimov_data_of_a_fit_say_which_parameters_it_does_not_have() {
    let text = r#"{"par_names": ["mu", "old"], "bestfit": [1.2, 3], "uncertainties": [0.4, 1]}"#;
    let fit = Some(Arc::new(StoredFit::from_json(text.as_bytes()).expect("a fit")));
    let point = AsimovPoint { fit, ..AsimovPoint::default() };
    let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    let analysis = Analysis::new(&crate::model(), &settings).expect("sound settings");
    let warnings = analysis.data_warnings();
    let rest = crate::model().model().n_params() - 1;
    assert!(warnings[0].starts_with(&format!("{rest} parameters of the model not in the stored fit")), "{warnings:?}");
    assert_eq!(warnings[1], "1 parameter of the stored fit not in the model: `old`");
    assert_eq!(serde_json::json!(analysis.provenance().data)["warnings"], serde_json::json!(warnings));
}
