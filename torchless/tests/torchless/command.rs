//! The command as people run it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::random_model::{RandomModel, Stored, fresh_folder};
use crate::support::{distance, ids, json, program, reference, tensors};

pub(crate) fn torchless(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().expect("the command")
}

pub(crate) fn answer(arguments: &[&str]) -> Value {
    let output = torchless(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn rows(answer: &Value) -> Vec<f32> {
    let rows = answer["logits"].as_array().expect("rows").iter();
    rows.flat_map(|row| row.as_array().expect("a row")).map(|logit| logit.as_f64().expect("a number") as f32).collect()
}

#[test]
fn logits_are_one_row_for_each_position() {
    let small = RandomModel::new("qwen2").drawn();
    let folder = small.write_folder("command-logits", true, 1);
    let found = answer(&["logits", "--model", text(&folder), "--tokens", "0,52,29", "--all", "--json"]);
    assert_eq!(found["logits"].as_array().expect("rows").len(), 3);
    let all = rows(&found);
    // Digits of single precision, no more.
    let said = torchless(&["logits", "--model", text(&folder), "--tokens", "0,52,29", "--all", "--json"]).stdout;
    let said = String::from_utf8(said).expect("UTF-8");
    assert!(said.split([',', '[', ']']).all(|number| number.len() < 16), "{said}");
    assert!(distance(&all, &small.logits(&[0, 52, 29])) < 1e-4);
    let last = answer(&["logits", "--model", text(&folder), "--tokens", "0,52,29", "--json"]);
    assert_eq!(rows(&last), all[2 * 70..]);
}

#[test]
#[cfg(unix)]
fn a_standard_output_that_takes_nothing_is_an_error() {
    let folder = RandomModel::new("llama").drawn().write_folder("command-closed", true, 1);
    let logits = format!("logits --model {} --tokens 1", text(&folder));
    let full = Path::new("/dev/full").exists().then_some(">/dev/full");
    if full.is_none() {
        println!("skipped in part: this system has no /dev/full");
    }
    for redirection in full.into_iter().chain([">&-"]) {
        for verb in ["--version", "--help", "logits --help", &logits, &format!("{logits} --all --json")] {
            let mut shell = Command::new("sh");
            let output = shell
                .args(["-c", &format!("'{}' {verb} {redirection}", program().display())])
                .output()
                .expect("a shell");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb} {redirection}: {said}");
            assert!(said.starts_with("error: cannot write the answer: "), "{verb} {redirection}: {said}");
        }
    }
}

#[test]
fn common_mistakes_are_named() {
    let folder = RandomModel::new("llama").drawn().write_folder("command-mistakes", true, 1);
    let model = ["--model", text(&folder)];
    let cases: [(&[&str], &str); 6] = [
        (&["logits", "--tokens", "1,70"], "error: token 1 is 70, and the vocabulary has 70 (ids 0 to 69)\n"),
        (&["logits"], "error: neither --tokens nor --prompt is given\n"),
        (
            &["logits", "--tokens", "1", "--memory-limit", "lots"],
            "error: `lots` is not a valid size\nhint: a size is a number of bytes, or a number with KiB, MiB or GiB\n",
        ),
        (&["generate", "--prompt", "hello"], "has no tokenizer\nhint: give token ids with --tokens, and no --stop\n"),
        (
            &["logits", "--tokens", "1", "--memory-limit", "1KiB"],
            "hint: a shorter context or a quantised model needs less",
        ),
        (
            &["generate", "--tokens", "1", "--temperature", "-1"],
            "error: the temperature is -1, and it must be positive",
        ),
    ];
    for (arguments, expected) in cases {
        let output = torchless(&[arguments, &model].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }
    let absent = torchless(&["info", "--model", "/nowhere"]);
    assert!(String::from_utf8_lossy(&absent.stderr).starts_with("error: cannot read `/nowhere`\n"));
}

/// Weights, keys and values, 15 % more, and what the program takes with an empty model.
#[test]
#[cfg(target_os = "linux")]
fn the_peak_of_memory_is_that_of_weights_keys_and_values() {
    let shape = RandomModel {
        hidden: 256,
        heads: 8,
        kv_heads: 2,
        head_dim: 32,
        intermediate: 768,
        ..RandomModel::new("llama")
    };
    let measured = |path: &Path, prefill: &str| {
        let words = ["bench", "--model", text(path), "--prefill", prefill, "--decode", "4", "--threads", "1", "--json"];
        let memory = answer(&words)["memory"].clone();
        let number = |name: &str| memory[name].as_u64().expect("a number");
        (number("peak"), number("weights") + number("keys_and_values"))
    };
    let small = RandomModel::new("llama").drawn().write_folder("memory-small", true, 1);
    let (program, _) = measured(&small, "1");
    for (name, stored) in [("memory-f32", Stored::F32), ("memory-f16", Stored::F16)] {
        let small = RandomModel { stored, layers: 10, windows: vec![None; 10], vocabulary: 4000, ..shape.clone() };
        let path = small.drawn().write_folder(name, true, 1);
        for prefill in ["1", "48"] {
            let (peak, needed) = measured(&path, prefill);
            println!("{name}, {prefill} tokens: {:.3}", (peak - program) as f64 / needed as f64);
            assert!(needed > 15 << 20, "large enough to be seen");
            assert!(
                (peak - program) as f64 <= 1.15 * needed as f64,
                "{name}: {peak} for {needed}, and {program} without"
            );
        }
        std::fs::remove_dir_all(path).expect("a folder");
    }
}

#[test]
#[cfg(not(target_os = "macos"))]
fn a_device_that_is_not_there_is_an_error() {
    let folder = RandomModel::new("llama").drawn().write_folder("command-device", true, 1);
    for flag in ["--device", "--gpu"] {
        let output = torchless(&["logits", "--model", text(&folder), "--tokens", "1", flag, "metal"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: metal cannot be used: metal devices exist on macOS only\n"), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn scores_are_ratios_of_likelihoods_with_the_end() {
    let small = RandomModel::new("llama").drawn();
    let folder = small.write_folder("command-score", true, 1);
    let events = fresh_folder("command-events").join("events.json");
    std::fs::write(&events, "[[5, 9], [], [7]]").expect("a writable folder");
    let found = answer(&[
        "score",
        "--model",
        text(&folder),
        "--prefix",
        "65",
        "--against",
        "64",
        "--events",
        text(&events),
        "--json",
        "--edges",
        "-inf,0,inf",
    ]);
    let probability = |prefix: u32, event: &[u32]| -> f64 {
        let tokens = [&[prefix], event, &[2]].concat();
        let logits = small.logits(&tokens);
        let rows = logits.chunks(70).zip(&tokens[1..]);
        rows.map(|(row, &next)| torchless::score::log_probability(row, next)).sum()
    };
    let expected: Vec<f64> =
        [&[5, 9][..], &[], &[7]].iter().map(|event| probability(65, event) - probability(64, event)).collect();
    for (found, expected) in found["llr"].as_array().expect("ratios").iter().zip(&expected) {
        assert!((found.as_f64().expect("a number") - expected).abs() < 1e-4, "{found} is not {expected}");
    }
    let n_above = expected.iter().filter(|ratio| **ratio >= 0.0).count() as u64;
    assert_eq!(ids(&found["hist"]), [3 - n_above as u32, n_above as u32]);
}

#[test]
#[ignore = "needs the reference models"]
fn the_reference_events_are_scored_by_the_command() {
    let folder = reference("hep-llr");
    let events = folder.join("reference.json");
    let found = answer(&[
        "score",
        "--model",
        text(&folder),
        "--prefix",
        "65",
        "--against",
        "64",
        "--events",
        text(&events),
        "--json",
        "--edges",
        "-inf,-6,-4,-2.5,-1.5,-0.5,0.5,1.5,2.5,3.5,inf",
    ]);
    assert_eq!(found["hist"], json(&events)["hist"]);
}

#[test]
#[ignore = "needs the reference models"]
fn a_reference_is_verified_layer_by_layer() {
    let folder = reference("tiny-llama-f32");
    let found = answer(&["verify", "--model", text(&folder), "--json"]);
    assert_eq!(
        (&found["is_good"], found["prompts"][0]["layers"].as_array().map(Vec::len)),
        (&Value::Bool(true), Some(3))
    );
    // A model of coarser weights differs, and it is said where first.
    let other = reference("gguf/tiny-q8_0.gguf");
    let output = torchless(&["verify", "--model", text(&other), "--reference", text(&folder), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["prompts"][0]["diverges_at"], 0);
}

#[test]
#[ignore = "needs the reference models"]
fn text_continues_as_in_the_reference() {
    let folder = reference("tiny-llama-f32");
    let case = &json(&folder.join("reference.json"))["prompts"][0];
    let prompt = case["text"].as_str().expect("text");
    let output =
        torchless(&["generate", "--model", text(&folder), "--prompt", prompt, "--max-tokens", "32", "--ignore-eos"]);
    let expected = format!("{}\n", case["greedy32_text"].as_str().expect("text"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let stopped = torchless(&["generate", "--model", text(&folder), "--prompt", prompt, "--stop", "kaon"]);
    assert_eq!(String::from_utf8_lossy(&stopped.stdout), " detector.\nIf the \n");
    let sample = |seed| {
        let arguments = ["--model", text(&folder), "--prompt", prompt, "--temperature", "1.5", "--seed", seed];
        torchless(&[&["generate"][..], &arguments].concat()).stdout
    };
    assert_eq!(sample("1"), sample("1"));
    assert_ne!(sample("1"), sample("2"));
    let found = answer(&["chat", "--model", text(&folder), "--user", "hi", "--render", "--json"]);
    let case = &json(&folder.join("reference.json"))["chat"][0];
    assert_eq!((&found["text"], &found["ids"]), (&case["rendered"], &case["ids"]));
    let found = answer(&["info", "--model", text(&folder), "--json"]);
    assert_eq!(found["memory"]["kv_cache_per_token"], 2 * 2 * 2 * 16 * 4);
    let stored = tensors(&folder.join("model.safetensors"));
    assert_eq!(
        found["weights"],
        stored.values().filter(|tensor| tensor.shape.len() == 2).map(|tensor| tensor.values.len()).sum::<usize>()
    );
}

#[test]
fn every_verb_that_computes_does_it_on_the_device_that_is_named() {
    let folder = RandomModel::new("qwen2").drawn().write_folder("command-emulated", true, 1);
    let model = text(&folder);
    let both = |arguments: &[&str]| {
        let on = |device| answer(&[arguments, &["--model", model, "--json", "--device", device]].concat());
        (on("emulated"), on("cpu"))
    };
    let (there, here) = both(&["logits", "--tokens", "0,52,29", "--all"]);
    assert!(distance(&rows(&there), &rows(&here)) < 1e-4);
    let (there, here) = both(&["generate", "--tokens", "0,52,29", "--max-tokens", "6"]);
    assert_eq!(there, here);
    let events = folder.join("events.json");
    std::fs::write(&events, "[[1, 2], [], [3, 3, 3]]").expect("a folder");
    let (there, here) = both(&["score", "--prefix", "5", "--against", "6", "--no-end", "--events", text(&events)]);
    let ratios = |answer: &Value| -> Vec<f32> {
        answer["llr"].as_array().expect("ratios").iter().map(|ratio| ratio.as_f64().expect("a number") as f32).collect()
    };
    assert!(distance(&ratios(&there), &ratios(&here)) < 1e-4);
    let (there, here) = both(&["bench", "--prefill", "4", "--decode", "3"]);
    let counters = |answer: &Value| answer["counters"].clone();
    assert_eq!((&counters(&there)["passes"], &counters(&here)["device_passes"]), (&0.into(), &0.into()));
    assert_eq!((&there["device"], &here["device"]), (&"emulated".into(), &"cpu".into()));
    assert_eq!(there["decode"]["of_each_token"]["downloads"], 1.0);
    let (there, _) = both(&["info"]);
    assert_eq!((&there["device"]["name"], &there["device"]["fits"]), (&"emulated".into(), &true.into()));
    assert_eq!(there["device"]["precision"], "f32");
}

#[test]
#[ignore = "needs the reference models"]
fn the_reference_is_verified_layer_by_layer_on_a_device() {
    let folder = reference("tiny-llama-f32");
    let found = answer(&["verify", "--model", text(&folder), "--device", "emulated", "--json"]);
    assert_eq!(found["is_good"], true);
    assert_eq!(found["prompts"][0]["layers"].as_array().expect("layers").len(), 3);
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_as_model_files() {
    let small = RandomModel::new("llama").drawn();
    let info = |folder: &Path| {
        let output = torchless(&["info", "--model", text(folder)]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let make_pipe = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    for name in ["config.json", "model.safetensors", "generation_config.json"] {
        let folder = small.write_folder(&format!("command-pipe-{name}"), true, 1);
        let path = folder.join(name);
        let _ = std::fs::remove_file(&path);
        make_pipe(&path);
        let said = info(&folder);
        assert!(said.contains(name) && said.contains("not a regular file"), "{said}");
        std::fs::remove_file(&path).expect("a pipe");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        let said = info(&folder);
        assert!(said.contains(name) && said.contains("not a regular file"), "{said}");
    }
    // A model file itself.
    let pipe = fresh_folder("command-pipe").join("model.gguf");
    make_pipe(&pipe);
    assert!(info(&pipe).contains("not a regular file"));
}

#[cfg(unix)]
#[test]
fn events_may_come_from_a_device_but_not_without_end() {
    let folder = RandomModel::new("llama").drawn().write_folder("command-endless", true, 1);
    let score = |events: &str| {
        torchless(&[
            "score",
            "--model",
            text(&folder),
            "--prefix",
            "1",
            "--against",
            "2",
            "--no-end",
            "--events",
            events,
        ])
    };
    let output = score("/dev/null");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("EOF"), "{said}");
    let output = score("/dev/zero");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("at most 256 MiB are read"), "{said}");
}

#[test]
fn an_unknown_instruction_set_is_a_warning() {
    let folder = RandomModel::new("llama").drawn().write_folder("command-isa", true, 1);
    let said = |isa: &str| {
        let output = Command::new(program())
            .args(["info", "--model", text(&folder)])
            .env("NEXTSTAT_ISA", isa)
            .output()
            .expect("the command");
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert_eq!(
        said("foo\u{1b}"),
        "warning: `NEXTSTAT_ISA=foo\\u{1b}` names no instruction set and is ignored; known: `baseline`, `neon`, `avx2`, `avx512`\n"
    );
    assert_eq!((said(""), said("baseline")), (String::new(), String::new()));
}

#[test]
fn arguments_and_paths_are_quoted_without_control_characters() {
    for arguments in [
        &["info", "--fo\u{9b}o\r\u{202e}"][..],
        &["in\u{1b}[31mfo\u{2066}"],
        &["info", "--model", "no\u{1b}[31m\u{202e}where"],
        &["info", "--model", "x", "--memory-limit", "1\u{1b}[31m"],
    ] {
        let output = torchless(arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(said.contains("\\u{"), "{said:?}");
        assert!(said.chars().all(|c| c == '\n' || ns_terminal::is_visible(c)), "{said:?}");
    }
}
