//! `bench`: how fast a prompt is read and how fast tokens come, and which share of the memory's speed that is.

use std::time::Instant;

use ns_device::Counters;
use serde_json::json;

use crate::cli::args::BenchArgs;
use crate::cli::{CliError, command, print_json, print_text};
use crate::device::MetalMemoryPool;
use crate::engine::LogitRows;
use crate::linear::Threads;
use crate::sampling::greedy;

pub(super) fn run(args: &BenchArgs) -> Result<(), CliError> {
    let (n_prompt, n_decoded) = (args.prefill.max(1), args.decode);
    let mut engine = command::engine(&args.model, n_prompt + n_decoded)?;
    // Of the memory that the weights are in; a device's own is not measured here.
    let bandwidth = engine.device_pool().is_none().then(|| read_bandwidth(engine.threads()));
    let vocabulary = engine.model().config().vocabulary;
    let prompt: Vec<u32> = (0..n_prompt).map(|index| (index * 7919 % vocabulary) as u32).collect();
    let mut cache = engine.cache(n_prompt + n_decoded)?;
    // The first pass reads the weights from their file.
    engine.logits(&mut cache, &prompt[..1], LogitRows::Last)?;
    cache.truncate(0);
    let start = Instant::now();
    let mut logits = engine.logits(&mut cache, &prompt, LogitRows::Last)?;
    let prefill = start.elapsed().as_secs_f64();
    let before = engine.device_pool().map(MetalMemoryPool::counters);
    let start = Instant::now();
    for _ in 0..n_decoded {
        logits = engine.logits(&mut cache, &[greedy(&logits)], LogitRows::Last)?;
    }
    let decode = start.elapsed().as_secs_f64();
    let rate = n_decoded as f64 / decode;
    let bytes = rate * engine.model().bytes_per_token() as f64;
    let share = bandwidth.map(|bandwidth| bytes / bandwidth);
    let answer = json!({
        "device": engine.device_pool().map_or("cpu", |pool| pool.device().backend().name()),
        "threads": engine.threads().count(),
        "instruction_set": engine.threads().instruction_set().name(),
        "prefill": { "tokens": n_prompt, "seconds": prefill, "tokens_per_second": n_prompt as f64 / prefill },
        "decode": { "tokens": n_decoded, "seconds": decode, "tokens_per_second": rate, "bytes_per_second": bytes,
            "share_of_bandwidth": share,
            "of_each_token": before.zip(engine.device_pool()).map(|(before, pool)| of_each(&before, pool, n_decoded)) },
        "read_bandwidth": bandwidth,
        "counters": engine.counters(),
    });
    if args.json {
        return print_json(&answer);
    }
    print_text(&format!(
        "prefill  {n_prompt} tokens, {:.1} tokens/s\ndecode   {n_decoded} tokens, {rate:.2} tokens/s, {:.2} GB/s{}\n",
        n_prompt as f64 / prefill,
        bytes / 1e9,
        bandwidth.map_or(String::new(), |bandwidth| format!(" of {:.2} GB/s", bandwidth / 1e9))
    ))
}

/// What a device was asked to do for each token, on average.
fn of_each(before: &Counters, pool: &MetalMemoryPool, n_tokens: usize) -> serde_json::Value {
    let after = pool.counters();
    let mean = |after: u64, before: u64| (after - before) as f64 / n_tokens.max(1) as f64;
    json!({
        "launches": mean(after.launches, before.launches),
        "uploads": mean(after.uploads, before.uploads),
        "upload_bytes": mean(after.upload_bytes, before.upload_bytes),
        "downloads": mean(after.downloads, before.downloads),
        "download_bytes": mean(after.download_bytes, before.download_bytes),
    })
}

/// Bytes per second that all threads together read from memory: the best of five rounds.
fn read_bandwidth(threads: &Threads) -> f64 {
    let numbers = vec![1_u64; 32 << 20];
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let start = Instant::now();
        let parts = numbers.chunks(1 << 20).collect();
        threads.each(
            parts,
            numbers.len(),
            || (),
            |(), part: &[u64]| {
                std::hint::black_box(part.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number)));
            },
        );
        best = best.max((numbers.len() * 8) as f64 / start.elapsed().as_secs_f64());
    }
    best
}
