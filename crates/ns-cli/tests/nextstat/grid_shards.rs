//! `--every-patch --shard` and `patchset merge`: the document of one run of all patches, or a
//! message that says why not.

use std::fs;

use serde_json::Value;

use crate::support::{Run, Scratch, folder, nextstat};

const HYPOTEST: &[&str] = &["hypotest", "background.json", "--patchset", "plane.json", "--every-patch", "--mu", "2"];
const LIMIT: &[&str] = &["limit", "background.json", "--patchset", "signals.json", "--every-patch"];

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// Writes a shard, and returns its file.
fn shard(scratch: &Scratch, base: &[&str], shard: &str, more: &[&str]) -> String {
    let file = scratch.path(&format!("{}-{}.json", base[0], shard.replace('/', "-of-")));
    let run = examples(&[base, &["--shard", shard, "--output-file", &file], more].concat());
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.stderr);
    file
}

#[test]
fn shards_of_a_grid_are_merged_to_its_document() {
    let scratch = Scratch::new("grid-shards");
    for (base, n) in [(HYPOTEST, 4), (LIMIT, 2), (LIMIT, 5)] {
        let mut files: Vec<String> =
            (1..=n).map(|k| shard(&scratch, base, &format!("{k}/{n}"), &["--threads", "2"])).collect();
        files.rotate_left(1);
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let merged = examples(&[&["patchset", "merge"], &files[..]].concat());
        assert_eq!(merged.code, Some(0), "{}", merged.stderr);
        let mut documents = [merged.document(), examples(base).document()];
        for document in &mut documents {
            assert_eq!(document["complete"], Value::Bool(true));
            document["provenance"].as_object_mut().expect("an object").remove("command");
        }
        assert_eq!(documents[0], documents[1]);
    }
}

#[test]
fn a_shard_of_a_grid_says_that_it_is_one() {
    let run = examples(&[LIMIT, &["--shard", "2/2"]].concat());
    let document = run.document();
    assert_eq!(document["complete"], Value::Bool(false));
    assert_eq!((&document["shard"]["first"], &document["shard"]["n_patches"]), (&Value::from(1), &Value::from(2)));
    assert_eq!(document["patches"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_is_no_shard_of_the_same_grid_is_refused() {
    let scratch = Scratch::new("grid-mistakes");
    let (a, b) = (shard(&scratch, LIMIT, "1/2", &[]), shard(&scratch, LIMIT, "2/2", &[]));
    let whole = scratch.path("whole.json");
    assert_eq!(examples(&[LIMIT, &["-o", &whole]].concat()).code, Some(0));
    let text = scratch.path("text.json");
    fs::write(&text, "no document").expect("a scratch folder");
    let refused = |files: &[&str], reason: &str| {
        let run = examples(&[&["patchset", "merge"], files].concat());
        assert!(run.code == Some(2) && run.stderr.contains(reason), "{files:?}: {}", run.stderr);
    };
    refused(&[&b], "shard 1 of 2 not given");
    refused(&[&a, &b, &a], "both hold shard 1 of 2");
    for other in [&whole, &text, "simple.json"] {
        refused(&[&a, &b, other], "is not a shard of the analysis of every patch\nhint: `hypotest` and `limit`");
    }
    refused(&[&a, &shard(&scratch, LIMIT, "2/3", &[])], "was made with another `number of shards`");
    refused(&[&a, &shard(&scratch, HYPOTEST, "2/2", &[])], "was made with another `");
    for (more, setting) in [
        (&["--level", "0.1"][..], "level"),
        (&["--test-stat", "q"], "test_stat"),
        (&["--seed", "3"], "seed"),
        (&["--fix", "norm_ttbar=1"], "settings"),
        (&["--asimov=0"], "data"),
    ] {
        refused(&[&a, &shard(&scratch, LIMIT, "2/2", more)], &format!("was made with another `{setting}`"));
    }
    // Patches that are missing, as after Ctrl-C.
    let mut document: Value = serde_json::from_slice(&fs::read(&a).expect("a shard")).expect("JSON");
    document["patches"] = Value::Array(Vec::new());
    fs::write(&a, document.to_string()).expect("a scratch file");
    refused(&[&a, &shard(&scratch, LIMIT, "2/2", &[])], "is not complete: it has 0 of 1 patches");
}

#[test]
fn an_error_of_every_patch_is_one_when_they_are_merged() {
    let scratch = Scratch::new("grid-error");
    let wrong = ["--fix", "nothing=1"];
    let alone = examples(&[LIMIT, &wrong].concat());
    let files = ["1/2", "2/2"].map(|k| shard(&scratch, LIMIT, k, &wrong));
    let merged = examples(&["patchset", "merge", &files[0], &files[1]]);
    assert_eq!((alone.code, merged.code), (Some(2), Some(2)));
    let message = alone.stderr.lines().next().and_then(|line| line.strip_prefix("error: ")).expect("an error");
    assert!(merged.stderr.contains(message), "{}\n{}", merged.stderr, alone.stderr);
}
