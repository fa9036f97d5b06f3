//! Command lines of pyhf's, word for word: what writes workspaces, patches and digests gives the
//! same bytes, the rest the same keys and values.
//!
//! Expected outputs are pyhf 0.7.6's, from `testdata/commands/generate.py`.

use std::fs;

use serde_json::Value;

use crate::support::{Run, folder, nextstat, with_stdin};

struct Case {
    name: String,
    compares_bytes: bool,
    stdin: Vec<u8>,
    commands: Vec<Vec<String>>,
    expected: String,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(folder("testdata/commands/cases.json")).expect("in the repository");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["cases"].as_array().expect("a list").iter().map(case).collect()
}

fn case(case: &Value) -> Case {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let name = text(&case["name"]);
    let expected = fs::read_to_string(folder("testdata/commands/pyhf").join(format!("{name}.txt")));
    let words = |command: &Value| command.as_array().expect("a list").iter().map(text).collect();
    Case {
        compares_bytes: case["compare"] == "bytes",
        stdin: case["stdin"].as_str().map_or_else(Vec::new, |file| fs::read(folder(file)).expect("an example")),
        commands: case["commands"].as_array().expect("a list").iter().map(words).collect(),
        expected: expected.expect("one file per case"),
        name,
    }
}

/// Runs a case's commands, the output of one being the input of the next. `OUTPUT` stands for a
/// file, which we need not name: it has what standard output has.
fn run(case: &Case) -> Run {
    let mut stdin = case.stdin.clone();
    let mut last = None;
    for command in &case.commands {
        let words: Vec<&str> = command.iter().map(|word| if word == "OUTPUT" { "-" } else { word.as_str() }).collect();
        let run = with_stdin(&folder("."), &words, &stdin);
        assert_eq!(run.code, Some(0), "{}: {}", case.name, run.stderr);
        stdin = run.stdout.clone().into_bytes();
        last = Some(run);
    }
    last.expect("at least one command")
}

#[test]
fn workspaces_patches_and_digests_are_pyhf_s_to_the_byte() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.compares_bytes).collect();
    assert!(cases.len() > 25, "{}", cases.len());
    for case in cases {
        let ours = run(&case).stdout;
        let differs = ours.lines().zip(case.expected.lines()).find(|(ours, theirs)| ours != theirs);
        assert!(ours == case.expected, "{}: {differs:?}", case.name);
    }
}

#[test]
fn results_have_pyhf_s_keys_and_values() {
    for case in cases().iter().filter(|case| !case.compares_bytes) {
        let theirs: Value = serde_json::from_str(&case.expected).expect("JSON");
        assert!(theirs.as_object().is_some_and(|members| !members.is_empty()), "{}", case.name);
        contains(&run(case).document(), &theirs, &case.name);
    }
}

/// Every member of `theirs` is one of `ours`. pyhf's minimiser stops about 1e-4 from the minimum.
fn contains(ours: &Value, theirs: &Value, place: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let place = format!("{place}/{key}");
                contains(ours.get(key).unwrap_or_else(|| panic!("no {place}")), value, &place);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{place}");
            ours.iter().zip(theirs).enumerate().for_each(|(i, (a, b))| contains(a, b, &format!("{place}/{i}")));
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            let (ours, theirs) = (ours.as_f64().expect("a double"), theirs.as_f64().expect("a double"));
            assert!((ours - theirs).abs() < 1e-3 * theirs.abs().max(1.0), "{place}: {ours}, not {theirs}");
        }
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

#[test]
fn pyhf_s_other_engines_are_taken_and_named() {
    let of_pyhf =
        ["cls", "examples/simple.json", "--backend", "jax", "--optimizer", "minuit", "--optconf", "tolerance=0.01"];
    let run = nextstat(&folder("."), &of_pyhf);
    assert_eq!(run.result(), nextstat(&folder("."), &of_pyhf[..2]).result());
    insta::assert_snapshot!("engines_of_pyhf_s", run.stderr);
    let quiet = nextstat(&folder("."), &[&of_pyhf[..], &["--quiet"]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
}

#[test]
fn cls_by_toys_is_that_of_the_verb_for_toys() {
    let run = |arguments: &[&str]| {
        let run = nextstat(&folder("examples"), arguments);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.result()
    };
    let by_toys =
        run(&["cls", "simple.json", "--calctype", "toybased", "--test-stat", "q", "--test-poi", "2", "--quiet"]);
    let toys = run(&["hypotest-toys", "simple.json", "--mu", "2", "--n-toys", "2000", "--test-stat", "q", "--quiet"]);
    assert_eq!(by_toys, toys);
    assert!(by_toys["CLs_obs"].is_number());
    assert_eq!(by_toys["CLs_exp"].as_array().map(Vec::len), Some(5));
    let refused = nextstat(&folder("examples"), &["cls", "simple.json", "--calctype", "toybased", "--test-stat", "t"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!("cls_by_toys_of_a_two_sided_statistic", refused.stderr);
}
