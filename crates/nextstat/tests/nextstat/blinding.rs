//! Hidden data: what a result shows does not depend on them.

use nextstat::blinding::{BlindingThreshold, SignalMeasure};
use nextstat::settings::{AsimovPoint, Settings};
use nextstat::{Analysis, Blinding, CompiledModel, DataSource, Face, Hint};
use ns_core::Data;
use serde_json::{Value, json};

fn blind(bins: &[&str]) -> Settings {
    let bins = bins.iter().map(|name| (*name).to_owned()).collect();
    Settings { blind: Blinding { bins, ..Blinding::default() }, ..Settings::default() }
}

fn above(value: f64, measure: SignalMeasure) -> Settings {
    let above = Some(BlindingThreshold { value, measure });
    Settings { blind: Blinding { above, ..Blinding::default() }, ..Settings::default() }
}

fn analysis(model: &CompiledModel, settings: &Settings) -> Analysis {
    Analysis::new(model, settings).expect("sound settings")
}

/// The documents of yields and of a report, without the digests that name what was fitted.
fn documents(analysis: &Analysis) -> [Value; 2] {
    let yields = analysis.yields().expect("yields").result_document();
    [yields, analysis.report().expect("a report").result_document()]
}

/// The example with other data in its signal region.
fn with_data(model: &CompiledModel, counts: [f64; 4]) -> DataSource {
    let Data { mut main, aux } = model.model().observed.clone();
    main[3..].copy_from_slice(&counts);
    DataSource::Given(Data { main, aux })
}

#[test]
fn no_number_depends_on_hidden_data() {
    let model = crate::example("shapes");
    for bins in ["signal_region", "signal_region[2:]", "*[1]"] {
        let blind = blind(&[bins]);
        let fitted = |counts| {
            let source = with_data(&model, counts);
            let hidden = analysis(&model, &Settings { data: source, ..blind.clone() });
            (documents(&hidden), hidden.provenance(), hidden.conditions())
        };
        let hidden = analysis(&model, &blind).hidden_bins().expect("hidden bins")[3..].to_vec();
        // Every hidden bin has another count; the bins that are shown have the same.
        let counts = |other: f64| [76.0, 55.0, 36.0, 15.0].map(|n| n * other);
        let mixed = |other: f64| {
            let (old, new) = (counts(1.0), counts(other));
            [0, 1, 2, 3].map(|b| if hidden[b] { new[b] } else { old[b] })
        };
        let here = fitted(mixed(1.0));
        for other in [0.0, 0.5, 3.0, 1000.0] {
            assert!(here == fitted(mixed(other)), "{bins}: {other}");
        }
    }
}

#[test]
fn documents_have_null_where_data_are_hidden() {
    let model = crate::example("shapes");
    let settings = blind(&["signal_region[2:]"]);
    let analysis = analysis(&model, &settings);
    let [yields, report] = documents(&analysis);
    for channels in [&yields["channels"], &report["yields"]["channels"]] {
        assert_eq!(channels[1]["data"], json!([76.0, 55.0, null, null]));
        assert!(channels[1]["postfit"]["total"]["yields"][3].is_number(), "predictions stay");
    }
    let settings = &json!(analysis.provenance())["settings"];
    assert_eq!(settings["blinded"], json!({"signal_region": [2, 3]}));
    assert_eq!(settings["masked"], settings["blinded"]);
    assert_eq!(analysis.conditions(), ["data: observed", "blinded: signal_region (bins 2, 3)"]);
    assert!(!analysis.fits_hidden());
}

#[test]
fn a_blinded_fit_is_a_masked_one() {
    let model = crate::example("shapes");
    let masked = Settings { mask: vec!["signal_region".to_owned()], ..Settings::default() };
    let masked = analysis(&model, &masked).yields().expect("yields").result;
    let blinded = analysis(&model, &blind(&["signal_region"])).yields().expect("yields").result;
    assert_eq!(masked.fit.result, blinded.fit.result);
    assert_eq!(masked.postfit, blinded.postfit);
}

#[test]
fn a_fit_of_hidden_data_hides_its_likelihood_and_warns() {
    let model = crate::example("shapes");
    let mut settings = blind(&["signal_region"]);
    settings.blind.is_fitted = true;
    let hidden = analysis(&model, &settings);
    assert!(hidden.fits_hidden());
    let [_, report] = documents(&hidden);
    let plain = documents(&analysis(&model, &Settings::default()));
    assert_eq!(report["fit"]["bestfit"], plain[1]["fit"]["bestfit"]);
    assert_eq!(report["yields"]["channels"][1]["data"], json!([null, null, null, null]));
    assert_eq!((&report["goodness_of_fit"], &report["fit"]["nll"]), (&Value::Null, &Value::Null));
    assert_eq!(report["fit"]["twice_nll"], Value::Null);
    let warnings = report["fit"]["warnings"].to_string();
    assert!(warnings.contains("the fit uses data that are hidden"), "{warnings}");
    assert_eq!(hidden.conditions()[1], "blinded, but fitted: signal_region");
    // Expected data are no secret.
    settings.data = DataSource::Asimov(AsimovPoint::default());
    assert!(!analysis(&model, &settings).fits_hidden());
}

