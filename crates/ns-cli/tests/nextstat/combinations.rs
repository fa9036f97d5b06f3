//! `combine --map` and `decorrelate`: what they make, what they report, and what they say of
//! mistakes.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, nextstat, with_stdin};

/// A workspace with two channels, a signal and a background.
fn workspace(label: &str, names: [&str; 3]) -> Value {
    let [poi, jes, btag] = names;
    let background = |n: usize| {
        let stat = format!("stat_{n}");
        json!({"name": "bkg", "data": [50.0, 40.0], "modifiers": [
            {"name": jes, "type": "histosys", "data": {"hi_data": [52.0, 41.0], "lo_data": [48.0, 39.0]}},
            {"name": btag, "type": "normsys", "data": {"hi": 1.05, "lo": 0.95}},
            {"name": "lumi", "type": "lumi", "data": null},
            {"name": stat, "type": "staterror", "data": [2.0, 1.5]}]})
    };
    let signal = json!({"name": "sig", "data": [5.0, 8.0], "modifiers": [
        {"name": poi, "type": "normfactor", "data": null}, {"name": btag, "type": "normsys", "data": {"hi": 1.02, "lo": 0.98}}]});
    let lumi = json!({"name": "lumi", "inits": [1.0], "bounds": [[0.9, 1.1]], "auxdata": [1.0], "sigmas": [0.02]});
    json!({
        "channels": [
            {"name": format!("SR_{label}"), "samples": [signal, background(0)]},
            {"name": format!("CR_{label}"), "samples": [background(1)]}],
        "observations": [
            {"name": format!("SR_{label}"), "data": [57.0, 46.0]}, {"name": format!("CR_{label}"), "data": [49.0, 42.0]}],
        "measurements": [{"name": "m", "config": {"poi": poi, "parameters": [lumi, {"name": poi, "inits": [1.0], "bounds": [[0.0, 10.0]]}]}}],
        "version": "1.0.0"
    })
}

/// Returns a folder with `atlas.json`, `cms.json` and others made of them.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, value: &Value| fs::write(folder.path().join(name), value.to_string()).expect("written");
    let atlas = workspace("A", ["mu", "ATLAS_JES_1", "btag"]);
    let mut cms = workspace("C", ["r", "jes1", "btag"]);
    write("atlas.json", &atlas);
    write("cms.json", &cms);
    let mut both = atlas.clone();
    both["measurements"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "other", "config": {"poi": "mu", "parameters": []}}));
    write("two_measurements.json", &both);
    cms["measurements"][0]["config"]["parameters"][0]["sigmas"] = json!([0.03]);
    write("other_lumi.json", &cms);
    cms["channels"][0]["samples"][0]["modifiers"][0]["name"] = json!("btag");
    write("free_btag.json", &cms);
    folder
}

fn with_map(folder: &TempDir, arguments: &[&str], map: &str) -> Run {
    with_stdin(folder.path(), &[&["combine"], arguments, &["--map", "-"]].concat(), map.as_bytes())
}

const APART: &str = "decorrelate: [{parameters: 'stat_*', by: analysis}]\n";
const POI: &str = "poi: {name: mu, parameters: {atlas: mu, cms: r}}\n";

#[test]
fn a_combination_is_reported() {
    let folder = folder();
    let map = format!(
        "measurement: combination\n{POI}{APART}correlate:\n- {{name: JES_1, parameters: {{atlas: 'ATLAS_JES_*', cms: jes1}}}}\n"
    );
    let arguments = ["atlas.json", "cms.json", "-o", "both.json", "--report", "report.json", "--summary"];
    let run = with_map(&folder, &arguments, &map);
    insta::assert_snapshot!("combination", run.transcript());
    let report = fs::read_to_string(folder.path().join("report.json")).expect("written");
    let mut report: Value = serde_json::from_str(&report).expect("JSON");
    let provenance = report.as_object_mut().and_then(|report| report.remove("provenance")).expect("it is there");
    assert_eq!(provenance["command"][0], "nextstat");
    report["nextstat_version"] = json!("…");
    insta::assert_json_snapshot!("combination_report", report);
    let fit = nextstat(folder.path(), &["fit", "both.json"]);
    assert_eq!(fit.code, Some(0), "{}", fit.stderr);
}

