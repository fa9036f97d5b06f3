//! Products of stored matrices with vectors: the part of inference that takes the time.
//!
//! Every output is one sum, in one order: sixteen partial sums along the row, added at the end.
//! Threads share rows and tiles share registers, but neither changes that order, so the bits are
//! the same for any number of threads and any number of vectors at once.

use std::marker::PhantomData;
use std::ops::Range;

use super::integers::{self, Activations, InputMemory, Inputs, Stored, Unpacked, multiply_rows};
use super::prefetch::Prefetch;
use super::threads::Threads;
use crate::simd::{Body, InstructionSet, LANES, Lanes, Simd, dispatch};
use crate::weights::Matrix;
use crate::weights::format::{Layout, Taker, padded, unpack_row, with_layout};

/// One product of several that share their inputs.
pub(crate) struct Product<'a> {
    pub(crate) matrix: &'a Matrix,
    /// Added to every output, if there is one: (rows).
    pub(crate) bias: Option<&'a [f32]>,
    /// (T, rows), row by row.
    pub(crate) out: &'a mut [f32],
}

/// How products see their inputs, and memory that is kept between them.
#[derive(Debug, Default)]
pub(crate) struct LinearScratch {
    pub(crate) activations: Activations,
    /// Inputs as [`Panels`].
    inputs: Vec<Lanes>,
    rounded: InputMemory,
    /// Outputs of several vectors, (rows, T).
    transposed: Vec<f32>,
}

impl LinearScratch {
    /// Returns empty scratch memory for products that see their inputs as `activations` say.
    pub(crate) fn new(activations: Activations) -> LinearScratch {
        LinearScratch { activations, ..LinearScratch::default() }
    }
}

/// The inputs of some products, as their matrices want them.
#[derive(Clone, Copy)]
struct Seen<'a> {
    activations: Activations,
    exact: Option<Panels<'a>>,
    rounded: Option<Inputs<'a>>,
    n_inputs: usize,
    columns: usize,
}

/// Computes `out = x·Mᵀ (+ bias)` for each product; `x` is (T, columns), row by row.
pub(crate) fn multiply(
    threads: &Threads,
    scratch: &mut LinearScratch,
    x: &[f32],
    n_vectors: usize,
    products: &mut [Product<'_>],
) {
    let Some(columns) = products.first().map(|product| product.matrix.columns()) else { return };
    let &mut LinearScratch { activations, ref mut inputs, ref mut rounded, ref mut transposed } = scratch;
    let (isa, integers) = (threads.instruction_set(), threads.integer_set());
    let rounds = |product: &Product<'_>| activations.rounds(product.matrix.format());
    let is_exact = products.iter().any(|product| !rounds(product));
    let exact = is_exact.then(move || Panels::of(inputs, x, columns, panel_width(isa, n_vectors)));
    let is_rounded = products.iter().any(rounds);
    let rounded = is_rounded.then(move || Inputs::of(isa, rounded, x, columns, integers::width(integers, n_vectors)));
    let x = Seen { activations, exact, rounded, n_inputs: n_vectors, columns };
    let matrices: Vec<&Matrix> = products.iter().map(|product| product.matrix).collect();
    if n_vectors == 1 {
        run(threads, x, &matrices, products.iter_mut().map(|product| &mut *product.out).collect());
    } else {
        by_rows(threads, x, &matrices, transposed, products);
    }
    for product in products.iter_mut() {
        if let Some(bias) = product.bias {
            for row in product.out.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
            }
        }
    }
}

/// Computes products of several vectors: (rows, T) first, then (T, rows).
fn by_rows(
    threads: &Threads,
    x: Seen<'_>,
    matrices: &[&Matrix],
    transposed: &mut Vec<f32>,
    products: &mut [Product<'_>],
) {
    let n_outputs = products.iter().map(|product| product.out.len()).sum();
    if transposed.len() < n_outputs {
        transposed.resize(n_outputs, 0.0);
    }
    let mut rest = &mut transposed[..n_outputs];
    let mut outs = Vec::new();
    for product in products.iter() {
        let (first, others) = rest.split_at_mut(product.out.len());
        outs.push(first);
        rest = others;
    }
    run(threads, x, matrices, outs);
    let mut rest = &transposed[..n_outputs];
    for product in products.iter_mut() {
        let (first, others) = rest.split_at(product.out.len());
        transpose(threads, first, x.n_inputs, product.out);
        rest = others;
    }
}

/// Inputs in the order in which tiles read them: (panels, vectors of a row, `width` inputs), padded
/// with zeros.
#[derive(Clone, Copy)]
struct Panels<'a> {
    vectors: &'a [Lanes],
    /// Vectors of a row.
    length: usize,
    /// Inputs side by side.
    width: usize,
    /// T, without those that are padding.
    n_inputs: usize,
}

