//! Products of coded rows with rounded inputs: four rows with one input, or tiles of sixteen rows
//! with several.
//!
//! Both add the same terms in the same order, and no product is fused with a sum, so both give the
//! same bits.

use std::marker::PhantomData;

use super::codes::{Coded, Groups, MOST_GROUPS};
use super::inputs::{BLOCK, Block, Inputs};
use super::simd::{Codes, IntegerBody, Integers};
use crate::cpu::prefetch::Prefetch;
use crate::simd::{LANES, Lanes, Simd};

/// Some rows with inputs; one if `x` is one wide.
pub(crate) struct Rows<'a, L> {
    pub(crate) coded: PhantomData<L>,
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    pub(crate) x: Inputs<'a>,
    pub(crate) unpacked: &'a mut Unpacked,
    /// (rows, T).
    pub(crate) out: &'a mut [f32],
}

/// Memory of sixteen rows, side by side.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// (blocks of inputs, quarters of eight, rows) of four codes.
    codes: Vec<Codes>,
    /// (groups, rows).
    scales: Vec<Lanes>,
    /// (groups, rows).
    minima: Vec<Lanes>,
}

impl Unpacked {
    pub(crate) fn n_bytes(&self) -> usize {
        let vectors = self.scales.capacity() + self.minima.capacity();
        self.codes.capacity() * size_of::<Codes>() + vectors * size_of::<Lanes>()
    }
}

/// The number of inputs in a tile, unless registers are many.
pub(crate) const NARROW: usize = 2;

impl<L: Coded> IntegerBody for Rows<'_, L> {
    #[inline(always)]
    fn run<S: Integers>(self, simd: S) {
        match self.x.width {
            1 => self.one(simd),
            8 => self.tiles::<S, 8>(simd),
            _ => self.tiles::<S, NARROW>(simd),
        }
    }
}

impl<L: Coded> Rows<'_, L> {
    /// Groups of a block of 32 inputs.
    const GROUPS: usize = if L::IS_FINE { 2 } else { 1 };

    #[inline(always)]
    fn one<S: Integers>(self, simd: S) {
        let Rows { bytes, row_bytes, x, out, .. } = self;
        for (out, rows) in out.chunks_mut(4).zip(bytes.chunks(4 * row_bytes)) {
            // Behind the last row, the last row takes the place of the missing ones.
            let row = |index: usize| &rows[index.min(out.len() - 1) * row_bytes..][..row_bytes];
            let sums = Self::four(simd, [row(0), row(1), row(2), row(3)], x.blocks);
            out.copy_from_slice(&sums[..out.len()]);
        }
    }

    /// Multiplies four rows with one input.
    #[inline(always)]
    fn four<S: Integers>(simd: S, rows: [&[u8]; 4], x: &[Block]) -> [f32; 4] {
        let mut sums = [0.0; 4];
        let mut groups = Groups { scales: [[0.0; 4]; MOST_GROUPS], minima: [[0.0; 4]; MOST_GROUPS] };
        let mut ahead = Prefetch::of(rows[0]);
        let [a, b, c, d] = rows.map(|row| row.chunks_exact(L::BYTES));
        for ((((a, b), c), d), x) in a.zip(b).zip(c).zip(d).zip(x.chunks_exact(const { L::LEN / BLOCK })) {
            ahead.step::<_, L>(simd.floats());
            L::groups(simd, [a, b, c, d], &mut groups);
            for (at, x) in x.iter().enumerate() {
                let (ab, cd) = (L::codes(simd, a, b, at), L::codes(simd, c, d, at));
                let [first, second] = if L::IS_FULL {
                    simd.dot_rows::<true>(ab, cd, &x.numbers)
                } else {
                    simd.dot_rows::<false>(ab, cd, &x.numbers)
                };
                if L::IS_FINE {
                    Self::add::<S>(&mut sums, first, x.sums[0], &groups, 2 * at, x);
                    Self::add::<S>(&mut sums, second, x.sums[1], &groups, 2 * at + 1, x);
                } else {
                    let mut dots = first;
                    for row in 0..4 {
                        dots[row] += second[row];
                    }
                    Self::add::<S>(&mut sums, dots, x.sums[0] + x.sums[1], &groups, at, x);
                }
            }
        }
        sums
    }

    /// Adds the term of a group to the sums of four rows.
    #[inline(always)]
    fn add<S: Integers>(sums: &mut [f32; 4], dots: [i32; 4], total: i32, groups: &Groups, group: usize, x: &Block) {
        for row in 0..4 {
            let mut term = groups.scales[group][row] * (dots[row] - offset::<S, L>() * total) as f32;
            if L::HAS_MINIMA {
                term += groups.minima[group][row] * x.total;
            }
            sums[row] += term * x.size;
        }
    }

    /// Unpacks sixteen rows side by side, and multiplies them by panel after panel of `T` inputs.
    #[inline(always)]
    fn tiles<S: Integers, const T: usize>(self, simd: S) {
        let Rows { bytes, row_bytes, x, unpacked, out, .. } = self;
        for (rows, out) in bytes.chunks(LANES * row_bytes).zip(out.chunks_mut(LANES * x.n_inputs)) {
            unpacked.fill::<S, L>(simd, rows, row_bytes, x.length);
            for (panel, first) in x.blocks.chunks_exact(T * x.length).zip((0..).step_by(T)) {
                let sums = unpacked.times::<S, L, T>(simd, panel);
                for (row, out) in out.chunks_exact_mut(x.n_inputs).enumerate() {
                    for (out, sums) in out[first..].iter_mut().zip(&sums) {
                        *out = sums.0[row];
                    }
                }
            }
        }
    }
}

