//! Broken workspaces, and odd ones that are not: what `nextstat fit` says of each, in one snapshot.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{Run, folder, nextstat, with_stdin};

/// What is said, and for a fit that was done, where it ended.
fn said(run: &Run) -> String {
    let mut text = format!("exit code {}\n{}", run.code.expect("no signal"), run.stderr);
    if run.code != Some(2) {
        let document = run.document();
        let poi = document["poi"]["bestfit"].as_f64().map(|value| format!("{value:.2}"));
        let twice_nll = document["twice_nll"].as_f64().map(|value| format!("{value:.3}"));
        let _ = writeln!(text, "outcome {}, 2NLL {twice_nll:?}, poi {poi:?}", document["outcome"]);
        if run.code == Some(0) {
            for warning in document["warnings"].as_array().expect("a list") {
                let _ = writeln!(text, "warns {warning}");
            }
        }
    }
    text
}

#[test]
fn every_case_of_the_gallery_is_explained() {
    let gallery = folder("testdata/gallery");
    let entries = std::fs::read_dir(&gallery).expect("the gallery");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.retain(|name| name.ends_with(".json"));
    names.sort();
    assert!(names.len() >= 80, "{} cases", names.len());
    let mut text = String::new();
    for name in &names {
        let run = nextstat(&gallery, &["fit", name]);
        let works = name.starts_with("works-");
        assert_eq!(works, run.code == Some(0), "{name}: {}", run.stderr);
        assert!(works || run.stderr.starts_with("error: ") || run.code == Some(1), "{name}: {}", run.stderr);
        let _ = writeln!(text, "# {}\n{}", name.trim_end_matches(".json"), said(&run));
    }
    insta::assert_snapshot!(text);
}

/// Each is too large to keep; none may take long, overflow the stack, or be accepted.
#[test]
fn huge_claims_are_refused() {
    let nested = format!("{{\"channels\": {}", "[".repeat(200_000));
    let objects = "{\"a\":".repeat(100_000);
    let digits = format!("{{\"channels\": [{}]}}", "9".repeat(300_000));
    let string = format!("{{\"{}\": 1}}", "x".repeat(500_000));
    let workspace = |data: &str, modifiers: &str| {
        format!(
            r#"{{"channels": [{{"name": "SR", "samples": [{{"name": "s", "data": [{data}], "modifiers": [{modifiers}]}}]}}],
            "observations": [{{"name": "SR", "data": [1, 2]}}],
            "measurements": [{{"name": "m", "config": {{"poi": "", "parameters": []}}}}], "version": "1.0.0"}}"#
        )
    };
    let many_bins = workspace(&vec!["1.5"; 100_000].join(","), "");
    let modifier = r#"{"name": "mu", "type": "normfactor", "data": null}"#;
    let many_modifiers = workspace("1, 2", &vec![modifier; 20_000].join(","));
    let mut text = String::new();
    for (name, document) in [
        ("nested lists", &nested),
        ("nested objects", &objects),
        ("many digits", &digits),
        ("a long key", &string),
        ("many bins", &many_bins),
        ("many modifiers", &many_modifiers),
    ] {
        let run = with_stdin(Path::new("."), &["fit", "-"], document.as_bytes());
        assert_eq!(run.code, Some(2), "{name}");
        let _ = writeln!(text, "# {name}\n{}", run.stderr);
    }
    insta::assert_snapshot!(text);
}
