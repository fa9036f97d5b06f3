//! `toys` and `hypotest-toys`: what they write, and that kills, shards and threads leave no trace
//! in it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ns_translate::python_json;
use serde_json::Value;

use crate::support::{Run, Scratch, folder, nextstat};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

fn ok(run: &Run) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn toys_are_a_document_by_default() {
    let run = examples(&["toys", "simple.json", "--n-toys", "3", "--seed", "5", "--poi-uncertainty"]);
    insta::assert_snapshot!("toys", run.transcript());
}

#[test]
fn tests_by_toys_are_a_document() {
    let run = examples(&["hypotest-toys", "simple.json", "--n-toys", "200", "--n-toys-b", "100", "--summary"]);
    insta::assert_snapshot!("hypotest_toys", run.transcript());
}

#[test]
fn intervals_and_limits_by_toys_have_errors() {
    let interval = examples(&["interval", "simple.json", "--cl", "0.9", "--tolerance", "0.1", "--summary"]);
    assert_eq!(interval.code, Some(0), "{}", interval.stderr);
    assert!(interval.stderr.contains("Feldman-Cousins interval of `mu` at 90 % confidence level, by "));
    let end = &interval.document()["upper"];
    let [value, error] = ["value", "error"].map(|key| end[key].as_f64().expect("a number"));
    // The asymptotic end is 1.54.
    assert!((value - 1.54).abs() < 0.2 && error > 0.0 && error < 0.1, "{end}");
    let limit = examples(&["limit", "simple.json", "--toys", "--observed-only", "--tolerance", "0.05", "--summary"]);
    assert!(limit.stderr.contains("upper limits on `mu` at 95 % confidence level (CLs), by "), "{}", limit.stderr);
    let [value, error] = ["observed", "observed_error"].map(|key| limit.document()[key].as_f64().expect("a number"));
    assert!((value - 1.705).abs() < 0.25 && error > 0.0 && error < 0.05 * value, "{value} ± {error}");
    let unfinished = examples(&["limit", "simple.json", "--toys", "--tolerance", "1e-3", "--max-toys", "1000"]);
    assert_eq!((unfinished.code, &unfinished.document()["converged"]), (Some(1), &Value::Bool(false)));
    assert!(
        unfinished.stderr.contains("the error is above the tolerance after 1000 of at most 1000 toys"),
        "{}",
        unfinished.stderr
    );
}

