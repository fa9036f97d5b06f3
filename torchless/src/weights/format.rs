//! How weights are stored: plain numbers, and blocks of quantised ones, unpacked to vectors of
//! `f32` where they are used.
//!
//! A format has blocks of `LEN` weights in `BYTES` bytes. Unpacking is exact in the sense of the
//! format: the scale is widened to `f32` and multiplied in `f32`, as the reference implementation
//! of each format does. Layouts: the GGUF specification's tensor types.

use std::fmt;

use crate::simd::{Body, InstructionSet, LANES, Lanes, Line, Simd, Zero, dispatch};

/// The type of a stored tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// bfloat16: the upper half of single precision.
    Bf16,
    /// 32 signed bytes and a scale.
    Q8_0,
    /// 32 numbers of 4 bits around 8, and a scale.
    Q4_0,
    /// 32 numbers of 4 bits, a scale and a minimum.
    Q4_1,
    /// 32 numbers of 5 bits around 16, and a scale.
    Q5_0,
    /// 256 numbers of 4 bits in 8 groups with scales and minima of 6 bits.
    Q4K,
    /// 256 numbers of 5 bits in 8 groups with scales and minima of 6 bits.
    Q5K,
    /// 256 numbers of 6 bits in 16 groups with scales of 8 bits.
    Q6K,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 10] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q8_0,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
    ];

    /// Returns its name, the weights of a block and the bytes of a block.
    const fn facts(self) -> (&'static str, usize, usize) {
        match self {
            Format::F32 => ("F32", 1, 4),
            Format::F16 => ("F16", 1, 2),
            Format::Bf16 => ("BF16", 1, 2),
            Format::Q8_0 => ("Q8_0", 32, 34),
            Format::Q4_0 => ("Q4_0", 32, 18),
            Format::Q4_1 => ("Q4_1", 32, 20),
            Format::Q5_0 => ("Q5_0", 32, 22),
            Format::Q4K => ("Q4_K", 256, 144),
            Format::Q5K => ("Q5_K", 256, 176),
            Format::Q6K => ("Q6_K", 256, 210),
        }
    }

    /// Returns the name that the file formats use.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Returns the number of weights of one block; rows are made of whole blocks.
    pub fn block_len(self) -> usize {
        self.facts().1
    }

    /// Returns the bytes of one block.
    pub fn block_bytes(self) -> usize {
        self.facts().2
    }

    /// Returns the bytes of a row of `columns` weights; `None` if these are not whole blocks, or
    /// too many to count.
    pub fn row_bytes(self, columns: usize) -> Option<usize> {
        columns.is_multiple_of(self.block_len()).then_some(columns / self.block_len())?.checked_mul(self.block_bytes())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A format at compile time. `LEN` is a multiple of [`LANES`].
pub(crate) trait Layout: Copy {
    const LEN: usize;
    const BYTES: usize;

    /// Hands the vectors of one block to `each`, in order, with their indices. `block` has `BYTES`
    /// bytes.
    fn unpack<S: Simd>(simd: S, block: &[u8], each: impl Taker<S>);
}

/// Receives vectors of weights. Not a closure: a closure that is called often is not inlined, and
/// then not compiled for the instruction set.
pub(crate) trait Taker<S: Simd> {
    fn take(&mut self, simd: S, index: usize, vector: S::Vector);
}

/// Vectors to every `stride`-th place.
struct Places<'a> {
    out: &'a mut [Lanes],
    stride: usize,
}

impl<S: Simd> Taker<S> for Places<'_> {
    #[inline(always)]
    fn take(&mut self, simd: S, index: usize, vector: S::Vector) {
        simd.store(vector, &mut self.out[index * self.stride].0);
    }
}

/// Calls `$body` with `$layout` as the [`Layout`] of a format.
macro_rules! with_layout {
    ($format:expr, $layout:ident => $body:expr) => {
        with_layout!($format, $layout => $body; F32 F16 Bf16 Q8_0 Q4_0 Q4_1 Q5_0 Q4K Q5K Q6K)
    };
    ($format:expr, $layout:ident => $body:expr; $($name:ident)*) => {
        match $format {
            $($crate::weights::format::Format::$name => {
                type $layout = $crate::weights::format::$name;
                $body
            })*
        }
    };
}
pub(crate) use with_layout;

