//! Simplified models: their moments against closed forms, against the yields of the full model, and
//! against themselves; their tests against the full model.

use nextstat::error::SimplifyError;
use nextstat::hypothesis::HypotestRequest;
use nextstat::patchsets::{GridRequest, SignalGrid};
use nextstat::simplify::{Simplified, SimplifiedForm, SimplifyRequest};
use nextstat::{Analysis, CompiledModel, DocumentSource, Error, Face, Hint as _, LoadRequest, Settings};
use ns_core::CompileOptions;
use ns_inference::parallel::ExecutionContext;
use ns_testkit::assert_all_close;
use ns_translate::pyhf::{read_workspace, write_workspace};

fn compiled(text: &str) -> CompiledModel {
    CompiledModel::from_json(text.as_bytes(), &CompileOptions::default()).unwrap()
}

fn example(name: &str) -> CompiledModel {
    let path = DocumentSource::Path(format!("../../examples/{name}").into());
    CompiledModel::load(&LoadRequest::new(path), &CompileOptions::default()).unwrap()
}

fn request(channels: &[&str]) -> SimplifyRequest {
    let channels = channels.iter().map(|&name| name.to_owned()).collect();
    SimplifyRequest { channels, form: SimplifiedForm::ThirdMoments, compare: false }
}

fn simplified(model: &CompiledModel, settings: &Settings, channels: &[&str]) -> Simplified {
    Analysis::new(model, settings).unwrap().simplify(&request(channels)).unwrap()
}

/// Returns settings for `examples/shapes.json`, whose control region does not determine the
/// normalisation of ttbar: its fakes are free.
fn of_shapes() -> Settings {
    Settings { fixed: vec![("norm_ttbar".to_owned(), 1.1)], ..Settings::default() }
}

/// A bin with 50 + 5 x + 2 y + 5/2 x y expected events, and one with 20 + 3 y + y², where x and y
/// have normal constraint terms of unit width; and a signal.
const POLYNOMIALS: &str = r#"{"version": "1.0.0",
    "channels": [{"name": "SR", "samples": [
        {"name": "signal", "data": [5.0, 4.0],
         "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
        {"name": "background", "data": [50.0, 20.0], "modifiers": [
            {"name": "shape", "type": "morphing", "data": {"terms": [
                {"expression": "x", "data": [5.0, 0.0]}, {"expression": "y", "data": [2.0, 3.0]},
                {"expression": "x*y", "data": [2.5, 0.0]}, {"expression": "y^2", "data": [0.0, 1.0]}]}}]}]}],
    "observations": [{"name": "SR", "data": [55.0, 18.0]}],
    "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [
        {"name": "x", "inits": [0.0], "bounds": [[-9, 9]], "constraints": [{"type": "gaussian", "sigma": 1.0}], "auxdata": [0.0]},
        {"name": "y", "inits": [0.0], "bounds": [[-9, 9]], "constraints": [{"type": "gaussian", "sigma": 1.0}], "auxdata": [0.0]}]}}]}"#;

#[test]
fn moments_of_polynomials_are_those_of_normal_variables() {
    let found = simplified(&compiled(POLYNOMIALS), &Settings::default(), &["SR"]);
    let moments = &found.moments;
    assert_all_close(&moments.yields, &[50.0, 20.0], 1e-12, "yields");
    assert_all_close(&moments.linear_covariance, &[29.0, 6.0, 6.0, 9.0], 1e-12, "linear covariance");
    // E[y²] = 1; E[(xy)²] = 1; E[(y² - 1)²] = 2.
    assert_all_close(&moments.means, &[50.0, 21.0], 1e-12, "means");
    assert_all_close(&moments.covariance, &[35.25, 6.0, 6.0, 11.0], 1e-12, "covariance");
    // 6 · 5 · 2 · 5/2 E[x²y²], and 6 · 3² · 1 + 8 · 1³.
    assert_all_close(&moments.third_moments, &[150.0, 62.0], 1e-12, "third moments");
    assert_eq!(found.signal.unwrap().yields, [5.0, 4.0]);
}

