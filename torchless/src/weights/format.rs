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

/// A format at compile time. `LEN` is a multiple of [`LANES`], and `PARTS` parts of a block have
/// whole vectors each.
pub(crate) trait Layout: Copy {
    const LEN: usize;
    const BYTES: usize;
    const PARTS: usize;

    /// What the parts of a block share.
    type Shared: Copy;

    /// Reads what the parts of a block share. `block` has `BYTES` bytes.
    fn shared<S: Simd>(simd: S, block: &[u8]) -> Self::Shared;

    /// Hands the vectors of one part to `each`, in order, with their indices within the part.
    fn unpack<S: Simd>(simd: S, block: &[u8], shared: &Self::Shared, part: usize, each: impl Taker<S>);
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

/// Declares a [`Layout`] of one part: what its blocks are, its name, `LEN`, `BYTES`, and how a
/// block is unpacked.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident, $len:expr, $bytes:expr, |$simd:ident, $block:ident, $each:ident| $unpack:block) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Layout for $name {
            const LEN: usize = $len;
            const BYTES: usize = $bytes;
            const PARTS: usize = 1;
            type Shared = ();
            #[inline(always)]
            fn shared<S: Simd>(_: S, _: &[u8]) {}
            #[inline(always)]
            fn unpack<S: Simd>($simd: S, $block: &[u8], (): &(), _: usize, mut $each: impl Taker<S>) $unpack
        }
    };
}

/// Returns the array at `at` of a block; blocks have the length of their format.
#[inline(always)]
pub(crate) fn part<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    block[at..].first_chunk().expect("a whole block")
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

/// Returns the eight factors of a block, then its eight offsets: products of six bits each, packed
/// in twelve bytes, and of the two scales before them.
#[inline(always)]
fn groups<S: Simd>(simd: S, block: &[u8]) -> Lanes {
    // Four bytes at once: six bits of the first four groups, and what the last four have of them.
    let word = |at: usize| u32::from_le_bytes(*part(block, at));
    let (low, middle, high) = (word(4), word(8), word(12));
    let both = |first: u32, last: u32| u128::from(first) | u128::from(last) << 32;
    let scales = both(low & 0x3f3f_3f3f, high & 0x0f0f_0f0f | low >> 2 & 0x3030_3030);
    let minima = both(middle & 0x3f3f_3f3f, high >> 4 & 0x0f0f_0f0f | middle >> 2 & 0x3030_3030);
    let half = |at: usize| u16::from_le_bytes(*part(block, at));
    let factors = simd.splat_halves([half(0), half(2) ^ 0x8000]);
    multiples(simd, factors, simd.load_u8(&(scales | minima << 64).to_le_bytes()))
}

/// Returns products in memory, from where each is loaded into every lane.
#[inline(always)]
fn multiples<S: Simd>(simd: S, factors: S::Vector, numbers: S::Vector) -> Lanes {
    let mut lanes = Lanes::default();
    simd.store(simd.mul(factors, numbers), &mut lanes.0);
    lanes
}

/// Returns the weights of the sixteen codes of a group.
#[inline(always)]
fn group_weights<S: Simd>(simd: S, groups: &Lanes, at: usize) -> S::Table {
    let (factor, offset) = (simd.splat(groups.0[at]), simd.splat(groups.0[8 + at]));
    simd.table(Line { factor, zero: Zero::First, offset: Some(offset) })
}

/// `scale: f16, minimum: f16, groups: [u8; 12], numbers: [u4; 256]`; 64 numbers, two groups, share
/// 32 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Q4K;

impl Layout for Q4K {
    const LEN: usize = 256;
    const BYTES: usize = 144;
    const PARTS: usize = 4;
    type Shared = Lanes;

    #[inline(always)]
    fn shared<S: Simd>(simd: S, block: &[u8]) -> Lanes {
        groups(simd, block)
    }
    #[inline(always)]
    fn unpack<S: Simd>(simd: S, block: &[u8], groups: &Lanes, pair: usize, mut each: impl Taker<S>) {
        let numbers: &[u8; 32] = part(block, 16 + 32 * pair);
        let (low, high) = (group_weights(simd, groups, 2 * pair), group_weights(simd, groups, 2 * pair + 1));
        let [first, third] = simd.look_up(part(numbers, 0), low, high);
        let [second, fourth] = simd.look_up(part(numbers, LANES), low, high);
        each.take(simd, 0, first);
        each.take(simd, 1, second);
        each.take(simd, 2, third);
        each.take(simd, 3, fourth);
    }
}

