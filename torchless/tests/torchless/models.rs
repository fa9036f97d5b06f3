//! Models made here, of every family and every kind of file, against a plain forward pass in double
//! precision.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use torchless::{Engine, InstructionSet, KvCache, LoadOptions, LogitRows, Model, Threads};

use crate::random_model::{RandomModel, Stored};
use crate::support::distance;

const TOKENS: [u32; 23] = [1, 7, 3, 69, 12, 12, 40, 5, 33, 8, 61, 2, 19, 44, 44, 50, 27, 6, 9, 13, 68, 31, 22];

fn logits(path: &Path, chunk: usize, threads: Threads) -> Vec<f32> {
    let model = Arc::new(Model::open(path).expect("a model"));
    let mut engine = Engine::new(model, threads).with_chunk(chunk);
    let mut cache = engine.cache(TOKENS.len()).expect("a cache");
    engine.logits(&mut cache, &TOKENS, LogitRows::All).expect("logits")
}

#[track_caller]
fn agrees(path: &Path, small: &RandomModel) {
    let off = distance(&logits(path, 100, Threads::new(1)), &small.logits(&TOKENS));
    // Logits of these models reach 30; single precision's own noise in them is 3e-5.
    assert!(off < 6e-5, "{}: {off}", path.display());
}

#[test]
fn llama_of_old_and_new_folders_and_gguf_matches_the_reference_implementation() {
    let small = RandomModel::new("llama").drawn();
    agrees(&small.write_folder("llama-new", true, 1), &small);
    agrees(&small.write_folder("llama-old", false, 3), &small);
    agrees(&small.write_gguf("llama-gguf"), &small);
}

#[test]
fn frequencies_are_scaled_as_the_file_specifies() {
    // Some wavelengths below the band, some inside, some above.
    let small = RandomModel { llama3: Some([8.0, 1.0, 4.0, 24.0]), ..RandomModel::new("llama") }.drawn();
    agrees(&small.write_folder("llama3-new", true, 1), &small);
    agrees(&small.write_folder("llama3-old", false, 1), &small);
    agrees(&small.write_gguf("llama3-gguf"), &small);
    let small = RandomModel { linear: Some(4.0), ..RandomModel::new("llama") }.drawn();
    agrees(&small.write_folder("linear-new", true, 1), &small);
    agrees(&small.write_folder("linear-old", false, 1), &small);
}

#[test]
fn a_null_number_of_key_heads_is_the_number_of_heads() {
    for family in ["llama", "mistral", "qwen2"] {
        let small = RandomModel { kv_heads: 6, ..RandomModel::new(family) }.drawn();
        let folder = small.write_folder(&format!("null-{family}"), true, 1);
        let mut config = small.config(true);
        config["num_key_value_heads"] = json!(null);
        std::fs::write(folder.join("config.json"), config.to_string()).expect("a writable file");
        agrees(&folder, &small);
    }
}

/// As llama.cpp's loader reads them.
#[test]
fn frequencies_of_gguf_files_are_scaled_as_their_keys_specify() {
    let (kind, factor, older) = ("llama.rope.scaling.type", "llama.rope.scaling.factor", "llama.rope.scale_linear");
    let (plain, linear) =
        (RandomModel::new("llama").drawn(), RandomModel { linear: Some(4.0), ..RandomModel::new("llama") }.drawn());
    // After the linear factor, so that both read the same wavelengths.
    let both = RandomModel { llama3: Some([8.0, 1.0, 4.0, 24.0]), ..linear.clone() };
    let none = || (kind, json!("none"));
    agrees(&linear.write_gguf_with("gguf-unnamed", &[(factor, json!(4))]), &linear);
    agrees(&linear.write_gguf_with("gguf-linear", &[(kind, json!("linear")), (factor, json!(4))]), &linear);
    agrees(&linear.write_gguf_with("gguf-older", &[(older, json!(4))]), &linear);
    agrees(&linear.write_gguf_with("gguf-older-linear", &[(kind, json!("linear")), (older, json!(4))]), &linear);
    agrees(&linear.write_gguf_with("gguf-newer", &[(factor, json!(4)), (older, json!(3))]), &linear);
    agrees(&plain.write_gguf_with("gguf-none", &[none(), (factor, json!(4)), (older, json!(3))]), &plain);
    agrees(&both.write_gguf_with("gguf-both", &[(factor, json!(4))]), &both);
}

#[test]
fn mistral_sees_its_window_and_no_more() {
    let small = RandomModel { windows: vec![Some(5); 3], ..RandomModel::new("mistral") }.drawn();
    agrees(&small.write_folder("mistral", true, 1), &small);
    let small = RandomModel::new("mistral").drawn();
    agrees(&small.write_folder("mistral-all", false, 1), &small);
}

#[test]
fn qwen2_has_biases_and_windows_in_its_last_layers() {
    let small = RandomModel { tied: true, ..RandomModel::new("qwen2") }.drawn();
    agrees(&small.write_folder("qwen2", true, 1), &small);
    agrees(&small.write_gguf("qwen2-gguf"), &small);
    let small = RandomModel { windows: vec![None, Some(4), Some(4)], ..RandomModel::new("qwen2") }.drawn();
    agrees(&small.write_folder("qwen2-window", true, 1), &small);
}

