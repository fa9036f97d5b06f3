//! Fits that fail: no verb gives a number that rests on one, and each says why.

use serde_json::{Value, json};

use crate::support::{Run, Scratch, folder, nextstat};

/// Returns a folder with `failed.json`: a bin that has seen events and expects none, whatever the
/// parameters are.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let modifiers = json!([
        {"name": "mu", "type": "normfactor", "data": null},
        {"name": "jes", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}},
    ]);
    let workspace = json!({
        "channels": [{"name": "SR", "samples": [{"name": "signal", "data": [0.0], "modifiers": modifiers}]}],
        "observations": [{"name": "SR", "data": [5.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    });
    std::fs::write(scratch.path("failed.json"), workspace.to_string()).expect("writable");
    scratch
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), &[&arguments[..1], &[&scratch.path("failed.json")], &arguments[1..]].concat())
}

/// Verbs, and the pointers to what rests on the fit.
const VERBS: &[(&[&str], &[&str])] = &[
    (&["limit"], &["/poi/bestfit", "/observed", "/expected/2"]),
    (&["hypotest"], &["/poi/bestfit", "/poi/bestfit_asimov", "/CLs_obs"]),
    (&["hypotest", "--test-stat", "t"], &["/poi/bestfit", "/CLs_obs"]),
    (&["significance"], &["/poi/bestfit", "/Z_obs", "/Z_exp"]),
    (&["ranking"], &["/poi/bestfit", "/poi/uncertainty", "/breakdown/total"]),
    (&["scan", "--start", "0", "--stop", "2", "--points", "3"], &["/bestfit", "/uncertainty", "/twice_delta_nll/1"]),
    (&["gof"], &["/statistic", "/constraint_deviance", "/p_value", "/channels/0/deviance"]),
];

#[test]
fn nothing_that_rests_on_a_failed_fit_is_a_number() {
    let scratch = scratch("failed");
    for (verb, pointers) in VERBS {
        let done = run(&scratch, verb);
        assert_eq!(done.code, Some(1), "{verb:?}: {}", done.stderr);
        let document = done.document();
        assert_eq!(document["converged"], json!(false), "{verb:?}");
        for pointer in *pointers {
            assert_eq!(document.pointer(pointer), Some(&Value::Null), "{verb:?}{pointer}");
        }
    }
}

#[test]
fn summaries_say_that_a_fit_did_not_converge_in_the_place_of_its_value() {
    let scratch = scratch("failed-summary");
    for (verb, _) in VERBS.iter().filter(|(verb, _)| verb[0] != "gof") {
        let said = run(&scratch, &[verb, &["--summary", "-o", "/dev/null"][..]].concat()).stderr;
        let is_marked = |line: &str| line.ends_with("best fit did not converge") || line == "  mu: did not converge";
        assert!(said.lines().any(is_marked), "{verb:?}: {said}");
        assert!(!said.contains("mu = 1"), "{verb:?}: {said}");
    }
}

#[test]
fn yields_of_a_failed_fit_begin_and_end_with_the_verdict() {
    let scratch = scratch("failed-yields");
    let said = run(&scratch, &["yields", "--summary", "-o", "/dev/null"]).stderr;
    assert_eq!(said.matches("!!! THE FIT DID NOT CONVERGE").count(), 2, "{said}");
}

#[test]
fn quiet_verbs_still_say_that_a_fit_failed() {
    let scratch = scratch("failed-quiet");
    let fit: (&[&str], &[&str]) = (&["fit"], &[]);
    for (verb, _) in VERBS.iter().chain([&fit]) {
        let done = run(&scratch, &[verb, &["-q", "-o", "/dev/null"][..]].concat());
        assert!(done.code == Some(1) && done.stderr.starts_with("warning: "), "{verb:?}: {}", done.stderr);
        let is_said = ["not converge", "could not start"].iter().any(|reason| done.stderr.contains(reason));
        assert!(is_said, "{verb:?}: {}", done.stderr);
    }
}

#[test]
fn tables_of_stored_results_that_failed_exit_with_their_code() {
    let scratch = scratch("failed-table");
    for (verb, _) in VERBS {
        let stored = scratch.path("stored.json");
        run(&scratch, &[verb, &["-o", &stored][..]].concat());
        let table = nextstat(&folder("examples"), &["table", &stored, "--format", "csv"]);
        assert_eq!(table.code, Some(1), "{verb:?}");
        assert_eq!(table.stderr, "warning: numbers of fits that did not converge are left out\n", "{verb:?}");
    }
}
