//! Whole models on a device: against reference implementations in double precision, in any division
//! of the tokens, and who did the work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ns_device::{Backend, Device, EmulationOptions, LaneSchedule, OpenOptions, Precision};
use torchless::device::{DeviceKvCache, DeviceMemoryPool, estimate_device_memory};
use torchless::score::{ScoreOptions, log_probabilities};
use torchless::{Engine, Error, LogitRows, Model, Threads};

use super::device;
use crate::random_model::{RandomModel, Stored};
use crate::support::{distance, json};

const TOKENS: [u32; 23] = [1, 7, 3, 69, 12, 12, 40, 5, 33, 8, 61, 2, 19, 44, 44, 50, 27, 6, 9, 13, 68, 31, 22];

fn engine(path: &Path, device: &Device) -> Engine {
    let model = Arc::new(Model::open(path).expect("a model"));
    Engine::on_device(model, device, TOKENS.len()).expect("it fits")
}

fn logits(engine: &mut Engine, chunk: usize) -> Vec<f32> {
    let mut cache = engine.cache(TOKENS.len()).expect("a cache");
    let parts = TOKENS.chunks(chunk).map(|part| engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    parts.collect::<Vec<_>>().concat()
}

fn is_same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[track_caller]
fn agrees(path: &Path, small: &RandomModel) {
    let mut engine = engine(path, &device());
    let whole = logits(&mut engine, TOKENS.len());
    let off = distance(&whole, &small.logits(&TOKENS));
    // Logits of these models reach 30; single precision's own noise in them is 3e-5.
    assert!(off < 6e-5, "{}: {off}", path.display());
    for chunk in [1, 7] {
        assert!(is_same(&logits(&mut engine, chunk), &whole), "{} in parts of {chunk}", path.display());
    }
    assert!(is_same(&logits(&mut engine.with_chunk(9), TOKENS.len()), &whole), "{} in passes of 9", path.display());
}

#[test]
fn llama_of_folders_and_gguf_matches_the_reference_implementation() {
    let small = RandomModel { llama3: Some([8.0, 1.0, 4.0, 24.0]), ..RandomModel::new("llama") }.drawn();
    agrees(&small.write_folder("device-llama", true, 1), &small);
    agrees(&small.write_gguf("device-llama-gguf"), &small);
}

#[test]
fn mistral_sees_its_window_and_no_more() {
    let small = RandomModel { windows: vec![Some(5); 3], ..RandomModel::new("mistral") }.drawn();
    agrees(&small.write_folder("device-mistral", true, 1), &small);
}

#[test]
fn qwen2_has_biases_and_windows_in_its_last_layers() {
    let small = RandomModel { tied: true, windows: vec![None, Some(4), Some(4)], ..RandomModel::new("qwen2") }.drawn();
    agrees(&small.write_folder("device-qwen2", true, 1), &small);
}

#[test]
fn halves_are_read_exactly() {
    for (name, stored) in [("f16", Stored::F16), ("bf16", Stored::Bf16)] {
        let small = RandomModel { stored, ..RandomModel::new("llama") }.drawn();
        agrees(&small.write_folder(&format!("device-{name}"), true, 2), &small);
    }
}

/// A folder of `small` with a context of `context` positions.
fn write_long(small: &RandomModel, name: &str, context: usize) -> PathBuf {
    let path = small.write_folder(name, true, 1);
    let mut config = json(&path.join("config.json"));
    config["max_position_embeddings"] = context.into();
    std::fs::write(path.join("config.json"), config.to_string()).expect("a folder");
    path
}

#[test]
fn heads_may_be_wide_and_attention_longer_than_a_tile() {
    let small = RandomModel {
        head_dim: 136,
        layers: 1,
        windows: vec![None],
        heads: 2,
        kv_heads: 1,
        ..RandomModel::new("llama")
    }
    .drawn();
    let model = Arc::new(Model::open(write_long(&small, "device-wide", 300)).expect("a model"));
    // Three tiles of positions.
    let tokens: Vec<u32> = (0..300_u32).map(|index| index * 37 % 70).collect();
    let mut engine = Engine::on_device(model, &device(), tokens.len()).expect("it fits").with_chunk(300);
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let found = engine.logits(&mut cache, &tokens, LogitRows::All).expect("logits");
    let off = distance(&found, &small.logits(&tokens));
    assert!(off < 1e-4, "{off}");
    // 600 heads of tokens are blocks that walk over tiles; of fewer tokens at once, each tile has a
    // block.
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let mut in_parts = Vec::new();
    for part in [&tokens[..120], &tokens[120..240], &tokens[240..298], &tokens[298..299], &tokens[299..]] {
        in_parts.extend(engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    }
    assert!(is_same(&in_parts, &found), "tiles have other bits than a walk over them");
}

#[test]
fn attention_over_several_tiles_is_one_launch_more_and_its_memory_is_counted() {
    let small = RandomModel { layers: 1, windows: vec![None], ..RandomModel::new("llama") }.drawn();
    let model = Arc::new(Model::open(write_long(&small, "device-tiles", 4096)).expect("a model"));
    // 85 tokens of six heads are the most whose tiles have blocks of their own.
    let estimate = estimate_device_memory(&model, 4096, 85);
    let enough = with_memory(estimate.total());
    let mut engine = Engine::on_device_with_chunk(model, &enough, 4096, 85).expect("it fits");
    let mut cache = engine.cache(4096).expect("a cache");
    let mut launches = |tokens: &[u32]| {
        let before = enough.counters().launches;
        engine.logits(&mut cache, tokens, LogitRows::Last).expect("logits");
        enough.counters().launches - before
    };
    assert_eq!(launches(&[5; 128]), 2 * (1 + 9 + 1) + 1);
    assert_eq!(launches(&[6]), 1 + 9 + 2 + 1);
    let used = enough.pool().high_water_bytes;
    assert!(used <= estimate.total() && 3 * used > estimate.total(), "{used} of {estimate:?}");
}

#[test]
fn formats_may_be_mixed_at_a_launch_more() {
    let small = RandomModel { stored: Stored::F16, ..RandomModel::new("qwen2") }.drawn();
    let path = small.write_folder("device-mixed", true, 2);
    let plain = RandomModel { stored: Stored::F32, ..small.clone() };
    let is_wide = |name: &str| name.contains("v_proj.weight") || name.contains("gate_proj");
    let (wide, halves): (Vec<&String>, Vec<&String>) = small.weights.keys().partition(|name| is_wide(name));
    let mut map = serde_json::Map::new();
    for (index, (small, names)) in [(&plain, wide), (&small, halves)].into_iter().enumerate() {
        let file = format!("model-{:05}-of-00002.safetensors", index + 1);
        std::fs::write(path.join(&file), small.safetensors(&names)).expect("a folder");
        map.extend(names.into_iter().map(|name| (name.clone(), file.clone().into())));
    }
    let index = serde_json::json!({ "metadata": {}, "weight_map": map }).to_string();
    std::fs::write(path.join("model.safetensors.index.json"), index).expect("a folder");
    agrees(&path, &small);
    let mut engine = engine(&path, &device());
    let mut cache = engine.cache(1).expect("a cache");
    engine.logits(&mut cache, &TOKENS[..1], LogitRows::Last).expect("logits");
    // Values apart from queries and keys, gates apart from what they let through.
    let counters = engine.device_pool().expect("a device").counters();
    assert_eq!(counters.launches, 1 + 11 * 3 + 2);
}

#[test]
fn lanes_in_any_order_give_the_same_bits() {
    let small = RandomModel { windows: vec![None, Some(4), Some(4)], ..RandomModel::new("qwen2") }.drawn();
    let path = small.write_folder("device-orders", true, 1);
    let mut all = [LaneSchedule::Ascending, LaneSchedule::Descending, LaneSchedule::Shuffled].map(|schedule| {
        let emulation = EmulationOptions { schedule, ..EmulationOptions::default() };
        let options = OpenOptions { precision: Some(Precision::Single), emulation, ..OpenOptions::default() };
        let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulated device");
        logits(&mut engine(&path, &device), TOKENS.len())
    });
    all.reverse();
    assert!(is_same(&all[0], &all[1]) && is_same(&all[0], &all[2]));
}

#[test]
fn a_token_costs_one_copy_there_and_one_back_and_no_work_of_the_cpu() {
    let small = RandomModel::new("llama").drawn();
    let mut engine = engine(&small.write_folder("device-counters", true, 1), &device());
    let mut cache = engine.cache(TOKENS.len()).expect("a cache");
    engine.logits(&mut cache, &TOKENS[..4], LogitRows::Last).expect("logits");
    // The second pass of one token has all that it needs.
    engine.logits(&mut cache, &TOKENS[4..5], LogitRows::Last).expect("logits");
    let pool = engine.device_pool().expect("a device").clone();
    let (before, in_use) = (pool.counters(), pool.statistics().in_use_bytes);
    let before_engine = engine.counters();
    for token in &TOKENS[5..15] {
        engine.logits(&mut cache, &[*token], LogitRows::Last).expect("logits");
    }
    let after = pool.counters();
    let each = |after: u64, before: u64| (after - before) as f64 / 10.0;
    // An embedding, nine kernels for each of three layers, a norm, the logits.
    assert_eq!(each(after.launches, before.launches), 1.0 + 9.0 * 3.0 + 2.0);
    assert_eq!((each(after.uploads, before.uploads), each(after.upload_bytes, before.upload_bytes)), (1.0, 3.0 * 4.0));
    assert_eq!(
        (each(after.downloads, before.downloads), each(after.download_bytes, before.download_bytes)),
        (1.0, 70.0 * 4.0)
    );
    assert_eq!(after.synchronizations, before.synchronizations);
    assert_eq!(pool.statistics().in_use_bytes, in_use);
    let counters = engine.counters();
    assert_eq!((counters.passes, counters.device_passes - before_engine.device_passes), (0, 10));
}

/// An emulated device with the given memory.
fn with_memory(memory_bytes: u64) -> Device {
    let emulation = EmulationOptions { memory_bytes, ..EmulationOptions::default() };
    let options = OpenOptions { precision: Some(Precision::Single), emulation, ..OpenOptions::default() };
    Device::open_with(Backend::Emulated, 0, &options).expect("the emulated device")
}

#[test]
fn the_memory_of_many_tokens_is_checked_before_anything_is_uploaded() {
    let small = RandomModel::new("llama").drawn();
    let model = Arc::new(Model::open(write_long(&small, "device-long", 4096)).expect("a model"));
    // Whole sequences, as many as `score` takes: the estimate is enough, and not by far.
    let estimate = estimate_device_memory(&model, 0, 1024);
    let enough = with_memory(estimate.total());
    let mut engine = Engine::on_device(Arc::clone(&model), &enough, 0).expect("it fits");
    let options = ScoreOptions { prefix: vec![5], end: vec![2], ..ScoreOptions::default() };
    log_probabilities(&mut engine, &vec![vec![7; 14]; 200], &options).expect("scores");
    let used = enough.pool().high_water_bytes;
    assert!(used <= estimate.total() && 3 * used > estimate.total(), "{used} of {estimate:?}");
    let small = with_memory(estimate_device_memory(&model, 0, Engine::DEFAULT_CHUNK).total());
    Engine::on_device(Arc::clone(&model), &small, 0).expect_err("too little memory");
    let small = with_memory(estimate_device_memory(&model, 2000, Engine::DEFAULT_CHUNK).total());
    Engine::on_device(Arc::clone(&model), &small, 2000).expect("192 at once fit");
    Engine::on_device_with_chunk(Arc::clone(&model), &small, 2000, 1500).expect_err("1500 at once do not");
    let all = with_memory(estimate_device_memory(&model, 4096, Engine::DEFAULT_CHUNK).total());
    Engine::on_device(model, &all, usize::MAX).expect("no more positions than the context has");
}

#[test]
fn a_model_that_does_not_fit_is_refused_before_anything_is_uploaded() {
    let small = RandomModel::new("llama").drawn();
    let model = Arc::new(Model::open(small.write_folder("device-memory", true, 1)).expect("a model"));
    let estimate = estimate_device_memory(&model, 64, Engine::DEFAULT_CHUNK);
    let small = with_memory(estimate.total() - 1);
    let refused = Engine::on_device(Arc::clone(&model), &small, 64).expect_err("too little memory");
    assert!(matches!(refused, Error::Memory { needed, .. } if needed == estimate.total()), "{refused}");
    assert_eq!(small.counters().upload_bytes, 0);
    // What was estimated is enough, and not by far.
    let enough = with_memory(estimate.total());
    let mut engine = Engine::on_device(model, &enough, 64).expect("it fits");
    let mut cache = engine.cache(64).expect("a cache");
    engine.logits(&mut cache, &[1; 64], LogitRows::All).expect("logits");
    let used = enough.pool().high_water_bytes;
    assert!(used <= estimate.total() && 3 * used > estimate.total(), "{used} of {estimate:?}");
}

#[test]
fn keys_and_values_stay_where_they_were_computed() {
    let small = RandomModel::new("llama").drawn();
    let path = small.write_folder("device-cache", true, 1);
    let mut there = engine(&path, &device());
    let mut here = Engine::new(Arc::clone(there.model()), Threads::new(1));
    let (mut of_there, mut of_here) = (there.cache(8).expect("a cache"), here.cache(8).expect("a cache"));
    assert_eq!(of_there.n_bytes(), of_here.n_bytes());
    assert!(matches!(there.logits(&mut of_here, &[1], LogitRows::Last), Err(Error::CacheElsewhere)));
    assert!(matches!(here.logits(&mut of_there, &[1], LogitRows::Last), Err(Error::CacheElsewhere)));
    // Of another device object, it is refused as well.
    let mut other = engine(&path, &device());
    assert!(matches!(other.logits(&mut of_there, &[1], LogitRows::Last), Err(Error::Device(_))));
}

#[test]
fn a_cache_of_another_engine_is_refused() {
    let mut three = engine(&RandomModel::new("llama").drawn().write_folder("device-three", true, 1), &device());
    let one = RandomModel { layers: 1, windows: vec![None], ..RandomModel::new("llama") }.drawn().write_folder(
        "device-one",
        true,
        1,
    );
    let one = engine(&one, three.device_pool().expect("a device").device());
    let mut of_one = one.cache(8).expect("a cache");
    assert!(matches!(three.logits(&mut of_one, &[1], LogitRows::Last), Err(Error::CacheOfAnother { .. })));
    let double = OpenOptions { precision: Some(Precision::Double), ..OpenOptions::default() };
    let double = Device::open_with(Backend::Emulated, 0, &double).expect("the emulated device");
    let refused = Engine::on_device(Arc::clone(three.model()), &double, 8).expect_err("the wrong precision");
    assert_eq!(refused.to_string(), "transformers are computed in single precision, and the device was opened for f64");
}

#[test]
fn a_truncated_cache_continues_as_if_it_had_never_been_longer() {
    let small = RandomModel::new("llama").drawn();
    let mut engine = engine(&small.write_folder("device-cut", true, 1), &device());
    let mut cache = engine.cache(TOKENS.len()).expect("a cache");
    let first = engine.logits(&mut cache, &TOKENS[..9], LogitRows::Last).expect("logits");
    engine.logits(&mut cache, &TOKENS[9..], LogitRows::Last).expect("logits");
    cache.truncate(8);
    let again = engine.logits(&mut cache, &TOKENS[8..9], LogitRows::Last).expect("logits");
    assert!(is_same(&first, &again));
}

#[test]
fn sequences_are_scored_as_on_the_cpu_in_any_batch() {
    let small = RandomModel { windows: vec![None, Some(4), Some(4)], ..RandomModel::new("qwen2") }.drawn();
    let mut there = engine(&small.write_folder("device-score", true, 1), &device());
    let mut here = Engine::new(Arc::clone(there.model()), Threads::new(1));
    let sequences: Vec<Vec<u32>> = (0..9).map(|n| TOKENS[n..2 * n].to_vec()).collect();
    let options = |batch| ScoreOptions { prefix: vec![5, 6], end: vec![2], batch };
    let expected = log_probabilities(&mut here, &sequences, &options(1024)).expect("scores");
    let found = log_probabilities(&mut there, &sequences, &options(1024)).expect("scores");
    let alone = log_probabilities(&mut there, &sequences, &options(1)).expect("scores");
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} are not {expected:?}");
    assert_eq!(found, alone);
}

#[test]
fn the_residual_stream_can_be_observed() {
    let small = RandomModel::new("llama").drawn();
    let mut there = engine(&small.write_folder("device-watched", true, 1), &device());
    let mut here = Engine::new(Arc::clone(there.model()), Threads::new(1));
    let watch = |engine: &mut Engine| {
        let (mut cache, mut layers) = (engine.cache(5).expect("a cache"), Vec::new());
        let mut observer = |layer: usize, residual: &[f32]| layers.push((layer, residual.to_vec()));
        engine.observed(&mut cache, &TOKENS[..5], LogitRows::Last, &mut |_, _| (), &mut observer).expect("logits");
        layers
    };
    let (found, expected) = (watch(&mut there), watch(&mut here));
    assert_eq!(found.len(), 4);
    for ((layer, found), (_, expected)) in found.iter().zip(&expected) {
        assert!(distance(found, expected) < 1e-5, "layer {layer}");
    }
}

#[test]
fn tensors_come_from_a_pool_that_keeps_count() {
    let pool = DeviceMemoryPool::new(device());
    let before = pool.statistics();
    let tensor = pool.tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("a tensor");
    assert_eq!((tensor.shape(), tensor.n_bytes()), (&[2, 3][..], 24));
    assert_eq!(tensor.to_vec().expect("a copy"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(pool.tensor(&[2, 2], &[1.0]).is_err() && pool.zeros(&[1 << 20, 1 << 20]).is_err());
    let batch = pool.batch(4, 100).expect("rows");
    assert_eq!((batch.n_batch(), batch.width(), batch.n_bytes()), (4, 100, 1600));
    let model = Model::open(RandomModel::new("llama").drawn().write_folder("device-pool", true, 1)).expect("a model");
    let cache = DeviceKvCache::new(&pool, model.config(), 10).expect("a cache");
    assert_eq!(cache.n_bytes(), torchless::memory::estimate_kv_cache_memory(model.config(), 10));
    let during = pool.statistics();
    assert!(during.in_use_bytes >= before.in_use_bytes + 24 + 1600 + cache.n_bytes());
    drop((tensor, batch, cache));
    assert_eq!(pool.statistics().in_use_bytes, before.in_use_bytes);
    assert_eq!(pool.statistics().high_water_bytes, during.high_water_bytes);
    pool.trim();
    assert_eq!(pool.statistics().pooled_bytes, 0);
}
