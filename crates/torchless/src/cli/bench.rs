//! `bench`: how fast a prompt is read and how fast tokens come, and which share of the memory's speed that is.

use std::time::Instant;

use serde_json::json;

use crate::cli::args::BenchArgs;
use crate::cli::{CliError, command, print_json, print_text};
use crate::engine::LogitRows;
use crate::linear::Threads;
use crate::memory;
use crate::sampling::greedy;

pub(super) fn run(args: &BenchArgs) -> Result<(), CliError> {
    let (n_prompt, n_decoded) = (args.prefill.max(1), args.decode);
    let mut engine = command::engine(&args.model, n_prompt + n_decoded)?;
    let vocabulary = engine.model().config().vocabulary;
    let prompt: Vec<u32> = (0..n_prompt).map(|index| (index * 7919 % vocabulary) as u32).collect();
    let mut cache = engine.cache(n_prompt + n_decoded)?;
    // The first pass reads the weights from their file.
    engine.logits(&mut cache, &prompt[..1], LogitRows::Last)?;
    cache.truncate(0);
    let clock = Clock::start();
    let mut logits = engine.logits(&mut cache, &prompt, LogitRows::Last)?;
    let (prefill, prefill_processor) = clock.elapsed();
    let clock = Clock::start();
    for _ in 0..n_decoded {
        logits = engine.logits(&mut cache, &[greedy(&logits)], LogitRows::Last)?;
    }
    let (decode, decode_processor) = clock.elapsed();
    // Before the bandwidth is measured, which takes memory of its own.
    let peak_memory = memory::peak_memory();
    let bandwidth = read_bandwidth(engine.threads());
    let rate = n_decoded as f64 / decode;
    let bytes = rate * engine.model().bytes_per_token() as f64;
    let answer = json!({
        "threads": engine.threads().count(),
        "instruction_set": engine.threads().instruction_set().name(),
        "prefill": { "tokens": n_prompt, "seconds": prefill, "processor_seconds": prefill_processor,
            "tokens_per_second": n_prompt as f64 / prefill },
        "decode": { "tokens": n_decoded, "seconds": decode, "processor_seconds": decode_processor,
            "tokens_per_second": rate, "bytes_per_second": bytes,
            "share_of_bandwidth": bytes / bandwidth },
        "read_bandwidth": bandwidth,
        "memory": { "weights": engine.model().weight_bytes(), "keys_and_values": cache.n_bytes(), "peak": peak_memory },
        "counters": engine.counters(),
    });
    if args.json {
        return print_json(&answer);
    }
    print_text(&format!(
        "prefill  {n_prompt} tokens, {:.1} tokens/s\ndecode   {n_decoded} tokens, {rate:.2} tokens/s, {:.2} GB/s of {:.2} GB/s\n",
        n_prompt as f64 / prefill,
        bytes / 1e9,
        bandwidth / 1e9
    ))
}

/// Two clocks: the one on the wall, and that of the processors, which stands still where something else runs.
struct Clock {
    wall: Instant,
    processors: Option<f64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { processors: processor_seconds(), wall: Instant::now() }
    }

    fn elapsed(&self) -> (f64, Option<f64>) {
        let wall = self.wall.elapsed().as_secs_f64();
        (wall, self.processors.zip(processor_seconds()).map(|(before, now)| now - before))
    }
}

/// Seconds that processors worked for the threads of this process, where the system says it to the nanosecond.
fn processor_seconds() -> Option<f64> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let line = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += line.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(nanoseconds as f64 * 1e-9)
}

/// Bytes per second that all threads together read from memory: the best of twenty rounds.
fn read_bandwidth(threads: &Threads) -> f64 {
    let numbers = vec![1_u64; 32 << 20];
    let mut best = 0.0_f64;
    for _ in 0..20 {
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
