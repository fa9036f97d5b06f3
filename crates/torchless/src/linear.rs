//! Matrices that stay as they are stored, and their products with vectors: the part of inference that takes the time.
//!
//! Every output is one sum, in one order: sixteen partial sums along the row, added at the end. Threads share rows and tiles share registers,
//! but neither changes that order, so the bits are the same for any number of threads and any number of vectors at once.

use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;
use rayon::prelude::*;

use crate::format::{Format, Layout, padded, unpack_row, with_layout};
use crate::simd::{Body, InstructionSet, LANES, Simd, dispatch};

/// Bytes that nobody copies: a part of a mapped file, or memory.
#[derive(Clone)]
pub(crate) enum Bytes {
    Mapped(Arc<Mmap>, Range<usize>),
    Owned(Arc<[u8]>),
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(file, range) => &file[range.clone()],
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes", self.as_slice().len())
    }
}

/// A matrix as it is stored: rows of weights of one format.
#[derive(Debug, Clone)]
pub struct Matrix {
    bytes: Bytes,
    format: Format,
    rows: usize,
    columns: usize,
    row_bytes: usize,
}

impl Matrix {
    /// None if `bytes` are not `rows` whole rows.
    pub(crate) fn new(bytes: Bytes, format: Format, rows: usize, columns: usize) -> Option<Matrix> {
        let row_bytes = format.row_bytes(columns)?;
        (row_bytes.checked_mul(rows)? == bytes.as_slice().len()).then_some(())?;
        Some(Matrix { bytes, format, rows, columns, row_bytes })
    }

    /// A matrix of a copy of `bytes`; none if they are not `rows` whole rows.
    pub fn from_bytes(bytes: &[u8], format: Format, rows: usize, columns: usize) -> Option<Matrix> {
        Matrix::new(Bytes::Owned(bytes.into()), format, rows, columns)
    }

    /// A matrix of single precision; none if `values` are not `rows`·`columns`.
    pub fn from_values(values: &[f32], rows: usize, columns: usize) -> Option<Matrix> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Matrix::new(Bytes::Owned(bytes.into()), Format::F32, rows, columns)
    }

    /// How many outputs a product has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many inputs a product has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How it is stored.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Bytes of all rows.
    pub fn n_bytes(&self) -> usize {
        self.bytes.as_slice().len()
    }

    /// Row `row` as numbers: `out` (columns).
    pub fn row(&self, row: usize, out: &mut [f32]) {
        crate::format::unpack(self.format, self.rows_of(row..row + 1), out);
    }

    /// Its bytes, as they lie in their file.
    pub(crate) fn stored(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    fn rows_of(&self, rows: Range<usize>) -> &[u8] {
        &self.bytes.as_slice()[rows.start * self.row_bytes..rows.end * self.row_bytes]
    }
}

/// Threads that share work, and the instruction set that they work with.
#[derive(Debug, Clone)]
pub struct Threads {
    /// None for one thread: the caller's.
    pool: Option<Arc<rayon::ThreadPool>>,
    n_threads: usize,
    isa: InstructionSet,
}

impl Threads {
    /// `n_threads`, or as many as the machine has if 0. One if the system gives no more.
    pub fn new(n_threads: usize) -> Threads {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_threads = if n_threads == 0 { available() } else { n_threads };
        let build = || rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().ok().map(Arc::new);
        let pool = if n_threads > 1 { build() } else { None };
        Threads { n_threads: if pool.is_some() { n_threads } else { 1 }, pool, isa: InstructionSet::best() }
    }

    /// The same, with another instruction set: for tests and measurements.
    #[must_use]
    pub fn with_instruction_set(mut self, isa: InstructionSet) -> Threads {
        self.isa = isa;
        self
    }

    /// How many work.
    pub fn count(&self) -> usize {
        self.n_threads
    }

    /// What they work with.
    pub fn instruction_set(&self) -> InstructionSet {
        self.isa
    }

