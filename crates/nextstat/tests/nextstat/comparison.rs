//! Stored fits instead of new ones: tests of their predictions, their reports, rankings at them.

use crate::masks::{SHAPE, compiled, masked};
use nextstat::fit::Matrices;
use nextstat::ranking::{RankingGroup, RankingGroups, RankingRequest};
use nextstat::settings::Settings;
use nextstat::stored::StoredFit;
use nextstat::{Analysis, Blinding, CompiledModel, DataSource, Face, FitRequest, Hint, NoMonitor, YieldPropagation};
use ns_inference::Uncertainties;
use ns_inference::ranking::{Ranking, RankingMethods};
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource};
use ns_testkit::random::workspace;
use serde_json::{Value, json};
use std::sync::Arc;

const COVARIANCE: RankingMethods = RankingMethods { classic: false, global: false, covariance: true };

fn analysis(model: &CompiledModel, settings: &Settings) -> Analysis {
    Analysis::new(model, settings).expect("sound settings")
}

/// The fit of `settings` as the command writes it, and as it is read again.
fn stored(model: &CompiledModel, settings: &Settings) -> StoredFit {
    let matrices = Matrices { covariance: true, correlation: true };
    let request = FitRequest { uncertainties: Uncertainties::Covariance, matrices, ..FitRequest::default() };
    let fit = analysis(model, settings).fit(&request).expect("a fit");
    StoredFit::from_json(fit.document().to_string().as_bytes()).expect("a stored fit")
}

/// What cabinetry and pyhf predict: see `testdata/cabinetry/regions.py`.
fn reference() -> (Value, CompiledModel) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cabinetry/regions.json");
    let found: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    let text = found["workspace"].to_string();
    let model = CompiledModel::from_json(text.as_bytes(), &Default::default()).expect("a sound workspace");
    (found, model)
}

/// A fit of the control region of the reference alone.
fn control_fit(model: &CompiledModel) -> StoredFit {
    stored(model, &Settings { fit_channels: vec!["CR".to_owned()], ..Settings::default() })
}

fn is_near(found: f64, wanted: &Value, tolerance: f64) -> bool {
    (found / wanted.as_f64().expect("a number") - 1.0).abs() < tolerance
}

#[test]
fn predictions_and_chi_squared_are_those_of_cabinetry_and_pyhf() {
    let (wanted, model) = reference();
    let fit = control_fit(&model);
    let projected = analysis(&model, &Settings::default()).project(&fit).expect("yields").result;
    for channel in &projected.postfit {
        let wanted = &wanted["regions"][&channel.channel];
        for (b, (found, width)) in channel.total.yields.iter().zip(&channel.total.uncertainties).enumerate() {
            assert!(is_near(*found, &wanted["yields"][b], 1e-9), "{}[{b}]: {found}", channel.channel);
            let width = width.expect("an uncertainty");
            // cabinetry varies parameters by 1e-5 of their uncertainties.
            assert!(is_near(width, &wanted["uncertainties"][b], 1e-5), "{}[{b}]: ± {width}", channel.channel);
        }
        let sum = channel.total.sum_uncertainty.expect("an uncertainty");
        assert!(is_near(sum, &wanted["sum_uncertainty"], 1e-5), "{}: ± {sum}", channel.channel);
    }
    let test = analysis(&model, &masked(&["CR"])).compare(&fit).expect("a comparison").result.test;
    assert_eq!(test.n_dof, 5);
    // The derivatives of the reference are finite differences of fourth order.
    assert!(is_near(test.statistic.expect("χ²"), &wanted["chi_squared_of_both"], 1e-6), "{test:?}");
    for channel in &test.channels {
        let wanted = &wanted["regions"][&channel.channel]["chi_squared"];
        assert!(is_near(channel.statistic.expect("χ²"), wanted, 1e-6), "{channel:?} and {wanted}");
    }
}

