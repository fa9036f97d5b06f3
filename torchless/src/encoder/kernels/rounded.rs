//! Products with weights and inputs that are rounded to bytes: the approximate mode.
//!
//! The arithmetic is that of decoders (`cpu::integers`): one result, to the bit, for every
//! instruction set and any number of rows at once.

use super::linear::{Ending, Rows, finish_row};
use crate::cpu::integers::{self, InputMemory, Inputs, IntegerSet, Stored, Unpacked};
use crate::simd::{Body, InstructionSet, Simd, dispatch};
use crate::weights::Matrix;

/// Rows that are rounded at once: they stay in the second-level cache.
const INPUTS_AT_ONCE: usize = 128;

/// Outputs of a row that are computed at once.
const OUTPUTS_AT_ONCE: usize = 64;

/// Memory of rounded products.
#[derive(Debug, Default)]
pub(super) struct RoundedScratch {
    /// Rows filled up with zeros to whole blocks.
    inputs: Vec<f32>,
    rounded: InputMemory,
    unpacked: Unpacked,
    /// (outputs, rows).
    transposed: Vec<f32>,
}

impl RoundedScratch {
    pub(super) fn n_bytes(&self) -> usize {
        let floats = self.inputs.capacity() + self.transposed.capacity();
        4 * floats + self.rounded.n_bytes() + self.unpacked.n_bytes()
    }

    /// Computes activation(rows · Mᵀ + bias) into `out` (rows, columns); `matrix` is (columns,
    /// inputs).
    pub(super) fn multiply(
        &mut self,
        isa: InstructionSet,
        rows: Rows<'_>,
        matrix: &Matrix,
        end: Ending<'_>,
        out: &mut [f32],
    ) {
        let RoundedScratch { inputs, rounded, unpacked, transposed } = self;
        let (set, columns, length) = (IntegerSet::best(isa), matrix.rows(), matrix.columns());
        for first in (0..rows.n_rows).step_by(INPUTS_AT_ONCE) {
            let n_here = INPUTS_AT_ONCE.min(rows.n_rows - first);
            inputs.clear();
            for row in first..first + n_here {
                inputs.extend_from_slice(rows.row(row));
                inputs.resize((row - first + 1) * length, 0.0);
            }
            let x = Inputs::of(isa, rounded, inputs, length, integers::width(set, n_here));
            for start in (0..columns).step_by(OUTPUTS_AT_ONCE) {
                let end_here = columns.min(start + OUTPUTS_AT_ONCE);
                transposed.resize((end_here - start) * n_here, 0.0);
                let (format, bytes) = (matrix.format(), matrix.rows_of(start..end_here));
                let stored = Stored { format, bytes, row_bytes: matrix.row_bytes() };
                integers::multiply_rows(set, stored, x, unpacked, transposed);
                let out = &mut out[first * columns..][..n_here * columns];
                dispatch(isa, Finish { transposed, end, out, columns, start });
            }
        }
    }
}

/// Writes some outputs of every row where they belong, with bias and activation.
struct Finish<'a> {
    /// (outputs, rows).
    transposed: &'a [f32],
    end: Ending<'a>,
    /// (rows, columns).
    out: &'a mut [f32],
    columns: usize,
    /// The first output.
    start: usize,
}

impl Body for Finish<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Finish { transposed, end, out, columns, start } = self;
        let n_rows = out.len() / columns;
        let n_outputs = transposed.len() / n_rows;
        for (row, out) in out.chunks_exact_mut(columns).enumerate() {
            let out = &mut out[start..][..n_outputs];
            for (output, to) in out.iter_mut().enumerate() {
                *to = transposed[output * n_rows + row];
            }
            finish_row(simd, end, row, start, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linear::{Activation, Bias};
    use super::*;
    use crate::encoder::storage::{WeightStorage, store};
    use crate::simd::half;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / 8_388_608.0 - 1.0
        };
        (0..n).map(|_| next()).collect()
    }

    /// Adds (scale · Σ c·q) · size for the blocks of 32, one after the other.
    fn plain(x: &[f32], row: &[u8]) -> f32 {
        let mut sum = 0.0;
        for (x, block) in x.chunks(32).zip(row.chunks(34)) {
            let most = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let codes = block[2..].iter().map(|code| i32::from(*code as i8));
            let inputs = x.iter().map(|x| (x * (127.0 / most)).round_ties_even() as i32);
            let dot: i32 = codes.zip(inputs).map(|(code, input)| code * input).sum();
            sum += half(u16::from_le_bytes([block[0], block[1]])) * dot as f32 * (most / 127.0);
        }
        sum
    }

    #[test]
    fn products_have_the_bits_of_a_plain_loop() {
        let (k, columns) = (45, 70);
        let weights = numbers(columns * k, 1);
        let stored = store(WeightStorage::Int8, weights.chunks(k).map(<[f32]>::to_vec), k).expect("in range");
        let matrix = stored.expect("a matrix");
        let bias = numbers(columns, 2);
        let end = Ending { bias: Bias::OfColumns(&bias), activation: Activation::None };
        let mut scratch = RoundedScratch::default();
        for n_rows in [1, 2, 7, 131] {
            let values = numbers(n_rows * k, 3);
            let rows = Rows { values: &values, offset: 0, stride: k as isize, n_rows, k };
            for isa in InstructionSet::available() {
                let mut out = vec![f32::NAN; n_rows * columns];
                scratch.multiply(isa, rows, &matrix, end, &mut out);
                for (place, found) in out.iter().enumerate() {
                    let (row, column) = (place / columns, place % columns);
                    let expected = plain(&values[row * k..][..k], matrix.rows_of(column..column + 1)) + bias[column];
                    assert_eq!(found.to_bits(), expected.to_bits(), "{n_rows} rows with {isa:?}: {place}");
                }
            }
        }
    }
}
