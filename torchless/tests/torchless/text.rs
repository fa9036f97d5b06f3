//! Tokenizers, chat templates and sampling against their reference cases.

use std::sync::Arc;

use serde_json::{Value, json};
use torchless::chat::{ChatTemplate, Message};
use torchless::generate::{Finish, GenerateOptions, generate};
use torchless::sampling::{Sampler, Step, distribution};
use torchless::text::{TextStream, Tokenizer};
use torchless::{Engine, LogitRows, Model, Threads};

use crate::random_model::RandomModel;
use crate::support::{ids, json, reference, tensors};

#[test]
#[ignore = "needs the reference models"]
fn text_becomes_the_ids_of_the_reference_from_a_folder_and_from_gguf() {
    let (folder, gguf) = (reference("tiny-llama-f32"), reference("gguf/tiny-q8_0.gguf"));
    for path in [folder.clone(), gguf] {
        let tokenizer = Tokenizer::of(&Model::open(&path).expect("a model")).expect("a tokenizer");
        for case in json(&folder.join("reference.json"))["tokenizer"].as_array().expect("cases") {
            let text = case["text"].as_str().expect("text");
            assert_eq!(tokenizer.encode(text, true).expect("ids"), ids(&case["ids"]), "{text:?} of {}", path.display());
            assert_eq!(tokenizer.encode(text, false).expect("ids"), ids(&case["ids_no_special"]), "{text:?}");
            let decoded = tokenizer.decode(&ids(&case["ids_no_special"]), true).expect("text");
            assert_eq!(decoded, case["decoded"].as_str().expect("text"), "{}", path.display());
        }
    }
}

#[test]
#[ignore = "needs the reference models"]
fn text_streamed_token_by_token_is_the_whole_text() {
    let folder = reference("tiny-llama-f32");
    let tokenizer = Tokenizer::of(&Model::open(&folder).expect("a model")).expect("a tokenizer");
    for case in json(&folder.join("reference.json"))["tokenizer"].as_array().expect("cases") {
        let mut stream = TextStream::new(&tokenizer, &[]);
        let mut text = String::new();
        for id in ids(&case["ids"]) {
            let piece = stream.push(id).expect("text");
            assert!(!piece.contains('\u{fffd}'), "{piece:?}");
            text += &piece;
        }
        text += &stream.finish().expect("text");
        assert_eq!(text, tokenizer.decode(&ids(&case["ids"]), false).expect("text"));
    }
}

#[test]
#[ignore = "needs the reference models"]
fn a_stop_string_ends_the_text_wherever_tokens_end() {
    let folder = reference("tiny-llama-f32");
    let tokenizer = Tokenizer::of(&Model::open(&folder).expect("a model")).expect("a tokenizer");
    let text = "The muon hits the tracker.";
    for stop in ["on hi", "uon", ".", " the", "nowhere"] {
        let mut stream = TextStream::new(&tokenizer, &[stop.to_owned()]);
        let mut found = String::new();
        for id in tokenizer.encode(text, false).expect("ids") {
            found += &stream.push(id).expect("text");
        }
        found += &stream.finish().expect("text");
        assert_eq!(found, text.split(stop).next().expect("text"), "{stop}");
    }
}

#[test]
#[ignore = "needs the reference models"]
fn conversations_are_rendered_as_in_the_reference() {
    let (folder, gguf) = (reference("tiny-llama-f32"), reference("gguf/tiny-q8_0.gguf"));
    for path in [folder.clone(), gguf] {
        let model = Model::open(&path).expect("a model");
        let (template, tokenizer) =
            (ChatTemplate::of(&model).expect("a template"), Tokenizer::of(&model).expect("a tokenizer"));
        for case in json(&folder.join("reference.json"))["chat"].as_array().expect("cases") {
            let messages: Vec<Message> = serde_json::from_value(case["messages"].clone()).expect("messages");
            let rendered = template.render(&messages, true).expect("text");
            assert_eq!(rendered, case["rendered"].as_str().expect("text"));
            assert_eq!(tokenizer.encode(&rendered, false).expect("ids"), ids(&case["ids"]));
        }
    }
}

