//! Bootstrap replicas of histograms: every event has a Poisson(1) weight in every replica, which
//! depends only on the event.
//!
//! Two analyses that select the same event give it the same weights, so that results of the same
//! replica fluctuate together and their correlation can be read from the replicas (the Poisson
//! bootstrap: Efron, Ann. Statist. 7 (1979) 1, with the fixed number of events replaced by a
//! Poisson number).
//!
//! Weights come from the counter-based generator [`philox`] with the key (seed) and the counter
//! (event number, run number, replica / 4); the four words of a block are those of four replicas. A
//! word u is turned into the smallest k with u < 2³² Σ_{i ≤ k} e⁻¹/i!. Probabilities are therefore
//! multiples of 2⁻³², and no weight exceeds 12.

use crate::monitor::Monitor;
use crate::parallel::{self, ExecutionContext};
use crate::random::philox;
use std::ops::Range;

/// Replicas that are made in one pass over the events.
const BLOCK: usize = 64;

/// Events between two questions whether to stop.
const BETWEEN_QUESTIONS: usize = 1 << 14;

/// Replicas that share a call of the generator.
const WORDS: u32 = 4;

/// Separates the random numbers of bootstraps from those of toys with the same seed.
const PURPOSE: u32 = 0x424f_4f54;

/// 2³² Σ_{i ≤ k} e⁻¹/i!, rounded, for k = 0 to 11; the next one would be 2³².
const CUMULATIVE: [u32; 12] = [
    1_580_030_169,
    3_160_060_337,
    3_950_075_422,
    4_213_413_783,
    4_279_248_374,
    4_292_415_292,
    4_294_609_778,
    4_294_923_276,
    4_294_962_463,
    4_294_966_817,
    4_294_967_253,
    4_294_967_292,
];

/// The leading bits of a word that determine nearly every weight.
const LEADING_BITS: u32 = 12;

/// A leading part of which the words have different weights.
const MIXED: u8 = u8::MAX;

/// The weight of every leading part of a word, or [`MIXED`].
static WEIGHTS: [u8; 1 << LEADING_BITS] = weights_of_leading_parts();

const fn weights_of_leading_parts() -> [u8; 1 << LEADING_BITS] {
    let mut table = [MIXED; 1 << LEADING_BITS];
    let mut part = 0;
    while part < table.len() {
        let first = (part as u32) << (32 - LEADING_BITS);
        let last = first | ((1 << (32 - LEADING_BITS)) - 1);
        if count_below(first) == count_below(last) {
            table[part] = count_below(first);
        }
        part += 1;
    }
    table
}

/// Returns how many entries of [`CUMULATIVE`] `word` has reached.
const fn count_below(word: u32) -> u8 {
    let mut k = 0;
    while k < CUMULATIVE.len() && word >= CUMULATIVE[k] {
        k += 1;
    }
    k as u8
}

/// Returns the Poisson(1) count of a random word.
fn weight(word: u32) -> u8 {
    match WEIGHTS[(word >> (32 - LEADING_BITS)) as usize] {
        MIXED => count_below(word),
        weight => weight,
    }
}

/// What identifies an event: its number in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// The number of the run, or of the simulated sample.
    pub run: u32,
    /// The number of the event.
    pub event: u64,
}

impl EventId {
    /// Returns the weights of the replicas 4·`block` to 4·`block` + 3.
    fn block(self, seed: u64, block: u32) -> [u8; WORDS as usize] {
        let counter = [self.event as u32, (self.event >> 32) as u32, self.run, block];
        philox(counter, [seed as u32, (seed >> 32) as u32 ^ PURPOSE]).map(weight)
    }

    /// Writes the weights of consecutive replicas, from `first` on.
    ///
    /// ```
    /// use ns_inference::bootstrap::EventId;
    /// let mut weights = [0; 6];
    /// EventId { run: 1, event: 5 }.weights(0, 0, &mut weights);
    /// let mut later = [0; 3];
    /// EventId { run: 1, event: 5 }.weights(0, 3, &mut later);
    /// assert_eq!(weights[3..], later);
    /// ```
    pub fn weights(self, seed: u64, first: u32, out: &mut [u8]) {
        let words = WORDS as usize;
        let offset = (first % WORDS) as usize;
        let (head, rest) = out.split_at_mut(((words - offset) % words).min(out.len()));
        if !head.is_empty() {
            head.copy_from_slice(&self.block(seed, first / WORDS)[offset..offset + head.len()]);
        }
        for (block, part) in (first.div_ceil(WORDS)..).zip(rest.chunks_mut(words)) {
            part.copy_from_slice(&self.block(seed, block)[..part.len()]);
        }
    }
}

/// The events of a histogram.
#[derive(Debug, Clone, Copy)]
pub struct BootstrapEvents<'a> {
    /// The bin of each event (E); `None` in no bin.
    pub bins: &'a [Option<u32>],
    /// The number of each event (E).
    pub events: &'a [u64],
    /// The run of each event (E), or one of all.
    pub runs: &'a [u32],
    /// The weight of each event (E); empty if all have weight 1.
    pub weights: &'a [f64],
}

