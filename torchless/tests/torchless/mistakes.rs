//! References, events and settings that say nothing or something wrong: the command never calls
//! them good.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::command::{answer, text, torchless};
use crate::random_model::{RandomModel, Stored, fresh_folder};
use crate::support::program;

const TOKENS: [u32; 4] = [5, 9, 61, 7];

/// A reference of one prompt with these tensors of `TOKENS`: a name, rows and numbers.
fn reference(prompts: &Value, tensors: &[(&str, usize, &[f32])]) -> PathBuf {
    // Tests run beside each other.
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let folder = fresh_folder(&format!("verify-reference-{}", MADE.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(folder.join("reference.json"), json!({ "prompts": prompts }).to_string()).expect("a folder");
    let stored = |(name, rows, values): &(&str, usize, &[f32])| {
        let shape = vec![*rows, values.len() / rows.max(&1)];
        ((*name).to_owned(), (shape, values.to_vec()))
    };
    let file = RandomModel { weights: tensors.iter().map(stored).collect(), ..RandomModel::new("llama") };
    let names: Vec<&String> = file.weights.keys().collect();
    std::fs::write(folder.join("reference_logits.safetensors"), file.safetensors(&names)).expect("a folder");
    folder
}

fn verified(model: &Path, reference: &Path) -> (Option<i32>, String) {
    let arguments = ["verify", "--model", text(model), "--reference", text(reference), "--json"];
    let output = torchless(&arguments);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_reference_is_compared_row_by_row() {
    let small = RandomModel::new("llama").drawn();
    let model = small.write_folder("verify-model", true, 1);
    let all = small.logits(&TOKENS);
    let rows = |rows: &[usize]| -> Vec<f32> { rows.iter().flat_map(|row| all[row * 70..][..70].to_vec()).collect() };
    let prompt = |rows: Value| json!([{ "name": "p", "ids": TOKENS, "logit_rows": rows }]);
    let code = |prompts: Value, tensors: &[(&str, usize, &[f32])]| verified(&model, &reference(&prompts, tensors));
    // In any order, and twice.
    assert_eq!(code(prompt(json!([3, 0, 3])), &[("p.logits", 3, &rows(&[3, 0, 3]))]).0, Some(0));
    assert_eq!(code(prompt(json!([0, 3])), &[("p.logits", 2, &rows(&[3, 0]))]).0, Some(1));
    let said = |prompts: Value, tensors: &[(&str, usize, &[f32])], expected: &str| {
        let (code, said) = verified(&model, &reference(&prompts, tensors));
        assert!(code == Some(2) && said.contains(expected), "{said}");
    };
    let nothing = "reference_logits.safetensors` has nothing that can be compared with a prompt of `";
    said(prompt(json!([3])), &[("q.logits", 1, &rows(&[3]))], nothing);
    said(prompt(json!([])), &[("p.logits", 0, &[])], nothing);
    said(json!([]), &[("p.logits", 1, &rows(&[3]))], "`prompts`: it is missing");
    said(prompt(json!([4])), &[("p.logits", 1, &rows(&[3]))], "`prompts.logit_rows`: 4 is out of range");
    said(prompt(json!([0, 3])), &[("p.logits", 1, &rows(&[3]))], "tensor `p.logits`: it should be of shape [2, 70]");
    let stream = vec![0.0; 4 * 48];
    let wrong = [("p.logits", 1, &rows(&[3])[..]), ("p.hidden0", 4, &stream)];
    assert_eq!(code(prompt(json!([3])), &wrong).0, Some(1));
    said(prompt(json!([3])), &[("p.hidden1", 3, &stream[48..])], "tensor `p.hidden1`: it should be of shape [4, 48]");
    let deeper: Vec<String> = (0..5).map(|layer| format!("p.hidden{layer}")).collect();
    let deeper: Vec<(&str, usize, &[f32])> = deeper.iter().map(|name| (name.as_str(), 4, &stream[..])).collect();
    said(prompt(json!([3])), &deeper, "tensors `p.hidden…`: it should be of 4 at most");
    let last = [("p.logits", 1, &rows(&[3])[..]), ("p.hidden18446744073709551615", 4, &stream)];
    said(prompt(json!([3])), &last, "tensors `p.hidden…`: it should be of 4 at most");
}

#[test]
fn what_a_reference_lacks_is_said_and_never_good() {
    let small = RandomModel::new("llama").drawn();
    let model = small.write_folder("verify-partial", true, 1);
    let all = small.logits(&TOKENS);
    let embedding = &small.weights["model.embed_tokens.weight"].1;
    let stream: Vec<f32> = TOKENS.iter().flat_map(|&token| embedding[token as usize * 48..][..48].to_vec()).collect();
    let wrong = vec![9.0; 4 * 48];
    let said = |names: &[&str], tensors: &[(&str, usize, &[f32])]| {
        let prompts = names.iter().map(|name| json!({ "name": name, "ids": TOKENS, "logit_rows": [0, 3] }));
        let folder = reference(&prompts.collect(), tensors);
        let run = |more: &[&str]| {
            let arguments = ["verify", "--model", text(&model), "--reference", text(&folder)];
            let output = torchless(&[&arguments, more].concat());
            (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (code, stdout, notes) = run(&["--json"]);
        assert_eq!((code, notes.as_str()), (run(&[]).0, ""));
        let answer: Value = serde_json::from_slice(&stdout).expect("JSON");
        let (code, stdout, notes) = run(&[]);
        assert_eq!(answer["is_good"], json!(code == Some(0)));
        (answer["prompts"].clone(), String::from_utf8_lossy(&stdout).into_owned(), notes)
    };
    let logits = [&all[..70], &all[3 * 70..]].concat();
    // Two of four tokens, and no residual streams.
    let (prompts, lines, notes) = said(&["p"], &[("p.logits", 2, &logits)]);
    assert_eq!((&prompts[0]["tokens"], &prompts[0]["tokens_with_logits"]), (&json!(4), &json!(2)));
    assert_eq!((&prompts[0]["is_good"], &prompts[0]["absent"]), (&json!(true), &json!(["residual streams"])));
    assert!(lines.ends_with("good  logits of 2 of 4 tokens; absent: residual streams\n"), "{lines}");
    assert_eq!(notes, "");
    // Of the residual streams the first and the last, which is wrong.
    let (prompts, lines, _) = said(&["p"], &[("p.hidden0", 4, &stream), ("p.hidden3", 4, &wrong)]);
    let layers = prompts[0]["layers"].as_array().expect("layers");
    assert!(layers.len() == 4 && layers[1].is_null() && layers[2].is_null() && layers[3].is_number(), "{layers:?}");
    assert_eq!((&prompts[0]["is_good"], &prompts[0]["diverges_at"]), (&json!(false), &json!(3)));
    assert_eq!(prompts[0]["absent"], json!(["logits", "layer 0", "layer 1"]));
    assert!(lines.ends_with("; absent: logits, layer 0, layer 1; diverges at layer 2 or before\n"), "{lines}");
    // A prompt without anything is neither good nor bad; with it, all is not good.
    let (prompts, lines, notes) = said(&["p", "q"], &[("p.logits", 2, &logits), ("r.logits", 2, &logits)]);
    assert_eq!((&prompts[0]["is_good"], &prompts[1]["is_good"]), (&json!(true), &json!(false)));
    assert_eq!((&prompts[1]["is_compared"], &prompts[1]["logits"]), (&json!(false), &Value::Null));
    assert!(lines.ends_with("q                    no logits  ABSENT\n"), "{lines}");
    let expected = "note: 1 of 2 prompts have nothing stored, and were not compared\n\
        note: tensors of no prompt were not compared: `r.logits` and 0 more\n";
    assert_eq!(notes, expected);
}

/// What `score` prints, or says if it refuses.
fn scored(model: &Path, events: &Value, more: &[&str]) -> Result<Value, String> {
    let file = fresh_folder("mistaken-events").join("events.json");
    std::fs::write(&file, events.to_string()).expect("a writable folder");
    let arguments = ["score", "--model", text(model), "--prefix", "65", "--against", "64", "--events", text(&file)];
    let output = torchless(&[&arguments[..], more].concat());
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(serde_json::from_str(&said).unwrap_or(Value::String(said)))
}

#[test]
fn events_that_cannot_be_scored_are_named_before_anything_is_computed() {
    let folder = RandomModel::new("llama").drawn().write_folder("mistaken-score", true, 1);
    let score = |events: Value, more: &[&str]| scored(&folder, &events, more);
    let named = score(json!({ "a": [[1]], "b": [[1], [2, 70]] }), &[]).expect_err("an error");
    assert!(named.contains("event 1 of b in `") && named.contains("events.json`: token 1 is 70, and"), "{named}");
    let odd = score(json!({ format!("\u{1b}[2J{}", "x".repeat(1000)): [[70]] }), &[]).expect_err("an error");
    assert!(odd.contains("event 0 of \\u{1b}[2Jxxx") && odd.contains("xxx in `") && odd.len() < 400, "{odd}");
    let long = score(json!([[1], vec![1; 64]]), &[]).expect_err("an error");
    assert!(long.contains("event 1 of the list in `") && long.contains("65 tokens do not fit"), "{long}");
    // The last token is asked for and not computed.
    score(json!([vec![1; 63]]), &[]).expect("it fits");
    for edges in ["0,-1", "0,0", "0,NaN,1", "0"] {
        let said = score(json!([[1]]), &["--edges", edges]).expect_err("an error");
        assert_eq!(said, "error: --edges are at least two numbers, each above the one before\n");
    }
    let found = score(json!([[], [1]]), &["--no-end", "--json", "--edges=-inf,0,inf"]).expect("an answer");
    assert_eq!((&found["llr"][0], &found["edges"]), (&json!(0.0), &json!(["-inf", 0.0, "inf"])));
    let found = score(json!([]), &[]).expect("an answer");
    assert!(found.as_str().is_some_and(|said| said.ends_with("ratio null\n")), "{found}");
}

#[test]
fn events_with_a_duplicate_key_are_refused_with_their_place() {
    let folder = RandomModel::new("llama").drawn().write_folder("mistaken-names", true, 1);
    let file = fresh_folder("mistaken-names-events").join("events.json");
    std::fs::write(&file, "{\"signal\": [[1]],\n \"background\": [],\n \"signal\": [[2]]}").expect("a folder");
    let arguments = ["score", "--model", text(&folder), "--prefix", "65", "--against", "64", "--events", text(&file)];
    let output = torchless(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("events.json`: the file: duplicate key `/signal` at line 3 column 9\n"), "{said}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn tolerances_that_are_not_finite_or_negative_are_refused() {
    let small = RandomModel::new("llama").drawn();
    let model = small.write_folder("verify-tolerance", true, 1);
    let prompts = json!([{ "name": "p", "ids": TOKENS, "logit_rows": [3] }]);
    let last = small.logits(&TOKENS)[3 * 70..].to_vec();
    let reference = reference(&prompts, &[("p.logits", 1, &last)]);
    let said = |tolerance: &str| {
        let arguments = ["verify", "--model", text(&model), "--reference", text(&reference), "--tolerance", tolerance];
        let output = torchless(&arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for odd in ["nan", "-1", "-1e-9", "inf", "-inf", "infinity", "much", ""] {
        let (code, text) = said(odd);
        let expected = format!("invalid value '{odd}' for '--tolerance <TOLERANCE>': it must be a number, 0 or above");
        assert!(code == Some(2) && text.contains(&expected), "{odd}: {text}");
    }
    // Zero demands the same numbers, which single and double precision do not have.
    assert_eq!((said("0").0, said("0.001").0, said("1e-4").0), (Some(1), Some(0), Some(0)));
}

/// A reference of two sets without prompts, beside a folder that has them; and a quantised model.
fn sets_of_quantised_models(name: &str) -> (PathBuf, PathBuf) {
    let shape =
        RandomModel { hidden: 64, heads: 4, kv_heads: 2, head_dim: 16, intermediate: 96, ..RandomModel::new("llama") };
    let small = RandomModel { stored: Stored::Q8_0, ..shape }.drawn();
    let last = small.logits(&TOKENS)[3 * 70..].to_vec();
    let parent = fresh_folder(name);
    let move_to = |folder: PathBuf, name: &str| std::fs::rename(folder, parent.join(name)).expect("a folder");
    let prompts = json!([{ "name": "p", "ids": TOKENS, "logit_rows": [0] }]);
    move_to(reference(&prompts, &[]), "plain");
    let mut wrong = last.clone();
    wrong[69] += 1.0;
    let embedding = &small.weights["model.embed_tokens.weight"].1;
    let stream: Vec<f32> = TOKENS.iter().flat_map(|&token| embedding[token as usize * 64..][..64].to_vec()).collect();
    let mut streams = vec![("q8_0.p.hidden0".to_owned(), (vec![4, 64], stream.clone()))];
    streams.push(("q4_0.p.hidden0".to_owned(), (vec![4, 64], stream.iter().map(|x| x + 1.0).collect())));
    let logits = [
        ("q8_0.p.last_logits".to_owned(), (vec![70], last.clone())),
        ("q4_0.p.last_logits".to_owned(), (vec![70], wrong)),
    ];
    let file = RandomModel { weights: streams.into_iter().chain(logits).collect(), ..RandomModel::new("llama") };
    let names: Vec<&String> = file.weights.keys().collect();
    let sets = parent.join("gguf");
    std::fs::create_dir(&sets).expect("a folder");
    std::fs::write(sets.join("reference_logits.safetensors"), file.safetensors(&names)).expect("a folder");
    std::fs::write(sets.join("reference.json"), r#"{"q8_0": {"mean_nll": 1}, "q4_0": {}, "other": {}}"#)
        .expect("a folder");
    std::fs::copy(small.write_gguf(&format!("{name}-model")), sets.join("model.gguf")).expect("a folder");
    (parent, sets.join("model.gguf"))
}

#[test]
fn sets_of_quantised_models_use_the_prompts_of_the_folder_beside_them() {
    let (parent, model) = sets_of_quantised_models("verify-sets");
    let said = |more: &[&str]| {
        let output = torchless(&[&["verify", "--model", text(&model)], more].concat());
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, answer) = said(&["--json"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(
        (code, &answer["set"], answer["prompts"][0]["layers"].as_array().map(Vec::len)),
        (Some(0), &json!("q8_0"), Some(1))
    );
    assert!(answer["prompts_of"].as_str().is_some_and(|path| path.ends_with("plain/reference.json")), "{answer}");
    let (code, text_of) = said(&["--set", "q4_0"]);
    assert!(
        code == Some(1) && text_of.contains("BAD") && text_of.contains("; diverges at the embedding\n"),
        "{text_of}"
    );
    let (code, text_of) = said(&["--set", "q6_k"]);
    assert!(
        code == Some(2) && text_of.contains("is a reference for q4_0, q8_0, and not for q6_k\nhint: name the one"),
        "{text_of}"
    );
    // By its name alone.
    let mut command = Command::new(program());
    command.args(["verify", "--model", "model.gguf"]).current_dir(parent.join("gguf"));
    let output = command.output().expect("the command");
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{note}");
    assert!(
        note.starts_with("note: prompts are those of `")
            && note.ends_with("plain/reference.json`; the set is `q8_0`\n"),
        "{note}"
    );
    let plain = parent.join("plain");
    std::fs::rename(&plain, parent.join("also")).expect("a folder");
    std::fs::create_dir(&plain).expect("a folder");
    std::fs::copy(parent.join("also/reference.json"), plain.join("reference.json")).expect("a folder");
    let (code, text_of) = said(&[]);
    assert!(
        code == Some(2) && text_of.contains("not one folder beside it has all of its tensors' prompts\nhint: "),
        "{text_of}"
    );
    let (code, text_of) = said(&["--prompts", text(&plain)]);
    assert!(code == Some(0) && !text_of.contains("note"), "{text_of}");
    std::fs::remove_dir_all(parent).expect("a folder");
}

#[test]
fn tensors_without_prompts_choose_no_folder_beside_them() {
    let (parent, model) = sets_of_quantised_models("verify-no-prompt");
    let tensors = ("q8_0.last_logits".to_owned(), (vec![1], vec![0.0]));
    let file = RandomModel { weights: [tensors].into_iter().collect(), ..RandomModel::new("llama") };
    let names: Vec<&String> = file.weights.keys().collect();
    std::fs::write(parent.join("gguf/reference_logits.safetensors"), file.safetensors(&names)).expect("a folder");
    let output = torchless(&["verify", "--model", text(&model)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("has no prompts, and not one folder beside it"), "{said}");
    std::fs::remove_dir_all(parent).expect("a folder");
}

#[test]
fn a_document_with_prompts_has_no_sets_unless_one_is_named() {
    let small = RandomModel::new("llama").drawn();
    let model = small.write_folder("verify-named", true, 1);
    let last = small.logits(&TOKENS)[3 * 70..].to_vec();
    let prompts = json!([{ "name": "p", "ids": TOKENS, "logit_rows": [3] }]);
    let folder = reference(&prompts, &[("p.logits", 1, &last), ("f32.p.logits", 1, &last)]);
    let document = json!({ "prompts": prompts, "p": { "of": "the prompt" }, "f32": {} });
    std::fs::write(folder.join("reference.json"), document.to_string()).expect("a folder");
    let said = |set: &[&str]| {
        let arguments = ["verify", "--model", text(&model), "--reference", text(&folder), "--json"];
        let answer: Value = answer(&[&arguments[..], set].concat());
        (answer["is_good"].clone(), answer["set"].clone())
    };
    assert_eq!(said(&[]), (json!(true), Value::Null));
    assert_eq!(said(&["--set", "f32"]), (json!(true), json!("f32")));
    std::fs::write(folder.join("reference.json"), json!({ "prompts": prompts }).to_string()).expect("a folder");
    let arguments = ["verify", "--model", text(&model), "--reference", text(&folder), "--set", "f32"];
    let said = String::from_utf8_lossy(&torchless(&arguments).stderr).into_owned();
    assert!(said.ends_with("reference.json` has no sets, and so not f32\n"), "{said}");
}

#[test]
#[ignore = "needs the reference models"]
fn the_reference_of_quantised_models_is_verified() {
    let folder = crate::support::reference("gguf");
    for kind in ["q8_0", "q4_0"] {
        let found = answer(&["verify", "--model", text(&folder.join(format!("tiny-{kind}.gguf"))), "--json"]);
        assert_eq!(
            (&found["is_good"], &found["set"], found["prompts"].as_array().map(Vec::len)),
            (&json!(true), &json!(kind), Some(8))
        );
    }
    // The other's numbers.
    let output = torchless(&["verify", "--model", text(&folder.join("tiny-q8_0.gguf")), "--set", "q4_0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.starts_with("note: prompts are those of `") && said.contains("`; the set is `q4_0`\nnote: "),
        "{said}"
    );
    assert!(
        said.ends_with("\nnote: the reference has no residual streams: which layer diverges cannot be said\n"),
        "{said}"
    );
}

#[test]
fn counts_of_tokens_that_overflow_are_refused_or_harmless() {
    let folder = RandomModel::new("llama").drawn().write_folder("mistaken-sizes", true, 1);
    let most = usize::MAX.to_string();
    let said = |arguments: &[&str]| {
        let output = torchless(&[arguments, &["--model", text(&folder)]].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = said(&["bench", "--prefill", &most, "--decode", &most]);
    assert!(code == Some(2) && text.contains("tokens do not fit into a context of 64"), "{text}");
    let (code, text) = said(&["generate", "--tokens", "1", "--max-tokens", &most, "--ignore-eos"]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
}