/// Declares a [`Layout`]: what its blocks are, its name, `LEN`, `BYTES`, and how a block is
/// unpacked.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident, $len:expr, $bytes:expr, |$simd:ident, $block:ident, $each:ident| $unpack:block) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Layout for $name {
            const LEN: usize = $len;
            const BYTES: usize = $bytes;
            #[inline(always)]
            fn unpack<S: Simd>($simd: S, $block: &[u8], mut $each: impl Taker<S>) $unpack
        }
    };
}

/// Does the same for each number: loops that are too long for the compiler to unroll would count
/// and shift at run time.
macro_rules! for_each {
    ($name:ident of $($number:literal)* => $body:block) => {
        $({
            const $name: usize = $number;
            $body
        })*
    };
}

/// Returns the array at `at` of a block; blocks have the length of their format.
#[inline(always)]
pub(crate) fn part<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    block[at..].first_chunk().expect("a whole block")
}

/// Returns the half-precision number at `at` of a block.
#[inline(always)]
fn scale<S: Simd>(simd: S, block: &[u8], at: usize) -> f32 {
    simd.half1(u16::from_le_bytes(*part(block, at)))
}

/// Returns the half-precision number at `at` of a block, in every lane.
#[inline(always)]
fn splat_scale<S: Simd>(simd: S, block: &[u8], at: usize) -> S::Vector {
    simd.splat_half(u16::from_le_bytes(*part(block, at)))
}

layout! {
    /// Single precision, sixteen at a time.
    F32, LANES, 64, |simd, block, each| { each.take(simd, 0, simd.load_f32(part(block, 0))) }
}
layout! {
    /// Half precision, sixteen at a time.
    F16, LANES, 32, |simd, block, each| { each.take(simd, 0, simd.load_f16(part(block, 0))) }
}
layout! {
    /// bfloat16, sixteen at a time.
    Bf16, LANES, 32, |simd, block, each| { each.take(simd, 0, simd.load_bf16(part(block, 0))) }
}
layout! {
    /// `scale: f16, numbers: [i8; 32]`.
    Q8_0, 32, 34, |simd, block, each| {
        let factor = splat_scale(simd, block, 0);
        for index in 0..2 {
            each.take(simd, index, simd.mul(factor, simd.load_i8(part(block, 2 + LANES * index))));
        }
    }
}
layout! {
    /// `scale: f16, numbers: [u4; 32]`, the first sixteen in the low halves of the bytes.
    Q4_0, 32, 18, |simd, block, each| {
        let weights = simd.table(Line { factor: splat_scale(simd, block, 0), zero: Zero::Eighth, offset: None });
        let [low, high] = simd.look_up(part(block, 2), weights, weights);
        each.take(simd, 0, low);
        each.take(simd, 1, high);
    }
}
layout! {
    /// `scale: f16, minimum: f16, numbers: [u4; 32]`.
    Q4_1, 32, 20, |simd, block, each| {
        let (factor, minimum) = (splat_scale(simd, block, 0), splat_scale(simd, block, 2));
        let weights = simd.table(Line { factor, zero: Zero::First, offset: Some(minimum) });
        let [low, high] = simd.look_up(part(block, 4), weights, weights);
        each.take(simd, 0, low);
        each.take(simd, 1, high);
    }
}
layout! {
    /// `scale: f16, fifth bits: u32, numbers: [u4; 32]`.
    Q5_0, 32, 22, |simd, block, each| {
        let factor = splat_scale(simd, block, 0);
        let fifth = u32::from_le_bytes(*part(block, 2));
        let numbers = simd.numbers(part(block, 6));
        for index in 0..2 {
            let fifth = simd.number_of_bits((fifth >> (LANES * index)) as u16);
            each.take(simd, index, simd.mul(factor, simd.joined(simd.bits_of(numbers, 4 * index, 15), fifth, 16)));
        }
    }
}