/// A quadratic yield is its own expansion, so the moments of the simplified model are those that it
/// was made of.
#[test]
fn a_simplified_model_has_the_moments_that_it_was_made_of() {
    let models =
        [(example("shapes.json"), of_shapes(), "signal_region"), (compiled(POLYNOMIALS), Settings::default(), "SR")];
    for (model, settings, channel) in models {
        let first = simplified(&model, &settings, &[channel]);
        assert!(first.yields.largest_deviation < 1e-9, "{first:?}");
        let text = write_workspace(&first.workspace()).to_string();
        assert_eq!(read_workspace(text.as_bytes()).unwrap(), first.workspace());
        let again = simplified(&compiled(&text), &Settings::default(), &["*"]);
        assert_all_close(&again.moments.means, &first.moments.means, 1e-9, "means");
        assert_all_close(&again.moments.covariance, &first.moments.covariance, 1e-9, "covariance");
        assert_all_close(&again.moments.third_moments, &first.moments.third_moments, 1e-9, "third moments");
        let [own, other] = [&again, &first].map(|model| &model.signal.as_ref().unwrap().yields[..]);
        assert_all_close(own, other, 1e-12, "signal");
    }
}

/// The uncertainties of post-fit yields are computed from one gradient for each bin.
#[test]
fn the_linear_uncertainties_are_those_of_the_yields_that_the_other_channels_predict() {
    let model = example("shapes.json");
    let found = simplified(&model, &of_shapes(), &["signal_region"]);
    let mut settings = Settings { mask: vec!["signal_region".to_owned()], ..of_shapes() };
    settings.fixed.push(("mu".to_owned(), 0.0));
    let analysis = Analysis::new(&model, &settings).unwrap();
    let yields = analysis.yields().unwrap().result;
    let predicted = yields.postfit.iter().find(|channel| channel.channel == "signal_region").unwrap();
    let k = found.moments.yields.len();
    let widths: Vec<f64> = (0..k).map(|i| found.moments.linear_covariance[i * k + i].sqrt()).collect();
    let expected: Vec<f64> = predicted.total.uncertainties.iter().map(|width| width.unwrap()).collect();
    assert_all_close(&found.moments.yields, &predicted.total.yields, 1e-7, "yields");
    assert_all_close(&widths, &expected, 1e-7, "uncertainties");
}

