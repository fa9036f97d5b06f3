//! Damaged files and files with false claims: an error that names file and field, never a panic.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use torchless::chat::ChatTemplate;
use torchless::text::Tokenizer;
use torchless::{Engine, LoadOptions, LogitRows, Model, Threads};

use crate::random_model::{RandomModel, fresh_folder};
use crate::support::reference;

/// Opens the model and computes a token with it; the message if something refuses.
pub(crate) fn tried(path: &Path) -> Result<(), String> {
    let model = Arc::new(Model::open(path).map_err(|error| error.to_string())?);
    if let Ok(tokenizer) = Tokenizer::of(&model) {
        let _ = tokenizer.encode("two words", true);
    }
    let mut engine = Engine::new(model, Threads::new(1));
    let mut cache = engine.cache(2).map_err(|error| error.to_string())?;
    engine.logits(&mut cache, &[1, 2], LogitRows::Last).map_err(|error| error.to_string())?;
    Ok(())
}

pub(crate) fn refused(path: &Path) -> String {
    tried(path).expect_err("the file is wrong")
}

#[test]
fn a_file_that_ends_anywhere_is_an_error_that_names_it() {
    let small = RandomModel {
        hidden: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        intermediate: 8,
        vocabulary: 9,
        layers: 1,
        ..RandomModel::new("llama")
    };
    let small = small.drawn();
    let folder = small.write_folder("cut", true, 1);
    let gguf = small.write_gguf("cut-gguf");
    for path in [folder.join("model.safetensors"), gguf] {
        let whole = std::fs::read(&path).expect("a readable file");
        tried(&path).expect("whole");
        for length in (0..whole.len() - 32).step_by(11) {
            std::fs::write(&path, &whole[..length]).expect("a writable file");
            let message = refused(&path);
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            assert!(message.contains(&name), "{message}");
        }
    }
}