    /// Does every item, on several threads if the whole is worth it: `cost` is about the number of multiplications.
    pub(crate) fn each<T: Send, S>(
        &self,
        items: Vec<T>,
        cost: usize,
        scratch: impl Fn() -> S + Sync + Send,
        work: impl Fn(&mut S, T) + Sync + Send,
    ) {
        match &self.pool {
            Some(pool) if cost > 1 << 15 && items.len() > 1 => {
                pool.install(|| items.into_par_iter().for_each_init(&scratch, |scratch, item| work(scratch, item)));
            }
            _ => {
                let mut scratch = scratch();
                items.into_iter().for_each(|item| work(&mut scratch, item));
            }
        }
    }
}

/// One product of several that share their inputs.
pub(crate) struct Product<'a> {
    pub(crate) matrix: &'a Matrix,
    /// Added to every output, if there is one: (rows).
    pub(crate) bias: Option<&'a [f32]>,
    /// (T, rows), row by row.
    pub(crate) out: &'a mut [f32],
}

/// Memory of products that is kept between them.
#[derive(Debug, Default)]
pub(crate) struct LinearScratch {
    /// Inputs padded to whole vectors.
    inputs: Vec<[f32; LANES]>,
    /// Outputs of several vectors, (rows, T).
    transposed: Vec<f32>,
}

/// `out = x·Mᵀ (+ bias)` for each product; `x` is (T, columns), row by row.
pub(crate) fn multiply(
    threads: &Threads,
    scratch: &mut LinearScratch,
    x: &[f32],
    n_vectors: usize,
    products: &mut [Product<'_>],
) {
    let Some(columns) = products.first().map(|product| product.matrix.columns) else { return };
    let LinearScratch { inputs, transposed } = scratch;
    let x = whole_vectors(inputs, x, columns);
    let matrices: Vec<&Matrix> = products.iter().map(|product| product.matrix).collect();
    if n_vectors == 1 {
        run(threads, x, 1, &matrices, products.iter_mut().map(|product| &mut *product.out).collect());
    } else {
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
        run(threads, x, n_vectors, &matrices, outs);
        let mut rest = &transposed[..n_outputs];
        for product in products.iter_mut() {
            let (first, others) = rest.split_at(product.out.len());
            transpose(threads, first, n_vectors, product.out);
            rest = others;
        }
    }
    for product in products.iter_mut() {
        if let Some(bias) = product.bias {
            for row in product.out.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
            }
        }
    }
}

/// `x` as whole vectors, padded with zeros row by row if `columns` are no multiple of the lanes.
fn whole_vectors<'a>(inputs: &'a mut Vec<[f32; LANES]>, x: &'a [f32], columns: usize) -> &'a [[f32; LANES]] {
    if columns.is_multiple_of(LANES) {
        return x.as_chunks().0;
    }
    inputs.clear();
    for row in x.chunks_exact(columns) {
        let (whole, rest) = row.as_chunks::<LANES>();
        inputs.extend_from_slice(whole);
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        inputs.push(last);
    }
    inputs
}

/// (rows, T) to (T, rows).
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

fn run<'a>(threads: &Threads, x: &[[f32; LANES]], n_vectors: usize, matrices: &[&'a Matrix], outs: Vec<&'a mut [f32]>) {
    let n_rows: usize = matrices.iter().map(|matrix| matrix.rows).sum();
    let cost = n_rows * x.len() * LANES;
    // A few parts per thread: the machine may be busy with something else, too.
    let part = n_rows.div_ceil(4 * threads.n_threads).max(16).next_multiple_of(4);
    let mut parts = Vec::new();
    for (matrix, out) in matrices.iter().zip(outs) {
        for (index, out) in out.chunks_mut(part * n_vectors).enumerate() {
            let first = index * part;
            parts.push(Part { matrix, rows: first..first + out.len() / n_vectors, out });
        }
    }
    let isa = threads.isa;
    threads.each(parts, cost, Vec::new, |unpacked, part| dispatch(isa, Rows { part, x, n_vectors, unpacked }));
}

struct Rows<'a, 'b> {
    part: Part<'a>,
    x: &'b [[f32; LANES]],
    n_vectors: usize,
    unpacked: &'b mut Vec<[f32; LANES]>,
}