/// Returns the number of inputs of a tile: as many as keep its sums in registers.
fn panel_width(isa: InstructionSet, n_inputs: usize) -> usize {
    match n_inputs {
        1 => 1,
        4.. if isa == InstructionSet::Avx512 && isa.is_available() => WIDE,
        _ if isa == InstructionSet::Neon => QUARTERED,
        _ => NARROW,
    }
}

/// Inputs of a tile where 32 registers hold a vector each, where they hold a quarter, and
/// elsewhere.
const WIDE: usize = 6;
const QUARTERED: usize = 2;
const NARROW: usize = 3;

impl<'a> Panels<'a> {
    /// Arranges `x`, which is (T, columns), row by row.
    fn of(vectors: &'a mut Vec<Lanes>, x: &[f32], columns: usize, width: usize) -> Panels<'a> {
        let (length, n_inputs) = (columns.div_ceil(LANES), x.len() / columns);
        vectors.clear();
        vectors.resize(n_inputs.next_multiple_of(width) * length, Lanes::default());
        for (input, row) in x.chunks_exact(columns).enumerate() {
            let panel = &mut vectors[input / width * width * length..][..width * length];
            let (whole, rest) = row.as_chunks::<LANES>();
            let mut places = panel.iter_mut().skip(input % width).step_by(width);
            for (from, to) in whole.iter().zip(&mut places) {
                to.0 = *from;
            }
            if let Some(last) = places.next() {
                last.0[..rest.len()].copy_from_slice(rest);
            }
        }
        Panels { vectors, length, width, n_inputs }
    }
}

/// Transposes (rows, T) to (T, rows).
fn transpose(threads: &Threads, from: &[f32], n_vectors: usize, to: &mut [f32]) {
    let rows = to.len() / n_vectors;
    let items: Vec<(usize, &mut [f32])> = to.chunks_mut(LANES * rows).enumerate().collect();
    threads.each(
        items,
        from.len(),
        || (),
        |(), (index, to)| {
            let first = index * LANES;
            let n_here = to.len() / rows;
            for row in 0..rows {
                let from = &from[row * n_vectors + first..][..n_here];
                for (vector, value) in from.iter().enumerate() {
                    to[vector * rows + row] = *value;
                }
            }
        },
    );
}

/// A part of one product: consecutive rows and where their outputs go.
struct Part<'a> {
    matrix: &'a Matrix,
    rows: Range<usize>,
    /// (rows, T).
    out: &'a mut [f32],
}

/// What a thread keeps between parts.
#[derive(Default)]
struct PartMemory {
    unpacked: Vec<Lanes>,
    integers: Unpacked,
}

fn run<'a>(threads: &Threads, x: Seen<'_>, matrices: &[&'a Matrix], outs: Vec<&'a mut [f32]>) {
    let n_rows: usize = matrices.iter().map(|matrix| matrix.rows()).sum();
    // A few parts per thread: the machine may be busy with something else, too.
    let part = n_rows.div_ceil(4 * threads.count()).next_multiple_of(16);
    let mut parts = Vec::new();
    for (matrix, out) in matrices.iter().zip(outs) {
        for (index, out) in out.chunks_mut(part * x.n_inputs).enumerate() {
            let first = index * part;
            parts.push(Part { matrix, rows: first..first + out.len() / x.n_inputs, out });
        }
    }
    let cost = n_rows * x.n_inputs * x.columns;
    threads.each(parts, cost, PartMemory::default, |memory, part| part.compute(threads, x, memory));
}