#[test]
fn half_differences_are_the_definition_of_cabinetry() {
    let (found, _) = reference();
    let found = &found["same_sign"];
    let text = found["workspace"].to_string();
    let model = CompiledModel::from_json(text.as_bytes(), &Default::default()).expect("a sound workspace");
    let stored = StoredFit::from_json(found["fit"].to_string().as_bytes()).expect("the fit that cabinetry was given");
    let largest = |propagation| {
        let settings = Settings { propagation, ..Settings::default() };
        let projected = analysis(&model, &settings).project(&stored).expect("yields").result;
        let differences = projected.postfit.iter().flat_map(|channel| {
            let wanted = &found["regions"][&channel.channel];
            let number = |value: &Value| value.as_f64().expect("a number");
            let sum = channel.total.sum_uncertainty.expect("an uncertainty") / number(&wanted["sum_uncertainty"]);
            let bins = channel.total.uncertainties.iter().enumerate();
            let bins = bins.map(|(b, width)| width.expect("an uncertainty") / number(&wanted["uncertainties"][b]));
            bins.chain([sum]).map(|ratio| (ratio - 1.0).abs()).collect::<Vec<_>>()
        });
        differences.fold(0.0, f64::max)
    };
    assert!(largest(YieldPropagation::HalfDifference) < 1e-8);
    // The systematics are not linear, so the definitions differ.
    assert!(largest(YieldPropagation::Derivative) > 5e-3);
}

#[test]
fn everything_may_be_hidden_where_nothing_is_fitted() {
    let (_, model) = reference();
    let fit = control_fit(&model);
    let shown = analysis(&model, &Settings::default()).project(&fit).expect("yields").document();
    let all = Blinding { bins: vec!["*".to_owned()], may_hide_all: true, ..Blinding::default() };
    let blinded = analysis(&model, &Settings { blind: all.clone(), ..Settings::default() });
    let hidden = blinded.project(&fit).expect("yields").document();
    for (shown, hidden) in
        shown["channels"].as_array().into_iter().flatten().zip(hidden["channels"].as_array().into_iter().flatten())
    {
        assert_eq!(shown["postfit"], hidden["postfit"]);
        assert!(hidden["data"].as_array().expect("bins").iter().all(Value::is_null), "{hidden}");
    }
    // No number of the data is at hand.
    assert!(blinded.data().main.iter().all(|count| count.is_nan()));
    let refused = Settings { blind: Blinding { may_hide_all: false, ..all }, ..Settings::default() };
    let message = Analysis::new(&model, &refused).expect_err("no bin to fit").to_string();
    assert_eq!(message, "`blind` or `blind_above` leaves no bin to fit");
}

#[test]
fn the_chi_squared_of_one_bin_is_its_residual_over_both_variances() {
    let (_, model) = reference();
    let fit = control_fit(&model);
    let test = analysis(&model, &masked(&["CR", "SR", "VR[1:]"])).compare(&fit).expect("a comparison").result.test;
    let yields = analysis(&model, &Settings::default()).project(&fit).expect("yields").result.postfit;
    let total = &yields.iter().find(|channel| channel.channel == "VR").expect("the region").total;
    let (lambda, sigma) = (total.yields[0], total.uncertainties[0].expect("an uncertainty"));
    let wanted = (118.0 - lambda).powi(2) / (lambda + sigma * sigma);
    assert!((test.statistic.expect("χ²") / wanted - 1.0).abs() < 1e-9, "{test:?}: {wanted}");
    let p_value = ns_inference::chi_squared::upper_tail(wanted, 1.0);
    assert!((test.p_value.expect("a p-value") / p_value - 1.0).abs() < 1e-9);
}

