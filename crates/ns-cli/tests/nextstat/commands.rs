//! Every verb on our own examples, each with its commonest mistake.

use ns_testkit::assert_close;
use serde_json::{Value, json};

use crate::support::{Run, Scratch, folder, nextstat, with_stdin, without_provenance};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// The transcript of one run on the examples, as a snapshot.
macro_rules! snapshot {
    ($name:ident, $($argument:literal),+) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), examples(&[$($argument),+]).transcript());
        }
    };
}

snapshot!(fit, "fit", "simple.json");
snapshot!(fit_with_matrices, "fit", "simple.json", "--covariance", "--correlation", "--minos=all");
snapshot!(fit_of_two_parameters_of_interest, "fit", "shapes.json", "--poi", "mu", "--poi", "theory_ttbar", "--summary");
snapshot!(
    fit_of_asimov_data_of_any_point,
    "fit",
    "simple.json",
    "--asimov-at",
    "mu=2",
    "--asimov-at",
    "uncorr_bkguncrt=1.1"
);
snapshot!(
    fit_with_old_interpolation,
    "fit",
    "background.json",
    "--patchset",
    "signals.json",
    "--patch-name",
    "signal_300",
    "--interp-defaults",
    "pyhf"
);
snapshot!(fit_of_an_absent_file, "fit", "absent.json");
snapshot!(fit_of_a_background_without_saying_so, "fit", "background.json");
snapshot!(fit_with_a_misspelt_parameter, "fit", "shapes.json", "--fix", "theory_tbar=0");
snapshot!(fit_with_an_element_out_of_range, "fit", "simple.json", "--fix", "uncorr_bkguncrt[2]=1");
snapshot!(fit_with_a_value_that_is_not_a_number, "fit", "simple.json", "--fix", "mu=nan");
snapshot!(fit_with_minos_of_a_fixed_parameter, "fit", "simple.json", "--fix", "mu=1", "--minos");
snapshot!(fit_with_a_blank_for_the_equals_sign, "fit", "simple.json", "--minos", "mu");
snapshot!(fit_of_some_channels, "fit", "shapes.json", "--fit-channels", "signal_*", "--summary");
snapshot!(fit_without_every_channel, "fit", "shapes.json", "--mask", "*");
snapshot!(fit_without_a_misspelt_channel, "fit", "shapes.json", "--mask", "signal_regoin");
snapshot!(fit_of_asimov_data_after_a_blank, "fit", "simple.json", "--asimov", "0", "--summary");
snapshot!(fit_with_a_range_of_a_scan, "fit", "simple.json", "--range", "1");
snapshot!(fit_with_no_threads, "fit", "simple.json", "--threads", "0");
snapshot!(fit_with_a_misspelt_option, "fit", "simple.json", "--measurment", "x");
snapshot!(hypotest_of_a_value_without_its_option, "hypotest", "simple.json", "1");
snapshot!(limit_at_a_confidence_level, "limit", "simple.json", "--cl", "0.9", "--quiet");
snapshot!(limit_with_a_confidence_level_for_cls, "limit", "simple.json", "--level", "0.95");
snapshot!(limit_of_asimov_data, "limit", "simple.json", "--asimov", "1", "--summary");
snapshot!(yields, "yields", "shapes.json", "--mask", "signal_region[1:3]", "--summary");
snapshot!(yields_of_what_is_not_a_fit, "yields", "shapes.json", "--from", "simple.json");
snapshot!(fit_with_an_unknown_code, "fit", "simple.json", "--interpolation", "histosys=code4");
snapshot!(fit_with_a_misspelt_poi, "fit", "simple.json", "--poi", "Mu");
snapshot!(fit_with_half_a_patch_set, "fit", "background.json", "--patchset", "signals.json");
snapshot!(fit_with_an_unknown_measurement, "fit", "shapes.json", "--measurement", "serach");
snapshot!(hypotest, "hypotest", "simple.json", "--summary");
snapshot!(hypotest_by_its_other_name, "cls", "shapes.json", "--test-poi", "2", "--teststat", "q");
snapshot!(hypotest_of_every_patch, "hypotest", "background.json", "--patchset", "signals.json", "--every-patch");
snapshot!(
    hypotest_of_every_patch_with_a_wrong_name,
    "hypotest",
    "background.json",
    "--patchset",
    "signals.json",
    "--every-patch",
    "--fix",
    "Norm_ttbar=1"
);
snapshot!(hypotest_of_every_patch_of_nothing, "hypotest", "background.json", "--every-patch");
snapshot!(hypotest_without_a_poi, "hypotest", "background.json", "--poi", "none");
snapshot!(hypotest_of_a_fixed_parameter, "hypotest", "simple.json", "--fix", "mu=1");
snapshot!(hypotest_with_another_statistic, "hypotest", "simple.json", "--test-stat", "q_tilde");
snapshot!(significance, "significance", "simple.json", "--summary");
snapshot!(limit, "limit", "simple.json", "--summary");
snapshot!(limit_from_a_grid, "limit", "simple.json", "--start", "0", "--stop", "4", "--points", "5");
snapshot!(limit_from_an_empty_grid, "limit", "simple.json", "--start", "4", "--stop", "0");
snapshot!(limit_with_a_confidence_level, "limit", "simple.json", "--level", "95");
snapshot!(evaluate, "evaluate", "simple.json", "--points", "points.json");
snapshot!(evaluate_at_the_start, "evaluate", "simple.json");
snapshot!(evaluate_at_no_list, "evaluate", "simple.json", "--points", "simple.json");
snapshot!(inspect, "inspect", "shapes.json");
snapshot!(inspect_of_a_patch, "inspect", "signal.json");
snapshot!(check, "check", "shapes.json");
snapshot!(patchset_list, "patchset", "list", "signals.json");
snapshot!(patchset_inspect, "patchset", "inspect", "signals.json");
snapshot!(patchset_extract, "patchset", "extract", "signals.json", "--name", "signal_800");
snapshot!(
    patchset_extract_with_metadata,
    "patchset",
    "extract",
    "signals.json",
    "--name",
    "signal_800",
    "--with-metadata"
);
snapshot!(patchset_extract_of_an_unknown_name, "patchset", "extract", "signals.json", "--name", "signal_900");
snapshot!(patchset_verify, "patchset", "verify", "background.json", "signals.json");
snapshot!(patchset_verify_of_another_workspace, "patchset", "verify", "shapes.json", "signals.json");
snapshot!(
    patchset_apply_to_another_workspace,
    "patchset",
    "apply",
    "shapes.json",
    "signals.json",
    "--name",
    "signal_500"
);
snapshot!(digest, "digest", "simple.json", "--algorithm", "sha256", "--algorithm", "md5");
snapshot!(digest_as_json, "digest", "simple.json", "--json");
snapshot!(digest_of_an_unknown_algorithm, "digest", "simple.json", "--algorithm", "sha1");
snapshot!(scan, "scan", "simple.json", "--start", "0", "--stop", "5", "--points", "6");
snapshot!(scan_of_an_automatic_range, "scan", "shapes.json", "--points", "7", "--no-params", "--summary");
snapshot!(
    scan_of_two_parameters,
    "scan",
    "shapes.json",
    "--poi",
    "mu",
    "--poi",
    "norm_ttbar",
    "--points",
    "3",
    "--start2",
    "0.8",
    "--stop2",
    "1.4",
    "--points2",
    "4",
    "--contour",
    "0.68",
    "--contour-points",
    "8",
    "--no-params",
    "--summary"
);
snapshot!(scan_outside_the_likelihood, "scan", "simple.json", "--start", "-20", "--stop", "1", "--points", "2");
snapshot!(scan_of_a_misspelt_parameter, "scan", "shapes.json", "--parameter", "norm_tbar");
snapshot!(scan_of_a_vector, "scan", "simple.json", "--parameter", "uncorr_bkguncrt");
snapshot!(scan_of_a_fixed_parameter, "scan", "simple.json", "--fix", "mu=1");
snapshot!(scan_that_goes_backwards, "scan", "simple.json", "--start", "5", "--stop", "0");
snapshot!(scan_without_an_end, "scan", "simple.json", "--start", "5");
snapshot!(scan_of_one_point, "scan", "simple.json", "--points", "1");
snapshot!(scan_of_nothing, "scan", "simple.json", "--poi", "none");
snapshot!(scan_of_one_parameter_twice, "scan", "simple.json", "--parameter", "mu", "--parameter", "mu");
snapshot!(scan_with_a_contour_of_one_parameter, "scan", "simple.json", "--contour", "0.68");
snapshot!(scan_with_a_percentage, "scan", "simple.json", "--contour", "68");
snapshot!(ranking, "ranking", "simple.json", "--summary");
snapshot!(
    ranking_with_groups,
    "ranking",
    "shapes.json",
    "--method",
    "global",
    "--group",
    "theory=theory_*",
    "--group",
    "mc=mc_stat_*,fakes_method[?]",
    "--top",
    "3",
    "--summary",
    "--output-file",
    "/dev/null"
);
snapshot!(ranking_without_poi, "ranking", "simple.json", "--poi", "none");
snapshot!(ranking_for_a_fixed_poi, "ranking", "simple.json", "--fix", "mu=1");
snapshot!(ranking_of_a_group_without_members, "ranking", "shapes.json", "--group", "jets=JES_*");
snapshot!(ranking_of_a_group_without_a_name, "ranking", "shapes.json", "--group", "theory_*");
snapshot!(ranking_by_an_unknown_method, "ranking", "simple.json", "--method", "impact");
snapshot!(an_unknown_verb, "fitt", "simple.json");
snapshot!(no_workspace, "fit");