impl Unpacked {
    /// Puts up to sixteen rows side by side. The places of missing rows keep their contents: their
    /// sums are not read.
    #[inline(always)]
    fn fill<S: Integers, L: Coded>(&mut self, simd: S, rows: &[u8], row_bytes: usize, length: usize) {
        let n_groups = length * Rows::<'_, L>::GROUPS;
        self.codes.resize(length * 8, Codes([0; 64]));
        self.scales.resize(n_groups, Lanes::default());
        self.minima.resize(if L::HAS_MINIMA { n_groups } else { 0 }, Lanes::default());
        let n_rows = rows.len() / row_bytes;
        let mut groups = Groups { scales: [[0.0; 4]; MOST_GROUPS], minima: [[0.0; 4]; MOST_GROUPS] };
        for first in (0..n_rows).step_by(4) {
            let block_of = |index: usize, block: usize| {
                let row = (first + index).min(n_rows - 1);
                &rows[row * row_bytes + block * L::BYTES..][..L::BYTES]
            };
            let (inside, groups_inside) = const { (L::LEN / BLOCK, L::LEN / BLOCK * Rows::<'_, L>::GROUPS) };
            for block in 0..length / inside {
                let blocks = [block_of(0, block), block_of(1, block), block_of(2, block), block_of(3, block)];
                L::groups(simd, blocks, &mut groups);
                for group in 0..groups_inside {
                    let place = block * groups_inside + group;
                    self.scales[place].0[first..first + 4].copy_from_slice(&groups.scales[group]);
                    if L::HAS_MINIMA {
                        self.minima[place].0[first..first + 4].copy_from_slice(&groups.minima[group]);
                    }
                }
                for at in 0..inside {
                    let place = &mut self.codes[(block * inside + at) * 8..][..8];
                    let [a, b, c, d] = blocks;
                    spread(simd.store(L::codes(simd, a, b, at)), place, first);
                    spread(simd.store(L::codes(simd, c, d, at)), place, first + 2);
                }
            }
        }
    }

    /// Returns the sums of sixteen rows with `T` inputs.
    #[inline(always)]
    fn times<S: Integers, L: Coded, const T: usize>(&self, simd: S, x: &[Block]) -> [Lanes; T] {
        let floats = simd.floats();
        let mut sums = [floats.splat(0.0); T];
        let quads = const { 8 / Rows::<'_, L>::GROUPS };
        let blocks = self.codes.as_chunks::<8>().0.iter().zip(x.as_chunks::<T>().0).enumerate();
        for (block, (codes, x)) in blocks {
            for half in 0..Rows::<'_, L>::GROUPS {
                let group = block * Rows::<'_, L>::GROUPS + half;
                let mut dots = [simd.zero(); T];
                for quad in half * quads..(half + 1) * quads {
                    let codes = simd.load(&codes[quad]);
                    for input in 0..T {
                        let x = &x[input].numbers.as_chunks::<4>().0[quad];
                        dots[input] = if L::IS_FULL {
                            simd.dot_each::<true>(dots[input], codes, x)
                        } else {
                            simd.dot_each::<false>(dots[input], codes, x)
                        };
                    }
                }
                let scales = floats.load(&self.scales[group].0);
                for input in 0..T {
                    let x = &x[input];
                    let total = if L::IS_FINE { x.sums[half] } else { x.sums[0] + x.sums[1] };
                    let mut term = floats.mul(scales, simd.to_floats(dots[input], offset::<S, L>() * total));
                    if L::HAS_MINIMA {
                        let minima = floats.load(&self.minima[group].0);
                        term = floats.add(term, floats.mul(minima, floats.splat(x.total)));
                    }
                    sums[input] = floats.add(sums[input], floats.mul(term, floats.splat(x.size)));
                }
            }
        }
        let mut out = [Lanes::default(); T];
        for input in 0..T {
            floats.store(sums[input], &mut out[input].0);
        }
        out
    }
}

/// Returns c₀, the code of the number 0, as `S` has it.
#[inline(always)]
const fn offset<S: Integers, L: Coded>() -> i32 {
    L::OFFSET + if L::IS_FULL { S::FLIPPED_ZERO } else { 0 }
}

/// Copies the codes of two rows to their places, from row `first` on: four at a time.
#[inline(always)]
fn spread(codes: Codes, places: &mut [Codes], first: usize) {
    let (rows, _) = codes.0.as_chunks::<32>();
    for (row, codes) in rows.iter().enumerate() {
        for (place, codes) in places.iter_mut().zip(codes.as_chunks::<4>().0) {
            place.0[4 * (first + row)..][..4].copy_from_slice(codes);
        }
    }
}
