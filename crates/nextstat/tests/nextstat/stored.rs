//! Stored fits: what they predict in other channels, and Asimov data made of them.

use crate::masks::{SHAPE, compiled, masked};
use nextstat::fit::Matrices;
use nextstat::settings::{AsimovPoi, AsimovPoint, Settings};
use nextstat::stored::{StoredFit, StoredFitError};
use nextstat::{Analysis, DataSource, FitRequest};
use ns_core::spec::Workspace;
use ns_inference::Uncertainties;
use ns_testkit::random::workspace;
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

#[test]
fn documents_that_are_not_fits_are_refused() {
    let read = |text: &str| StoredFit::from_json(text.as_bytes()).expect_err("no fit");
    assert!(matches!(read("{}"), StoredFitError::NotAFit { .. }));
    let fit = |converged, bestfit: &str| {
        format!(r#"{{"par_names": ["a"], "bestfit": {bestfit}, "uncertainties": [1], "converged": {converged}}}"#)
    };
    assert_eq!(read(&fit(false, "[1]")), StoredFitError::NotConverged);
    assert_eq!(read(&fit(true, "[null]")), StoredFitError::NoValue { name: "a".to_owned() });
    assert!(matches!(read(&fit(true, "[1, 2]")), StoredFitError::WrongLength { key: "bestfit", found: 2, .. }));
    let foreign = StoredFit::from_json(fit(true, "[1]").as_bytes()).expect("a fit");
    let error = Analysis::new(&crate::model(), &Settings::default()).expect("sound").project(&foreign);
    assert_eq!(error.expect_err("nothing in common").to_string(), "the model has none of the 1 parameters of the fit");
}
