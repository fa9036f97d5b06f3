//! Inputs rounded to bytes, in blocks of 32.

use crate::simd::{Body, InstructionSet, Simd, dispatch};

/// Inputs of a block.
pub(crate) const BLOCK: usize = 32;

/// 32 inputs: x ≈ `size`·`numbers`. One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Block {
    pub(super) numbers: [i8; BLOCK],
    /// The sums of the first sixteen and of the second.
    pub(super) sums: [i32; 2],
    /// The sum of all, exact.
    pub(super) total: f32,
    /// NaN if one of the inputs is NaN or infinite.
    pub(super) size: f32,
}

const NOTHING: Block = Block { numbers: [0; BLOCK], sums: [0; 2], total: 0.0, size: 0.0 };

/// Memory of rounded inputs.
#[derive(Debug, Default)]
pub(crate) struct InputMemory(Vec<Block>);

impl InputMemory {
    pub(crate) fn n_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Block>()
    }
}

/// Inputs in the order in which tiles read them: (panels, blocks of a row, `width` inputs), padded
/// with zeros.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(super) blocks: &'a [Block],
    /// Blocks of a row.
    pub(super) length: usize,
    /// Inputs side by side.
    pub(super) width: usize,
    /// T, without those that are padding.
    pub(super) n_inputs: usize,
}

impl<'a> Inputs<'a> {
    /// Rounds `x`, (T, columns) row by row; `columns` are whole blocks.
    pub(crate) fn of(
        isa: InstructionSet,
        memory: &'a mut InputMemory,
        x: &[f32],
        columns: usize,
        width: usize,
    ) -> Inputs<'a> {
        let (length, n_inputs) = (columns / BLOCK, x.len() / columns);
        memory.0.clear();
        memory.0.resize(n_inputs.next_multiple_of(width) * length, NOTHING);
        dispatch(isa, Round { x, length, width, out: &mut memory.0 });
        Inputs { blocks: &memory.0, length, width, n_inputs }
    }
}

struct Round<'a> {
    x: &'a [f32],
    length: usize,
    width: usize,
    out: &'a mut [Block],
}

impl Body for Round<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Round { x, length, width, out } = self;
        for (input, row) in x.chunks_exact(length * BLOCK).enumerate() {
            let panel = &mut out[input / width * width * length..][..width * length];
            let places = panel.iter_mut().skip(input % width).step_by(width);
            for (from, to) in row.as_chunks::<BLOCK>().0.iter().zip(places) {
                *to = round(from);
            }
        }
    }
}

/// Rounds to the nearest multiples of max |x| / 127, ties to even. Numbers below 2^-100 count as 0.
#[inline(always)]
fn round(x: &[f32; BLOCK]) -> Block {
    const ROUND: f32 = 12_582_912.0; // 1.5·2^23: adding it leaves the nearest integer in the low bits
    const LEAST: f32 = f32::from_bits(27 << 23);
    // Positive numbers are ordered as their bits are, and numbers that are not finite are above
    // them.
    let mut most = 0;
    for x in x {
        most = most.max(x.to_bits() & 0x7fff_ffff);
    }
    let most = f32::from_bits(most);
    if !most.is_finite() {
        return Block { size: f32::NAN, ..NOTHING };
    }
    if most < LEAST {
        return NOTHING;
    }
    let inverse = 127.0 / most;
    let mut block = Block { size: most / 127.0, ..NOTHING };
    for (number, x) in block.numbers.iter_mut().zip(x) {
        *number = (x * inverse + ROUND).to_bits() as i8;
    }
    for (sum, numbers) in block.sums.iter_mut().zip(block.numbers.as_chunks::<16>().0) {
        for number in numbers {
            *sum += i32::from(*number);
        }
    }
    block.total = (block.sums[0] + block.sums[1]) as f32;
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_rounded_to_the_nearest_ties_to_even() {
        let mut x = [0.0; BLOCK];
        x[..7].copy_from_slice(&[-127.0, 2.5, 3.5, -0.5, 126.6, 1e-9, -64.4]);
        x[20] = 3.0;
        let block = round(&x);
        assert_eq!(block.numbers[..7], [-127, 2, 4, 0, 127, 0, -64]);
        assert_eq!((block.size, block.sums, block.total), (1.0, [-58, 3], -55.0));
    }

    #[test]
    fn nan_and_infinite_inputs_make_a_nan_size() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
            let mut x = [1.0; BLOCK];
            x[31] = odd;
            assert!(round(&x).size.is_nan(), "{odd}");
        }
    }

    #[test]
    fn very_small_and_very_large_inputs_are_rounded_without_overflow() {
        let tiny = round(&[1e-40; BLOCK]);
        assert_eq!((tiny.size, tiny.total), (0.0, 0.0));
        for value in [3e38, 1e-29] {
            let block = round(&[value; BLOCK]);
            assert_eq!(block.numbers, [127; BLOCK]);
            assert!((block.size * 127.0 / value - 1.0).abs() < 1e-6);
        }
    }
}