impl Part<'_> {
    fn compute(self, threads: &Threads, x: Seen<'_>, memory: &mut PartMemory) {
        let Part { matrix, rows, out } = self;
        let (bytes, row_bytes, isa) = (matrix.rows_of(rows), matrix.row_bytes(), threads.instruction_set());
        match (x.exact, x.rounded) {
            (_, Some(x_rounded)) if x.activations.rounds(matrix.format()) => {
                let stored = Stored { format: matrix.format(), bytes, row_bytes };
                multiply_rows(threads.integer_set(), stored, x_rounded, &mut memory.integers, out);
            }
            (Some(x), _) => with_layout!(matrix.format(), L => {
                let layout = PhantomData::<L>;
                if x.width == 1 {
                    dispatch(isa, One { layout, bytes, row_bytes, x: x.vectors, out });
                } else {
                    dispatch(isa, Several { layout, bytes, row_bytes, x, unpacked: &mut memory.unpacked, out });
                }
            }),
            (None, _) => unreachable!("inputs were prepared for every matrix"),
        }
    }
}

/// Some rows with one vector: four at a time, unpacked in registers.
struct One<'a, L> {
    layout: PhantomData<L>,
    bytes: &'a [u8],
    row_bytes: usize,
    x: &'a [Lanes],
    out: &'a mut [f32],
}

impl<L: Layout> Body for One<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let One { bytes, row_bytes, x, out, .. } = self;
        let mut fours = out.chunks_exact_mut(4);
        let mut rows = bytes.chunks_exact(4 * row_bytes);
        for (out, rows) in (&mut fours).zip(&mut rows) {
            let (low, high) = rows.split_at(2 * row_bytes);
            let (a, b) = low.split_at(row_bytes);
            let (c, d) = high.split_at(row_bytes);
            out.copy_from_slice(&dots::<S, L>(simd, [a, b, c, d], x));
        }
        let rest = rows.remainder().chunks_exact(row_bytes.max(1));
        for (out, row) in fours.into_remainder().iter_mut().zip(rest) {
            *out = dots::<S, L>(simd, [row; 4], x)[0];
        }
    }
}

/// Returns the products of four rows, one after the other in memory, with one vector.
#[inline(always)]
fn dots<S: Simd, L: Layout>(simd: S, rows: [&[u8]; 4], x: &[Lanes]) -> [f32; 4] {
    let mut sums = [simd.splat(0.0); 4];
    let mut ahead = Prefetch::of(rows[0]);
    let [a, b, c, d] = rows.map(|row| row.chunks_exact(L::BYTES));
    // Iterators of known length: no index is checked, and no pointer leaves the registers.
    for ((((a, b), c), d), x) in a.zip(b).zip(c).zip(d).zip(x.chunks_exact(const { L::LEN / LANES })) {
        ahead.step::<S, L>(simd);
        multiply_blocks::<S, L>(simd, [a, b, c, d], x, &mut sums);
    }
    let rest = rows[0].len() / L::BYTES * L::BYTES;
    if rest < rows[0].len() {
        let padded = rows.map(|row| padded::<L>(&row[rest..]));
        let [a, b, c, d] = &padded;
        let blocks = [&a[..L::BYTES], &b[..L::BYTES], &c[..L::BYTES], &d[..L::BYTES]];
        multiply_blocks::<S, L>(simd, blocks, &x[x.len() - 1..], &mut sums);
    }
    simd.sum4(sums)
}

/// Adds the products of a block of each row with the inputs `x`. Part by part, row by row: the sums
/// do not depend on each other, so the processor works on several at once.
#[inline(always)]
fn multiply_blocks<S: Simd, L: Layout>(simd: S, blocks: [&[u8]; 4], x: &[Lanes], sums: &mut [S::Vector; 4]) {
    let [a, b, c, d] = blocks;
    let shared = [L::shared(simd, a), L::shared(simd, b), L::shared(simd, c), L::shared(simd, d)];
    for (part, x) in x.chunks_exact(const { L::LEN / LANES / L::PARTS }).enumerate() {
        for row in 0..4 {
            L::unpack(simd, blocks[row], &shared[row], part, Sum { sum: &mut sums[row], x });
        }
    }
}

/// Adds weights times inputs to a sum.
struct Sum<'a, V> {
    sum: &'a mut V,
    x: &'a [Lanes],
}