#[test]
fn searches_have_a_global_p_value_beside_the_local_ones() {
    let base = ["search", "background.json", "--patchset", "plane.json", "--toys", "200", "--limits", "--summary"];
    let run = examples(&base);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for part in ["largest local significance", "global p-value by the field", "global p-value by 200 toys", "linear Z"]
    {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let found = run.document();
    let largest =
        found["patches"].as_array().expect("patches").iter().filter_map(|patch| patch["result"]["Z_obs"].as_f64());
    assert_eq!(found["strongest"]["Z_obs"].as_f64(), largest.max_by(f64::total_cmp));
    assert!(found["field"]["p_value"].as_f64() >= found["strongest"]["p0_obs"].as_f64());
    assert!(found["patches"][0]["limit"]["observed"].is_number() && found["correlation"].is_null());
}

#[test]
fn coverages_say_whether_intervals_may_be_used() {
    let base = ["coverage", "simple.json", "--true", "0,1", "--true", "2", "--n-toys", "3000", "--seed", "4"];
    let run = examples(&[&base[..], &["--method", "minos", "--method", "cls", "--summary"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("coverage of 95 % intervals of `mu`, by 3000 toys at each true value"));
    let found = run.document();
    let points = found["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    // CLs excludes no value of 0; MINOS intervals of values far from 0 have their coverage.
    assert_eq!((&points[1]["coverage"], &points[1]["method"]), (&Value::from(1.0), &Value::from("cls")));
    assert_eq!((&points[4]["true_value"], &points[4]["verdict"]), (&Value::from(2.0), &Value::from("compatible")));
    let said = found["methods"][1]["statement"].as_str().expect("a statement");
    assert!(said.starts_with("upper limits by asymptotic CLs over-cover") && run.stderr.contains(said), "{said}");
    // The defaults, and `--toys` for `--n-toys`.
    let usual = examples(&["coverage", "simple.json", "--true", "1", "--toys", "20"]).document();
    let names: Vec<&str> = ["hessian", "minos", "cls"].to_vec();
    let methods = usual["methods"].as_array().expect("methods").iter().filter_map(|method| method["method"].as_str());
    assert_eq!((methods.collect::<Vec<_>>(), &usual["cl"]), (names, &Value::from(0.95)));
    assert_eq!(usual["methods"][1]["verdict"], "not_enough_toys");
}

#[test]
fn coverages_do_not_depend_on_threads() {
    let with = |threads| {
        let base = ["coverage", "simple.json", "--true", "0.5", "--n-toys", "300", "--max-inner-toys", "50"];
        examples(&[&base[..], &["--method", "minos,fc,cls,hessian", "--threads", threads]].concat()).result()
    };
    assert_eq!(with("1"), with("3"));
}

#[test]
fn documents_of_toys_look_like_those_of_other_verbs() {
    let scratch = Scratch::new("micro");
    let text = fs::read_to_string(folder("examples").join("simple.json")).expect("an example");
    fs::write(scratch.path("m.json"), text.replace("\"mu\"", "\"µ\\u009b\"")).expect("writable");
    let path = scratch.path("toys.npy");
    let base = ["toys", &scratch.path("m.json"), "--n-toys", "3", "--poi-uncertainty"];
    ok(&examples(&[&base[..], &["--output-file", &path]].concat()));
    let beside = String::from_utf8(scratch.read("toys.npy.json")).expect("UTF-8");
    for (text, n_toys) in [(examples(&base).stdout, 3), (examples(&["toys", "merge", &path]).stdout, 3), (beside, 0)] {
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(text, python_json(&document).expect("text keys") + "\n");
        assert!(text.contains("\\u00b5\\u009b"), "{text}");
        assert_eq!(document["toys"].as_array().map_or(0, Vec::len), n_toys);
    }
}

#[test]
fn mistakes_with_toys_are_explained() {
    let scratch = Scratch::new("mistakes");
    let text = scratch.path("text.npy");
    fs::write(&text, "no toys").expect("writable");
    fs::write(scratch.path("text.npy.json"), "{}").expect("writable");
    let mut said = String::new();
    for arguments in [
        &["toys", "simple.json", "--shard", "1/2"][..],
        &["toys", "simple.json", "--shard", "3/2"],
        &["toys", "simple.json", "--throw-at", "truth"],
        &["toys", "simple.json", "--parameter", "Mu"],
        &["toys", "simple.json", "--throw-at", "init", "--bounds", "mu=-20:10", "--mu", "-20"],
        &["toys", "background.json", "--poi", "none", "--mu", "1"],
        &["toys", "merge"],
        &["toys", "merge", "absent.npy"],
        &["hypotest-toys", "background.json", "--poi", "none"],
        &["hypotest-toys", "simple.json", "--resume"],
        &["hypotest-toys", "simple.json", "--test-stat", "t"],
    ] {
        let run = examples(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        said.push_str(&format!("$ nextstat {}\n{}", arguments.join(" "), run.stderr));
    }
    insta::assert_snapshot!(said);
    let run = examples(&["toys", "merge", &text]);
    assert!(run.code == Some(2) && run.stderr.contains("does not say which toys"), "{}", run.stderr);
}

#[test]
fn threads_batches_and_shards_leave_no_trace_in_files() {
    let scratch = Scratch::new("shards");
    let base = ["toys", "shapes.json", "--n-toys", "150", "--seed", "3", "--output-file"];
    let run = |name: &str, more: &[&str]| {
        let path = scratch.path(name);
        ok(&examples(&[&base[..], &[path.as_str()], more].concat()));
        path
    };
    run("whole.npy", &[]);
    for (threads, batch) in [("1", "1"), ("2", "13"), ("7", "64")] {
        run("other.npy", &["--threads", threads, "--batch", batch]);
        assert_eq!(scratch.read("other.npy"), scratch.read("whole.npy"), "{threads} threads");
    }
    let shards = ["1/4", "2/4", "3/4", "4/4"].map(|shard| run(&format!("{}.npy", &shard[..1]), &["--shard", shard]));
    let merged = scratch.path("merged.npy");
    let [a, b, c, d] = shards.each_ref().map(String::as_str);
    ok(&examples(&["toys", "merge", c, a, d, b, "--output-file", &merged]));
    assert_eq!(scratch.read("merged.npy"), scratch.read("whole.npy"));
    assert_eq!(scratch.read("merged.npy.json"), scratch.read("whole.npy.json"));
    let document = examples(&["toys", "shapes.json", "--n-toys", "150", "--seed", "3"]).result();
    assert_eq!(examples(&["toys", "merge", d, b, c, a]).result(), document);

    let refused = |files: &[&str], reason: &str| {
        let run = examples(&[&["toys", "merge"], files].concat());
        assert!(run.code == Some(2) && run.stderr.contains(reason), "{}", run.stderr);
    };
    refused(&[a, b, d], "shard 3 of 4 not given");
    refused(&[a, b, c, d, b], "both hold shard 2 of 4");
    let other_seed = scratch.path("seed.npy");
    ok(&examples(&[
        "toys",
        "shapes.json",
        "--n-toys",
        "150",
        "--seed",
        "4",
        "--shard",
        "4/4",
        "--output-file",
        &other_seed,
    ]));
    refused(&[a, b, c, &other_seed], "seed.npy` was made with another `seed`: 4, not 3 as `");
    let other_model = scratch.path("model.npy");
    let of_other =
        ["toys", "simple.json", "--n-toys", "150", "--seed", "3", "--shard", "4/4", "--output-file", &other_model];
    ok(&examples(&of_other));
    refused(&[a, b, c, &other_model], "model.npy` was made with another `");
    refused(&[a, &scratch.path("whole.npy")], "holds a shard of 1");
    let bytes = scratch.read("3.npy");
    fs::write(c, &bytes[..bytes.len() - 1]).expect("writable");
    refused(&[a, b, c, d], "3.npy` is damaged");
}

#[test]
fn shards_of_a_test_are_merged_to_its_result() {
    let scratch = Scratch::new("tests");
    let base = ["hypotest-toys", "simple.json", "--n-toys", "150", "--n-toys-b", "100", "--toys-file"];
    let run = |name: &str, more: &[&str]| examples(&[&base[..], &[scratch.path(name).as_str()], more].concat());
    let whole = run("whole.npy", &[]);
    ok(&whole);
    for (name, shard) in [("1.npy", "1/3"), ("2.npy", "2/3"), ("3.npy", "3/3")] {
        let part = run(name, &["--shard", shard]);
        let warnings = part.document()["warnings"].to_string();
        assert!(part.code == Some(0) && warnings.contains("of 3 only"), "{warnings}");
    }
    let [a, b, c] = ["1.npy", "2.npy", "3.npy"].map(|name| scratch.path(name));
    assert_eq!(examples(&["toys", "merge", &a, &b, &c]).result(), whole.result());
    let merged = scratch.path("merged.npy");
    assert_eq!(examples(&["toys", "merge", &c, &b, &a, "--output-file", &merged]).result(), whole.result());
    assert_eq!(scratch.read("merged.npy"), scratch.read("whole.npy"));
    // A finished run is read again, and one with another statistic is another one.
    assert_eq!(run("whole.npy", &["--resume"]).result(), whole.result());
    let other = run("whole.npy", &["--resume", "--test-stat", "q"]);
    assert!(other.code == Some(2) && other.stderr.contains("another `observed."), "{}", other.stderr);
}

#[test]
fn a_test_that_may_stop_early_does_so_again_after_a_resume() {
    let scratch = Scratch::new("early");
    let path = scratch.path("toys.npy");
    let base = ["hypotest-toys", "simple.json", "--n-toys", "20000", "--stop-at-error", "0.02"];
    let whole = examples(&base);
    let n_toys = whole.document()["n_toys"][0].as_u64().expect("a count");
    assert!((500..5000).contains(&n_toys) && n_toys.is_multiple_of(250), "{n_toys}");
    let kept = examples(&[&base[..], &["--toys-file", &path, "--threads", "1"]].concat());
    assert_eq!(kept.result(), whole.result());
    // As if it had been killed: back to its unfinished names, with a third of its records and a
    // torn one.
    let bytes = scratch.read("toys.npy");
    fs::write(scratch.path("toys.npy.part"), &bytes[..bytes.len() / 3]).expect("writable");
    fs::rename(scratch.path("toys.npy.json"), scratch.path("toys.npy.part.json")).expect("movable");
    let resumed = examples(&[&base[..], &["--toys-file", &path, "--resume"]].concat());
    assert_eq!(resumed.result(), whole.result());
    assert_eq!(scratch.read("toys.npy"), bytes);
}

const LONG: [&str; 5] = ["toys", "simple.json", "--n-toys", "40000", "--output-file"];

/// Starts a long run and waits until it has written some toys.
fn start(file: &str, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
    command.args([&LONG[..], &[file], more].concat()).current_dir(folder("examples"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let (part, begin) = (format!("{file}.part"), Instant::now());
    while fs::metadata(&part).map_or(0, |data| data.len()) < 10_000 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no toys are written");
        assert!(!Path::new(file).exists(), "too quick to be stopped");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn a_killed_run_is_continued_as_if_nothing_had_been() {
    let scratch = Scratch::new("killed");
    let (file, whole) = (scratch.path("killed.npy"), scratch.path("whole.npy"));
    let mut child = start(&file, &[]);
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    assert_eq!(scratch.names(), ["killed.npy.part", "killed.npy.part.json"], "nothing is at the final name");

    // A record torn by the kill, then one of zeros as a file system may leave after a crash.
    let mut part = scratch.read("killed.npy.part");
    part.extend([0; 60]);
    fs::write(scratch.path("killed.npy.part"), part).expect("writable");

    let again = examples(&[&LONG[..], &[&file]].concat());
    assert!(again.code == Some(2) && again.stderr.contains("hint: continue it with `--resume`"), "{}", again.stderr);
    let other = examples(&[&LONG[..], &[&file, "--resume", "--seed", "1"]].concat());
    assert!(
        other.code == Some(2) && other.stderr.contains("another `seed`: 0, not 1 as asked for"),
        "{}",
        other.stderr
    );

    ok(&examples(&[&LONG[..], &[&file, "--resume"]].concat()));
    ok(&examples(&[&LONG[..], &[&whole, "--threads", "1"]].concat()));
    assert_eq!(scratch.read("killed.npy"), scratch.read("whole.npy"));
    assert_eq!(scratch.names(), ["killed.npy", "killed.npy.json", "whole.npy", "whole.npy.json"]);
}

#[test]
fn a_second_run_on_the_same_file_is_refused() {
    let scratch = Scratch::new("second-run");
    let file = scratch.path("toys.npy");
    let mut child = start(&file, &[]);
    for more in [&[][..], &["--resume"], &["--seed", "1"]] {
        let run = examples(&[&LONG[..], &[&file], more].concat());
        assert!(run.code == Some(2) && run.stderr.contains("another run is writing `"), "{more:?}: {}", run.stderr);
    }
    child.kill().expect("it runs");
    child.wait().expect("it ended");
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_what_is_done() {
    let scratch = Scratch::new("interrupted");
    let file = scratch.path("toys.npy");
    let child = start(&file, &[]);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a system with kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("it ended");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("warning: interrupted after ") && said.contains("`--resume` continues"), "{said}");
    let header = String::from_utf8_lossy(&scratch.read("toys.npy.part")[..192]).into_owned();
    let n_done: usize = said.split_whitespace().nth(3).and_then(|n| n.parse().ok()).expect("a number");
    assert!(n_done > 0 && header.contains(&format!("'shape': ({n_done},)")), "{header} after {said}");
}

#[test]
fn fixed_auxiliary_data_cause_a_warning() {
    for arguments in [["toys", "simple.json"], ["hypotest-toys", "simple.json"]] {
        let run = examples(&[&arguments[..], &["--aux", "fixed", "--n-toys", "20"]].concat());
        assert!(run.stderr.contains("warning: auxiliary data are fixed at their observed values"), "{}", run.stderr);
        assert!(run.document()["warnings"].to_string().contains("auxiliary data"));
    }
}

#[test]
fn toys_are_thrown_at_the_requested_point() {
    let thrown = |more: &[&str]| {
        let run = examples(&[&["toys", "simple.json", "--n-toys", "1", "--parameter", "mu"], more].concat());
        ok(&run);
        let document = run.document();
        assert_eq!(document["toys"][0]["bestfit"].as_array().map(Vec::len), Some(1));
        document["thrown_at"]["values"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect::<Vec<_>>()
    };
    assert_eq!(thrown(&["--throw-at", "init"]), [1.0, 1.0, 1.0]);
    assert_eq!(thrown(&["--throw-at", "init", "--mu", "0.5"]), [0.5, 1.0, 1.0]);
    let conditional = examples(&["fit", "simple.json", "--fix", "mu=0"]).document();
    for (at, fitted) in thrown(&["--mu", "0"]).iter().zip(conditional["bestfit"].as_array().expect("a list")) {
        assert!((at - fitted.as_f64().expect("a number")).abs() < 1e-7);
    }
}