/// With linear systematics and nothing else the simplified model is the full one.
#[test]
fn the_simplified_model_of_a_linear_one_has_its_tests() {
    let text = r#"{"version": "1.0.0", "channels": [
        {"name": "SR", "samples": [
            {"name": "signal", "data": [9.0, 6.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [50.0, 30.0], "modifiers": [
                {"name": "a", "type": "histosys", "data": {"lo_data": [45.0, 32.0], "hi_data": [55.0, 28.0]}},
                {"name": "b", "type": "histosys", "data": {"lo_data": [49.0, 27.0], "hi_data": [51.0, 33.0]}}]}]}],
        "observations": [{"name": "SR", "data": [58.0, 29.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}"#;
    let request = SimplifyRequest { compare: true, ..request(&["SR"]) };
    let found = Analysis::new(&compiled(text), &Settings::default()).unwrap().simplify(&request).unwrap();
    let comparison = found.comparison.unwrap();
    for form in [SimplifiedForm::Linear, SimplifiedForm::ThirdMoments] {
        let [observed, expected] = comparison.largest_differences(form).map(Option::unwrap);
        assert!(observed < 1e-7 && expected < 1e-7, "{form:?}: {observed} {expected}");
    }
}

#[test]
fn every_signal_of_a_patch_set_is_compared() {
    let path = |name: &str| DocumentSource::Path(format!("../../examples/{name}").into());
    let grid = SignalGrid::load(&path("background.json"), &path("signals.json")).unwrap();
    let (options, settings) = (CompileOptions::default(), of_shapes());
    let of_all = GridRequest { options: &options, settings: &settings, face: Face::Library };
    let compare = SimplifyRequest { compare: true, ..request(&["signal_region"]) };
    let found = grid.simplify(&of_all, &compare, ExecutionContext::SINGLE_THREADED).unwrap();
    let comparison = found.comparison.as_ref().unwrap();
    assert_eq!(comparison.signals.len(), grid.set().patches().len());
    assert!(comparison.converged() && comparison.is_complete());
    for (entry, tests) in grid.set().patches().iter().zip(&comparison.tests) {
        let model = grid.model(entry, &options).unwrap();
        let full = Analysis::new(&model, &settings).unwrap().hypotest(&HypotestRequest::default()).unwrap();
        assert_eq!(tests.full.cls_obs, full.result.cls_obs, "{}", entry.name);
        // The background's workspace with the signal of the model is the one that was tested.
        let alone = simplified(&model, &settings, &["signal_region"]);
        let text = write_workspace(&alone.workspace()).to_string();
        let own = Analysis::new(&compiled(&text), &Settings::default())
            .unwrap()
            .hypotest(&HypotestRequest::default())
            .unwrap();
        let difference = own.result.cls_obs.unwrap() - tests.third_moments.cls_obs.unwrap();
        assert!(difference.abs() < 1e-9, "{}: {difference}", entry.name);
    }
    assert!(found.workspace().channels[0].samples.iter().all(|sample| sample.name == "background"));
}

#[test]
fn what_cannot_be_simplified_says_why() {
    let model = example("shapes.json");
    let fails = |model: &CompiledModel, settings: &Settings, channels: &[&str]| {
        let error = Analysis::new(model, settings).unwrap().simplify(&request(channels)).unwrap_err();
        (error.message(Face::Command), error.hint(Face::Command))
    };
    let plain = Settings::default();
    assert_eq!(fails(&model, &plain, &[]).0, SimplifyError::NoChannel.to_string());
    let (message, hint) = fails(&model, &plain, &["signal_regio"]);
    assert!(message.contains("--channel") && hint.unwrap().contains("`signal_region`"), "{message}");
    assert!(fails(&model, &plain, &["signal_region[1]"]).0.contains("simplified as a whole"));
    for channels in ["*", "signal_region"] {
        let (message, hint) = fails(&model, &plain, &[channels]);
        assert!(message.contains("determines `norm_ttbar`") && hint.is_some(), "{channels}: {message}");
    }
    let polynomials = compiled(POLYNOMIALS);
    let fixed = Settings { fixed: vec![("mu".to_owned(), 1.0)], ..Settings::default() };
    assert_eq!(fails(&polynomials, &fixed, &["SR"]).0, "`mu` is fixed at 1: a background has no signal");
    let squared = compiled(&POLYNOMIALS.replace(
        r#""name": "mu", "type": "normfactor", "data": null"#,
        r#""name": "rate", "type": "formula", "data": {"expression": "mu^2"}"#,
    ));
    assert!(fails(&squared, &plain, &["SR"]).0.contains("not linear in `mu`"));
    let device = Settings { device: Some(ns_device::Backend::Emulated.into()), ..Settings::default() };
    assert!(matches!(
        Analysis::new(&polynomials, &device).unwrap().simplify(&request(&["SR"])),
        Err(Error::OnCpuOnly { .. })
    ));
}

/// Returns a patch set for a background of 10 ± 1 events whose signals have statistical
/// uncertainties of their own, which widen the common factor of the bin.
fn grid_of(names: [&str; 2]) -> SignalGrid {
    let background = r#"{"version": "1.0.0", "channels": [{"name": "SR", "samples": [
        {"name": "background", "data": [10.0], "modifiers": [{"name": "stat", "type": "staterror", "data": [1.0]}]}]}],
        "observations": [{"name": "SR", "data": [11.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}"#;
    let patch = |name: &str| {
        let error = if name == "loose" { 8.0 } else { 0.1 };
        serde_json::json!({"metadata": {"name": name, "values": [name]}, "patch": [
            {"op": "add", "path": "/channels/0/samples/1", "value": {"name": "signal", "data": [10.0], "modifiers": [
                {"name": "mu", "type": "normfactor", "data": null},
                {"name": "stat", "type": "staterror", "data": [error]}]}}]})
    };
    let digest = ns_translate::digest::digest(background.as_bytes(), ns_translate::digest::DigestAlgorithm::Sha256);
    let set = serde_json::json!({
        "metadata": {"references": {"hepdata": "ins1234567"}, "description": "signals", "labels": ["name"],
            "digests": {"sha256": digest.unwrap()}},
        "patches": names.map(patch), "version": "1.0.0"});
    let set = ns_translate::patchset::PatchSet::from_bytes(set.to_string().as_bytes()).unwrap();
    SignalGrid::new(set.into(), background.as_bytes(), Default::default()).unwrap()
}

#[test]
fn signals_do_not_change_the_background() {
    let (options, settings) = (CompileOptions::default(), Settings::default());
    let of_all = GridRequest { options: &options, settings: &settings, face: Face::Library };
    for names in [["loose", "tight"], ["tight", "loose"]] {
        let grid = grid_of(names);
        let found = grid.simplify(&of_all, &request(&["SR"]), ExecutionContext::SINGLE_THREADED).unwrap();
        assert_all_close(&found.moments.linear_covariance, &[1.0], 1e-12, "of the set");
        for entry in grid.set().patches() {
            let alone = simplified(&grid.model(entry, &options).unwrap(), &settings, &["SR"]);
            assert_all_close(&alone.moments.linear_covariance, &[1.0], 1e-12, &entry.name);
        }
    }
}

#[test]
fn what_the_expansion_does_not_show_is_warned_of_or_refused() {
    let modifier = |modifier: &str, parameters: &str| {
        format!(
            r#"{{"version": "1.0.0", "channels": [{{"name": "SR", "samples": [
            {{"name": "signal", "data": [5.0], "modifiers": [{{"name": "mu", "type": "normfactor", "data": null}}]}},
            {{"name": "background", "data": [50.0], "modifiers": [{modifier}]}}]}}],
            "observations": [{{"name": "SR", "data": [52.0]}}],
            "measurements": [{{"name": "m", "config": {{"poi": "mu", "parameters": [{parameters}]}}}}]}}"#
        )
    };
    let constrained = r#"{"name": "x", "inits": [0.0], "bounds": [[0, 9]], "constraints": [{"type": "gaussian", "sigma": 1.0}], "auxdata": [0.0]}"#;
    let root =
        compiled(&modifier(r#"{"name": "r", "type": "formula", "data": {"expression": "1 + sqrt(x)"}}"#, constrained));
    let error = Analysis::new(&root, &Settings::default()).unwrap().simplify(&request(&["SR"])).unwrap_err();
    assert!(error.to_string().contains("bin 0 of channel `SR`"), "{error}");

    let histosys = r#"{"name": "a", "type": "histosys", "data": {"lo_data": [45.0], "hi_data": [70.0]}}"#;
    let interpolation = ns_core::interpolate::Interpolation::KINKED;
    let options = CompileOptions { interpolation, ..CompileOptions::default() };
    let kinked = CompiledModel::from_json(modifier(histosys, "").as_bytes(), &options).unwrap();
    let warnings = simplified(&kinked, &Settings::default(), &["SR"]).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("kink at 0") && warning.contains("`a`")), "{warnings:?}");

    let bent = simplified(&compiled(&modifier(histosys, "")), &Settings::default(), &["SR"]);
    assert!(!bent.warnings.is_empty(), "the mean is shifted by more than the width: {:?}", bent.moments);
    let masked = Settings { mask: vec!["signal_region[1]".to_owned()], ..of_shapes() };
    let error = Analysis::new(&example("shapes.json"), &masked).unwrap().simplify(&request(&["signal_region"]));
    assert!(error.unwrap_err().to_string().contains("are masked"));
    let none = CompileOptions { poi: ns_core::compile::PoiChoice::None, ..CompileOptions::default() };
    let background = CompiledModel::from_json(modifier(histosys, "").as_bytes(), &none).unwrap();
    let compare = SimplifyRequest { compare: true, ..request(&["SR"]) };
    let error = Analysis::new(&background, &Settings::default()).unwrap().simplify(&compare).unwrap_err();
    assert!(error.to_string().contains("no signal"), "{error}");
}

#[test]
fn a_channel_that_does_not_vary_makes_a_workspace_that_can_be_read() {
    let text = r#"{"version": "1.0.0", "channels": [{"name": "SR", "samples": [
        {"name": "signal", "data": [5.0], "modifiers": [{"name": "simplified_0", "type": "normfactor", "data": null}]},
        {"name": "background", "data": [50.0], "modifiers": []}]}],
        "observations": [{"name": "SR", "data": [52.0]}],
        "measurements": [{"name": "m", "config": {"poi": "simplified_0", "parameters": []}}]}"#;
    let bounds = vec![("simplified_0".to_owned(), [0.0, f64::INFINITY])];
    let settings = Settings { bounds, ..Settings::default() };
    let made = simplified(&compiled(text), &settings, &["SR"]).workspace();
    compiled(&write_workspace(&made).to_string());
}
