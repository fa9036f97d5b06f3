//! `fits`: what it writes of many data sets, the same from every format, for any threads and after
//! a kill, and what it says about tables that are not of the model.

use std::fs;

use serde_json::Value;

use crate::support::{Run, Scratch, folder, nextstat, with_stdin};

const ROWS: &str = "57 63\n51 48\n66 70\n60 55\n";

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// Writes `content` to the file `name`, and returns the arguments that fit it.
fn written(scratch: &Scratch, name: &str, content: impl AsRef<[u8]>) -> Vec<String> {
    fs::write(scratch.path(name), content).expect("writable");
    ["fits", "simple.json", "--data", &scratch.path(name)].map(str::to_owned).to_vec()
}

fn run(arguments: &[String], more: &[&str]) -> Run {
    examples(&arguments.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>())
}

/// Returns a NumPy file of random-looking data sets of `simple.json`.
fn npy(n_sets: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_sets}, 2), }}\n");
    let len = u16::try_from(header.len()).expect("short").to_le_bytes();
    let values = (0..2 * n_sets).flat_map(|i| (45.0 + (i * 37 % 41) as f64).to_le_bytes());
    [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes()].concat().into_iter().chain(values).collect()
}

#[test]
fn fits_are_a_document_by_default() {
    let scratch = Scratch::new("fits");
    let fits = run(&written(&scratch, "data.txt", ROWS), &["--uncertainties", "--summary"]);
    insta::assert_snapshot!("fits", fits.transcript().replace(&scratch.path("data.txt"), "data.txt"));
}

#[test]
fn the_format_of_the_data_does_not_matter() {
    let scratch = Scratch::new("formats");
    let document = run(&written(&scratch, "data.txt", ROWS), &[]).result();
    let json = run(&written(&scratch, "data.json", "[[57, 63], [51, 48], [66, 70], [60, 55]]"), &[]);
    let csv = run(&written(&scratch, "data.csv", format!("a,b\n{}", ROWS.replace(' ', ","))), &[]);
    let piped = with_stdin(&folder("examples"), &["fits", "simple.json", "--data", "-"], ROWS.as_bytes());
    for other in [json, csv, piped] {
        assert_eq!((other.code, other.result()), (Some(0), document.clone()), "{}", other.stderr);
    }
}