impl Body for Rows<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Rows { part: Part { matrix, rows, out }, x, n_vectors, unpacked } = self;
        let bytes = matrix.rows_of(rows);
        if n_vectors == 1 {
            with_layout!(matrix.format, L => one_vector::<S, L>(simd, bytes, matrix.row_bytes, x, out));
        } else {
            let is_direct = matrix.format == Format::F32 && matrix.columns.is_multiple_of(LANES);
            let several = Several { simd, x, n_vectors, row_bytes: matrix.row_bytes };
            if is_direct {
                several.direct(bytes, out);
            } else {
                several.unpacking(matrix.format, bytes, unpacked, out);
            }
        }
    }
}

/// Rows with one vector: four rows at a time, unpacked in registers.
#[inline(always)]
fn one_vector<S: Simd, L: Layout>(simd: S, bytes: &[u8], row_bytes: usize, x: &[[f32; LANES]], out: &mut [f32]) {
    let mut fours = out.chunks_exact_mut(4);
    let mut rows = bytes.chunks_exact(4 * row_bytes);
    for (out, rows) in (&mut fours).zip(&mut rows) {
        let (low, high) = rows.split_at(2 * row_bytes);
        let (a, b) = low.split_at(row_bytes);
        let (c, d) = high.split_at(row_bytes);
        out.copy_from_slice(&dots::<S, L, 4>(simd, [a, b, c, d], x));
    }
    let rest = rows.remainder().chunks_exact(row_bytes.max(1));
    for (out, row) in fours.into_remainder().iter_mut().zip(rest) {
        *out = dots::<S, L, 1>(simd, [row], x)[0];
    }
}

/// The products of `R` rows with one vector.
#[inline(always)]
fn dots<S: Simd, L: Layout, const R: usize>(simd: S, rows: [&[u8]; R], x: &[[f32; LANES]]) -> [f32; R] {
    let mut sums = [simd.splat(0.0); R];
    let vectors = const { L::LEN / LANES };
    let n_blocks = rows[0].len() / L::BYTES;
    for (block, x) in x.chunks_exact(vectors).take(n_blocks).enumerate() {
        for row in 0..R {
            let bytes = &rows[row][block * L::BYTES..][..L::BYTES];
            let sum = &mut sums[row];
            L::unpack(simd, bytes, |index, weights| *sum = simd.fma(weights, simd.load(&x[index]), *sum));
        }
    }
    if n_blocks * L::BYTES < rows[0].len() {
        let x = &x[x.len() - 1];
        for row in 0..R {
            let bytes = padded::<L>(&rows[row][n_blocks * L::BYTES..]);
            let sum = &mut sums[row];
            L::unpack(simd, &bytes[..L::BYTES], |_, weights| *sum = simd.fma(weights, simd.load(x), *sum));
        }
    }
    // Not `map`: its closure would not be compiled for the instruction set.
    let mut out = [0.0; R];
    for row in 0..R {
        out[row] = simd.sum(sums[row]);
    }
    out
}

/// A row of which vectors can be had.
trait Row: Copy {
    fn vector<S: Simd>(self, simd: S, index: usize) -> S::Vector;
}

impl Row for &[[f32; LANES]] {
    #[inline(always)]
    fn vector<S: Simd>(self, simd: S, index: usize) -> S::Vector {
        simd.load(&self[index])
    }
}

impl Row for &[[u8; 64]] {
    #[inline(always)]
    fn vector<S: Simd>(self, simd: S, index: usize) -> S::Vector {
        simd.load_f32(&self[index])
    }
}

/// Vectors that stay in the second-level cache while all rows pass by.
const VECTORS_AT_ONCE: usize = 48;

/// Rows with several vectors: tiles of sums in registers.
#[derive(Clone, Copy)]
struct Several<'a, S> {
    simd: S,
    x: &'a [[f32; LANES]],
    n_vectors: usize,
    row_bytes: usize,
}