#[test]
fn p_values_of_toys_are_uniform() {
    let (_, model) = reference();
    let truth = model.model().parameters.init.clone();
    let source = ToySource { seed: 5, ensemble: Ensemble::Goodness, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(model.model(), &model.model().observed, &truth, source).expect("a sampler");
    const N_TOYS: u64 = 400;
    let p_value = |k: u64| {
        let mut data = model.model().observed.clone();
        sampler.throw(k, &mut data);
        let control = Settings {
            data: DataSource::Given(data.clone()),
            fit_channels: vec!["CR".to_owned()],
            ..Settings::default()
        };
        let fit = stored(&model, &control);
        let validation = Settings { data: DataSource::Given(data), ..masked(&["CR", "SR"]) };
        analysis(&model, &validation).compare(&fit).expect("a comparison").result.test.p_value.expect("a p-value")
    };
    let p_values: Vec<f64> = (0..N_TOYS).map(p_value).collect();
    for level in [0.1, 0.3, 0.5, 0.7, 0.9] {
        let below = p_values.iter().filter(|p| **p < level).count() as f64 / N_TOYS as f64;
        let error = (level * (1.0 - level) / N_TOYS as f64).sqrt();
        assert!((below - level).abs() < 4.0 * error, "{below} below {level}");
    }
}

#[test]
fn channels_that_the_fit_used_are_named() {
    let (_, model) = reference();
    let fit = control_fit(&model);
    let said = |mask: &[&str]| analysis(&model, &masked(mask)).compare(&fit).expect("a comparison").result.warnings;
    let used = "the stored fit used the data of `CR`, so χ² is too small there: mask them";
    assert!(said(&[]).iter().any(|warning| warning == used), "{:?}", said(&[]));
    assert!(!said(&["CR"]).iter().any(|warning| warning.starts_with("the stored fit used")), "{:?}", said(&["CR"]));
}

#[test]
fn a_report_of_a_stored_fit_has_its_numbers_and_the_test_of_its_prediction() {
    let (_, model) = reference();
    let fit = control_fit(&model);
    let report = analysis(&model, &masked(&["CR"])).report_from(&fit).expect("a report");
    let document = report.result_document();
    let compared = analysis(&model, &masked(&["CR"])).compare(&fit).expect("a comparison").result_document();
    assert_eq!(document["goodness_of_fit"]["statistic"], compared["statistic"]);
    let names = model.model().parameters.names.iter();
    for (k, name) in names.enumerate() {
        assert_eq!(document["fit"]["bestfit"][k], json!(fit.value(name)), "{name}");
    }
    assert_eq!(
        document["pulls"][0]["bestfit"],
        document["fit"]["bestfit"][document["pulls"][0]["index"].as_u64().unwrap_or(99) as usize]
    );
    assert_eq!((&document["unmatched"], &document["unused"]), (&json!([]), &json!([])));
    assert_eq!(document["fit"]["correlation"].as_array().map(Vec::len), Some(model.model().n_params()));
    assert_eq!(json!(report.provenance())["stored_fit"]["sha256"], json!(fit.sha256()));
}

#[test]
fn hidden_data_are_not_compared_with_a_stored_fit() {
    let (_, model) = reference();
    let fit = control_fit(&model);
    let blind = |bins: &[&str]| {
        let bins = bins.iter().map(|name| (*name).to_owned()).collect();
        Settings { blind: Blinding { bins, ..Blinding::default() }, ..masked(&["CR"]) }
    };
    let report = |settings| analysis(&model, &settings).report_from(&fit).expect("a report").result_document();
    let with_data = |counts: [f64; 2]| {
        let mut data = model.model().observed.clone();
        // SR is in front of VR.
        let bins = model.model().channel_bins(1);
        data.main[bins].copy_from_slice(&counts);
        Settings { data: DataSource::Given(data), ..blind(&["SR"]) }
    };
    assert_eq!(model.model().channels[1], "SR");
    assert_eq!(report(with_data([47.0, 21.0])), report(with_data([0.0, 500.0])));
    assert_eq!(report(blind(&["SR"]))["goodness_of_fit"]["n_dof"], json!(3));
    // A fit that used them is said to have.
    let whole = stored(&model, &Settings::default());
    let said = analysis(&model, &blind(&["SR"])).report_from(&whole).expect("a report").result.comparison;
    let said = said.expect("a comparison").warnings;
    assert!(said.iter().any(|warning| warning.contains("used data that are hidden")), "{said:?}");
}

fn ranked(model: &CompiledModel, fit: Option<StoredFit>, methods: RankingMethods) -> Ranking {
    let group = |name: &str, patterns: &[&str]| RankingGroup::Matching {
        name: name.to_owned(),
        patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
    };
    let groups = RankingGroups::These(vec![group("all", &["*"]), group("jes", &["jes*", "xs*"])]);
    let request = RankingRequest { methods, groups, fit: fit.map(Arc::new), ..RankingRequest::default() };
    analysis(model, &Settings::default()).ranking(&request, &NoMonitor).expect("a ranking").result
}

/// Asserts that two numbers differ by less than `tolerance`, relative to the larger.
fn assert_near(here: Option<f64>, there: Option<f64>, scale: f64, what: &str) {
    match (here, there) {
        (Some(here), Some(there)) => assert!((here - there).abs() < 1e-6 * scale, "{what}: {here} and {there}"),
        (here, there) => assert_eq!(here, there, "{what}"),
    }
}

#[test]
fn a_ranking_at_a_stored_minimum_is_that_of_a_new_fit() {
    let (_, model) = reference();
    let fit = stored(&model, &Settings::default());
    let (plain, at) = (ranked(&model, None, RankingMethods::ALL), ranked(&model, Some(fit), RankingMethods::ALL));
    assert!(plain.converged && at.converged);
    let sigma = plain.poi.uncertainty.expect("an uncertainty");
    for (here, there) in plain.entries.iter().zip(&at.entries) {
        assert_eq!(here.parameter, there.parameter);
        let impact = |entry: &ns_inference::ranking::RankingEntry| entry.postfit.as_ref().and_then(|i| i.up.impact);
        assert_near(impact(here), impact(there), sigma, &here.parameter);
    }
}

#[test]
fn a_ranking_by_a_stored_covariance_is_that_of_its_fit() {
    let (_, model) = reference();
    let fit = stored(&model, &Settings::default());
    let (plain, by) = (ranked(&model, None, COVARIANCE), ranked(&model, Some(fit), COVARIANCE));
    let sigma = plain.poi.uncertainty.expect("an uncertainty");
    assert_near(plain.poi.uncertainty, by.poi.uncertainty, sigma, "the uncertainty");
    assert_eq!(plain.entries.len(), by.entries.len());
    for here in &plain.entries {
        let there = by.entries.iter().find(|entry| entry.parameter == here.parameter).expect("the parameter");
        assert_near(here.covariance_postfit, there.covariance_postfit, sigma, &here.parameter);
        assert_near(here.covariance_prefit, there.covariance_prefit, sigma, &here.parameter);
        assert_near(here.pull, there.pull, 1.0, &here.parameter);
    }
    // The uncertainty with a group fixed is that of a smaller Hessian, or a part of its inverse.
    for (here, there) in plain.groups.iter().zip(&by.groups) {
        assert_eq!(here.members, there.members);
        assert_near(here.frozen, there.frozen, sigma, &here.group);
    }
    assert_near(plain.breakdown.frozen_statistical, by.breakdown.frozen_statistical, sigma, "statistical");
}

#[test]
fn a_fit_of_other_data_has_no_refits() {
    let (_, model) = reference();
    let refused = |fit: StoredFit| {
        let request = RankingRequest { fit: Some(Arc::new(fit)), ..RankingRequest::default() };
        let error = analysis(&model, &Settings::default()).ranking(&request, &NoMonitor).expect_err("another minimum");
        (error.message(Face::Command), error.hint(Face::Command).unwrap_or_default())
    };
    let (message, hint) = refused(control_fit(&model));
    assert!(
        message.starts_with("the stored fit is not the minimum of this likelihood, to which refits refer: "),
        "{message}"
    );
    assert_eq!(hint, "`--method covariance` ranks by the covariance of the stored fit, without refits");
    let other = compiled(&workspace(0, SHAPE));
    let (message, _) = refused(stored(&other, &Settings::default()));
    assert!(message.contains("it does not have the parameter"), "{message}");
}

#[test]
fn conditions_that_a_stored_fit_was_not_made_with_are_refused() {
    let model = crate::example("shapes");
    let fixed = Settings { fixed: vec![("jet_energy_scale".to_owned(), 0.5)], ..Settings::default() };
    let narrow = Settings { bounds: vec![("mu".to_owned(), [0.0, 1.0])], ..Settings::default() };
    let free = stored(&model, &Settings::default());
    let ask = |fit: &StoredFit, settings: &Settings, methods: RankingMethods| {
        let request = RankingRequest { fit: Some(Arc::new(fit.clone())), methods, ..RankingRequest::default() };
        analysis(&model, settings).ranking(&request, &NoMonitor).map(|_| ()).map_err(|e| e.message(Face::Command))
    };
    for methods in [COVARIANCE, RankingMethods::ALL] {
        let message = ask(&free, &fixed, methods).expect_err("another condition");
        assert_eq!(message, "the stored fit was not made with the `--fix` of `jet_energy_scale`");
        let message = ask(&free, &narrow, methods).expect_err("another range");
        assert_eq!(message, "the stored fit was not made with the `--bounds` of `mu`");
        ask(&stored(&model, &fixed), &fixed, methods).expect("the condition of the stored fit");
    }
    for settings in [&fixed, &narrow] {
        assert!(
            analysis(&model, settings).project(&free).is_err() && analysis(&model, settings).compare(&free).is_err()
        );
    }
}

#[test]
fn an_impossible_bin_has_no_chi_squared_and_is_named() {
    let channel = |name: &str, yields: f64| {
        json!({"name": name, "samples": [{"name": "s", "data": [10.0, yields], "modifiers": [
            {"name": "mu", "type": "normfactor", "data": null}]}]})
    };
    let workspace = json!({"version": "1.0.0", "channels": [channel("A", 5.0), channel("B", 0.0)],
        "observations": [{"name": "A", "data": [9.0, 6.0]}, {"name": "B", "data": [11.0, 3.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]});
    let model = CompiledModel::from_json(workspace.to_string().as_bytes(), &Default::default()).expect("sound");
    let fit = stored(&model, &Settings { fit_channels: vec!["A".to_owned()], ..Settings::default() });
    let document = analysis(&model, &Settings::default()).compare(&fit).expect("a comparison").document();
    assert_eq!((&document["statistic"], &document["p_value"]), (&Value::Null, &Value::Null));
    assert!(document["channels"][0]["statistic"].is_number() && document["channels"][1]["statistic"].is_null());
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("no events are possible where 3 were observed"), "{warnings}");
}

#[test]
fn asimov_data_of_another_luminosity_have_other_uncertainties() {
    // The same minimum, other counts: the covariance tells.
    let (found, model) = reference();
    let mut text = found["workspace"].clone();
    let channels = text["channels"].as_array_mut().expect("channels");
    for channel in channels {
        for sample in channel["samples"].as_array_mut().expect("samples") {
            let scaled = |value: &mut Value| *value = json!(4.0 * value.as_f64().expect("a number"));
            sample["data"].as_array_mut().expect("yields").iter_mut().for_each(scaled);
            for modifier in sample["modifiers"].as_array_mut().expect("modifiers") {
                match modifier["type"].as_str() {
                    Some("histosys") => ["hi_data", "lo_data"].iter().for_each(|key| {
                        modifier["data"][key].as_array_mut().expect("a template").iter_mut().for_each(scaled);
                    }),
                    Some("staterror") => modifier["data"].as_array_mut().expect("errors").iter_mut().for_each(scaled),
                    _ => {}
                }
            }
        }
    }
    let larger = CompiledModel::from_json(text.to_string().as_bytes(), &Default::default()).expect("a workspace");
    let asimov = Settings { data: DataSource::Asimov(Default::default()), ..Settings::default() };
    let request = RankingRequest { fit: Some(Arc::new(stored(&larger, &asimov))), ..RankingRequest::default() };
    let error = analysis(&model, &asimov).ranking(&request, &NoMonitor).expect_err("another covariance");
    assert!(error.to_string().contains("the uncertainty of `"), "{error}");
}

#[test]
fn parameters_that_the_fit_left_alone_are_named() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shapes.json");
    let model =
        CompiledModel::from_json(&std::fs::read(path).expect("an example"), &Default::default()).expect("sound");
    let control = Settings { mask: vec!["signal_region".to_owned()], ..Settings::default() };
    let said = |fit: &StoredFit| analysis(&model, &Settings::default()).project(fit).expect("yields").result.warnings;
    let left = said(&stored(&model, &control));
    let known = "the stored fit kept the starting values of `mu`: only bins that it masked depend on them";
    assert!(left.iter().any(|warning| warning == known), "{left:?}");
    let fixed = Settings { fixed: vec![("mu".to_owned(), 0.0)], ..control };
    let fit = analysis(&model, &fixed).fit(&FitRequest::default()).expect("a fit");
    assert!(!fit.warnings().iter().any(|warning| warning.contains("`mu`")), "{:?}", fit.warnings());
    assert!(
        !said(&stored(&model, &fixed)).iter().any(|warning| warning.contains("`mu`")),
        "{:?}",
        said(&stored(&model, &fixed))
    );
}
