//! Products of bytes with NEON, with and without `dotprod`. Made only by `dispatch_integers`,
//! inside functions that enable their features.
//!
//! Both factors are signed here: codes of whole bytes stay as they are stored, and all others are
//! below 128 anyway.
#![expect(unsafe_code, reason = "instructions that were detected at run time")]

use super::{BYTES, Codes, IntegerBody, Integers, quad};
use crate::simd::neon::{Neon, each, spread};
use std::arch::{aarch64::*, asm};

/// 128-bit registers, with `DOT` four products to an instruction and else one.
#[derive(Clone, Copy)]
pub(super) struct Quarters<const DOT: bool>(Neon);

impl<const DOT: bool> Quarters<DOT> {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `IntegerSet::Neon`, and with `DOT` those of
    /// `IntegerSet::NeonDot`.
    unsafe fn new() -> Quarters<DOT> {
        // SAFETY: the caller promises these features.
        Quarters(unsafe { Neon::new() })
    }

    /// Adds to each sum four codes times four inputs.
    #[inline(always)]
    fn dot(self, sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
        // SAFETY: `new` promises the features.
        unsafe { if DOT { dot(sums, codes, x) } else { dot_of_pairs(sums, codes, x) } }
    }
}

impl<const DOT: bool> Integers for Quarters<DOT> {
    type Floats = Neon;
    type Codes = [uint8x16_t; 4];
    type Sums = [int32x4_t; 4];
    const FLIPPED_ZERO: i32 = 0;

    #[inline(always)]
    fn floats(self) -> Neon {
        self.0
    }
    #[inline(always)]
    fn zero(self) -> [int32x4_t; 4] {
        // SAFETY: `new` promises the features.
        unsafe { [vdupq_n_s32(0); 4] }
    }
    #[inline(always)]
    fn load(self, codes: &Codes) -> [uint8x16_t; 4] {
        let (halves, _) = codes.0.as_chunks::<32>();
        self.join(&halves[0], &halves[1])
    }
    #[inline(always)]
    fn store(self, codes: [uint8x16_t; 4]) -> Codes {
        let mut out = Codes([0; BYTES]);
        for (quarter, codes) in out.0.as_chunks_mut::<16>().0.iter_mut().zip(codes) {
            // SAFETY: `new` promises the features; the array has 16 bytes.
            unsafe { vst1q_u8(quarter.as_mut_ptr(), codes) };
        }
        out
    }
    #[inline(always)]
    fn join(self, a: &[u8; 32], b: &[u8; 32]) -> [uint8x16_t; 4] {
        let ((a, _), (b, _)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
        let load = |from: &[u8; 16]| {
            // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
            // address.
            unsafe { vld1q_u8(from.as_ptr()) }
        };
        [load(&a[0]), load(&a[1]), load(&b[0]), load(&b[1])]
    }
    #[inline(always)]
    fn join_halves(self, a: &[u8; 16], b: &[u8; 16]) -> [uint8x16_t; 4] {
        // SAFETY: `new` promises the features; the arrays have 16 bytes, and the loads take any
        // address.
        unsafe {
            let (a, b, low) = (vld1q_u8(a.as_ptr()), vld1q_u8(b.as_ptr()), vdupq_n_u8(15));
            [vandq_u8(a, low), vshrq_n_u8::<4>(a), vandq_u8(b, low), vshrq_n_u8::<4>(b)]
        }
    }
    #[inline(always)]
    fn sixteens(self, a: u32, b: u32) -> [uint8x16_t; 4] {
        let words = [a as u16, (a >> 16) as u16, b as u16, (b >> 16) as u16];
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vandq_u8(spread(words[at]), vdupq_n_u8(16)) })
    }
    #[inline(always)]
    fn flip(self, codes: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        codes
    }
    #[inline(always)]
    fn bits<const RIGHT: u32, const LEFT: u32>(self, codes: [uint8x16_t; 4], mask: u8) -> [uint8x16_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe {
            let moved = vshlq_u8(codes[at], vdupq_n_s8(-(RIGHT as i8)));
            vshlq_u8(vandq_u8(moved, vdupq_n_u8(mask)), vdupq_n_s8(LEFT as i8))
        })
    }
    #[inline(always)]
    fn or(self, a: [uint8x16_t; 4], b: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vorrq_u8(a[at], b[at]) })
    }
    #[inline(always)]
    fn dot_each<const FULL: bool>(
        self,
        mut sums: [int32x4_t; 4],
        codes: [uint8x16_t; 4],
        x: &[i8; 4],
    ) -> [int32x4_t; 4] {
        // SAFETY: `new` promises the features.
        let x = unsafe { vreinterpretq_s8_s32(vdupq_n_s32(quad(x))) };
        // A loop, because a closure would not be compiled for the instructions.
        for at in 0..4 {
            sums[at] = self.dot(sums[at], codes[at], x);
        }
        sums
    }
    #[inline(always)]
    fn dot_rows<const FULL: bool>(self, ab: [uint8x16_t; 4], cd: [uint8x16_t; 4], x: &[i8; 32]) -> [[i32; 4]; 2] {
        let mut sums = [[0; 4]; 2];
        for (half, (sums, x)) in sums.iter_mut().zip(x.as_chunks::<16>().0).enumerate() {
            // SAFETY: `new` promises the features; `x` and `sums` have 16 bytes.
            unsafe {
                let (x, zero) = (vld1q_s8(x.as_ptr()), vdupq_n_s32(0));
                let (a, b) = (self.dot(zero, ab[half], x), self.dot(zero, ab[half + 2], x));
                let (c, d) = (self.dot(zero, cd[half], x), self.dot(zero, cd[half + 2], x));
                vst1q_s32(sums.as_mut_ptr(), vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
            }
        }
        sums
    }
    #[inline(always)]
    fn to_floats(self, sums: [int32x4_t; 4], offset: i32) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vcvtq_f32_s32(vsubq_s32(sums[at], vdupq_n_s32(offset))) })
    }
    #[inline(always)]
    fn halves(self, bits: [u16; 4]) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: `new` promises the features; the arrays have 8 and 16 bytes.
        unsafe { vst1q_f32(out.as_mut_ptr(), vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(bits.as_ptr())))) };
        out
    }
}

/// Adds to each sum four signed codes times four inputs.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn dot(mut sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: this function can only be called where the feature is; the instruction reads and
    // writes these registers alone. It has no stable name in Rust.
    unsafe {
        asm!("sdot {sums:v}.4s, {codes:v}.16b, {x:v}.16b", sums = inout(vreg) sums, codes = in(vreg) codes, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags));
    }
    sums
}

/// Returns the sums, product by product. Two products fit into 16 bits because no input is -128.
#[target_feature(enable = "neon")]
#[inline]
fn dot_of_pairs(sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    let codes = vreinterpretq_s8_u8(codes);
    let (low, high) = (vmull_s8(vget_low_s8(codes), vget_low_s8(x)), vmull_high_s8(codes, x));
    vpadalq_s16(sums, vpaddq_s16(low, high))
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn run_neon_dot<B: IntegerBody>(body: B) {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Quarters::<true>::new() });
}

#[target_feature(enable = "neon")]
pub(super) fn run_neon<B: IntegerBody>(body: B) {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Quarters::<false>::new() });
}