#[test]
#[ignore = "needs the reference models"]
fn sampling_keeps_and_weighs_tokens_as_the_reference_does() {
    let (path, folder) = (reference("sampling.json"), reference("tiny-llama-f32"));
    let prompts = json(&folder.join("reference.json"));
    let logits = tensors(&folder.join("reference_logits.safetensors"));
    for case in json(&path)["cases"].as_array().expect("cases") {
        let name = case["logits_of"].as_str().expect("a name");
        let prompt = prompts["prompts"].as_array().expect("prompts").iter().find(|prompt| prompt["name"] == name);
        let before = ids(&prompt.expect("a prompt")["ids"]);
        let rows = &logits[&format!("{name}.logits")].values;
        let last = &rows[rows.len() - 512..];
        let steps: Vec<Step> = case["chain"].as_array().expect("steps").iter().map(step).collect();
        let found = distribution(last, &before, &steps).expect("a distribution");
        let kept: Vec<u32> = (0..512).filter(|&token| found[token as usize] > 0.0).collect();
        assert_eq!(kept.len() as u64, case["n_kept"].as_u64().expect("a count"), "{name} {}", case["chain"]);
        if let Some(expected) = case["kept"].as_array().filter(|expected| expected.len() == kept.len()) {
            let mut expected: Vec<u32> = expected.iter().map(|id| id.as_u64().expect("an id") as u32).collect();
            expected.sort_unstable();
            assert_eq!(kept, expected, "{name} {}", case["chain"]);
        }
        for pair in case["probs_top16"].as_array().expect("pairs") {
            let (token, expected) = (pair[0].as_u64().expect("an id"), pair[1].as_f64().expect("a number"));
            assert!((found[token as usize] - expected).abs() < 1e-6, "{name} {}: token {token}", case["chain"]);
        }
    }
}

fn step(step: &serde_json::Value) -> Step {
    let value = step[1].as_f64().expect("a number");
    match step[0].as_str().expect("a name") {
        "repetition_penalty" => Step::RepetitionPenalty(value),
        "temperature" => Step::Temperature(value),
        "top_k" => Step::TopK(value as usize),
        "top_p" => Step::TopP(value),
        "min_p" => Step::MinP(value),
        other => panic!("{other}"),
    }
}

#[test]
#[ignore = "needs the reference models"]
fn events_get_the_ratios_and_histograms_of_the_reference() {
    let folder = reference("hep-llr");
    let reference = json(&folder.join("reference.json"));
    let number = |edge: (usize, &serde_json::Value)| match edge {
        (0, _) => f64::NEG_INFINITY,
        (_, edge) => edge.as_f64().unwrap_or(f64::INFINITY),
    };
    let edges: Vec<f64> = reference["edges"].as_array().expect("edges").iter().enumerate().map(number).collect();
    let model = std::sync::Arc::new(Model::open(&folder).expect("a model"));
    let mut engine = Engine::new(model, Threads::new(2));
    for (name, events) in reference["events"].as_object().expect("events") {
        let events: Vec<Vec<u32>> = events.as_array().expect("events").iter().map(ids).collect();
        let mut under = |prefix: u32, batch: usize| {
            let options = torchless::score::ScoreOptions { prefix: vec![prefix], end: vec![66], batch };
            torchless::score::log_probabilities(&mut engine, &events, &options).expect("scores")
        };
        let (above, below) = (under(65, 1024), under(64, 1024));
        let ratios: Vec<f64> = above.iter().zip(&below).map(|(above, below)| above - below).collect();
        let expected = reference["llr"][name].as_array().expect("ratios");
        for (found, expected) in ratios.iter().zip(expected) {
            assert!((found - expected.as_f64().expect("a number")).abs() < 1e-4, "{name}: {found}");
        }
        let counts: Vec<u64> = reference["hist"][name]
            .as_array()
            .expect("counts")
            .iter()
            .map(|count| count.as_u64().expect("a count"))
            .collect();
        assert_eq!(torchless::score::histogram(&ratios, &edges), counts, "{name}");
        if name == "data" {
            assert_eq!(under(65, 1), above, "batches change no bit");
        }
    }
    assert_eq!(
        engine.logits(&mut engine.cache(2).expect("a cache"), &[64, 50], LogitRows::Last).expect("logits").len(),
        68
    );
}