/// The best-fit values of a fit's document, by parameter.
fn best_fit(document: &Value) -> Vec<(String, f64)> {
    let names: Vec<String> = serde_json::from_value(document["par_names"].clone()).expect("names");
    let values: Vec<f64> = serde_json::from_value(document["bestfit"].clone()).expect("numbers");
    names.into_iter().zip(values).collect()
}

/// The best-fit value of a parameter.
fn value_of(document: &Value, name: &str) -> f64 {
    best_fit(document).into_iter().find(|(known, _)| known == name).expect("a parameter").1
}

#[test]
fn a_fit_of_asimov_data_returns_the_point_that_they_were_made_at() {
    let document = examples(&["fit", "shapes.json", "--asimov=2"]).document();
    for (name, value) in best_fit(&document) {
        let expected = match name.as_str() {
            "mu" => 2.0,
            "jet_energy_scale" => 0.0,
            name if name.starts_with("theory_") => 0.0,
            _ => 1.0,
        };
        assert_close(value, expected, 1e-4, &name);
    }
}

#[test]
fn a_pattern_fixes_what_it_matches_but_not_what_is_named() {
    let fit = ["fit", "shapes.json", "--fix", "theory_*=0", "--fix", "theory_ttbar=1", "--quiet"];
    let document = examples(&fit).document();
    let theory: Vec<(String, f64)> =
        best_fit(&document).into_iter().filter(|(name, _)| name.starts_with("theory_")).collect();
    assert!(theory.len() > 2);
    for (name, value) in theory {
        assert_eq!(value, f64::from(u8::from(name == "theory_ttbar")), "{name}");
    }
}