#[test]
fn threads_and_kills_leave_no_trace_in_files() {
    let scratch = Scratch::new("fits-files");
    let arguments = written(&scratch, "data.npy", npy(300));
    let to = |name: &str, more: &[&str]| {
        let path = scratch.path(name);
        let run = run(&arguments, &[&["--uncertainties", "--output-file", path.as_str()], more].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
        path
    };
    let whole = to("whole.npy", &["--threads", "1"]);
    for threads in ["2", "5"] {
        to("other.npy", &["--threads", threads]);
        assert_eq!(scratch.read("other.npy"), scratch.read("whole.npy"), "{threads} threads");
    }
    // A run that was killed in the middle of a record.
    let (bytes, document) = (scratch.read("whole.npy"), scratch.read("whole.npy.json"));
    fs::write(scratch.path("killed.npy.part"), &bytes[..bytes.len() / 2 + 5]).expect("writable");
    let mut identity: Value = serde_json::from_slice(&document).expect("JSON");
    identity["n_records"] = Value::Null;
    fs::write(scratch.path("killed.npy.part.json"), identity.to_string()).expect("writable");
    let refused = run(&arguments, &["--uncertainties", "--output-file", &scratch.path("killed.npy")]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--resume"), "{}", refused.stderr);
    to("killed.npy", &["--resume"]);
    assert_eq!(scratch.read("killed.npy"), bytes);
    // Shards are the parts of one run, joined in any order.
    let shards = ["2/3", "1/3", "3/3"].map(|shard| to(&format!("{}.npy", &shard[..1]), &["--shard", shard]));
    let joined = scratch.path("joined.npy");
    let merged = examples(&["fits", "merge", &shards[0], &shards[1], &shards[2], "--output-file", &joined]);
    assert_eq!((merged.code, merged.stderr.as_str()), (Some(0), ""));
    assert_eq!(scratch.read("joined.npy"), bytes);
    assert_eq!(scratch.read("joined.npy.json"), document);
    // Without a file, they are the document of one run.
    let without_source = |mut document: Value| {
        document["provenance"] = Value::Null;
        document
    };
    let merged = examples(&["fits", "merge", &whole]).document();
    assert_eq!(merged, without_source(run(&arguments, &["--uncertainties"]).document()));
    let missing = examples(&["fits", "merge", &shards[0], &shards[1]]);
    assert!(missing.code == Some(2) && missing.stderr.contains("shard 3 of 3"), "{}", missing.stderr);
    let without_file = run(&arguments, &["--shard", "1/3"]);
    assert!(without_file.code == Some(2) && without_file.stderr.contains("needs a NumPy file"));
}

#[test]
fn mistakes_with_data_sets_are_explained() {
    let scratch = Scratch::new("fits-mistakes");
    let mut said = String::new();
    for (name, content) in [
        ("empty.txt", ""),
        ("one.txt", "57\n51\n"),
        ("transposed.txt", "57 51 66\n63 48 70\n"),
        ("ragged.txt", "57 63\n51\n"),
        ("words.txt", "57 63\n51 many\n"),
        ("nan.csv", "57,63\n51,nan\n"),
        ("negative.json", "[[57, 63], [-1, 48]]"),
        ("null.json", "[[57, null]]"),
    ] {
        let run = run(&written(&scratch, name, content), &[]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{name}");
        said.push_str(&run.stderr.replace(&scratch.path(""), ""));
    }
    for arguments in [
        &["fits", "simple.json"][..],
        &["fits", "simple.json", "--data", "absent.npy"],
        &["fits", "--data", "-"],
        &["fits", "simple.json", "--data", "points.json", "--resume"],
        &["fit", "simple.json", "--data", "points.json"],
    ] {
        let run = examples(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        said.push_str(&format!("$ nextstat {}\n{}", arguments.join(" "), run.stderr));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn failed_fits_are_exit_code_1() {
    let scratch = Scratch::new("fits-failed");
    let workspace = r#"{"version": "1.0.0", "channels": [{"name": "SR", "samples": [
        {"name": "signal", "data": [5.0, 0.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
        {"name": "background", "data": [50.0, 0.0], "modifiers": []}]}],
        "observations": [{"name": "SR", "data": [50.0, 0.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}"#;
    fs::write(scratch.path("ws.json"), workspace).expect("writable");
    fs::write(scratch.path("data.txt"), "60 0\n60 1\n").expect("writable");
    let run = examples(&["fits", &scratch.path("ws.json"), "--data", &scratch.path("data.txt")]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(
        run.stderr,
        concat!(
            "warning: the fits of 1 of 2 data sets did not converge; nominal data: `mu` is at its lower bound 0; ",
            "its uncertainty is not defined, its MINOS interval is\n"
        )
    );
    let document = run.result();
    assert_eq!((&document["converged"], &document["data_sets"][1]["bestfit"][0]), (&Value::Bool(false), &Value::Null));
    assert_eq!(document["data_sets"][1]["outcome"], "not_finite");
}

#[test]
fn a_device_finds_the_minima_of_the_cpu() {
    let scratch = Scratch::new("fits-device");
    let arguments = written(&scratch, "data.npy", npy(40));
    let cpu = run(&arguments, &["--uncertainties"]).document();
    let device = run(&arguments, &["--uncertainties", "--device", "emulated"]);
    assert_eq!(device.code, Some(0), "{}", device.stderr);
    let device = device.document();
    assert!(device["device"]["n_fits"].as_u64() >= Some(40), "{}", device["device"]);
    for key in ["bestfit", "uncertainties"] {
        let numbers = |document: &Value| -> Vec<f64> {
            let rows = document["data_sets"].as_array().expect("rows");
            rows.iter()
                .flat_map(|row| row[key].as_array().expect("numbers").clone())
                .filter_map(|x| x.as_f64())
                .collect()
        };
        ns_testkit::assert_all_close(&numbers(&device), &numbers(&cpu), 1e-6, key);
    }
}
