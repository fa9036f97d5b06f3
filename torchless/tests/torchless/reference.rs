//! Logits, continuations and likelihoods of the reference models.
//!
//! Tolerances are the reference's own: 1e-4 in a logit separates every right engine from every
//! classic mistake.

use std::sync::Arc;

use torchless::{Engine, LogitRows, Model, Threads};

use crate::support::{distance, ids, json, reference, tensors};

/// What a right engine is within of the reference; twenty times what was found.
const LOGIT: f64 = 1e-4;
const NLL: f64 = 1e-5;

fn engine(path: &std::path::Path) -> Engine {
    Engine::new(Arc::new(Model::open(path).expect("a model")), Threads::new(1))
}

/// All rows of logits of `tokens`, `chunk` at a time.
fn logits(engine: &mut Engine, tokens: &[u32], chunk: usize) -> Vec<f32> {
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let parts = tokens.chunks(chunk).map(|part| engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    parts.collect::<Vec<_>>().concat()
}

fn mean_nll(logits: &[f32], tokens: &[u32], vocabulary: usize) -> f64 {
    let rows = logits.chunks(vocabulary).zip(&tokens[1..]);
    let nll = rows.map(|(row, &next)| -torchless::score::log_probability(row, next));
    nll.sum::<f64>() / (tokens.len() - 1) as f64
}

fn greedy(row: &[f32]) -> u32 {
    (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a vocabulary") as u32
}

#[test]
#[ignore = "needs the reference models"]
fn every_reference_prompt_is_within_1e_4_stepwise_chunked_and_whole() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    let cases = json(&folder.join("reference.json"));
    let expected = tensors(&folder.join("reference_logits.safetensors"));
    for case in cases["prompts"].as_array().expect("prompts") {
        let (name, tokens) = (case["name"].as_str().expect("a name"), ids(&case["ids"]));
        let whole = logits(&mut engine, &tokens, tokens.len());
        for chunk in [1, 7] {
            let parts = logits(&mut engine, &tokens, chunk);
            assert!(parts.iter().zip(&whole).all(|(a, b)| a.to_bits() == b.to_bits()), "{name} in parts of {chunk}");
        }
        let vocabulary = whole.len() / tokens.len();
        let rows = ids(&case["logit_rows"]).into_iter();
        let chosen: Vec<f32> =
            rows.flat_map(|row| &whole[row as usize * vocabulary..][..vocabulary]).copied().collect();
        let off = distance(&chosen, &expected[&format!("{name}.logits")].values);
        println!("{name}: {off:.2e}");
        assert!(off <= LOGIT, "{name}: {off}");
        if tokens.len() > 1 {
            let nll = mean_nll(&whole, &tokens, vocabulary);
            assert!((nll - case["mean_nll"].as_f64().expect("a number")).abs() <= NLL, "{name}: {nll}");
        }
    }
}

#[test]
#[ignore = "needs the reference models"]
fn greedy_continuations_are_those_of_the_reference() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    for case in json(&folder.join("reference.json"))["prompts"].as_array().expect("prompts") {
        let (mut tokens, expected) = (ids(&case["ids"]), ids(&case["greedy32"]));
        let mut cache = engine.cache(tokens.len() + expected.len()).expect("a cache");
        let mut found = Vec::new();
        for _ in 0..expected.len() {
            let row = engine.logits(&mut cache, &tokens, LogitRows::Last).expect("logits");
            tokens = vec![greedy(&row)];
            found.push(tokens[0]);
        }
        assert_eq!(found, expected, "{}", case["name"]);
    }
}

#[test]
#[ignore = "needs the reference models"]
fn the_mean_nll_of_the_long_text_is_that_of_the_reference() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    let case = &json(&folder.join("reference.json"))["ppl"];
    let tokens = ids(&case["ids"]);
    let all = logits(&mut engine, &tokens, tokens.len());
    let nll = mean_nll(&all, &tokens, all.len() / tokens.len());
    assert!((nll - case["mean_nll"].as_f64().expect("a number")).abs() <= NLL, "{nll}");
}

#[test]
#[ignore = "needs the reference models"]
fn the_residual_stream_is_that_of_the_reference_after_every_layer() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    let expected = tensors(&folder.join("reference_logits.safetensors"));
    let tokens = ids(&json(&folder.join("reference.json"))["prompts"][0]["ids"]);
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let mut layers = Vec::new();
    let mut observer = |_: usize, residual: &[f32]| layers.push(residual.to_vec());
    engine.observed(&mut cache, &tokens, LogitRows::Last, &mut |_, _| (), &mut observer).expect("logits");
    assert_eq!(layers.len(), 3);
    for (index, residual) in layers.iter().enumerate() {
        assert!(distance(residual, &expected[&format!("text0.hidden{index}")].values) < 1e-5, "layer {index}");
    }
}

#[test]
#[ignore = "needs the reference models"]
fn quantised_models_are_exact_over_their_dequantised_weights() {
    let folder = reference("gguf");
    let plain = reference("tiny-llama-f32/reference.json");
    let plain = json(&plain);
    let expected = tensors(&folder.join("reference_logits.safetensors"));
    let nlls = json(&folder.join("reference.json"));
    for kind in ["q8_0", "q4_0"] {
        let mut engine = engine(&folder.join(format!("tiny-{kind}.gguf")));
        for case in plain["prompts"].as_array().expect("prompts") {
            let (name, tokens) = (case["name"].as_str().expect("a name"), ids(&case["ids"]));
            let all = logits(&mut engine, &tokens, tokens.len());
            let stepwise = logits(&mut engine, &tokens, 1);
            assert!(all.iter().zip(&stepwise).all(|(a, b)| a.to_bits() == b.to_bits()), "{kind} {name}");
            let last = &all[all.len() - all.len() / tokens.len()..];
            let off = distance(last, &expected[&format!("{kind}.{name}.last_logits")].values);
            println!("{kind} {name}: {off:.2e}");
            assert!(off <= LOGIT, "{kind} {name}: {off}");
        }
        let tokens = ids(&plain["ppl"]["ids"]);
        let all = logits(&mut engine, &tokens, tokens.len());
        let nll = mean_nll(&all, &tokens, all.len() / tokens.len());
        assert!((nll - nlls[kind]["mean_nll_dequantised"].as_f64().expect("a number")).abs() <= NLL, "{kind}: {nll}");
    }
}
