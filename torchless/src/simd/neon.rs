//! Vectors of NEON: four registers of four lanes each. Made only by `dispatch`, inside a function
//! that enables it.
#![expect(unsafe_code, reason = "instructions that were detected at run time")]

// PERF: these choices (four registers for a vector, no prefetching) ran under emulation only and
// have never been timed.

use super::{LANES, Line, Simd, Zero};
use std::arch::aarch64::*;

/// Four 128-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `InstructionSet::Neon`.
    pub(crate) unsafe fn new() -> Neon {
        Neon(())
    }
}

/// Returns an array with one element for each register.
#[inline(always)]
pub(crate) fn each<T>(of: impl Fn(usize) -> T) -> [T; 4] {
    [of(0), of(1), of(2), of(3)]
}

impl Simd for Neon {
    type Vector = [float32x4_t; 4];
    type Numbers = uint8x16_t;
    type Table = Line<[float32x4_t; 4]>;
    const IS_WIDE: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        unsafe { [vdupq_n_f32(value); 4] }
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> [float32x4_t; 4] {
        let (quarters, _) = from.as_chunks::<4>();
        // SAFETY: `new` promises the features; the arrays have 16 bytes.
        each(|at| unsafe { vld1q_f32(quarters[at].as_ptr()) })
    }
    #[inline(always)]
    fn store(self, vector: [float32x4_t; 4], to: &mut [f32; LANES]) {
        for (quarter, register) in to.as_chunks_mut::<4>().0.iter_mut().zip(vector) {
            // SAFETY: `new` promises the features; the array has 16 bytes.
            unsafe { vst1q_f32(quarter.as_mut_ptr(), register) };
        }
    }
    #[inline(always)]
    fn add(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vaddq_f32(a[at], b[at]) })
    }
    #[inline(always)]
    fn mul(self, a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vmulq_f32(a[at], b[at]) })
    }
    #[inline(always)]
    fn fma(self, a: [float32x4_t; 4], b: [float32x4_t; 4], c: [float32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vfmaq_f32(c[at], a[at], b[at]) })
    }
    #[inline(always)]
    fn load_f32(self, from: &[u8; 64]) -> [float32x4_t; 4] {
        let (quarters, _) = from.as_chunks::<16>();
        // SAFETY: `new` promises the features; the arrays have 16 bytes, and the loads take any
        // address.
        each(|at| unsafe { vreinterpretq_f32_u8(vld1q_u8(quarters[at].as_ptr())) })
    }
    #[inline(always)]
    fn load_f16(self, from: &[u8; 32]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vcvt_f32_f16(vreinterpret_f16_u16(quarter(from, at))) })
    }
    #[inline(always)]
    fn load_bf16(self, from: &[u8; 32]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        each(|at| unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(quarter(from, at))) })
    }
    #[inline(always)]
    fn load_i8(self, from: &[u8; LANES]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { floats(vld1q_u8(from.as_ptr())) }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { unsigned_floats(vld1q_u8(from.as_ptr())) }
    }
    #[inline(always)]
    fn splat_halves(self, bits: [u16; 2]) -> [float32x4_t; 4] {
        let ([low, _, _, _], [high, _, _, _]) = (self.splat_half(bits[0]), self.splat_half(bits[1]));
        [low, low, high, high]
    }
    #[inline(always)]
    fn table(self, line: Line<[float32x4_t; 4]>) -> Line<[float32x4_t; 4]> {
        line
    }
    /// Computes the sixteen values: a lookup table would occupy four registers and be no faster.
    #[inline(always)]
    fn look_up(
        self,
        codes: &[u8; LANES],
        low: Line<[float32x4_t; 4]>,
        high: Line<[float32x4_t; 4]>,
    ) -> [[float32x4_t; 4]; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        let (first, second) = unsafe {
            let codes = vld1q_u8(codes.as_ptr());
            (vandq_u8(codes, vdupq_n_u8(15)), vshrq_n_u8::<4>(codes))
        };
        [on_line(self, first, low), on_line(self, second, high)]
    }
    #[inline(always)]
    fn numbers(self, from: &[u8; LANES]) -> uint8x16_t {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { vld1q_u8(from.as_ptr()) }
    }
    #[inline(always)]
    fn number_of_bits(self, bits: u16) -> uint8x16_t {
        // SAFETY: `new` promises the features.
        unsafe { vandq_u8(spread(bits), vdupq_n_u8(1)) }
    }
    #[inline(always)]
    fn bits_of(self, numbers: uint8x16_t, right: usize, mask: u32) -> uint8x16_t {
        // SAFETY: `new` promises the features.
        unsafe { vandq_u8(vshlq_u8(numbers, vdupq_n_s8(-(right as i8))), vdupq_n_u8(mask as u8)) }
    }
    #[inline(always)]
    fn joined(self, low: uint8x16_t, high: uint8x16_t, offset: i32) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        unsafe { floats(vsubq_u8(vorrq_u8(low, vshlq_n_u8::<4>(high)), vdupq_n_u8(offset as u8))) }
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [[float32x4_t; 4]; 4]) -> [f32; 4] {
        let mut sums = [0.0; 4];
        // SAFETY: `new` promises the features; the array has 16 bytes.
        unsafe { vst1q_f32(sums.as_mut_ptr(), vpaddq_f32(halves(four(a), four(b)), halves(four(c), four(d)))) };
        sums
    }
    #[inline(always)]
    fn splat_half(self, bits: u16) -> [float32x4_t; 4] {
        // SAFETY: `new` promises the features.
        unsafe { [vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))); 4] }
    }
    #[inline(always)]
    fn half1(self, bits: u16) -> f32 {
        // SAFETY: `new` promises the features.
        unsafe { vgetq_lane_f32::<0>(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)))) }
    }
    #[inline(always)]
    fn fma1(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Returns the numbers 4·`at` … 4·`at` + 3 of sixteen, at any address.
#[target_feature(enable = "neon")]
#[inline]
fn quarter(from: &[u8; 32], at: usize) -> uint16x4_t {
    let (quarters, _) = from.as_chunks::<8>();
    // SAFETY: the array has 8 bytes, and the load takes any address.
    unsafe { vreinterpret_u16_u8(vld1_u8(quarters[at].as_ptr())) }
}

/// Converts signed bytes to floats.
#[target_feature(enable = "neon")]
#[inline]
fn floats(bytes: uint8x16_t) -> [float32x4_t; 4] {
    let quarter = |at: u64| {
        // Each byte to the top of a lane, zeros (from places that there are not) below it; the
        // conversion divides by 2^24.
        let places = |lane: u64| 0x00ff_ffff_00ff_ffff | lane << 24 | (lane + 1) << 56;
        let places = vcombine_u8(vcreate_u8(places(4 * at)), vcreate_u8(places(4 * at + 2)));
        vcvtq_n_f32_s32::<24>(vreinterpretq_s32_u8(vqtbl1q_u8(bytes, places)))
    };
    [quarter(0), quarter(1), quarter(2), quarter(3)]
}

/// Converts unsigned bytes to floats.
#[target_feature(enable = "neon")]
#[inline]
fn unsigned_floats(bytes: uint8x16_t) -> [float32x4_t; 4] {
    let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
    let (first, second) = (vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low));
    let (third, fourth) = (vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high));
    [vcvtq_f32_u32(first), vcvtq_f32_u32(second), vcvtq_f32_u32(third), vcvtq_f32_u32(fourth)]
}