#[test]
fn logits_that_are_nan_choose_no_token() {
    let draw = |temperature| Sampler::new(vec![Step::Temperature(temperature)], 1).expect("a sampler");
    for bad in [[1.0, f32::NAN], [f32::NAN, 1.0], [1.0, f32::INFINITY], [f32::NEG_INFINITY; 2]] {
        for mut sampler in [Sampler::greedy(), draw(1.0)] {
            let message = sampler.choose(&bad, &[]).expect_err("no token").to_string();
            assert!(message.ends_with("and no token can be chosen"), "{message}");
        }
    }
    assert_eq!(draw(1.0).choose(&[f32::NEG_INFINITY, 1.0], &[]).expect("a token"), 1);
    // So cold that single logits are infinite.
    draw(1e-310).choose(&[1.0, 2.0], &[]).expect_err("no token");
}

/// A folder whose tokens are `w0 w1 …`, one of which is special.
fn words(small: &RandomModel, name: &str, special: u32) -> std::path::PathBuf {
    let folder = small.write_folder(name, true, 1);
    let word = |id: u32| if id == special { "<|stop|>".to_owned() } else { format!("w{id}") };
    let vocabulary: serde_json::Map<String, Value> = (0..70).map(|id| (word(id), id.into())).collect();
    let added = json!([{ "id": special, "content": "<|stop|>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true }]);
    let tokenizer = json!({ "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": word(0) } });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).expect("a writable folder");
    folder
}

#[test]
fn a_special_token_stops_the_text_and_needs_a_tokenizer() {
    let small = RandomModel::new("llama").drawn();
    let go_on = |folder: &std::path::Path, stops: &[&str], has_tokenizer: bool| {
        let model = Arc::new(Model::open(folder).expect("a model"));
        let tokenizer = has_tokenizer.then(|| Tokenizer::of(&model).expect("a tokenizer"));
        let mut engine = Engine::new(model, Threads::new(1));
        let stops = stops.iter().map(|&stop| stop.to_owned()).collect();
        let options = GenerateOptions { max_tokens: 12, stops, ends: false };
        generate(&mut engine, tokenizer.as_ref(), &[1, 7], &mut Sampler::greedy(), &options, &mut |_| ())
    };
    let free = go_on(&words(&small, "stop-none", 0), &[], true).expect("text").tokens;
    let special = free[3];
    let first = free.iter().position(|&token| token == special).expect("it comes");
    let folder = words(&small, "stop-special", special);
    let stopped = go_on(&folder, &["<|stop|>"], true).expect("text");
    assert_eq!((stopped.tokens.as_slice(), stopped.finish), (&free[..first], Finish::Stop));
    // Without being asked for, it stops nothing.
    assert_eq!(go_on(&folder, &[], true).expect("text").tokens, free);
    let error = go_on(&folder, &["<|stop|>"], false).expect_err("nothing to find it with");
    assert!(error.to_string().ends_with("has no tokenizer"), "{error}");
}

#[test]
fn templates_see_no_tools_and_indent_json() {
    let folder = RandomModel::new("llama").drawn().write_folder("template", true, 1);
    let rendered = |template: &str| {
        std::fs::write(folder.join("chat_template.jinja"), template).expect("a writable folder");
        let template = ChatTemplate::of(&Model::open(&folder).expect("a model")).expect("a template");
        template.render(&[Message { role: "user".into(), content: "hi".into() }], true)
    };
    let nothing = rendered("{{ tools is none }} {{ documents is none }}").expect("text");
    assert_eq!(nothing.to_lowercase(), "true true");
    assert_eq!(rendered("{{ messages[0] | tojson }}").expect("text"), r#"{"role": "user", "content": "hi"}"#);
    let indented = rendered("{{ messages[0] | tojson(indent=2) }}").expect("text");
    assert_eq!(indented, "{\n  \"role\": \"user\",\n  \"content\": \"hi\"\n}");
    rendered("{{ messages | tojson(colour=2) }}").expect_err("no such setting");
    let date = rendered("{{ strftime_now('%d %b %Y') }}").expect("text");
    let words: Vec<&str> = date.split(' ').collect();
    assert!(
        words[0].len() == 2 && words[1].len() == 3 && words[2].parse::<u32>().is_ok_and(|year| year > 2025),
        "{date}"
    );
    rendered("{{ strftime_now('%!') }}").expect_err("no such format");
}

#[test]
fn text_is_split_as_the_gguf_file_names_it() {
    let small = RandomModel::new("llama").drawn();
    let ids = |pre: &str, text: &str| {
        // The last two are the bytes of an e with an accent.
        let tokens = ["a", "B", "aB", "1", "2", "12", "\u{c3}", "\u{a9}"];
        let keys = [
            ("tokenizer.ggml.model", json!("gpt2")),
            ("tokenizer.ggml.pre", json!(pre)),
            ("tokenizer.ggml.tokens", json!(tokens)),
            ("tokenizer.ggml.merges", json!(["a B", "1 2"])),
        ];
        let model = Model::open(small.write_gguf_with("cut", &keys)).map_err(|error| error.to_string())?;
        let tokenizer = Tokenizer::of(&model).map_err(|error| error.to_string())?;
        Ok::<_, String>(tokenizer.encode(text, false).expect("ids"))
    };
    let [together, apart] = [vec![2, 5], vec![0, 1, 3, 4]];
    for pre in ["llama-bpe", "gpt-2", "default"] {
        assert_eq!(ids(pre, "aB12").as_ref(), Ok(&together), "{pre}");
    }
    assert_eq!(ids("tekken", "aB12").as_ref(), Ok(&apart));
    for pre in ["qwen2", "deepseek-r1-qwen", "smollm"] {
        assert_eq!(ids(pre, "aB12"), Ok(vec![2, 3, 4]), "{pre}");
    }
    assert_eq!(ids("qwen2", "e\u{301}"), Ok(vec![6, 7]));
    let error = ids("unheard-of", "a").expect_err("an unknown name");
    assert!(error.contains("tokenizer.ggml.pre") && error.contains("unheard-of"), "{error}");
}

#[test]
fn bos_and_eos_are_added_as_the_gguf_file_specifies_or_by_default() {
    let small = RandomModel::new("llama").drawn();
    let (add_bos, add_eos) = ("tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token");
    let ids = |pre: &str, more: &[(&str, Value)]| {
        let keys = [
            ("tokenizer.ggml.model", json!("gpt2")),
            ("tokenizer.ggml.pre", json!(pre)),
            ("tokenizer.ggml.tokens", json!(["a", "b", "<s>", "</s>"])),
            ("tokenizer.ggml.merges", json!([])),
            ("tokenizer.ggml.bos_token_id", json!(2)),
            ("tokenizer.ggml.eos_token_id", json!(3)),
        ];
        let model = Model::open(small.write_gguf_with("ends", &[&keys[..], more].concat())).expect("a model");
        Tokenizer::of(&model).expect("a tokenizer").encode("ab", true).expect("ids")
    };
    assert_eq!(ids("llama-bpe", &[]), [2, 0, 1]);
    assert_eq!(ids("llama-bpe", &[(add_bos, json!(false))]), [0, 1]);
    assert_eq!(ids("qwen2", &[]), [0, 1]);
    assert_eq!(ids("qwen2", &[(add_bos, json!(true)), (add_eos, json!(true))]), [2, 0, 1, 3]);
    assert_eq!(ids("qwen2", &[(add_eos, json!(true))]), [0, 1, 3]);
}

#[test]
fn unknown_fields_of_messages_are_refused() {
    let message = |text: &str| serde_json::from_str::<Message>(text).map_err(|error| error.to_string());
    assert!(message(r#"{"role": "user", "content": "x"}"#).is_ok());
    let error =
        message(r#"{"role": "user", "content": "x", "tool_calls": []}"#).expect_err("a template may ask for it");
    assert!(error.contains("unknown field `tool_calls`"), "{error}");
}