impl<S: Simd> Several<'_, S> {
    #[inline(always)]
    fn direct(self, bytes: &[u8], out: &mut [f32]) {
        let length = self.row_bytes / 64;
        let (rows, _) = bytes.as_chunks::<64>();
        for first in (0..self.n_vectors).step_by(VECTORS_AT_ONCE) {
            for (rows, out) in rows.chunks(4 * length).zip(out.chunks_mut(4 * self.n_vectors)) {
                self.four(rows, length, first, out);
            }
        }
    }

    #[inline(always)]
    fn unpacking(self, format: Format, bytes: &[u8], unpacked: &mut Vec<[f32; LANES]>, out: &mut [f32]) {
        let length = self.x.len() / self.n_vectors;
        unpacked.resize(4 * length, [0.0; LANES]);
        for first in (0..self.n_vectors).step_by(VECTORS_AT_ONCE) {
            for (rows, out) in bytes.chunks(4 * self.row_bytes).zip(out.chunks_mut(4 * self.n_vectors)) {
                let n_rows = rows.len() / self.row_bytes;
                for (row, unpacked) in rows.chunks_exact(self.row_bytes).zip(unpacked.chunks_exact_mut(length)) {
                    with_layout!(format, L => unpack_row::<S, L>(self.simd, row, unpacked));
                }
                self.four(&unpacked[..n_rows * length], length, first, out);
            }
        }
    }

    /// Up to four rows with the vectors from `first` on; `out` is (rows, T).
    #[inline(always)]
    fn four<V>(self, rows: &[V], length: usize, first: usize, out: &mut [f32])
    where
        for<'a> &'a [V]: Row,
    {
        let last = (first + VECTORS_AT_ONCE).min(self.n_vectors);
        if rows.len() == 4 * length && S::IS_WIDE {
            let rows: [&[V]; 4] = std::array::from_fn(|row| &rows[row * length..][..length]);
            self.tiles::<V, 4>(rows, first..last, 0, out);
            return;
        }
        let mut row = 0;
        while (row + 2) * length <= rows.len() {
            let pair = [&rows[row * length..][..length], &rows[(row + 1) * length..][..length]];
            self.tiles::<V, 2>(pair, first..last, row, out);
            row += 2;
        }
        if (row + 1) * length <= rows.len() && row * self.n_vectors < out.len() {
            self.tiles::<V, 1>([&rows[row * length..][..length]], first..last, row, out);
        }
    }

    #[inline(always)]
    fn tiles<V, const R: usize>(self, rows: [&[V]; R], vectors: Range<usize>, first_row: usize, out: &mut [f32])
    where
        for<'a> &'a [V]: Row,
    {
        let mut vector = vectors.start;
        while vector < vectors.end {
            let left = vectors.end - vector;
            let at = (vector, first_row);
            vector += match left {
                6.. if S::IS_WIDE => self.tile::<V, R, 6>(rows, at, out),
                3.. => self.tile::<V, R, 3>(rows, at, out),
                2 => self.tile::<V, R, 2>(rows, at, out),
                _ => self.tile::<V, R, 1>(rows, at, out),
            };
        }
    }

    /// `R` rows with `T` vectors; returns `T`.
    #[inline(always)]
    fn tile<V, const R: usize, const T: usize>(self, rows: [&[V]; R], at: (usize, usize), out: &mut [f32]) -> usize
    where
        for<'a> &'a [V]: Row,
    {
        let length = rows[0].len();
        let xs: [&[[f32; LANES]]; T] = std::array::from_fn(|vector| &self.x[(at.0 + vector) * length..][..length]);
        let simd = self.simd;
        let mut sums = [[simd.splat(0.0); T]; R];
        for index in 0..length {
            let x: [S::Vector; T] = std::array::from_fn(|vector| simd.load(&xs[vector][index]));
            for row in 0..R {
                let weights = rows[row].vector(simd, index);
                for vector in 0..T {
                    sums[row][vector] = simd.fma(weights, x[vector], sums[row][vector]);
                }
            }
        }
        for row in 0..R {
            for vector in 0..T {
                out[(at.1 + row) * self.n_vectors + at.0 + vector] = simd.sum(sums[row][vector]);
            }
        }
        T
    }
}
