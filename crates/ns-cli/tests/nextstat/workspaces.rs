//! `combine`, `prune`, `rename` and `sort`: what they say, and of which mistakes. What they write
//! is compared with pyhf in `pyhf_commands`.

use std::fmt::Write as _;

use crate::support::{Run, folder, nextstat, with_stdin};

const RIVAL: &str = "../testdata/commands/rival.json";

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

#[test]
fn workspaces_are_written_and_summarised() {
    insta::assert_snapshot!("sort", examples(&["sort", "simple.json", "--summary"]).transcript());
    let rename = ["rename", "simple.json", "-m", "mu", "r", "-s", "signal", "Higgs", "--summary"];
    insta::assert_snapshot!("rename", examples(&rename).transcript());
    insta::assert_snapshot!("prune", examples(&["prune", "simple.json", "-s", "signal"]).transcript());
    insta::assert_snapshot!("prune_quietly", examples(&["prune", "simple.json", "-s", "signal", "-q"]).stderr);
}

#[test]
fn decisions_of_a_join_are_reported() {
    let mut said = String::new();
    for join in [&["left outer"][..], &["right-outer"], &["left outer", "--merge-channels"]] {
        let run = examples(&[&["combine", "shapes.json", RIVAL, "--join"], join].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let _ = writeln!(said, "--join {}\n{}", join.join(" "), run.stderr);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn mistakes_with_workspaces_are_explained() {
    let mut said = String::new();
    for arguments in [
        &["combine", "shapes.json", "background.json"][..],
        &["combine", "shapes.json", RIVAL, "-j", "outer"],
        &["combine", "shapes.json", RIVAL, "-j", "outer", "--merge-channels"],
        &["combine", "shapes.json", "simple.json", "--merge-channels"],
        &["combine", "shapes.json", "simple.json", "--join", "left"],
        &["combine", "shapes.json", "signal.json"],
        &["prune", "shapes.json", "-s", "tbar"],
        &["prune", "shapes.json", "-c", "SR"],
        &["prune", "simple.json", "-t", "normsys"],
        &["prune", "simple.json", "-t", "normfac"],
        &["prune", "simple.json", "--channel", "singlechannel"],
        &["prune", "shapes.json", "-s", "ttbar", "-s", "wjets", "-s", "fakes"],
        &["rename", "shapes.json", "-c", "Signal_region", "SR"],
        &["rename", "shapes.json", "-c", "signal_region=SR"],
        &["rename", "shapes.json", "-s", "ttbar", "wjets"],
        &["rename", "shapes.json", "-m", "mu", "lumi"],
        &["rename", "shapes.json", "-m", "lumi", "luminosity"],
        &["rename", "shapes.json", "--measurement", "search", "a", "--measurement", "search", "b"],
        &["sort", "signals.json"],
        &["combine", "-", "-"],
        &["sort"],
    ] {
        let run = examples(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        let _ = writeln!(said, "$ nextstat {}\n{}", arguments.join(" "), run.stderr);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_workspace_that_is_not_named_is_piped_in() {
    let simple = std::fs::read(folder("examples/simple.json")).expect("an example");
    for verb in ["fit", "cls", "inspect", "sort", "check"] {
        let piped = with_stdin(&folder("examples"), &[verb], &simple);
        assert_eq!(piped.result(), examples(&[verb, "simple.json"]).result(), "{verb}");
    }
    let signals = std::fs::read(folder("examples/signals.json")).expect("an example");
    let piped = with_stdin(&folder("examples"), &["patchset", "verify", "background.json"], &signals);
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
}
