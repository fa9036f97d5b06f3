//! Several parameters of interest, and `limit --at`: what the command writes and says of them.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Run, Scratch, folder, nextstat};

/// Leaves out the keys that a document inside another one has not.
fn without_head(mut document: Value) -> Value {
    let fields = document.as_object_mut().expect("a document");
    fields.retain(|key, _| !["$schema", "measurement", "nextstat_version"].contains(&key.as_str()));
    document
}

fn examples(arguments: &str) -> Run {
    nextstat(&folder("examples"), &arguments.split(' ').collect::<Vec<_>>())
}

#[test]
fn several_parameters_of_interest_have_a_document_for_each() {
    for verb in ["limit", "hypotest --mu 1.2", "significance", "ranking"] {
        let both = examples(&format!("{verb} shapes.json --poi mu --poi norm_ttbar"));
        let document = both.result();
        for (k, name) in ["mu", "norm_ttbar"].into_iter().enumerate() {
            let alone = examples(&format!("{verb} shapes.json --poi {name}"));
            assert_eq!(document["results"][k], without_head(alone.result()), "{verb} {name}");
            assert!(alone.code <= both.code, "{verb}: {} {}", alone.stderr, both.stderr);
        }
    }
}

#[test]
fn tables_have_a_part_for_each_parameter_of_interest() {
    let scratch = Scratch::new("pois");
    let said: Vec<String> = ["limit", "significance", "limit --at lumi=0.98:1.02:3", "hypotest --mu 1.1"]
        .map(|verb| {
            let output = scratch.path("result.json");
            let run =
                examples(&format!("{verb} shapes.json --poi mu --poi norm_ttbar --summary --output-file {output}"));
            format!("$ nextstat {verb}\nexit code {:?}\n{}", run.code, run.stderr)
        })
        .to_vec();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn limits_at_values_are_those_with_the_parameter_fixed() {
    let run = examples("limit shapes.json --at norm_ttbar=0.8:1.2:3");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    let document = run.result();
    assert_eq!(document["at"]["values"], json!([0.8, 1.0, 1.2]));
    for (row, value) in document["limits"].as_array().expect("rows").iter().zip(["0.8", "1", "1.2"]) {
        let mut alone = without_head(examples(&format!("limit shapes.json --fix norm_ttbar={value}")).result());
        alone["value"] = row["value"].clone();
        assert_eq!(*row, alone, "{value}");
    }
    for threads in ["1", "3"] {
        let other = examples(&format!("limit shapes.json --at norm_ttbar=0.8:1.2:3 --threads {threads}"));
        assert_eq!(other.result(), document, "{threads} threads");
    }
}

#[test]
fn a_value_without_a_limit_is_exit_code_1() {
    let scratch = Scratch::new("at-failed");
    let mut workspace: Value =
        serde_json::from_slice(&fs::read(folder("examples").join("simple.json")).expect("an example")).expect("JSON");
    // A channel without `mu` that has -55 events at b = -10.
    let extra = json!({"name": "extra", "data": [10.0],
        "modifiers": [{"name": "b", "type": "normfactor", "data": null}]});
    let known = json!({"name": "known", "data": [45.0], "modifiers": []});
    workspace["channels"].as_array_mut().expect("channels").push(json!({"name": "other", "samples": [extra, known]}));
    workspace["observations"].as_array_mut().expect("data").push(json!({"name": "other", "data": [50.0]}));
    fs::write(scratch.path("ws.json"), workspace.to_string()).expect("writable");
    let run = nextstat(
        &folder("examples"),
        &["limit", &scratch.path("ws.json"), "--bounds", "b=-10:10", "--at", "b=-10:0:2", "--cl", "0.9"],
    );
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.starts_with("warning: `b` = -10: "), "{}", run.stderr);
    let limits = &run.result()["limits"];
    assert!(limits[0]["observed"].is_null() && limits[1]["observed"].is_f64(), "{limits}");
}

#[test]
fn every_patch_has_every_parameter_of_interest() {
    let run = examples("limit background.json --patchset signals.json --every-patch --poi mu --poi norm_ttbar");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document = run.result();
    let alone = examples("limit background.json --patchset signals.json --every-patch --poi norm_ttbar").result();
    let [both, alone] = [&document, &alone].map(|grid| grid["patches"].as_array().expect("patches"));
    assert_eq!((both.len(), alone.len()), (3, 3));
    for (both, alone) in both.iter().zip(alone) {
        assert_eq!(both["result"]["results"][1], alone["result"]);
    }
}

#[test]
fn mistakes_with_fixed_values_are_explained() {
    let mut said = String::new();
    for arguments in [
        "--at norm=0.8:1.2:3",
        "--at mu=0:1:3",
        "--at norm_ttbar=0.8:1.2",
        "--at norm_ttbar=0.8:1.2:1",
        "--at norm_ttbar=0.8:1.2:0",
        "--at norm_ttbar=1.2:0.8:3",
        "--at norm_ttbar=0:x:3",
        "--at lumi=0:1:3",
        "--at norm_ttbar=0.8:1.2:3 --fix norm_ttbar=1",
        "--at norm_ttbar=0.8:1.2:3 --poi none",
        "--at norm_ttbar=0.8:1.2:3 --at lumi=0.9:1:2",
        "--poi mu --poi norm --at lumi=0.9:1:2",
    ] {
        let run = examples(&format!("limit shapes.json {arguments}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}");
        said.push_str(&format!("$ nextstat limit {arguments}\n{}", run.stderr));
    }
    insta::assert_snapshot!(said);
}