#[test]
fn absurd_claims_are_refused_by_name() {
    let small = RandomModel::new("llama").drawn();
    let folder = small.write_folder("claims", true, 1);
    let config = small.config(true);
    let cases: [(&str, Value, &str); 14] = [
        ("hidden_size", json!(0), "`hidden_size`: 0 is out of range"),
        ("hidden_size", json!(1_u64 << 60), "`hidden_size`: 1152921504606846976 is out of range"),
        ("hidden_size", json!("many"), "`hidden_size`: it should be a whole number, and is \"many\""),
        ("hidden_size", json!(50), "tensor `model.embed_tokens.weight`: it should be of shape [70, 50]"),
        ("num_hidden_layers", json!(2_000_000_000), "tensor `model.layers.3.input_layernorm.weight`: it is missing"),
        ("num_key_value_heads", json!(4), "`num_key_value_heads`: 4 is out of range: it must divide"),
        ("head_dim", json!(13), "`head_dim`: 13 is out of range: heads have an even width"),
        ("hidden_act", json!("gelu"), "`hidden_act`: the activation `gelu` is not supported"),
        ("model_type", json!("mamba"), "`model_type`: the architecture `mamba` is not supported"),
        ("rms_norm_eps", json!(-1), "`rms_norm_eps`: -1 is out of range"),
        ("vocab_size", Value::Null, "`vocab_size`: it is missing"),
        ("eos_token_id", json!("end"), "`eos_token_id`: it should be a token id or several"),
        ("rope_parameters", json!({ "rope_type": "yarn" }), "`rope_parameters.rope_type`: the scaling `yarn`"),
        ("rope_parameters", json!({ "rope_type": "llama3" }), "`rope_parameters.low_freq_factor`: it is missing"),
    ];
    for (field, value, expected) in cases {
        let mut config = config.clone();
        config[field] = value;
        std::fs::write(folder.join("config.json"), config.to_string()).expect("a writable file");
        let message = refused(&folder);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn tokens_that_end_or_begin_a_text_are_tokens_of_the_model() {
    let small = RandomModel::new("llama").drawn();
    let folder = small.write_folder("ends", true, 1);
    let (config, generation) = (folder.join("config.json"), folder.join("generation_config.json"));
    for (name, value, odd) in
        [("eos_token_id", json!([2, 70]), 70), ("bos_token_id", json!(4_294_967_295_u32), u32::MAX)]
    {
        let mut wrong = small.config(true);
        wrong[name] = value.clone();
        std::fs::write(&config, wrong.to_string()).expect("a writable file");
        let expected = format!("config.json`: `{name}`: {odd} is out of range: ids are below `vocab_size`");
        assert!(refused(&folder).contains(&expected), "{}", refused(&folder));
        std::fs::write(&config, small.config(true).to_string()).expect("a writable file");
        std::fs::write(&generation, json!({ name: value }).to_string()).expect("a writable file");
        assert!(refused(&folder).contains(&format!("generation_{expected}")), "{}", refused(&folder));
        std::fs::remove_file(&generation).expect("a file");
    }
    tried(&folder).expect("whole");
    for name in ["eos", "eot", "bos"].map(|name| format!("tokenizer.ggml.{name}_token_id")) {
        tried(&small.write_gguf_with("ends-gguf", &[(&name, json!(69))])).expect("whole");
        let message = refused(&small.write_gguf_with("ends-gguf", &[(&name, json!(70))]));
        let expected = format!("`{name}`: 70 is out of range: ids are below the rows of `token_embd.weight`");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn duplicate_keys_are_refused_in_every_document() {
    let small = RandomModel::new("llama").drawn();
    let folder = small.write_folder("twice", true, 2);
    let tokenizer = json!({ "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": { "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" } });
    let documents = [
        ("config.json", small.config(true).to_string(), "\"hidden_size\":48", "/hidden_size"),
        ("generation_config.json", "{\"eos_token_id\":2}".to_owned(), "\"eos_token_id\":2", "/eos_token_id"),
        ("model.safetensors.index.json", String::new(), "\"lm_head.weight\":\"x\"", "/weight_map/lm_head.weight"),
        ("tokenizer.json", tokenizer.to_string(), "\"a\":0", "/model/vocab/a"),
        ("tokenizer_config.json", "{\"chat_template\":\"\"}".to_owned(), "\"chat_template\":\"\"", "/chat_template"),
    ];
    for (name, text, pair, pointer) in documents {
        let path = folder.join(name);
        let index = || std::fs::read_to_string(&path).expect("a file").replace("model-00001-of-00002.safetensors", "x");
        let text = if text.is_empty() { index() } else { text };
        assert_eq!(text.matches(pair).count(), 1, "{name}: {text}");
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, text.replace(pair, &format!("{pair},{pair}"))).expect("a writable folder");
        let opened = Model::open(&folder).and_then(|model| {
            let tokenizer = model_parts(&model);
            tokenizer.map(|()| model)
        });
        let message = opened.expect_err("a duplicate key").to_string();
        assert!(
            message.contains(name) && message.contains(&format!("duplicate key `{pointer}` at line ")),
            "{message}"
        );
        match before {
            Some(before) => std::fs::write(&path, before).expect("a writable file"),
            None => std::fs::remove_file(&path).expect("a file"),
        }
    }
}

/// Reads the tokenizer and the template of a model, if it has them.
fn model_parts(model: &Model) -> Result<(), torchless::Error> {
    let is_absent = |error: &torchless::Error| {
        matches!(error, torchless::Error::NoTokenizer { .. } | torchless::Error::NoChatTemplate { .. })
    };
    let present = |error: torchless::Error| if is_absent(&error) { Ok(()) } else { Err(error) };
    Tokenizer::of(model).map(drop).or_else(present)?;
    ChatTemplate::of(model).map(drop).or_else(present)
}

#[test]
fn a_part_of_a_head_that_is_turned_is_refused_with_and_without_scaling() {
    let folder = RandomModel::new("llama").drawn().write_folder("partial", false, 1);
    let config = RandomModel::new("llama").config(false);
    for scaling in [Value::Null, json!({ "rope_type": "default" })] {
        let mut config = config.clone();
        config["partial_rotary_factor"] = json!(0.5);
        config["rope_scaling"] = scaling;
        std::fs::write(folder.join("config.json"), config.to_string()).expect("a writable file");
        assert!(refused(&folder).contains("`partial_rotary_factor`: a part of `0.5` is not supported"));
    }
}

#[test]
fn sizes_whose_products_overflow_are_refused() {
    let folder = RandomModel::new("llama").drawn().write_folder("products", true, 1);
    let mut config = RandomModel::new("llama").config(true);
    for (field, value) in [("num_attention_heads", 2_147_483_647_u64), ("num_key_value_heads", 2_147_483_647)] {
        config[field] = json!(value);
    }
    config["head_dim"] = json!(2_147_483_646);
    std::fs::write(folder.join("config.json"), config.to_string()).expect("a writable file");
    assert!(refused(&folder).contains("tensor `model.layers.0.self_attn.q_proj.weight`: it should be of shape"));
    config["num_hidden_layers"] = json!(2_147_483_647);
    std::fs::write(folder.join("config.json"), config.to_string()).expect("a writable file");
    let options = LoadOptions { memory_limit: Some(1 << 40), positions: 1 };
    let message = Model::open_with(&folder, &options).expect_err("the file is wrong").to_string();
    assert!(message.contains("18446744073709551615 for keys and values"), "{message}");
}

#[test]
fn truncation_and_padding_of_a_tokenizer_are_not_applied_to_prompts() {
    let folder = RandomModel::new("llama").drawn().write_folder("batches", true, 1);
    let padding = |strategy: Value| {
        json!({ "strategy": strategy, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "a" })
    };
    let truncation = |length: u64, stride: u64| json!({ "direction": "Right", "max_length": length, "strategy": "LongestFirst", "stride": stride });
    let model = json!({ "type": "WordLevel", "vocab": { "a": 0, "b": 1, "two": 2, "words": 3 }, "unk_token": "a" });
    let whole = json!({ "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null, "model": model });
    let cases = [
        ("padding", padding(json!({ "Fixed": 9 }))),
        ("padding", padding(json!({ "Fixed": 1_000_000_000_000_u64 }))),
        ("truncation", truncation(2, 0)),
        ("truncation", truncation(1, 1)),
        ("truncation", truncation(1, 5)),
    ];
    for (field, value) in cases {
        let mut tokenizer = whole.clone();
        tokenizer[field] = value;
        std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).expect("a writable folder");
        let tokenizer = Tokenizer::of(&Model::open(&folder).expect("a model")).expect("a tokenizer");
        assert_eq!(tokenizer.encode("b two words b", true).expect("ids"), [1, 2, 3, 1]);
    }
}

/// Counts of tensors and keys, if they are to be wrong.
type Counts = Option<[u64; 2]>;
/// Name, dimensions, type and offset of a tensor.
type Listed<'a> = (&'a str, &'a [u64], u32, u64);

/// A GGUF file of one key (its bytes from the type on) and tensors, with 64 bytes of numbers.
fn gguf(key: &[u8], tensors: &[Listed<'_>], claimed: Counts) -> String {
    let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes()].concat();
    let counts = claimed.unwrap_or([tensors.len() as u64, u64::from(!key.is_empty())]);
    counts.iter().for_each(|count| file.extend(count.to_le_bytes()));
    let name = |file: &mut Vec<u8>, name: &str| {
        file.extend((name.len() as u64).to_le_bytes());
        file.extend(name.as_bytes());
    };
    if !key.is_empty() {
        name(&mut file, "key");
        file.extend(key);
    }
    for (tensor, shape, kind, offset) in tensors {
        name(&mut file, tensor);
        file.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|size| file.extend(size.to_le_bytes()));
        file.extend(kind.to_le_bytes());
        file.extend(offset.to_le_bytes());
    }
    file.resize(file.len().next_multiple_of(32) + 64, 0);
    let path = fresh_folder("gguf-claims").join("model.gguf");
    std::fs::write(&path, file).expect("a writable file");
    refused(&path)
}

#[test]
fn false_gguf_files_are_refused_by_name() {
    const MOST: u64 = u64::MAX;
    let array =
        |kind: u32, length: u64| [&9_u32.to_le_bytes()[..], &kind.to_le_bytes(), &length.to_le_bytes()].concat();
    let nested = [array(9, 1), 9_u32.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec(), vec![0; 12]].concat();
    let text = [&8_u32.to_le_bytes()[..], &MOST.to_le_bytes()].concat();
    let cases: [(&[u8], Counts, &str); 7] = [
        (&text, None, "`key`: it needs 18446744073709551615 bytes"),
        (&array(0, MOST), None, "`key`: 18446744073709551615 is out of range: all arrays of a file"),
        (&array(4, 1 << 20), None, "`key`: it needs 4 bytes, and the file has"),
        (&nested, None, "`key`: the depth `arrays in arrays in arrays` is not supported"),
        (&99_u32.to_le_bytes(), None, "`key`: the value type `99` is not supported"),
        (&[], Some([0, MOST]), "``: it occurs more than once"),
        (&[], Some([MOST, 0]), "tensor 3: it needs 8 bytes"),
    ];
    for (key, claimed, expected) in cases {
        let message = gguf(key, &[], claimed);
        assert!(message.contains(expected) && message.contains("model.gguf"), "{message}, not {expected}");
    }
    let one = |shape: &[u64], kind: u32, offset: u64| gguf(&[], &[("x", shape, kind, offset)], None);
    assert!(one(&[1; 5], 0, 0).contains("tensor `x`: 5 is out of range: tensors have at most 4 dimensions"));
    assert!(one(&[1 << 31], 0, 0).contains("tensor `x`: 2147483648 is out of range: sizes are below 2^31"));
    assert!(one(&[(1 << 31) - 1; 4], 0, 0).contains("tensor `x`: F32 of [2147483647, 2147483647, 2147483647"));
    assert!(one(&[4], 77, 0).contains("tensor `x`: the tensor type `77` is not supported"));
    assert!(one(&[33], 8, 0).contains("tensor `x`: Q8_0 of [33] is out of range: rows are whole blocks"));
    assert!(one(&[4], 0, MOST).contains("tensor `x`: it needs 16 bytes, and the file has 0 left"));
    assert!(one(&[4], 0, 56).contains("tensor `x`: it needs 16 bytes, and the file has 8 left"));
    let shared = gguf(&[], &[("x", &[8], 0, 0), ("y", &[4], 0, 16)], None);
    assert!(shared.contains("tensor `y`: it should be in bytes of its own, and is in those of `x`, too"), "{shared}");
}

/// Keys of a whole file, made wrong one by one.
#[test]
fn wrong_values_of_gguf_keys_are_refused_by_name() {
    let small = RandomModel::new("llama").drawn();
    let path = small.write_gguf("gguf-values");
    let whole = std::fs::read(&path).expect("a readable file");
    let cases: [(&str, [u8; 4], &str); 9] = [
        ("llama.attention.layer_norm_rms_epsilon", f32::NAN.to_le_bytes(), "NaN is out of range: it must be positive"),
        ("llama.rope.freq_base", (-1.0_f32).to_le_bytes(), "-1 is out of range"),
        ("llama.rope.freq_base", f32::INFINITY.to_le_bytes(), "inf is out of range"),
        ("llama.block_count", [255; 4], "4294967295 is out of range: sizes are between 1 and 2^31"),
        ("llama.embedding_length", 0_u32.to_le_bytes(), "0 is out of range"),
        ("llama.attention.head_count_kv", 5_u32.to_le_bytes(), "5 is out of range: it must divide"),
        ("llama.attention.key_length", 13_u32.to_le_bytes(), "13 is out of range: heads have an even width"),
        ("llama.rope.dimension_count", 6_u32.to_le_bytes(), "6 is out of range: it must be the width of a head"),
        ("llama.context_length", 0_u32.to_le_bytes(), "0 is out of range"),
    ];
    for (key, value, expected) in cases {
        let found = whole.windows(key.len()).position(|window| window == key.as_bytes()).expect("the key");
        let mut bytes = whole.clone();
        // The type is behind the name.
        bytes[found + key.len() + 4..][..4].copy_from_slice(&value);
        std::fs::remove_file(&path).expect("a file");
        std::fs::write(&path, &bytes).expect("a writable file");
        let message = refused(&path);
        assert!(message.contains(key) && message.contains(expected), "{message}, not {expected}");
    }
}

/// A few thousand damaged files: the result is a model or an error, not a panic.
#[test]
fn no_damage_makes_a_panic() {
    let small = RandomModel {
        hidden: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        intermediate: 8,
        vocabulary: 9,
        layers: 1,
        ..RandomModel::new("llama")
    };
    let small = small.drawn();
    let folder = small.write_folder("damage", true, 1);
    damage(&[folder.join("config.json"), folder.join("model.safetensors"), small.write_gguf("damage-gguf")]);
}

#[test]
#[ignore = "needs the reference models"]
fn no_damage_of_a_reference_model_makes_a_panic() {
    let copy = fresh_folder("damage-tiny").join("model.gguf");
    std::fs::copy(reference("gguf/tiny-q4_0.gguf"), &copy).expect("a writable folder");
    damage(&[copy]);
}

/// Opens each of `files` after random damage; a file of JSON as the configuration of its folder.
fn damage(files: &[PathBuf]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    for path in files {
        let whole = std::fs::read(path).expect("a readable file");
        // Headers are where claims are.
        let header = whole.len().min(2500);
        let n_rounds = if whole.len() > 50_000 { 60 } else { 500 };
        for round in 0..n_rounds {
            let mut bytes = whole.clone();
            for _ in 0..=random(3) {
                let header = header.min(bytes.len());
                let at = random(header);
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at] = [0, 255, 127, b'9', b'-', b'"'][random(6)],
                    2 => drop(bytes.drain(at..(at + random(9)).min(header))),
                    _ => bytes[at..(at + 8).min(header)].fill(255),
                }
            }
            // A fresh file: the one before may still be mapped.
            std::fs::remove_file(path).expect("a file");
            std::fs::write(path, &bytes).expect("a writable file");
            let target = if path.extension().is_some_and(|extension| extension == "json") {
                path.parent().expect("a folder")
            } else {
                path
            };
            let result = catch_unwind(|| tried(target));
            assert!(result.is_ok(), "{} in round {round}", path.display());
        }
        std::fs::write(path, &whole).expect("a writable file");
    }
}

#[test]
fn a_weight_that_is_nan_shows_in_every_logit() {
    let sound = RandomModel::new("llama").drawn();
    for part in ["q", "k", "v", "o"] {
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut small = sound.clone();
            let weights = small.weights.get_mut(&format!("model.layers.0.self_attn.{part}_proj.weight"));
            weights.expect("a matrix").1[0] = number;
            let model = Arc::new(Model::open(small.write_folder("no-number", true, 1)).expect("a model"));
            let mut engine = Engine::new(model, Threads::new(1));
            let mut cache = engine.cache(4).expect("a cache");
            let logits = engine.logits(&mut cache, &[3, 14, 15, 9], LogitRows::All).expect("logits");
            assert!(logits.iter().all(|logit| logit.is_nan()), "{part}: {number}");
        }
    }
}

#[test]
fn a_separate_head_counts_though_the_configuration_ties_it() {
    let apart = RandomModel::new("llama").drawn();
    let claims = RandomModel { tied: true, ..apart.clone() };
    let mut equal = claims.clone();
    let embedding = equal.weights["model.embed_tokens.weight"].clone();
    equal.weights.insert("lm_head.weight".to_owned(), embedding);
    for (name, small, expected, is_tied) in [("claims", &claims, &apart, false), ("equal", &equal, &equal, true)] {
        let model = Arc::new(Model::open(small.write_folder(name, true, 1)).expect("a model"));
        assert_eq!(model.config().is_tied, is_tied, "{name}");
        let mut engine = Engine::new(model, Threads::new(1));
        let mut cache = engine.cache(3).expect("a cache");
        let logits = engine.logits(&mut cache, &[5, 6, 7], LogitRows::All).expect("logits");
        let off = logits.iter().zip(expected.logits(&[5, 6, 7])).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-4, "{name}: {off}");
    }
}
