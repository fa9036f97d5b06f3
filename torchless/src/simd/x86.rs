//! Vectors of AVX-512 and AVX2. Made only by `dispatch`, inside functions that enable their
//! features.
#![expect(unsafe_code, reason = "instructions that were detected at run time")]

use super::{LANES, Line, Simd, Zero};
use std::arch::x86_64::*;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx512 {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `InstructionSet::Avx512`.
    pub(crate) unsafe fn new() -> Avx512 {
        Avx512(())
    }
}

impl Avx2 {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `InstructionSet::Avx2`.
    pub(crate) unsafe fn new() -> Avx2 {
        Avx2(())
    }
}

impl Simd for Avx512 {
    type Vector = __m512;
    type Numbers = __m512i;
    type Table = __m512;
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 64 bytes.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, vector: __m512, to: &mut [f32; LANES]) {
        // SAFETY: `new` promises the features; the array has 64 bytes.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), vector) };
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn load_f32(self, from: &[u8; 64]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 64 bytes, and the load takes any
        // address.
        unsafe { _mm512_loadu_ps(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u8; 32]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 32 bytes, and the load takes any
        // address.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_bf16(self, from: &[u8; 32]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 32 bytes, and the load takes any
        // address.
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
        }
    }
    #[inline(always)]
    fn load_i8(self, from: &[u8; LANES]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> __m512 {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from_bytes(from)))) }
    }
    #[inline(always)]
    fn splat_halves(self, [low, high]: [u16; 2]) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe {
            let (low, high) = (_mm_set1_epi16(low as i16), _mm_set1_epi16(high as i16));
            _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high))
        }
    }
    #[inline(always)]
    fn table(self, line: Line<__m512>) -> __m512 {
        line.numbers(self)
    }
    #[inline(always)]
    fn look_up(self, codes: &[u8; LANES], low: __m512, high: __m512) -> [__m512; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe {
            // A permutation heeds the low four bits of its indices only.
            let codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from_bytes(codes)));
            [_mm512_permutexvar_ps(codes, low), _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(codes), high)]
        }
    }
    #[inline(always)]
    fn numbers(self, from: &[u8; LANES]) -> __m512i {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from_bytes(from))) }
    }
    #[inline(always)]
    fn number_of_bits(self, bits: u16) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_maskz_set1_epi32(bits, 1) }
    }
    #[inline(always)]
    fn bits_of(self, numbers: __m512i, right: usize, mask: u32) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe {
            let moved = _mm512_srl_epi32(numbers, _mm_cvtsi32_si128(right as i32));
            _mm512_and_si512(moved, _mm512_set1_epi32(mask as i32))
        }
    }
    #[inline(always)]
    fn joined(self, low: __m512i, high: __m512i, offset: i32) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe {
            let both = _mm512_or_si512(low, _mm512_slli_epi32::<4>(high));
            _mm512_cvtepi32_ps(_mm512_sub_epi32(both, _mm512_set1_epi32(offset)))
        }
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // SAFETY: `new` promises the features; the array has 16 bytes.
        unsafe {
            // Quarters of registers: 0 + 2 and 1 + 3 of two vectors side by side, then those two,
            // then pairs, then neighbours.
            let halves = |a, b| _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
            let (ab, cd) = (halves(a, b), halves(c, d));
            let four = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
            let two = _mm512_add_ps(four, _mm512_shuffle_ps::<0xee>(four, four));
            let one = _mm512_add_ps(two, _mm512_shuffle_ps::<0x55>(two, two));
            let firsts = _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), one);
            let mut sums = [0.0; 4];
            _mm_storeu_ps(sums.as_mut_ptr(), _mm512_castps512_ps128(firsts));
            sums
        }
    }
    #[inline(always)]
    fn prefetch_line(self, place: *const u8) {
        prefetch_line(place);
    }
    #[inline(always)]
    fn splat_half(self, bits: u16) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_cvtph_ps(_mm256_set1_epi16(bits as i16)) }
    }
    #[inline(always)]
    fn half1(self, bits: u16) -> f32 {
        // SAFETY: `new` promises the features.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_set1_epi16(bits as i16))) }
    }
    #[inline(always)]
    fn fma1(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

impl Simd for Avx2 {
    type Vector = [__m256; 2];
    type Numbers = [__m256i; 2];
    type Table = Line<[__m256; 2]>;
    const IS_WIDE: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_set1_ps(value); 2] }
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 64 bytes.
        unsafe { [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))] }
    }
    #[inline(always)]
    fn store(self, vector: [__m256; 2], to: &mut [f32; LANES]) {
        // SAFETY: `new` promises the features; the array has 64 bytes.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), vector[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), vector[1]);
        }
    }
    #[inline(always)]
    fn add(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn mul(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn fma(self, a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }
    #[inline(always)]
    fn load_f32(self, from: &[u8; 64]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 64 bytes, and the load takes any
        // address.
        unsafe { [_mm256_loadu_ps(from.as_ptr().cast()), _mm256_loadu_ps(from.as_ptr().add(32).cast())] }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u8; 32]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 32 bytes, and the loads take any
        // address.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(16).cast())),
            ]
        }
    }
    #[inline(always)]
    fn load_bf16(self, from: &[u8; 32]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 32 bytes, and the loads take any
        // address.
        unsafe {
            let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast()));
            let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().add(16).cast()));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high))]
        }
    }
    #[inline(always)]
    fn load_i8(self, from: &[u8; LANES]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe { floats(_mm_loadu_si128(from_bytes(from))) }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> [__m256; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe {
            let bytes = _mm_loadu_si128(from_bytes(from));
            [
                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128::<8>(bytes))),
            ]
        }
    }
    #[inline(always)]
    fn splat_halves(self, bits: [u16; 2]) -> [__m256; 2] {
        let [low, high] = bits;
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_cvtph_ps(_mm_set1_epi16(low as i16)), _mm256_cvtph_ps(_mm_set1_epi16(high as i16))] }
    }
    #[inline(always)]
    fn table(self, line: Line<[__m256; 2]>) -> Line<[__m256; 2]> {
        line
    }
    /// Computes the sixteen values: permutations choose from eight, and two of them take longer.
    #[inline(always)]
    fn look_up(self, codes: &[u8; LANES], low: Line<[__m256; 2]>, high: Line<[__m256; 2]>) -> [[__m256; 2]; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        let (first, second) = unsafe {
            let (codes, halves) = (_mm_loadu_si128(from_bytes(codes)), _mm_set1_epi8(15));
            (_mm_and_si128(codes, halves), _mm_and_si128(_mm_srli_epi16::<4>(codes), halves))
        };
        [on_line(self, first, low), on_line(self, second, high)]
    }
    #[inline(always)]
    fn numbers(self, from: &[u8; LANES]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any
        // address.
        unsafe {
            let bytes = _mm_loadu_si128(from_bytes(from));
            [_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128::<8>(bytes))]
        }
    }
    #[inline(always)]
    fn number_of_bits(self, bits: u16) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe {
            let (all, one) = (_mm256_set1_epi32(i32::from(bits)), _mm256_set1_epi32(1));
            let low = _mm256_srlv_epi32(all, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let high = _mm256_srlv_epi32(all, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15));
            [_mm256_and_si256(low, one), _mm256_and_si256(high, one)]
        }
    }
    #[inline(always)]
    fn bits_of(self, numbers: [__m256i; 2], right: usize, mask: u32) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe {
            let (right, mask) = (_mm_cvtsi32_si128(right as i32), _mm256_set1_epi32(mask as i32));
            let [low, high] = numbers;
            [
                _mm256_and_si256(_mm256_srl_epi32(low, right), mask),
                _mm256_and_si256(_mm256_srl_epi32(high, right), mask),
            ]
        }
    }
    #[inline(always)]
    fn joined(self, low: [__m256i; 2], high: [__m256i; 2], offset: i32) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe {
            let offset = _mm256_set1_epi32(offset);
            let a = _mm256_or_si256(low[0], _mm256_slli_epi32::<4>(high[0]));
            let b = _mm256_or_si256(low[1], _mm256_slli_epi32::<4>(high[1]));
            [_mm256_cvtepi32_ps(_mm256_sub_epi32(a, offset)), _mm256_cvtepi32_ps(_mm256_sub_epi32(b, offset))]
        }
    }
    #[inline(always)]
    fn prefetch_line(self, place: *const u8) {
        prefetch_line(place);
    }
    #[inline(always)]
    fn splat_half(self, bits: u16) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_cvtph_ps(_mm_set1_epi16(bits as i16)); 2] }
    }
    #[inline(always)]
    fn half1(self, bits: u16) -> f32 {
        // SAFETY: `new` promises the features.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_set1_epi16(bits as i16))) }
    }
    #[inline(always)]
    fn fma1(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Returns the address that loads of sixteen bytes take.
#[inline(always)]
fn from_bytes(bytes: &[u8; LANES]) -> *const __m128i {
    bytes.as_ptr().cast()
}

#[inline(always)]
fn prefetch_line(place: *const u8) {
    // SAFETY: every processor of this target has the instruction, and it reads nothing: any address
    // will do.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

/// Returns the numbers of codes, with the roundings of a table.
#[inline(always)]
fn on_line(simd: Avx2, codes: __m128i, line: Line<[__m256; 2]>) -> [__m256; 2] {
    // SAFETY: `Avx2::new` promises the features.
    let codes = unsafe {
        let codes = match line.zero {
            Zero::First => codes,
            Zero::Eighth => _mm_sub_epi8(codes, _mm_set1_epi8(8)),
        };
        floats(codes)
    };
    line.of(simd, codes)
}

/// Converts signed bytes to floats.
#[target_feature(enable = "avx2")]
#[inline]
fn floats(bytes: __m128i) -> [__m256; 2] {
    [
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes))),
    ]
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
pub(super) fn run_avx512<B: super::Body>(body: B) -> B::Output {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Avx512::new() })
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run_avx2<B: super::Body>(body: B) -> B::Output {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Avx2::new() })
}
