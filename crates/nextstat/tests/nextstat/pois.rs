//! Several parameters of interest, and limits as a function of another parameter.

use nextstat::error::Face;
use nextstat::hypothesis::{HypotestRequest, LimitRequest, SignificanceRequest};
use nextstat::limit_scan::{LimitScan, LimitScanRequest};
use nextstat::ranking::{RankingGroups, RankingRequest};
use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{
    Analysis, Answer, CompileOptions, CompiledModel, DataSource, Document, Error, Hint, NoMonitor, PoiChoice, Settings,
};
use serde_json::{Value, json};
use std::num::NonZeroUsize;

const THREADS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// A channel with signals, each a name with yields and the parameter that scales it, and a
/// background with an uncertainty `xs`.
fn channel(name: &str, signals: &[(&str, [f64; 2])], background: [f64; 2], xs: &str) -> Value {
    let signal = |(poi, yields): &(&str, [f64; 2])| {
        json!({"name": format!("signal_{poi}"), "data": yields,
               "modifiers": [{"name": poi, "type": "normfactor", "data": null}]})
    };
    let mut samples: Vec<Value> = signals.iter().map(signal).collect();
    samples.push(json!({"name": "background", "data": background, "modifiers": [
        {"name": xs, "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]}));
    json!({"name": name, "samples": samples})
}

fn workspace(channels: &[(Value, [f64; 2])], poi: &str) -> Value {
    let observations: Vec<Value> =
        channels.iter().map(|(channel, data)| json!({"name": channel["name"], "data": data})).collect();
    let channels: Vec<&Value> = channels.iter().map(|(channel, _)| channel).collect();
    json!({"version": "1.0.0", "channels": channels, "observations": observations,
           "measurements": [{"name": "m", "config": {"poi": poi, "parameters": []}}]})
}

/// Two signals, the second in both channels, and a common uncertainty.
fn correlated() -> Value {
    let first = channel("A", &[("a", [10.0, 4.0]), ("b", [2.0, 6.0])], [50.0, 40.0], "xs");
    let second = channel("B", &[("b", [3.0, 12.0])], [30.0, 45.0], "xs");
    workspace(&[(first, [57.0, 46.0]), (second, [34.0, 51.0])], "a")
}

fn compiled(workspace: &Value, pois: &[&str]) -> CompiledModel {
    let poi = PoiChoice::Named(pois.iter().map(|&name| name.to_owned()).collect());
    let options = CompileOptions { poi, ..CompileOptions::default() };
    CompiledModel::from_json(workspace.to_string().as_bytes(), &options).expect("a sound workspace")
}

fn analysis(pois: &[&str], settings: &Settings) -> Analysis {
    Analysis::new(&compiled(&correlated(), pois), settings).expect("sound settings")
}

/// Asserts that the documents of `question` for both parameters of interest are, to the last bit,
/// those of models with one of them.
fn assert_each_alone<T: Document + Send>(
    settings: &Settings,
    question: impl Fn(&Analysis) -> Result<Answer<T>, Error> + Sync,
) {
    let both = analysis(&["a", "b"], settings).every_poi(THREADS, &question).expect("answers").document();
    assert_eq!(both["provenance"]["pois"], json!(["a", "b"]));
    assert_eq!((&both["converged"], &both["measurement"]), (&json!(true), &json!("m")));
    for (k, name) in ["a", "b"].into_iter().enumerate() {
        let alone = question(&analysis(&[name], settings)).expect("an answer");
        assert_eq!(both["results"][k], alone.result_document(), "{name}");
        let named = analysis(&["a", "b"], settings).with_poi(name).expect("a parameter");
        assert_eq!(question(&named).expect("an answer").document(), alone.document(), "{name}");
        let one = analysis(&[name], settings).every_poi(THREADS, &question).expect("answers");
        assert_eq!(one.document(), alone.document(), "{name}");
    }
}

#[test]
fn every_answer_is_that_of_a_model_with_one_parameter_of_interest() {
    let masked = Settings { mask: vec!["A[0]".to_owned()], ..Settings::default() };
    for settings in [Settings::default(), masked] {
        assert_each_alone(&settings, |analysis| analysis.limit(&LimitRequest::default()));
        assert_each_alone(&settings, |analysis| analysis.significance(&SignificanceRequest::default()));
        assert_each_alone(&settings, |analysis| {
            analysis.hypotest(&HypotestRequest { mu: Some(1.5), ..Default::default() })
        });
        assert_each_alone(&settings, |analysis| analysis.ranking(&RankingRequest::default(), &NoMonitor));
    }
}

#[test]
fn limits_are_those_of_pyhf() {
    // pyhf 0.7.6, `toms748_scan` of the model with `poi_name` a or b, SciPy's SLSQP with a
    // tolerance of 1e-12, whose minima are good to about eight digits: 2026-11-24.
    let expected = [
        [2.071486292624898, 1.6473570626332732, 3.1997153810191192],
        [1.7582990112374812, 1.3318022895721355, 2.566372156491404],
    ];
    let limits = analysis(&["a", "b"], &Settings::default())
        .every_poi(THREADS, |analysis| analysis.limit(&LimitRequest::default()))
        .expect("limits");
    for (answer, expected) in limits.result.answers.iter().zip(expected) {
        let limit = &answer.result;
        let found = [limit.observed, limit.expected[2], limit.expected[4]].map(|limit| limit.expect("a limit"));
        ns_testkit::assert_all_close(&found, &expected, 1e-7, &limit.poi.name);
    }
    // Likewise, with `init_pars` and `fixed_params` for b.
    let at = [
        [2.0270733714278473, 1.6464560865715914, 3.2028635134677437],
        [2.038195602878069, 1.6123407821128413, 3.1315419925809507],
        [1.752167451792105, 1.5888083128343653, 3.0976868695729114],
    ];
    let scan = scanned(&["a"], &Settings::default(), &[0.0, 2.5, 5.0]).expect("limits");
    for (limit, expected) in scan.limits.iter().flatten().zip(at) {
        let found = [limit.observed, limit.expected[2], limit.expected[4]].map(|limit| limit.expect("a limit"));
        ns_testkit::assert_all_close(&found, &expected, 1e-7, "b fixed");
    }
}

#[test]
fn limits_of_signals_in_different_channels_are_those_of_either_channel() {
    let channels = [
        (channel("A", &[("a", [10.0, 4.0])], [50.0, 40.0], "xs_a"), [57.0, 46.0]),
        (channel("B", &[("b", [3.0, 12.0])], [30.0, 45.0], "xs_b"), [34.0, 51.0]),
    ];
    let limit = |analysis: &Analysis| analysis.limit(&LimitRequest::default());
    let both = Analysis::new(&compiled(&workspace(&channels, "a"), &["a", "b"]), &Settings::default()).expect("sound");
    let together = both.every_poi(THREADS, limit).expect("limits").result.answers;
    for (k, name) in ["a", "b"].into_iter().enumerate() {
        let apart = compiled(&workspace(&channels[k..=k], name), &[name]);
        let apart = limit(&Analysis::new(&apart, &Settings::default()).expect("sound")).expect("a limit").result;
        let values = |limit: &ns_inference::limit::LimitResult| {
            let limits = std::iter::once(limit.observed).chain(limit.expected);
            limits.map(|limit| limit.expect("a limit")).collect::<Vec<f64>>()
        };
        ns_testkit::assert_all_close(&values(&together[k].result), &values(&apart), 1e-6, name);
        if name == "a" {
            let request = LimitScanRequest::new("b", vec![0.0, 3.0, 10.0]);
            let scan = both.limit_scan(&request, &NoMonitor).expect("limits").result;
            for limit in scan.limits.iter().flatten() {
                ns_testkit::assert_all_close(&values(limit), &values(&apart), 1e-6, "whatever b is");
            }
        }
    }
}

fn scanned(pois: &[&str], settings: &Settings, values: &[f64]) -> Result<LimitScan, Error> {
    let request = LimitScanRequest::new("b", values.to_vec());
    Ok(analysis(pois, settings).limit_scan(&request, &NoMonitor)?.result)
}

#[test]
fn limits_at_a_value_are_those_with_the_parameter_fixed_there_for_any_threads() {
    let values = [2.5, 0.0, 10.0, 0.7];
    for threads in [1, 2, 5] {
        let threads = NonZeroUsize::new(threads);
        let scan = scanned(&["a"], &Settings { threads, ..Settings::default() }, &values).expect("limits");
        assert!(scan.is_converged() && scan.is_complete() && scan.warnings.is_empty(), "{:?}", scan.warnings);
        for (&value, found) in values.iter().zip(&scan.limits) {
            let settings = Settings { fixed: vec![("b".to_owned(), value)], ..Settings::default() };
            let alone = analysis(&["a"], &settings).limit(&LimitRequest::default()).expect("a limit").result;
            assert_eq!(found.as_ref(), Some(&alone), "b = {value}");
        }
    }
}

#[test]
fn the_scanned_parameter_may_be_of_interest_too() {
    let request = LimitScanRequest::new("b", vec![0.0, 1.0]);
    let scans = analysis(&["b", "a"], &Settings::default()).limit_scans(&request, &NoMonitor).expect("limits");
    let alone = analysis(&["a"], &Settings::default()).limit_scan(&request, &NoMonitor).expect("limits");
    assert_eq!(scans.result_document(), alone.result_document());
    let nuisance = LimitScanRequest::new("xs", vec![0.0, 1.0]);
    let scans = analysis(&["a", "b"], &Settings::default()).limit_scans(&nuisance, &NoMonitor).expect("limits");
    let document = scans.document();
    let names: Vec<&Value> =
        document["results"].as_array().expect("two").iter().map(|scan| &scan["poi"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(document["results"][1]["limits"][1]["value"], 1.0);
}

#[test]
fn a_scan_of_one_parameter_of_interest_limits_the_next_one() {
    let request = LimitScanRequest::new("a", vec![0.0, 1.0]);
    let of_two = analysis(&["a", "b"], &Settings::default()).limit_scan(&request, &NoMonitor).expect("limits");
    let of_one = analysis(&["b"], &Settings::default()).limit_scan(&request, &NoMonitor).expect("limits");
    assert_eq!(of_two.result_document(), of_one.result_document());
}

#[test]
fn values_without_a_limit_are_said_and_not_interpolated() {
    // At b = -10 the second bin of channel B has 120 events less than the background of 45.
    let settings = Settings { bounds: vec![("b".to_owned(), [-10.0, 10.0])], ..Settings::default() };
    let analysis = analysis(&["a"], &settings);
    let request = LimitScanRequest::new("b", vec![0.0, -10.0, 1.0]);
    let answer = analysis.limit_scan(&request, &NoMonitor).expect("limits");
    let document = answer.document();
    assert_eq!((&document["converged"], &document["complete"]), (&json!(false), &json!(true)));
    let found: Vec<bool> =
        document["limits"].as_array().expect("rows").iter().map(|row| row["observed"].is_number()).collect();
    assert_eq!(found, [true, false, true]);
    assert_eq!(document["limits"][1]["expected"], json!([null, null, null, null, null]));
    let warnings = &answer.result.warnings;
    assert!(warnings.iter().any(|warning| warning.starts_with("`b` = -10: ")), "{warnings:?}");
}

#[test]
fn a_procedure_for_one_names_the_one_of_several_that_it_used() {
    let note = "the model has 2 parameters of interest, and this result is for the first, `b`";
    let several = analysis(&["b", "a"], &Settings::default());
    let said = [
        several.limit(&LimitRequest::default()).expect("a limit").result.warnings,
        several.hypotest(&HypotestRequest::default()).expect("a test").result.warnings,
        several.significance(&SignificanceRequest::default()).expect("a test").result.warnings,
        several.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").result.warnings,
    ];
    for warnings in said {
        assert!(warnings.iter().any(|warning| warning == note), "{warnings:?}");
    }
    let named = several.with_poi("b").expect("a parameter").limit(&LimitRequest::default()).expect("a limit");
    assert!(named.result.warnings.is_empty(), "{:?}", named.result.warnings);
}

#[test]
fn asimov_data_are_the_same_for_every_parameter_of_interest() {
    let point = AsimovPoint { poi: AsimovPoi::At(0.25), ..AsimovPoint::default() };
    let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    let both = analysis(&["a", "b"], &settings);
    let second = both.with_poi("b").expect("a parameter");
    assert_eq!(second.data(), both.data());
    let data = json!(second.provenance().data);
    assert_eq!(data, json!({"source": "asimov", "parameters": {"a": 0.25, "b": 0.25}}));
    assert_eq!(json!(both.provenance().data), data);
}

#[test]
fn asimov_data_are_at_one_value_of_every_parameter_of_interest() {
    let (both, one) = (analysis(&["a", "b"], &Settings::default()), analysis(&["a"], &Settings::default()));
    let at = |poi: AsimovPoi, named: &[(&str, f64)]| AsimovPoint {
        poi,
        parameters: named.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        ..AsimovPoint::default()
    };
    let values = |analysis: &Analysis, point: &AsimovPoint| {
        let (model, point) = (analysis.model(), point.resolve(analysis.model()).expect("a point"));
        ["a", "b"].map(|name| point[model.parameters.index_of(name).expect("a parameter")])
    };
    assert_eq!(values(&both, &at(AsimovPoi::At(0.0), &[])), [0.0, 0.0]);
    assert_eq!(values(&both, &at(AsimovPoi::At(0.0), &[("b", 2.0)])), [0.0, 2.0]);
    assert_eq!(values(&both, &at(AsimovPoi::At(0.0), &[("a", 2.0)])), [2.0, 0.0]);
    assert_eq!(values(&one, &at(AsimovPoi::At(0.0), &[])), [0.0, 1.0]);
    let start = both.model().parameters.init.clone();
    assert_eq!(at(AsimovPoi::Initial, &[]).resolve(both.model()), Ok(start));
}

#[test]
fn mistakes_about_parameters_of_interest_are_explained() {
    let fixed = Settings { fixed: vec![("b".to_owned(), 1.0)], ..Settings::default() };
    let free = Settings::default();
    let at = |name: &str, values: &[f64], settings: &Settings| {
        let request = LimitScanRequest::new(name, values.to_vec());
        analysis(&["a"], settings).limit_scan(&request, &NoMonitor).expect_err("a mistake")
    };
    let unknown = "parameter names are case sensitive; did you mean";
    let poi = "name the parameter that the limits are on with `poi=`, and another one than `a` here";
    let range = "`bounds={\"b\": (lo, hi)}` sets another range";
    let mistakes: [(Error, &str, Option<String>); 7] = [
        (
            at("B", &[0.0], &free),
            "`at` names the parameter `B`, which the model does not have",
            Some(format!("{unknown} `b`?")),
        ),
        (at("a", &[0.0], &free), "`at` names `a`, the parameter that the limits are on", Some(poi.to_owned())),
        (at("b", &[], &free), "at least one value is needed", None),
        (at("b", &[0.0, f64::NAN], &free), "`at` sets `b` to NaN, which is not a finite number", None),
        (at("b", &[0.0, 11.0], &free), "`at` sets `b` to 11, outside its range, 0 to 10", Some(range.to_owned())),
        (at("b", &[0.0], &fixed), "`at` and `fixed` both fix `b`", None),
        (
            analysis(&["a"], &free).with_poi("A").expect_err("a mistake").into(),
            "this model cannot have the parameter of interest `A`, which no modifier uses",
            Some(format!("{unknown} `a`?")),
        ),
    ];
    for (error, message, hint) in mistakes {
        assert_eq!((error.message(Face::Library).as_str(), error.hint(Face::Library)), (message, hint));
    }
}

#[test]
fn a_ranking_with_an_empty_list_of_groups_has_none() {
    let request = RankingRequest { groups: RankingGroups::These(Vec::new()), ..RankingRequest::default() };
    let analysis = grouped();
    assert_eq!(analysis.ranking(&request, &NoMonitor).expect("a ranking").result.groups.len(), 0);
    let found = analysis.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").result.groups;
    assert_eq!(found.iter().map(|group| &*group.group).collect::<Vec<_>>(), ["all"]);
}

/// Returns an analysis of a model with a group of uncertainties.
fn grouped() -> Analysis {
    let workspace = json!({
        "channels": [{"name": "c", "samples": [
            {"name": "s", "data": [10.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [50.0], "modifiers": [
                {"name": "xs", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}]}]}],
        "observations": [{"name": "c", "data": [55.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [{"name": "xs", "groups": ["all"]}]}}],
        "version": "1.0.0"});
    let model = CompiledModel::from_json(workspace.to_string().as_bytes(), &CompileOptions::default());
    Analysis::new(&model.expect("a model"), &Settings::default()).expect("an analysis")
}
