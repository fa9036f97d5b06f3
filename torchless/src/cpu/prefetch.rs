//! Prefetching for loops over rows of weights: on x86-64; with NEON and plain code it does nothing.

use crate::simd::Simd;
use crate::weights::format::Layout;

/// The least distance of a prefetch, in bytes: with half as many, rows of a thousand Q8_0 weights
/// take a sixth longer.
const LEAST_AHEAD: usize = 8192;

/// Prefetches behind four rows that lie one after the other. Rows are short, and a processor does
/// not predict several at once: the memory behind them is requested, in its order.
pub(crate) struct Prefetch<'a> {
    rows: &'a [u8],
    at: usize,
}

impl<'a> Prefetch<'a> {
    #[inline(always)]
    pub(crate) fn of(first: &'a [u8]) -> Prefetch<'a> {
        Prefetch { rows: first, at: (4 * first.len()).max(LEAST_AHEAD) }
    }

    /// Requests as many bytes as a block of each row has.
    #[inline(always)]
    pub(crate) fn step<S: Simd, L: Layout>(&mut self, simd: S) {
        for line in 0..const { (4 * L::BYTES).div_ceil(64) } {
            simd.prefetch(self.rows, self.at + 64 * line);
        }
        self.at += 4 * L::BYTES;
    }
}