#[test]
fn halves_are_read_exactly() {
    for (name, stored) in [("f16", Stored::F16), ("bf16", Stored::Bf16)] {
        let small = RandomModel { stored, tied: true, ..RandomModel::new("llama") }.drawn();
        agrees(&small.write_folder(&format!("folder-{name}"), true, 2), &small);
        let small = RandomModel { stored, hidden: 64, ..RandomModel::new("llama") }.drawn();
        agrees(&small.write_folder(&format!("wide-{name}"), true, 1), &small);
    }
}

#[test]
fn no_number_of_threads_or_tokens_at_once_changes_a_bit() {
    // Large enough to be shared: every product has more than 2^15 multiplications.
    for hidden in [192, 200] {
        let small = RandomModel { hidden, intermediate: 328, ..RandomModel::new("llama") }.drawn();
        let path = small.write_folder(&format!("bits-{hidden}"), true, 1);
        let expected = logits(&path, 100, Threads::new(1));
        assert!(distance(&expected, &small.logits(&TOKENS)) < 1e-4);
        for (chunk, n_threads) in [(1, 1), (1, 3), (2, 2), (7, 1), (7, 4), (100, 2), (100, 5)] {
            let found = logits(&path, chunk, Threads::new(n_threads));
            let is_same = found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(is_same, "{chunk} at once, {n_threads} threads");
        }
        for isa in InstructionSet::available() {
            let found = logits(&path, 7, Threads::new(1).with_instruction_set(isa));
            assert!(distance(&found, &expected) < 1e-4, "{isa:?}");
            // Products and sums are fused by all but x86-64 without AVX2, and `expected` is of the
            // best.
            let fuses = |isa| isa != InstructionSet::Baseline || cfg!(target_arch = "aarch64");
            let is_same = found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(is_same || !(fuses(isa) && fuses(InstructionSet::best())), "{isa:?}");
        }
    }
}

#[test]
fn a_model_that_does_not_fit_is_refused_before_it_is_loaded() {
    let path = RandomModel::new("llama").drawn().write_folder("refused", true, 1);
    let options = LoadOptions { memory_limit: Some(1000), positions: 0 };
    let error = Model::open_with(&path, &options).expect_err("too large");
    assert!(error.to_string().starts_with("the model needs about "), "{error}");
    let weights = Model::open(&path).expect("a model").weight_bytes();
    let options = LoadOptions { memory_limit: Some(weights + 3000), positions: 1 };
    Model::open_with(&path, &options).expect("fits");
    Model::open_with(&path, &LoadOptions { positions: 64, ..options }).expect_err("keys and values do not fit");
    let model = Arc::new(Model::open_with(&path, &options).expect("fits"));
    let engine = Engine::new(model, Threads::new(1));
    engine.cache(1).expect("fits");
    let error = engine.cache(64).expect_err("keys and values do not fit");
    assert!(error.to_string().starts_with("the model needs about "), "{error}");
    // No sequence is longer than the context, even if more is asked for.
    let options = LoadOptions { memory_limit: Some(2 * weights), positions: usize::MAX };
    Model::open_with(&path, &options).expect("fits");
}

#[test]
fn a_failed_call_leaves_the_cache_unchanged() {
    let path = RandomModel::new("llama").drawn().write_folder("errors", true, 1);
    let mut engine = Engine::new(Arc::new(Model::open(&path).expect("a model")), Threads::new(1));
    let mut cache = engine.cache(4).expect("a cache");
    let mut message = |tokens: &[u32]| {
        let error = engine.logits(&mut cache, tokens, LogitRows::Last).expect_err("an error").to_string();
        assert!(cache.is_empty());
        error
    };
    assert_eq!(message(&[]), "there are no tokens");
    assert_eq!(message(&[1, 70]), "token 1 is 70, and the vocabulary has 70 (ids 0 to 69)");
    assert_eq!(message(&[1; 5]), "5 tokens do not fit into a context of 4");
    for (name, other) in [
        ("errors-shallow", RandomModel { layers: 2, windows: vec![None; 2], ..RandomModel::new("llama") }),
        ("errors-deep", RandomModel { layers: 4, windows: vec![None; 4], ..RandomModel::new("llama") }),
        ("errors-wide", RandomModel { kv_heads: 3, ..RandomModel::new("llama") }),
        // As many numbers to a position, which lie elsewhere.
        ("errors-heads", RandomModel { kv_heads: 1, head_dim: 24, ..RandomModel::new("llama") }),
    ] {
        let other = Model::open(other.drawn().write_folder(name, true, 1)).expect("a model");
        let mut cache = KvCache::new(other.config(), 4).expect("a cache");
        let error = engine.logits(&mut cache, &[1], LogitRows::Last).expect_err("another model's");
        assert!(error.to_string().ends_with(", and the model has 3 layers, 2 heads of 12 each"), "{error}");
    }
    assert_eq!(engine.cache(65).expect_err("an error").to_string(), "65 tokens do not fit into a context of 64");
}
