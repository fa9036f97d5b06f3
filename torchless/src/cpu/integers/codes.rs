//! Quantised weights as unsigned bytes with scales and minima: what a block of each format is to a
//! product of integers.
//!
//! A block has groups of 32 weights, or of 16: weight = scale·(code − c₀) + minimum. Scales and
//! minima are products of a half-precision number and one of at most eight bits, which single
//! precision has room for: they are exact.

use super::simd::Integers;
use crate::weights::format::{Layout, Q4_0, Q4_1, Q4K, Q5_0, Q5K, Q6K, Q8_0, part};

/// Most groups of a block.
pub(super) const MOST_GROUPS: usize = 16;

/// Scales and minima of the groups of four blocks: (groups, blocks).
pub(super) struct Groups {
    pub(super) scales: [[f32; 4]; MOST_GROUPS],
    pub(super) minima: [[f32; 4]; MOST_GROUPS],
}

/// A quantised format, as integers.
pub(crate) trait Coded: Layout {
    /// What a code of the number 0 is, before it is flipped.
    const OFFSET: i32;
    /// Whether codes are flipped bytes, which may be above 127.
    const IS_FULL: bool = false;
    /// Whether groups have 16 weights, and not 32.
    const IS_FINE: bool = false;
    /// Whether groups have minima.
    const HAS_MINIMA: bool = false;

    /// Reads the scales, and minima if there are any, of four blocks. Most begin with their only
    /// scale.
    #[inline(always)]
    fn groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
        groups.scales[0] = halves(simd, blocks, 0);
    }

    /// Returns the codes 32·`at` … 32·`at` + 31 of two blocks.
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], at: usize) -> S::Codes;
}

/// Calls `$body` with `$coded` as the [`Coded`] of a format, or `$other` if it is not quantised.
macro_rules! with_coded {
    ($format:expr, $coded:ident => $body:expr, else $other:expr) => {
        with_coded!($format, $coded => $body, else $other; Q8_0 Q4_0 Q4_1 Q5_0 Q4K Q5K Q6K)
    };
    ($format:expr, $coded:ident => $body:expr, else $other:expr; $($name:ident)*) => {
        match $format {
            $($crate::weights::format::Format::$name => {
                type $coded = $crate::weights::format::$name;
                $body
            })*
            // Listed, so that a new format is not forgotten here.
            $crate::weights::format::Format::F32 | $crate::weights::format::Format::F16 | $crate::weights::format::Format::Bf16 => $other,
        }
    };
}
pub(crate) use with_coded;

/// Returns the half-precision numbers at `at` of four blocks.
#[inline(always)]
fn halves<S: Integers>(simd: S, blocks: [&[u8]; 4], at: usize) -> [f32; 4] {
    let [a, b, c, d] = blocks;
    let bits = |block: &[u8]| u16::from_le_bytes(*part(block, at));
    simd.halves([bits(a), bits(b), bits(c), bits(d)])
}

/// Returns the words at `at` of four blocks.
#[inline(always)]
fn words(blocks: [&[u8]; 4], at: usize) -> [u32; 4] {
    let [a, b, c, d] = blocks;
    let word = |block: &[u8]| u32::from_le_bytes(*part(block, at));
    [word(a), word(b), word(c), word(d)]
}

#[inline(always)]
fn word(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*part(block, at))
}

impl Coded for Q8_0 {
    const OFFSET: i32 = 0;
    const IS_FULL: bool = true;

    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], _: usize) -> S::Codes {
        simd.flip(simd.join(part(a, 2), part(b, 2)))
    }
}

impl Coded for Q4_0 {
    const OFFSET: i32 = 8;

    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], _: usize) -> S::Codes {
        simd.join_halves(part(a, 2), part(b, 2))
    }
}

impl Coded for Q4_1 {
    const OFFSET: i32 = 0;
    const HAS_MINIMA: bool = true;

    #[inline(always)]
    fn groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
        groups.scales[0] = halves(simd, blocks, 0);
        groups.minima[0] = halves(simd, blocks, 2);
    }
    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], _: usize) -> S::Codes {
        simd.join_halves(part(a, 4), part(b, 4))
    }
}

impl Coded for Q5_0 {
    const OFFSET: i32 = 16;

    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], _: usize) -> S::Codes {
        simd.or(simd.join_halves(part(a, 6), part(b, 6)), simd.sixteens(word(a, 2), word(b, 2)))
    }
}

