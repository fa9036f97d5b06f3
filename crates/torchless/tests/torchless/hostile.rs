//! Damaged and dishonest files: an error that names file and field, never a panic.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use torchless::text::Tokenizer;
use torchless::{Engine, LogitRows, Model, Threads};

use crate::support::reference;
use crate::twin::{Twin, fresh_folder};

/// Opens the model and computes a token with it; the message if something refuses.
fn tried(path: &Path) -> Result<(), String> {
    let model = Arc::new(Model::open(path).map_err(|error| error.to_string())?);
    let _ = Tokenizer::of(&model);
    let mut engine = Engine::new(model, Threads::new(1));
    let mut cache = engine.cache(2).map_err(|error| error.to_string())?;
    engine.logits(&mut cache, &[1, 2], LogitRows::Last).map_err(|error| error.to_string())?;
    Ok(())
}

fn refused(path: &Path) -> String {
    tried(path).expect_err("the file is wrong")
}

#[test]
fn a_file_that_ends_anywhere_is_an_error_that_names_it() {
    let twin = Twin {
        hidden: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        intermediate: 8,
        vocabulary: 9,
        layers: 1,
        ..Twin::new("llama")
    };
    let twin = twin.drawn();
    let folder = twin.write_folder("cut", true, 1);
    let gguf = twin.write_gguf("cut-gguf");
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
    let twin = Twin::new("llama").drawn();
    let folder = twin.write_folder("claims", true, 1);
    let config = twin.config(true);
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
fn dishonest_headers_of_safetensors_are_refused_by_name() {
    let twin = Twin::new("llama").drawn();
    let folder = twin.write_folder("headers", true, 1);
    let path = folder.join("model.safetensors");
    let write = |header: &str| {
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 64]].concat();
        std::fs::write(&path, bytes).expect("a writable file");
        refused(&folder)
    };
    let tensor = |dtype: &str, shape: &str, offsets: &str| {
        write(&format!(r#"{{"x": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}"#))
    };
    assert!(tensor("F32", "[4]", "[0, 1000]").contains("tensor `x`: it needs 1000 bytes, and the file has 64 left"));
    assert!(tensor("F32", "[4]", "[16, 0]").contains("tensor `x`: 16..0 is out of range"));
    assert!(tensor("F32", "[5]", "[0, 16]").contains("tensor `x`: it should be the size of shape [5]"));
    assert!(tensor("Q4", "[4]", "[0, 16]").contains("tensor `x`: the type `Q4` is not supported"));
    assert!(tensor("F32", "[9223372036854775807, 9223372036854775807]", "[0, 16]").contains("tensor `x`"));
    assert!(write("[").contains("the header: "));
    assert!(write(&"[".repeat(100_000)).contains("the header: "));
    std::fs::write(&path, u64::MAX.to_le_bytes()).expect("a writable file");
    assert!(refused(&folder).contains("the length of the header: 18446744073709551615 is out of range"));
    std::fs::remove_file(&path).expect("a file");
    assert!(refused(&folder).contains("model.safetensors"));
}

#[test]
fn a_missing_shard_and_one_that_leaves_the_folder_are_refused() {
    let twin = Twin::new("llama").drawn();
    let folder = twin.write_folder("shards", true, 3);
    let index = folder.join("model.safetensors.index.json");
    let text = std::fs::read_to_string(&index).expect("a readable file");
    std::fs::write(&index, text.replace("model-00002-of-00003", "../model-00002-of-00003")).expect("a writable file");
    assert!(refused(&folder).contains("`weight_map`: `../model-00002-of-00003.safetensors` is no plain file name"));
    std::fs::write(&index, text).expect("a writable file");
    tried(&folder).expect("whole");
    std::fs::remove_file(folder.join("model-00002-of-00003.safetensors")).expect("a file");
    assert!(refused(&folder).contains("model-00002-of-00003.safetensors"));
}

/// A few thousand damaged files: what comes is a model or an error, not a panic.
#[test]
fn no_damage_makes_a_panic() {
    let twin = Twin {
        hidden: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        intermediate: 8,
        vocabulary: 9,
        layers: 1,
        ..Twin::new("llama")
    };
    let twin = twin.drawn();
    let folder = twin.write_folder("damage", true, 1);
    let mut files = vec![folder.join("config.json"), folder.join("model.safetensors"), twin.write_gguf("damage-gguf")];
    if let Some(path) = reference("gguf/tiny-q4_0.gguf") {
        let copy = fresh_folder("damage-tiny").join("model.gguf");
        std::fs::copy(path, &copy).expect("a writable folder");
        files.push(copy);
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    for path in files {
        let whole = std::fs::read(&path).expect("a readable file");
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
            std::fs::remove_file(&path).expect("a file");
            std::fs::write(&path, &bytes).expect("a writable file");
            let target = if path.extension().is_some_and(|extension| extension == "json") {
                folder.clone()
            } else {
                path.clone()
            };
            let result = catch_unwind(|| tried(&target));
            assert!(result.is_ok(), "{} in round {round}", path.display());
        }
        std::fs::write(&path, &whole).expect("a writable file");
    }
}
