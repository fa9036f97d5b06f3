//! Memory that is asked for before it is needed, by loops over rows of weights: on x86-64; with NEON and plain code asking does nothing.

use crate::simd::Simd;
use crate::weights::format::Layout;

/// How many bytes ahead memory is asked for at least: with half as many, rows of a thousand Q8_0 weights take a sixth longer.
const LEAST_AHEAD: usize = 8192;

/// A walk ahead of four rows that lie one after the other. Rows are short, and several at once are too much to guess for a processor: what comes
/// behind them is asked for, in the order of memory.
pub(crate) struct Prefetch<'a> {
    rows: &'a [u8],
    at: usize,
}

impl<'a> Prefetch<'a> {
    #[inline(always)]
    pub(crate) fn of(first: &'a [u8]) -> Prefetch<'a> {
        Prefetch { rows: first, at: (4 * first.len()).max(LEAST_AHEAD) }
    }

    /// Asks for as many bytes as a block of each row has.
    #[inline(always)]
    pub(crate) fn step<S: Simd, L: Layout>(&mut self, simd: S) {
        for line in 0..const { (4 * L::BYTES).div_ceil(64) } {
            simd.prefetch(self.rows, self.at + 64 * line);
        }
        self.at += 4 * L::BYTES;
    }
}