/// Reads `scale: f16, minimum: f16`, and eight times six bits of each packed in twelve bytes behind
/// them.
#[inline(always)]
fn packed_groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
    let (scale, minimum) = (halves(simd, blocks, 0), halves(simd, blocks, 2));
    let [low, middle, high] = [words(blocks, 4), words(blocks, 8), words(blocks, 12)];
    for group in 0..4 {
        for row in 0..4 {
            let byte = |word: u32| word >> (8 * group) & 255;
            let (low, middle, high) = (byte(low[row]), byte(middle[row]), byte(high[row]));
            groups.scales[group][row] = scale[row] * (low & 63) as f32;
            groups.minima[group][row] = -(minimum[row] * (middle & 63) as f32);
            groups.scales[group + 4][row] = scale[row] * (high & 15 | low >> 6 << 4) as f32;
            groups.minima[group + 4][row] = -(minimum[row] * (high >> 4 | middle >> 6 << 4) as f32);
        }
    }
}

/// Returns the codes of four bits: 64 share 32 bytes, half of them the low halves.
#[inline(always)]
fn shared_nibbles<S: Integers>(simd: S, a: &[u8], b: &[u8], at: usize) -> S::Codes {
    let both = simd.join(part(a, 32 * (at / 2)), part(b, 32 * (at / 2)));
    if at.is_multiple_of(2) { simd.bits::<0, 0>(both, 15) } else { simd.bits::<4, 0>(both, 15) }
}

impl Coded for Q4K {
    const OFFSET: i32 = 0;
    const HAS_MINIMA: bool = true;

    #[inline(always)]
    fn groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
        packed_groups(simd, blocks, groups);
    }
    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], at: usize) -> S::Codes {
        shared_nibbles(simd, &a[16..], &b[16..], at)
    }
}

impl Coded for Q5K {
    const OFFSET: i32 = 0;
    const HAS_MINIMA: bool = true;

    #[inline(always)]
    fn groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
        packed_groups(simd, blocks, groups);
    }
    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], at: usize) -> S::Codes {
        let fifth = simd.join(part(a, 16), part(b, 16));
        let fifth = match at {
            0 => simd.bits::<0, 4>(fifth, 1),
            1 => simd.bits::<1, 4>(fifth, 1),
            2 => simd.bits::<2, 4>(fifth, 1),
            3 => simd.bits::<3, 4>(fifth, 1),
            4 => simd.bits::<4, 4>(fifth, 1),
            5 => simd.bits::<5, 4>(fifth, 1),
            6 => simd.bits::<6, 4>(fifth, 1),
            _ => simd.bits::<7, 4>(fifth, 1),
        };
        simd.or(shared_nibbles(simd, &a[48..], &b[48..], at), fifth)
    }
}

impl Coded for Q6K {
    const OFFSET: i32 = 32;
    const IS_FINE: bool = true;

    #[inline(always)]
    fn groups<S: Integers>(simd: S, blocks: [&[u8]; 4], groups: &mut Groups) {
        let scale = halves(simd, blocks, 208);
        for four in 0..4 {
            let words = words(blocks, 192 + 4 * four);
            for group in 0..4 {
                for row in 0..4 {
                    let number = (words[row] << (24 - 8 * group)) as i32 >> 24;
                    groups.scales[4 * four + group][row] = scale[row] * number as f32;
                }
            }
        }
    }
    #[inline(always)]
    fn codes<S: Integers>(simd: S, a: &[u8], b: &[u8], at: usize) -> S::Codes {
        // Halves of 128 weights: four quarters, of which two share 64 bytes of low bits, and all 32
        // of high ones.
        let (low, high) = (64 * (at / 4) + 32 * (at % 2), 128 + 32 * (at / 4));
        let (low, high) = (simd.join(part(a, low), part(b, low)), simd.join(part(a, high), part(b, high)));
        let low = if at % 4 < 2 { simd.bits::<0, 0>(low, 15) } else { simd.bits::<4, 0>(low, 15) };
        let high = match at % 4 {
            0 => simd.bits::<0, 4>(high, 3),
            1 => simd.bits::<2, 4>(high, 3),
            2 => simd.bits::<4, 4>(high, 3),
            _ => simd.bits::<6, 4>(high, 3),
        };
        simd.or(low, high)
    }
}