/// Factors and offsets of the eight groups of a block.
struct Groups {
    factors: [f32; 8],
    offsets: [f32; 8],
}

/// Unpacks the factors and offsets of a block: six bits each, packed in twelve bytes behind the two
/// scales that they share.
#[inline(always)]
fn groups<S: Simd>(simd: S, block: &[u8]) -> Groups {
    let (scale, minimum) = (scale(simd, block, 0), scale(simd, block, 2));
    // Four bytes at once: six bits of the first four groups, and what the last four have of them.
    let word = |at: usize| u32::from_le_bytes(*part(block, at));
    let (low, middle, high) = (word(4), word(8), word(12));
    let both = |first: u32, last: u32| (u64::from(first) | u64::from(last) << 32).to_le_bytes();
    let scales = both(low & 0x3f3f_3f3f, high & 0x0f0f_0f0f | low >> 2 & 0x3030_3030);
    let minima = both(middle & 0x3f3f_3f3f, high >> 4 & 0x0f0f_0f0f | middle >> 2 & 0x3030_3030);
    let mut groups = Groups { factors: [0.0; 8], offsets: [0.0; 8] };
    for group in 0..8 {
        groups.factors[group] = scale * f32::from(scales[group]);
        groups.offsets[group] = -(minimum * f32::from(minima[group]));
    }
    groups
}

/// Returns the weights of the sixteen codes of a group.
#[inline(always)]
fn group_weights<S: Simd>(simd: S, groups: &Groups, at: usize) -> S::Table {
    let (factor, offset) = (simd.splat(groups.factors[at]), simd.splat(groups.offsets[at]));
    simd.table(Line { factor, zero: Zero::First, offset: Some(offset) })
}

layout! {
    /// `scale: f16, minimum: f16, groups: [u8; 12], numbers: [u4; 256]`; 64 numbers, two groups,
    /// share 32 bytes.
    Q4K, 256, 144, |simd, block, each| {
        let groups = groups(simd, block);
        for_each!(PAIR of 0 1 2 3 => {
            let (low, high) = (group_weights(simd, &groups, 2 * PAIR), group_weights(simd, &groups, 2 * PAIR + 1));
            let [first, third] = simd.look_up(part(block, 16 + 32 * PAIR), low, high);
            let [second, fourth] = simd.look_up(part(block, 32 + 32 * PAIR), low, high);
            each.take(simd, 4 * PAIR, first);
            each.take(simd, 4 * PAIR + 1, second);
            each.take(simd, 4 * PAIR + 2, third);
            each.take(simd, 4 * PAIR + 3, fourth);
        });
    }
}
layout! {
    /// `scale: f16, minimum: f16, groups: [u8; 12], fifth bits: [u8; 32], numbers: [u4; 256]`.
    Q5K, 256, 176, |simd, block, each| {
        let groups = groups(simd, block);
        for_each!(AT of 0 1 2 3 4 5 6 7 => {
            let (factor, offset) = (simd.splat(groups.factors[AT]), simd.splat(groups.offsets[AT]));
            for index in 0..2 {
                let fifth = simd.bits_of(simd.numbers(part(block, 16 + LANES * index)), AT, 1);
                let numbers = simd.numbers(part(block, 48 + 32 * (AT / 2) + LANES * index));
                let numbers = simd.joined(simd.bits_of(numbers, 4 * (AT % 2), 15), fifth, 0);
                each.take(simd, 2 * AT + index, simd.add(simd.mul(factor, numbers), offset));
            }
        });
    }
}
layout! {
    /// `low four bits: [u8; 128], high two bits: [u8; 64], group scales: [i8; 16], scale: f16`;
    /// halves of 128 numbers.
    Q6K, 256, 210, |simd, block, each| {
        let (scale, groups) = (scale(simd, block, 208), part::<16>(block, 192));
        for_each!(GROUP of 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => {
            // Within a half: four quarters of 32 numbers, each two groups of 16.
            let (part_of_two, quarter, index) = (GROUP / 8, GROUP % 8 / 2, GROUP % 2);
            let low = simd.numbers(part(block, 64 * part_of_two + 32 * (quarter % 2) + LANES * index));
            let high = simd.numbers(part(block, 128 + 32 * part_of_two + LANES * index));
            let (low, high) = (simd.bits_of(low, 4 * (quarter / 2), 15), simd.bits_of(high, 2 * quarter, 3));
            let factor = simd.splat(scale * f32::from(groups[GROUP] as i8));
            each.take(simd, GROUP, simd.mul(factor, simd.joined(low, high, 32)));
        });
    }
}

