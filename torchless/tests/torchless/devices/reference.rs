//! The reference models on a device: logits, continuations and scores.
//!
//! Tolerances are the reference's own: 1e-4 in a logit separates every right engine from every
//! classic mistake. The emulation computes lane by lane, so that long texts are shortened here;
//! with `TORCHLESS_TEST_ALL`, and on a real device, they are whole, but for the events on POCL.

use std::path::Path;
use std::sync::Arc;

use torchless::score::{ScoreOptions, histogram, log_probabilities};
use torchless::{Engine, LogitRows, Model};

use super::device;
use crate::support::{distance, ids, json, reference, tensors};

const LOGIT: f64 = 1e-4;

fn engine(path: &Path) -> Engine {
    Engine::on_device(Arc::new(Model::open(path).expect("a model")), &device(), 256).expect("it fits")
}

fn is_complete() -> bool {
    std::env::var_os("TORCHLESS_TEST_ALL").is_some() || device().backend() != ns_device::Backend::Emulated
}

/// Returns how many events of each sample are scored: all of them take POCL tens of minutes, whose
/// kernels are compiled without optimisation.
fn n_events() -> usize {
    let is_slow = device().properties().name.contains("Portable Computing Language");
    let is_whole = is_complete() && (!is_slow || std::env::var_os("TORCHLESS_TEST_ALL").is_some());
    if is_whole { usize::MAX } else { 40 }
}

/// All rows of logits of `tokens`, `chunk` at a time.
fn logits(engine: &mut Engine, tokens: &[u32], chunk: usize) -> Vec<f32> {
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let parts = tokens.chunks(chunk).map(|part| engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    parts.collect::<Vec<_>>().concat()
}

#[test]
#[ignore = "needs the reference models"]
fn every_reference_prompt_is_within_1e_4_chunked_and_whole() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    let cases = json(&folder.join("reference.json"));
    let expected = tensors(&folder.join("reference_logits.safetensors"));
    for case in cases["prompts"].as_array().expect("prompts") {
        let (name, tokens) = (case["name"].as_str().expect("a name"), ids(&case["ids"]));
        let whole = logits(&mut engine, &tokens, tokens.len());
        let chunks: &[usize] = if tokens.len() < 10 || is_complete() { &[1, 7] } else { &[7] };
        for &chunk in chunks {
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
    }
}

#[test]
#[ignore = "needs the reference models"]
fn greedy_continuations_are_those_of_the_reference() {
    let folder = reference("tiny-llama-f32");
    let mut engine = engine(&folder);
    let cases = json(&folder.join("reference.json"));
    let n_cases = if is_complete() { usize::MAX } else { 2 };
    for case in cases["prompts"].as_array().expect("prompts").iter().take(n_cases) {
        let (mut tokens, expected) = (ids(&case["ids"]), ids(&case["greedy32"]));
        let mut cache = engine.cache(tokens.len() + expected.len()).expect("a cache");
        let mut found = Vec::new();
        for _ in 0..expected.len() {
            let row = engine.logits(&mut cache, &tokens, LogitRows::Last).expect("logits");
            let best = (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b]));
            tokens = vec![best.expect("a vocabulary") as u32];
            found.push(tokens[0]);
        }
        assert_eq!(found, expected, "{}", case["name"]);
    }
}

#[test]
#[ignore = "needs the reference models"]
fn quantised_models_are_exact_over_their_dequantised_weights() {
    let folder = reference("gguf");
    let plain = reference("tiny-llama-f32/reference.json");
    let plain = json(&plain);
    let expected = tensors(&folder.join("reference_logits.safetensors"));
    for kind in ["q8_0", "q4_0"] {
        let mut engine = engine(&folder.join(format!("tiny-{kind}.gguf")));
        for case in plain["prompts"].as_array().expect("prompts") {
            let (name, tokens) = (case["name"].as_str().expect("a name"), ids(&case["ids"]));
            let all = logits(&mut engine, &tokens, tokens.len());
            let last = &all[all.len() - all.len() / tokens.len()..];
            let off = distance(last, &expected[&format!("{kind}.{name}.last_logits")].values);
            println!("{kind} {name}: {off:.2e}");
            assert!(off <= LOGIT, "{kind} {name}: {off}");
        }
    }
}

#[test]
#[ignore = "needs the reference models"]
fn events_are_scored_as_in_the_reference_and_counted_in_the_same_bins() {
    let folder = reference("hep-llr");
    let mut engine = engine(&folder);
    let document = json(&folder.join("reference.json"));
    let inner = document["edges"].as_array().expect("edges").iter().filter_map(serde_json::Value::as_f64);
    let edges: Vec<f64> = [f64::NEG_INFINITY].into_iter().chain(inner).chain([f64::INFINITY]).collect();
    for (name, events) in document["events"].as_object().expect("events") {
        let mut events: Vec<Vec<u32>> = events.as_array().expect("a list").iter().map(ids).collect();
        events.truncate(n_events());
        let mut under = |prefix| {
            let options = ScoreOptions { prefix: vec![prefix], end: vec![66], ..ScoreOptions::default() };
            log_probabilities(&mut engine, &events, &options).expect("scores")
        };
        let (signal, background) = (under(65), under(64));
        let found: Vec<f64> = signal.iter().zip(&background).map(|(a, b)| a - b).collect();
        let expected: Vec<f64> = document["llr"][name].as_array().expect("ratios").iter().map(number).collect();
        let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-4, "{name}: {off}");
        assert_eq!(histogram(&found, &edges), histogram(&expected[..found.len()], &edges), "{name}");
        if found.len() == expected.len() {
            let counts = document["hist"][name].as_array().expect("counts").iter().map(|count| number(count) as u64);
            assert_eq!(histogram(&found, &edges), counts.collect::<Vec<_>>(), "{name}");
        }
    }
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}