#[test]
fn names_decide_without_a_map_and_measurements_of_one_name_are_merged() {
    let folder = folder();
    let renamed =
        ["rename", "cms.json", "-m", "r", "mu", "-m", "stat_0", "s0", "-m", "stat_1", "s1", "-o", "renamed.json"];
    assert_eq!(nextstat(folder.path(), &renamed).code, Some(0));
    let run = nextstat(folder.path(), &["combine", "atlas.json", "renamed.json", "-o", "both.json", "--summary"]);
    insta::assert_snapshot!("combination_by_name", run.transcript());
    let refused = nextstat(folder.path(), &["combine", "atlas.json", "renamed.json", "--join", "none"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("both have the measurement `m`"), "{}", refused.stderr);
}

#[test]
fn a_split_is_reported() {
    let folder = folder();
    let split = [
        "decorrelate",
        "atlas.json",
        "-m",
        "btag",
        "-m",
        "mu",
        "--by",
        "sample",
        "--part",
        "S",
        "sig",
        "--poi",
        "mu_S",
        "-o",
        "split.json",
    ];
    let run = nextstat(folder.path(), &[&split[..], &["--summary"]].concat());
    insta::assert_snapshot!("split", run.transcript());
    let whole = nextstat(
        folder.path(),
        &["rename", "split.json", "-m", "btag_S", "btag", "-m", "mu_S", "mu", "-o", "back.json"],
    );
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let digest = |name: &str| nextstat(folder.path(), &["digest", name]).stdout;
    assert_eq!(digest("back.json"), digest("atlas.json"));
    assert_ne!(digest("split.json"), digest("atlas.json"));
}

#[test]
fn mistakes_in_maps_are_explained() {
    let folder = folder();
    let both: &[&str] = &["atlas.json", "cms.json"];
    let cases: &[(&[&str], &str)] = &[
        (both, ""),
        (both, "correlate:\n- *_JES\n"),
        (both, "correlate:\n\t- lumi\n"),
        (both, "correlated: [lumi]\n"),
        (both, "poi: mu\npoi: r\n"),
        (both, "same_names: decorelate\n"),
        (both, "correlate: lumi\n"),
        (both, "correlate:\n- name: lumi\n  parameters: {ATLAS: lumi, cms: lumi}\n"),
        (both, "correlate:\n- name: JES_1\n  parameters: {atlas: ATLAS_JES1, cms: jes1}\n"),
        (both, "correlate:\n- name: 'JES_*'\n  parameters: {atlas: 'ATLAS_JEX_*', cms: 'jes*'}\n"),
        (both, "correlate:\n- name: 'JES_*'\n  parameters: {atlas: 'ATLAS_JES_*', cms: jes1}\n"),
        (both, "correlate:\n- name: 'JES_*'\n  parameters: {atlas: 'ATLAS_JES_*', cms: 'r*'}\n"),
        (both, "correlate:\n- name: x\n  parameters: {atlas: mu}\n  analyses: [atlas]\n"),
        (both, "correlate: [ATLAS_JES_1]\n"),
        (both, "correlate: [btag, btag]\n"),
        (both, "correlate: [btag]\ndecorrelate:\n- parameters: btag\n  by: analysis\n"),
        (both, "correlate:\n- {name: btag, parameters: {atlas: ATLAS_JES_1, cms: jes1}}\n"),
        (
            both,
            "poi: mu\ndecorrelate: [{parameters: 'stat_*', by: analysis}]\ncorrelate:\n- {name: luminosity, parameters: {atlas: lumi, cms: lumi}}\n",
        ),
        (both, "same_names: decorrelate\n"),
        (both, "same_names: error\n"),
        (both, "correlate: [stat_0]\n"),
        (both, "correlate: [lumi]\n"),
        (both, APART),
        (both, "poi: nu\ndecorrelate: [{parameters: 'stat_*', by: analysis}]\n"),
        (both, "poi: 'm*'\n"),
        (both, "decorrelate:\n- parameters: mu\n  by: channel\n"),
        (both, "decorrelate:\n- parameters: lumi\n  by: channel\n"),
        (both, "decorrelate:\n- parameters: stat_0\n  by: sample\n"),
        (both, "decorrelate:\n- parameters: btag\n  by: region\n"),
        (both, "decorrelate:\n- parameters: btag\n  by: analysis\n  parts: {SR: 'SR_*'}\n"),
        (both, "decorrelate:\n- parameters: btag\n  by: channel\n  parts: {SR: 'SR*', R: '*R*'}\n"),
        (both, "decorrelate:\n- parameters: btag\n  by: channel\n  parts: {SR: SR_B}\n"),
        (both, "decorrelate:\n- parameters: btag\n  by: channel\n  channels: 'VR_*'\n"),
        (both, "decorrelate:\n- parameters: ATLAS_JES_1\n  by: sample\n  parts: {S: sig}\n"),
        (both, "correlate: [btag]\ndecorrelate:\n- parameters: btag\n  by: channel\n"),
        (both, "settings:\n- {name: btag, bound: [[-3, 3]]}\n"),
        (
            both,
            "poi: mu\ndecorrelate: [{parameters: 'stat_*', by: analysis}]\nsettings:\n- {name: bttag, bounds: [[-3, 3]]}\n",
        ),
        (both, "analyses: {ATLAS: atlas.json, CMS: cms2.json}\n"),
        (both, "analyses: {cms: atlas.json}\n"),
        (&["two_measurements.json", "cms.json"], POI),
        (&["two_measurements.json", "cms.json"], "analyses: {two_measurements: {measurement: none}}\n"),
        (
            &["atlas.json", "other_lumi.json"],
            "poi: {name: mu, parameters: {atlas: mu, other_lumi: r}}\ndecorrelate: [{parameters: 'stat_*', by: analysis}]\n",
        ),
        (&["atlas.json", "free_btag.json"], "poi: mu\ncorrelate: [btag]\n"),
        (
            &["atlas.json", "two_measurements.json"],
            "analyses: {two_measurements: {measurement: m}}\npoi: mu\ndecorrelate: [{parameters: 'stat_*', by: analysis}]\n",
        ),
        (&["atlas.json", "cms.json", "--join", "outer"], POI),
        (&["atlas.json", "-"], POI),
    ];
    let mut said = String::new();
    for (arguments, map) in cases {
        let run = with_map(&folder, arguments, map);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?} {map}");
        let _ = writeln!(said, "# {}\n{map}{}", arguments.join(" "), run.stderr);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn mistakes_in_splits_are_explained() {
    let folder = folder();
    let mut said = String::new();
    for arguments in [
        &["atlas.json"][..],
        &["atlas.json", "-m", "b_tag"],
        &["atlas.json", "-m", "mu"],
        &["atlas.json", "-m", "mu", "--poi", "mu_SR"],
        &["atlas.json", "-m", "*"],
        &["atlas.json", "-m", "btag", "--by", "analysis"],
        &["atlas.json", "-m", "btag", "--part", "SR=SR_A"],
        &["atlas.json", "-m", "btag", "-s", "signal"],
        &["atlas.json", "-m", "btag", "--report", "atlas.json"],
        &["atlas.json", "-m", "btag", "--report", "-"],
        &["atlas.json", "-m", "btag", "--report", "split.json", "-o", "split.json"],
    ] {
        let run = nextstat(folder.path(), &[&["decorrelate"], arguments].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        let _ = writeln!(said, "$ nextstat decorrelate {}\n{}", arguments.join(" "), run.stderr);
    }
    insta::assert_snapshot!(said);
}