impl<S: Simd> Taker<S> for Sum<'_, S::Vector> {
    #[inline(always)]
    fn take(&mut self, simd: S, index: usize, weights: S::Vector) {
        *self.sum = simd.fma(weights, simd.load(&self.x[index].0), *self.sum);
    }
}

/// Returns the sum of each vector.
#[inline(always)]
fn totals<S: Simd, const N: usize>(simd: S, vectors: [S::Vector; N]) -> [f32; N] {
    let mut out = [0.0; N];
    let (fours, rest) = vectors.as_chunks::<4>();
    for (four, out) in fours.iter().zip(out.as_chunks_mut::<4>().0) {
        *out = simd.sum4(*four);
    }
    // Not `map`: its closure would not be compiled for the instruction set.
    for (vector, out) in rest.iter().zip(&mut out[4 * fours.len()..]) {
        *out = simd.sum(*vector);
    }
    out
}

/// Some rows with several inputs: tiles of sums in registers.
struct Several<'a, L> {
    layout: PhantomData<L>,
    bytes: &'a [u8],
    row_bytes: usize,
    x: Panels<'a>,
    unpacked: &'a mut Vec<Lanes>,
    /// (rows, T).
    out: &'a mut [f32],
}

impl<L: Layout> Body for Several<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if S::IS_WIDE && self.x.width == WIDE {
            self.tiles::<S, 4, WIDE>(simd);
        } else if S::IS_WIDE {
            self.tiles::<S, 4, NARROW>(simd);
        } else if self.x.width == QUARTERED {
            self.tiles::<S, 2, QUARTERED>(simd);
        } else {
            self.tiles::<S, 2, NARROW>(simd);
        }
    }
}

/// Inputs that stay in the second-level cache while all rows pass by.
const INPUTS_AT_ONCE: usize = 48;

impl<L: Layout> Several<'_, L> {
    /// Unpacks `R` rows side by side, and multiplies them by panel after panel of `T` inputs.
    #[inline(always)]
    fn tiles<S: Simd, const R: usize, const T: usize>(self, simd: S) {
        let Several { bytes, row_bytes, x, unpacked, out, .. } = self;
        unpacked.clear();
        unpacked.resize(R * x.length, Lanes::default());
        let panels = x.vectors.chunks_exact(T * x.length);
        for first in (0..x.n_inputs).step_by(INPUTS_AT_ONCE) {
            let here = panels.clone().skip(first / T).take(INPUTS_AT_ONCE / T);
            for (rows, out) in bytes.chunks(R * row_bytes).zip(out.chunks_mut(R * x.n_inputs)) {
                for (row, stored) in rows.chunks_exact(row_bytes).enumerate() {
                    unpack_row::<S, L>(simd, stored, &mut unpacked[row..], R);
                }
                for (panel, first) in here.clone().zip((first..).step_by(T)) {
                    let sums = tile::<S, R, T>(simd, unpacked, panel);
                    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(x.n_inputs)) {
                        match out[first..].first_chunk_mut() {
                            Some(out) => *out = *sums,
                            None => out[first..].iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum),
                        }
                    }
                }
            }
        }
    }
}

/// Multiplies `R` rows with `T` inputs, each side by side.
#[inline(always)]
fn tile<S: Simd, const R: usize, const T: usize>(simd: S, rows: &[Lanes], x: &[Lanes]) -> [[f32; T]; R] {
    let mut sums = [[simd.splat(0.0); T]; R];
    for (rows, x) in rows.as_chunks::<R>().0.iter().zip(x.as_chunks::<T>().0) {
        // Not `map`: its closure would not be compiled for the instruction set.
        let mut inputs = [simd.splat(0.0); T];
        for input in 0..T {
            inputs[input] = simd.load(&x[input].0);
        }
        for row in 0..R {
            let weights = simd.load(&rows[row].0);
            for input in 0..T {
                sums[row][input] = simd.fma(weights, inputs[input], sums[row][input]);
            }
        }
    }
    let mut out = [[0.0; T]; R];
    for input in 0..T {
        let mut column = [simd.splat(0.0); R];
        for row in 0..R {
            column[row] = sums[row][input];
        }
        let column = totals(simd, column);
        for row in 0..R {
            out[row][input] = column[row];
        }
    }
    out
}