impl BootstrapEvents<'_> {
    fn id(&self, i: usize) -> EventId {
        EventId { run: if let [run] = self.runs { *run } else { self.runs[i] }, event: self.events[i] }
    }
}

/// Returns histograms of `n_bins` bins of the replicas `replicas` (N × B), each event weighted with
/// its Poisson(1) count in the replica; `None` if the monitor cancelled.
///
/// The bits do not depend on the number of threads.
///
/// # Panics
/// If the parts of `events` differ in length, or a bin is not below `n_bins`.
#[must_use]
pub fn bootstrap(
    events: &BootstrapEvents<'_>,
    n_bins: usize,
    seed: u64,
    replicas: Range<u32>,
    execution: ExecutionContext<'_>,
) -> Option<Vec<f64>> {
    let n = replicas.len();
    let block_of = |block: usize| {
        let first = replicas.start + (block * BLOCK) as u32;
        first..replicas.end.min(first.saturating_add(BLOCK as u32))
    };
    let monitor = execution.monitor;
    let blocks = parallel::map(
        n.div_ceil(BLOCK),
        execution,
        || (),
        |(), block| fill(events, n_bins, seed, block_of(block), monitor),
    );
    let mut all = vec![0.0; n * n_bins];
    let mut rows = all.chunks_exact_mut(n_bins.max(1));
    for block in blocks {
        let block = block??;
        let width = block.len().checked_div(n_bins).unwrap_or(0);
        for (replica, row) in (0..width).zip(&mut rows) {
            row.iter_mut().enumerate().for_each(|(bin, n)| *n = block[bin * width + replica]);
        }
    }
    Some(all)
}

/// Returns the histograms of at most [`BLOCK`] replicas (N), bin by bin (B × N); `None` if
/// `monitor` cancelled.
fn fill(
    events: &BootstrapEvents<'_>,
    n_bins: usize,
    seed: u64,
    replicas: Range<u32>,
    monitor: &dyn Monitor,
) -> Option<Vec<f64>> {
    let mut counts = [0; BLOCK];
    let width = replicas.len();
    let mut histograms = vec![0.0; n_bins * width];
    for (i, bin) in events.bins.iter().enumerate() {
        if i % BETWEEN_QUESTIONS == 0 && monitor.is_cancelled() {
            return None;
        }
        let Some(bin) = *bin else { continue };
        events.id(i).weights(seed, replicas.start, &mut counts[..width]);
        let event_weight = events.weights.get(i).copied().unwrap_or(1.0);
        let row = &mut histograms[bin as usize * width..(bin as usize + 1) * width];
        row.iter_mut().zip(&counts).for_each(|(n, count)| *n += event_weight * f64::from(*count));
    }
    Some(histograms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    /// Returns the cumulative Poisson(1) distribution Σ_{i ≤ k} e⁻¹/i!.
    fn cumulative(k: u32) -> f64 {
        let mut term = (-1.0_f64).exp();
        (1..=k).fold(term, |sum, i| {
            term /= f64::from(i);
            sum + term
        })
    }

    #[test]
    fn words_are_divided_as_the_poisson_distribution_says() {
        for (k, &bound) in (0..).zip(&CUMULATIVE) {
            assert!((f64::from(bound) / 2.0_f64.powi(32) - cumulative(k)).abs() < 2.0_f64.powi(-32), "{k}");
            assert_eq!((weight(bound - 1), weight(bound)), (k as u8, k as u8 + 1));
        }
        assert_eq!((weight(0), weight(u32::MAX)), (0, 12));
        let words = (0..1_000_000_u32).map(|i| i.wrapping_mul(2_654_435_769));
        words.for_each(|word| assert_eq!(weight(word), count_below(word)));
    }

    #[test]
    fn bits_do_not_depend_on_threads_blocks_or_the_first_replica() {
        let bins: Vec<Option<u32>> = (0..500).map(|i| (i % 7 != 0).then_some(i % 5)).collect();
        let numbers: Vec<u64> = (0..500).map(|i| (i * i) << 20).collect();
        let weights: Vec<f64> = (0..500).map(|i| 0.3 + 1e-3 * f64::from(i)).collect();
        let events = BootstrapEvents { bins: &bins, events: &numbers, runs: &[7], weights: &weights };
        let of = |replicas: Range<u32>, threads: usize| {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            bootstrap(&events, 5, 3, replicas, ExecutionContext::with_threads(threads)).expect("not cancelled")
        };
        let all = of(0..200, 1);
        assert_eq!(all.len(), 1000);
        assert_eq!((of(0..200, 2), of(0..200, 5)), (all.clone(), all.clone()));
        assert_eq!(of(101..160, 1), all[101 * 5..160 * 5]);
    }
}