/// Without signal events, a signal changes nothing.
#[test]
fn a_patched_signal_of_strength_zero_leaves_the_fit_of_the_background() {
    let patched = examples(&["fit", "background.json", "--patch", "signal.json", "--fix", "mu=0"]).document();
    let background = examples(&["fit", "background.json", "--poi", "none"]).document();
    for (name, value) in best_fit(&background) {
        assert_close(value_of(&patched, &name), value, 1e-4, &name);
    }
    assert_eq!(value_of(&patched, "mu"), 0.0);
}

/// The definition of the interval, with fits of their own at its ends.
#[test]
fn twice_the_nll_rises_by_one_at_the_ends_of_a_minos_interval() {
    let settings = ["fit", "shapes.json", "--fix", "fakes_control_region=1", "--bounds", "mu=-5:20"];
    let document = examples(&[&settings[..], &["--minos", "--multi-start=3", "--seed", "7"]].concat()).document();
    let interval = &document["minos"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    for end in ["down", "up"] {
        let fixed = format!("mu={}", number(&interval["bestfit"]) + number(&interval[end]));
        let at_end = examples(&[&settings[..], &["--fix", &fixed]].concat()).document();
        assert_close(number(&at_end["twice_nll"]) - number(&document["twice_nll"]), 1.0, 1e-4, end);
    }
}

#[test]
fn suspicious_models_have_findings() {
    let folder = folder("testdata/check");
    let run = nextstat(&folder, &["check", "suspicious.json"]);
    insta::assert_snapshot!("check_of_a_suspicious_model", run.transcript());
    assert_eq!(nextstat(&folder, &["check", "suspicious.json", "--strict"]).code, Some(1));
    assert_eq!(nextstat(&folder, &["check", "suspicious.json", "--quiet"]).stderr, "");
}

#[test]
fn hidden_data_are_not_in_findings() {
    let text = std::fs::read_to_string(folder("examples").join("simple.json")).expect("readable");
    let mut workspace: Value = serde_json::from_str(&text).expect("JSON");
    workspace["observations"][0]["data"] = json!([5123.0, 61.0]);
    let said = |more: &[&str]| {
        let run = with_stdin(&folder("examples"), &[&["check", "-"], more].concat(), workspace.to_string().as_bytes());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout + &run.stderr
    };
    assert!(said(&["--summary"]).contains("5184"));
    for blind in [&["--blind", "*"][..], &["--blind", "singlechannel[0]"], &["--blind-above", "0"]] {
        let said = said(&[blind, &["--summary"]].concat());
        assert!(!said.contains("5184") && !said.contains("far_from_observation"), "{said}");
    }
}

#[test]
fn wrong_models_are_refused() {
    let run = nextstat(&folder("testdata/check"), &["check", "wrong.json"]);
    insta::assert_snapshot!("check_of_a_wrong_model", run.transcript());
}

#[test]
fn no_verb_shows_the_help() {
    let run = examples(&[]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("Usage: nextstat <COMMAND>"), "{}", run.stderr);
}

#[test]
fn the_version_is_the_crate_s() {
    assert_eq!(examples(&["--version"]).stdout, format!("nextstat {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = examples(&["completions", shell]);
        assert!(run.code == Some(0) && run.stdout.contains("patchset"), "{shell}");
    }
    assert_eq!(examples(&["completions", "cmd"]).code, Some(2));
}

#[test]
fn every_verb_has_a_manual_page() {
    let scratch = Scratch::new("man");
    let folder = scratch.path("new");
    assert_eq!(examples(&["man", "--directory", &folder]).code, Some(0));
    let entries = std::fs::read_dir(&folder).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let names: Vec<String> = entries.map(|name| name.into_string().expect("Unicode")).collect();
    for verb in ["", "-fit", "-limit", "-patchset", "-patchset-apply", "-toys-merge", "-man"] {
        let name = format!("nextstat{verb}.1");
        assert!(names.contains(&name), "{name} is not among {names:?}");
        let page = std::fs::read_to_string(format!("{folder}/{name}")).expect("a page");
        let words: Vec<&str> = verb.split('-').filter(|word| !word.is_empty()).collect();
        let printed = examples(&[&["man"], &words[..]].concat());
        assert_eq!((printed.code, printed.stdout), (Some(0), page), "{name}");
    }
    assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
    let unknown = examples(&["man", "fitt"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("there is no verb `fitt`\nhint: did you mean `fit`?"), "{}", unknown.stderr);
}

#[test]
fn the_applied_patch_is_the_workspace_with_its_signal() {
    let applied = examples(&["patchset", "apply", "background.json", "signals.json", "--name", "signal_500"]);
    let whole = std::fs::read_to_string(folder("examples/shapes.json")).expect("an example");
    assert_eq!(applied.document(), serde_json::from_str::<Value>(&whole).expect("JSON"));
    let fit = |run: Run| run.document()["twice_nll"].as_f64();
    let piped = with_stdin(&folder("examples"), &["fit", "-"], applied.stdout.as_bytes());
    assert_eq!(fit(piped), fit(examples(&["fit", "--input", "shapes.json"])));
}

#[test]
fn asimov_data_are_fitted_where_they_were_made() {
    let document = examples(&["fit", "shapes.json", "--asimov"]).document();
    for (name, value) in
        document["par_names"].as_array().expect("names").iter().zip(document["bestfit"].as_array().expect("values"))
    {
        let expected =
            if name.as_str().is_some_and(|n| n.starts_with("theory") || n == "jet_energy_scale") { 0.0 } else { 1.0 };
        assert!((value.as_f64().expect("a number") - expected).abs() < 1e-5, "{name} = {value}");
    }
}

#[test]
fn points_are_placed_when_they_are_wrong() {
    let mut said = String::new();
    for points in [
        "[[1, 1, 1], [1, 1], [1]]",
        "[[1, 1, \"a\"]]",
        "[[1, NaN, 1]]",
        "[1, 1, 1]",
        "[[1, 1, 1e400]]",
        "{}",
        "[[1,1,1]",
    ] {
        let run = with_stdin(&folder("examples"), &["evaluate", "simple.json", "--points", "-"], points.as_bytes());
        assert_eq!(run.code, Some(2), "{points}");
        said.push_str(&run.stderr);
    }
    insta::assert_snapshot!(said);
    let none = with_stdin(&folder("examples"), &["evaluate", "simple.json", "--points", "-"], b"[]");
    assert_eq!(none.document()["points"], Value::Array(vec![]));
}

#[test]
fn a_scan_outside_the_range_of_the_parameter_warns() {
    let outside = examples(&["scan", "simple.json", "--start", "-1", "--stop", "11", "--points", "3"]);
    assert_eq!(outside.code, Some(0));
    assert_eq!(outside.stderr, "warning: values of `mu` outside its range, 0 to 10: 2 of 3\n");
    let inside = examples(&["scan", "simple.json", "--start", "0", "--stop", "10", "--points", "3"]);
    assert_eq!((inside.code, inside.stderr.as_str()), (Some(0), ""));
    let widened = ["--bounds", "mu=-2:12", "--start", "-1", "--stop", "11", "--points", "3"];
    assert_eq!(examples(&[&["scan", "simple.json"], &widened[..]].concat()).stderr, "");
}

#[test]
fn a_point_outside_the_domain_is_null_and_explained() {
    let run = with_stdin(&folder("examples"), &["evaluate", "simple.json", "--points", "-"], b"[[-10, 1, 1]]");
    let point = &run.document()["points"][0];
    assert_eq!((&point["twice_nll"], &point["gradient"]), (&Value::Null, &Value::Null));
    assert_eq!(point["not_finite"]["place"]["channel"], "singlechannel");
    assert_eq!(point["expected_data"][0], -70.0);
}

#[test]
fn evaluations_do_not_depend_on_the_number_of_threads() {
    // Every fourth one is outside the domain.
    let mu = |i: i32| if i % 4 == 3 { -10.0 } else { 0.1 * f64::from(i) };
    let points: Vec<[f64; 3]> = (0..100).map(|i| [mu(i), 0.9, 1.0 + 0.001 * f64::from(i)]).collect();
    let say = |points: &[[f64; 3]], threads: &str| {
        let points = serde_json::to_vec(points).expect("numbers are JSON");
        let run = with_stdin(
            &folder("examples"),
            &["evaluate", "simple.json", "--points", "-", "--threads", threads],
            &points,
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run
    };
    let one = say(&points, "1");
    assert_eq!(one.result(), say(&points, "2").result());
    assert_eq!(one.result(), say(&points, "7").result());
    for i in [0, 3, 42, 99] {
        let alone = say(&points[i..=i], "1");
        assert_eq!(alone.document()["points"][0], one.document()["points"][i]);
    }
}

#[test]
fn a_patch_is_read_from_standard_input() {
    let patch = std::fs::read(folder("examples/signal.json")).expect("an example");
    for verb in ["fit", "cls"] {
        let piped = with_stdin(&folder("examples"), &[verb, "background.json", "--patch", "-"], &patch);
        let named = examples(&[verb, "background.json", "--patch", "signal.json"]);
        assert_eq!((piped.code, piped.result()), (Some(0), named.result()), "{verb}: {}", piped.stderr);
    }
}

#[test]
fn both_inputs_cannot_be_standard_input() {
    let cases: [&[&str]; 5] = [
        &["evaluate", "-", "--points", "-"],
        &["evaluate", "background.json", "--points", "-", "--patch", "-"],
        &["patchset", "verify", "-", "-"],
        &["fit", "-", "--patch", "-"],
        &["fit", "background.json", "--patch", "-", "--patch", "-"],
    ];
    for arguments in cases {
        let run = examples(arguments);
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(2), "error: only one document can be read from standard input\n")
        );
    }
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("nextstat-output-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let target = folder.join("fit.json");
    let path = target.to_str().expect("text");
    let run = examples(&["fit", "simple.json", "--output-file", path]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let written = std::fs::read_to_string(&target).expect("written");
    let document: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(without_provenance(document), examples(&["fit", "simple.json"]).result());

    assert_eq!(examples(&["fit", "absent.json", "--output-file", path]).code, Some(2));
    assert_eq!(std::fs::read_to_string(&target).expect("still there"), written);
    let left: Vec<_> = std::fs::read_dir(&folder).expect("the folder").collect();
    assert_eq!(left.len(), 1, "no temporary file stays behind");

    let nowhere = examples(&["fit", "simple.json", "--output-file", "/nowhere/fit.json"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.starts_with("error: cannot write `/nowhere/fit.json`: "), "{}", nowhere.stderr);
    assert!(!nowhere.stderr.contains(".tmp"), "a name that the user did not give: {}", nowhere.stderr);
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn values_that_an_option_cannot_have_are_explained() {
    for (arguments, reason) in [
        (&["fit", "simple.json", "--multi-start=-3"][..], "`-3` is not a whole number of at least 0"),
        (
            &["fit", "simple.json", "--seed", "-1"],
            "`--seed` must be a whole number from 0 to 18446744073709551615, got `-1`",
        ),
        (&["ranking", "simple.json", "--top", "-1"], "invalid value '-1' for '--top <N>'"),
        (&["fit", "simple.json", "--poi", "nope"], "hint: parameters without a constraint are `mu`"),
        (&["fit", "simple.json", "--poi", "Mu"], "did you mean `mu`?"),
    ] {
        let run = examples(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.stderr.contains(reason), "{arguments:?}: {}", run.stderr);
    }
}

/// `simple.json` with `n` more systematics.
fn with_systematics(n: usize) -> Vec<u8> {
    let text = std::fs::read(folder("examples").join("simple.json")).expect("readable");
    let mut workspace: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let modifiers = workspace.pointer_mut("/channels/0/samples/0/modifiers").and_then(|list| list.as_array_mut());
    let modifier = |i| serde_json::json!({"name": format!("n{i}"), "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}});
    modifiers.expect("a list").extend((0..n).map(modifier));
    workspace.to_string().into_bytes()
}

#[test]
fn models_that_no_memory_holds_are_refused() {
    // Two matrices of 300000² numbers.
    let workspace = with_systematics(300_000);
    for verb in ["check", "fit", "limit", "report", "ranking"] {
        let run = crate::support::with_stdin(&folder("examples"), &[verb], &workspace);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{verb}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: a fit of 300003 parameters needs at least 1.3 TiB"), "{}", run.stderr);
    }
}

#[test]
#[cfg(unix)]
fn results_do_not_need_threads() {
    for arguments in [
        &["report", "shapes.json"][..],
        &["toys", "shapes.json", "--n-toys", "20"],
        &["scan", "shapes.json", "--points", "5"],
        &["ranking", "shapes.json"],
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nextstat"));
        command.args(arguments).args(["--threads", "4"]).current_dir(folder("examples"));
        // No system has room for such a stack, so that no thread can be started.
        let output = command.env("RUST_MIN_STACK", (1_u64 << 47).to_string()).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(without_provenance(document), examples(arguments).result(), "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nextstat"));
    let piped = command.args(["fit", "simple.json"]).current_dir(folder("examples"));
    let mut child = piped
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}