/// Returns the numbers of codes, with the roundings of a table.
#[inline(always)]
fn on_line(simd: Neon, codes: uint8x16_t, line: Line<[float32x4_t; 4]>) -> [float32x4_t; 4] {
    // SAFETY: `Neon::new` promises the features.
    let codes = unsafe {
        match line.zero {
            Zero::First => floats(codes),
            Zero::Eighth => floats(vsubq_u8(codes, vdupq_n_u8(8))),
        }
    };
    line.of(simd, codes)
}

/// Returns a byte of ones for each bit that is set, the lowest first.
#[target_feature(enable = "neon")]
#[inline]
pub(crate) fn spread(bits: u16) -> uint8x16_t {
    let [low, high] = bits.to_le_bytes();
    let own = vcreate_u8(0x8040_2010_0804_0201);
    vtstq_u8(vcombine_u8(vdup_n_u8(low), vdup_n_u8(high)), vcombine_u8(own, own))
}

/// Returns four lanes of sixteen: halves are added twice.
#[target_feature(enable = "neon")]
#[inline]
fn four(vector: [float32x4_t; 4]) -> float32x4_t {
    vaddq_f32(vaddq_f32(vector[0], vector[2]), vaddq_f32(vector[1], vector[3]))
}

/// Returns the halves of `a`, added, then those of `b`.
#[target_feature(enable = "neon")]
#[inline]
fn halves(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
    vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(a, b)), vreinterpretq_f32_f64(vzip2q_f64(a, b)))
}

#[target_feature(enable = "neon")]
pub(super) fn run_neon<B: super::Body>(body: B) -> B::Output {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Neon::new() })
}
