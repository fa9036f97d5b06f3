//! `bench`: how fast a prompt is read and how fast tokens come, and which share of the memory's
//! speed that is.

use std::time::Instant;

use ns_device::DeviceCounters;
use serde_json::json;

use crate::cli::args::BenchArgs;
use crate::cli::{CliError, command, print_json, print_text};
use crate::cpu::Threads;
use crate::device::DeviceMemoryPool;
use crate::engine::LogitRows;
use crate::model::memory;
use crate::text::sampling::greedy;

pub(super) fn run(args: &BenchArgs) -> Result<(), CliError> {
    let (n_prompt, n_decoded) = (args.prefill.max(1), args.decode);
    let positions = n_prompt.saturating_add(n_decoded);
    let mut engine = command::engine(&args.model, positions)?;
    let vocabulary = engine.model().config().vocabulary;
    let mut cache = engine.cache(positions)?;
    let prompt: Vec<u32> = (0..n_prompt).map(|index| (index * 7919 % vocabulary) as u32).collect();
    // The first pass reads the weights from their file.
    engine.logits(&mut cache, &prompt[..1], LogitRows::Last)?;
    cache.truncate(0);
    let clock = Clock::start();
    let mut logits = engine.logits(&mut cache, &prompt, LogitRows::Last)?;
    let (prefill, prefill_processor) = (clock.wall_seconds(), clock.processor_seconds());
    let before = engine.device_pool().map(DeviceMemoryPool::counters);
    let clock = Clock::start();
    for _ in 0..n_decoded {
        logits = engine.logits(&mut cache, &[greedy(&logits)], LogitRows::Last)?;
    }
    let (decode, decode_processor) = (clock.wall_seconds(), clock.processor_seconds());
    let undisturbed = clock.undisturbed_seconds(engine.threads().count());
    // Before the bandwidth is measured, which takes memory of its own.
    let peak_memory = memory::peak_memory();
    // Of the memory that the weights are in; a device's own is not measured here.
    let bandwidth = engine.device_pool().is_none().then(|| read_bandwidth(engine.threads()));
    let rate = n_decoded as f64 / decode;
    let bytes = (n_decoded as u64 * engine.model().bytes_per_token()) as f64;
    let is_rounded = command::n_rounded(engine.model(), engine.activations()) > 0;
    let answer = json!({
        "device": engine.device_pool().map_or("cpu", |pool| pool.device().backend().name()),
        "threads": engine.threads().count(),
        "instruction_set": engine.threads().instruction_set().name(),
        "activations": engine.activations(),
        "integer_set": is_rounded.then(|| engine.threads().integer_set().name()),
        "prefill": { "tokens": n_prompt, "seconds": prefill, "processor_seconds": prefill_processor,
            "tokens_per_second": n_prompt as f64 / prefill },
        "decode": { "tokens": n_decoded, "seconds": decode, "processor_seconds": decode_processor,
            "tokens_per_second": rate, "bytes_per_second": bytes / decode,
            "share_of_bandwidth": bandwidth.map(|bandwidth| bytes / undisturbed / bandwidth),
            "of_each_token": before.zip(engine.device_pool()).map(|(before, pool)| of_each(&before, pool, n_decoded)) },
        "read_bandwidth": bandwidth,
        "memory": { "weights": engine.model().weight_bytes(), "keys_and_values": cache.n_bytes(), "peak": peak_memory },
        "counters": engine.counters(),
    });
    if args.json {
        return print_json(&answer);
    }
    print_text(&format!(
        "prefill  {n_prompt} tokens, {:.1} tokens/s\ndecode   {n_decoded} tokens, {rate:.2} tokens/s, {:.2} GB/s{}{}\n",
        n_prompt as f64 / prefill,
        bytes / decode / 1e9,
        bandwidth.map_or(String::new(), |bandwidth| format!(" of {:.2} GB/s", bandwidth / 1e9)),
        if is_rounded {
            format!("; int8 activations ({})", engine.threads().integer_set().name())
        } else {
            String::new()
        }
    ))
}

/// Returns what a device was asked to do for each token, on average.
fn of_each(before: &DeviceCounters, pool: &DeviceMemoryPool, n_tokens: usize) -> serde_json::Value {
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

/// Two clocks: wall time, and the time of the processors, which does not advance while something
/// else runs.
struct Clock {
    wall: Instant,
    processors: Option<f64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { processors: processor_seconds(), wall: Instant::now() }
    }

    fn wall_seconds(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    fn processor_seconds(&self) -> Option<f64> {
        self.processors.zip(processor_seconds()).map(|(before, now)| now - before)
    }

    /// Returns an estimate of the time without other programs: the processor's time of one thread,
    /// if that is shorter than wall time. Several threads wait for each other, and their
    /// processors' time leaves that out.
    fn undisturbed_seconds(&self, n_threads: usize) -> f64 {
        let processor = if n_threads == 1 { self.processor_seconds() } else { None };
        self.wall_seconds().min(processor.unwrap_or(f64::INFINITY))
    }
}

/// Returns the seconds that processors worked for the threads of this process, if the system
/// reports nanoseconds.
fn processor_seconds() -> Option<f64> {
    let mut nanoseconds = 0_u64;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread may have ended since the folder was read.
        let Ok(line) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        nanoseconds += line.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    // A system that does not count reports zero for every thread, and this one has worked.
    (nanoseconds > 0).then_some(nanoseconds as f64 * 1e-9)
}

/// Returns the bytes per second that all threads together read from memory: the best of six rounds.
fn read_bandwidth(threads: &Threads) -> f64 {
    // The system counts processors' time in milliseconds: a round is long enough for that.
    const SWEEPS: usize = 8;
    let numbers = vec![1_u64; 32 << 20];
    let mut best = 0.0_f64;
    for _ in 0..6 {
        let clock = Clock::start();
        for _ in 0..SWEEPS {
            let parts = numbers.chunks(1 << 20).collect();
            threads.each(
                parts,
                numbers.len(),
                || (),
                |(), part: &[u64]| {
                    std::hint::black_box(part.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number)));
                },
            );
        }
        best = best.max((SWEEPS * numbers.len() * 8) as f64 / clock.undisturbed_seconds(threads.count()));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn several_threads_are_timed_by_the_wall() {
        // As if the processors had worked for no time at all.
        let clock = Clock { processors: Some(f64::INFINITY), ..Clock::start() };
        assert!(clock.undisturbed_seconds(2) >= 0.0);
        if clock.processor_seconds().is_some() {
            assert!(clock.undisturbed_seconds(1) < 0.0);
        }
    }
}