#[test]
fn thresholds_hide_the_bins_with_signal() {
    use SignalMeasure::{OverBackground, OverRootBackground, OverRootTotal, OverTotal};
    let model = crate::example("shapes");
    // The templates of the workspace: signal, and the sum of ttbar, wjets and fakes.
    let (signal, background) = ([1.2, 3.5, 6.0, 4.1], [72.0, 48.0, 25.8, 10.1]);
    for measure in [OverBackground, OverTotal, OverRootBackground, OverRootTotal] {
        let value = |b: usize| -> f64 {
            let (s, b): (f64, f64) = (signal[b], background[b]);
            match measure {
                OverBackground => s / b,
                OverTotal => s / (s + b),
                OverRootBackground => s / b.sqrt(),
                OverRootTotal => s / (s + b).sqrt(),
            }
        };
        for cut in 0..4 {
            let threshold = value(cut) * (1.0 - 1e-12);
            let wanted: Vec<bool> = (0..7).map(|b| b >= 3 && value(b - 3) >= threshold).collect();
            assert!(wanted.iter().any(|hidden| *hidden));
            let found = Analysis::new(&model, &above(threshold, measure)).expect("sound settings");
            assert_eq!(found.hidden_bins(), Some(&wanted[..]), "{measure} ≥ {threshold}");
        }
    }
}

#[test]
fn a_fit_of_hidden_data_that_fails_does_not_name_them() {
    let text = serde_json::json!({
        "version": "1.0.0",
        "channels": [
            {"name": "CR", "samples": [{"name": "b", "data": [50.0], "modifiers": []}]},
            {"name": "SR", "samples": [{"name": "s", "data": [0.0], "modifiers": [
                {"name": "mu", "type": "normfactor", "data": null}
            ]}]}
        ],
        "observations": [{"name": "CR", "data": [48.0]}, {"name": "SR", "data": [7919.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
    });
    let model = CompiledModel::from_json(text.to_string().as_bytes(), &Default::default()).expect("a workspace");
    let mut settings = blind(&["SR"]);
    settings.blind.is_fitted = true;
    let plain = documents(&analysis(&model, &Settings::default())).map(|document| document.to_string());
    assert!(plain[1].contains("7919 "), "the warning of a fit that shows its data has them: {}", plain[1]);
    for document in documents(&analysis(&model, &settings)) {
        assert!(!document.to_string().contains("7919"), "{document}");
    }
}

#[test]
fn a_threshold_that_no_bin_reaches_is_said() {
    let analysis = analysis(&crate::example("shapes"), &above(10.0, SignalMeasure::OverBackground));
    assert_eq!(analysis.conditions(), ["data: observed", "blinded: no bin"]);
}

#[test]
fn thresholds_do_not_look_at_the_data() {
    let model = crate::example("shapes");
    let hidden = |data: DataSource| {
        let settings = Settings { data, ..above(0.1, SignalMeasure::OverBackground) };
        analysis(&model, &settings).hidden_bins().expect("hidden bins").to_vec()
    };
    assert_eq!(hidden(DataSource::Observed), hidden(with_data(&model, [0.0, 1000.0, 3.0, 1.0])));
}

#[test]
fn impossible_blindings_are_errors_with_hints() {
    let model = crate::example("shapes");
    let refused = |settings: Settings| {
        let error = Analysis::new(&model, &settings).expect_err("impossible");
        (error.message(Face::Command), error.hint(Face::Command).unwrap_or_default())
    };
    let (message, hint) = refused(blind(&["signal_regio"]));
    assert_eq!(message, "`--blind` names the channel `signal_regio`, which the model does not have");
    assert_eq!(hint, "did you mean `signal_region`?");
    let (message, hint) = refused(blind(&["*"]));
    assert_eq!(message, "`--blind` or `--blind-above` leaves no bin to fit");
    assert_eq!(hint, "`--asimov --fit-blinded` fits expected data instead of those that are hidden");
    let (message, _) = refused(above(-0.1, SignalMeasure::default()));
    assert_eq!(message, "`--blind-above` must be a number from 0 on, got -0.1");
}