/// Returns 64 numbers of five bits: the low halves of 32 bytes, then the high halves, each with a
/// bit of `fifth` above it.
#[inline(always)]
fn fives(numbers: &[u8; 32], fifth: &[u8; 32], pair: usize) -> [u8; 64] {
    let mut fives = [0; 64];
    let (low, high) = fives.split_at_mut(32);
    // Tests, not shifts: instruction sets have no shifts of bytes.
    let (first, second) = (1 << (2 * pair), 2 << (2 * pair));
    let sixteen = |is_set: bool| if is_set { 16 } else { 0 };
    for at in 0..32 {
        low[at] = numbers[at] & 15 | sixteen(fifth[at] & first != 0);
        high[at] = numbers[at] >> 4 | sixteen(fifth[at] & second != 0);
    }
    fives
}

/// `scale: f16, minimum: f16, groups: [u8; 12], fifth bits: [u8; 32], numbers: [u4; 256]`.
#[derive(Clone, Copy)]
pub(crate) struct Q5K;

impl Layout for Q5K {
    const LEN: usize = 256;
    const BYTES: usize = 176;
    const PARTS: usize = 4;
    type Shared = Lanes;

    #[inline(always)]
    fn shared<S: Simd>(simd: S, block: &[u8]) -> Lanes {
        groups(simd, block)
    }
    #[inline(always)]
    fn unpack<S: Simd>(simd: S, block: &[u8], groups: &Lanes, pair: usize, mut each: impl Taker<S>) {
        let numbers = fives(part(block, 48 + 32 * pair), part(block, 16), pair);
        for index in 0..4 {
            let group = 2 * pair + index / 2;
            let (factor, offset) = (simd.splat(groups.0[group]), simd.splat(groups.0[8 + group]));
            // Rounded once: a product has at most 22 bits.
            each.take(simd, index, simd.fma(factor, simd.load_u8(part(&numbers, LANES * index)), offset));
        }
    }
}

/// Returns 128 numbers of six bits, less 32: four times 32, of which `low` has four bits and `high`
/// has two.
#[inline(always)]
fn sixes(low: &[u8; 64], high: &[u8; 32]) -> [u8; 128] {
    let mut sixes = [0; 128];
    for at in 0..32 {
        let (first, second, high) = (low[at], low[32 + at], high[at]);
        let six = |low: u8, high: u8| (low | high & 0x30).wrapping_sub(32);
        sixes[at] = six(first & 15, high << 4);
        sixes[32 + at] = six(second & 15, high << 2);
        sixes[64 + at] = six(first >> 4, high);
        sixes[96 + at] = six(second >> 4, high >> 2);
    }
    sixes
}

/// `low four bits: [u8; 128], high two bits: [u8; 64], group scales: [i8; 16], scale: f16`; halves
/// of 128 numbers, groups of 16.
#[derive(Clone, Copy)]
pub(crate) struct Q6K;

impl Layout for Q6K {
    const LEN: usize = 256;
    const BYTES: usize = 210;
    const PARTS: usize = 2;
    type Shared = Lanes;

    #[inline(always)]
    fn shared<S: Simd>(simd: S, block: &[u8]) -> Lanes {
        multiples(simd, splat_scale(simd, block, 208), simd.load_i8(part(block, 192)))
    }
    #[inline(always)]
    fn unpack<S: Simd>(simd: S, block: &[u8], groups: &Lanes, half: usize, mut each: impl Taker<S>) {
        let numbers = sixes(part(block, 64 * half), part(block, 128 + 32 * half));
        for index in 0..8 {
            let factor = simd.splat(groups.0[8 * half + index]);
            each.take(simd, index, simd.mul(factor, simd.load_i8(part(&numbers, LANES * index))));
        }
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
        unpack_block::<S, L>(simd, block, out, stride);
    }
    if !rest.is_empty() {
        let padded = padded::<L>(rest);
        let last = row.len() / L::BYTES * vectors * stride;
        unpack_block::<S, L>(simd, &padded[..L::BYTES], &mut out[last..], stride);
    }
}

#[inline(always)]
fn unpack_block<S: Simd, L: Layout>(simd: S, block: &[u8], out: &mut [Lanes], stride: usize) {
    let shared = L::shared(simd, block);
    for (part, out) in out.chunks_mut(const { L::LEN / LANES / L::PARTS } * stride).enumerate() {
        L::unpack(simd, block, &shared, part, Places { out, stride });
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