/// Unpacks one row of whole blocks, and of single numbers what is left of them, padded with zeros
/// to whole vectors; one vector goes to every `stride`-th place of `out`.
#[inline(always)]
pub(crate) fn unpack_row<S: Simd, L: Layout>(simd: S, row: &[u8], out: &mut [Lanes], stride: usize) {
    let blocks = row.chunks_exact(L::BYTES);
    let rest = blocks.remainder();
    let vectors = const { L::LEN / LANES };
    for (block, out) in blocks.zip(out.chunks_mut(vectors * stride)) {
        L::unpack(simd, block, Places { out, stride });
    }
    if !rest.is_empty() {
        let padded = padded::<L>(rest);
        let last = row.len() / L::BYTES * vectors * stride;
        L::unpack(simd, &padded[..L::BYTES], Places { out: &mut out[last..], stride });
    }
}

/// Returns the remainder of a row of single numbers, padded with zeros to a vector. Formats of
/// blocks have no remainder.
#[inline(always)]
pub(crate) fn padded<L: Layout>(rest: &[u8]) -> [u8; 64] {
    let mut padded = [0; 64];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}

struct Unpack<'a> {
    format: Format,
    row: &'a [u8],
    out: &'a mut [Lanes],
}

impl Body for Unpack<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_layout!(self.format, L => unpack_row::<S, L>(simd, self.row, self.out, 1));
    }
}

/// Writes the weights of a row of `columns` as `f32`: `row` in, `out` (columns) out.
///
/// ```
/// use torchless::format::{Format, unpack};
/// let mut out = [0.0; 2];
/// unpack(Format::Bf16, &[0x80, 0x3f, 0x00, 0xc0], &mut out);
/// assert_eq!(out, [1.0, -2.0]);
/// ```
///
/// # Panics
///
/// If `row` has not [`Format::row_bytes`] of `out.len()` bytes.
pub fn unpack(format: Format, row: &[u8], out: &mut [f32]) {
    assert_eq!(Some(row.len()), format.row_bytes(out.len()), "bytes of a row");
    let mut vectors = vec![Lanes::default(); out.len().div_ceil(LANES)];
    dispatch(InstructionSet::best(), Unpack { format, row, out: &mut vectors });
    out.chunks_mut(LANES).zip(&vectors).for_each(|(out, vector)| out.copy_from_slice(&vector.0[..out.len()]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_unpacks_the_same_weights() {
        let bits = |out: &[Lanes]| out.iter().map(|vector| crate::simd::tests::bits(vector.0)).collect::<Vec<_>>();
        let mut state = 3;
        for (format, _) in Format::ALL.into_iter().flat_map(|format| (0..50).map(move |round| (format, round))) {
            let bytes: [u8; 512] = crate::simd::tests::random_bytes(&mut state);
            let columns = if format.block_len() == 1 { 37 } else { 2 * format.block_len() };
            let row = &bytes[..format.row_bytes(columns).expect("whole blocks")];
            let mut plain = vec![Lanes::default(); columns.div_ceil(LANES)];
            dispatch(InstructionSet::Baseline, Unpack { format, row, out: &mut plain });
            for isa in InstructionSet::available() {
                let mut out = vec![Lanes([f32::NAN; LANES]); columns.div_ceil(LANES)];
                dispatch(isa, Unpack { format, row, out: &mut out });
                assert!(bits(&out) == bits(&plain), "{format} with {isa:?}");
            }
        }
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(Format::Q4K.row_bytes(512), Some(288));
        assert_eq!(Format::Q4K.row_bytes(500), None);
        assert_eq!(Format::F32.row_bytes(usize::MAX), None);
    }
}
