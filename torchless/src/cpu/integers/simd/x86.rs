//! Products of bytes with AVX-512 VNNI, AVX-VNNI and AVX2. Made only by `dispatch_integers`, inside
//! functions that enable their features.
#![expect(unsafe_code, reason = "instructions that were detected at run time")]

use super::{BYTES, Codes, IntegerBody, Integers, quad};
use crate::simd::x86::{Avx2, Avx512};
use std::arch::x86_64::*;

/// 512-bit registers, four products to an instruction.
#[derive(Clone, Copy)]
pub(super) struct Wide(Avx512);

/// 256-bit registers, with `VNNI` four products to an instruction and else two.
#[derive(Clone, Copy)]
pub(super) struct Narrow<const VNNI: bool>(Avx2);

impl Wide {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `IntegerSet::Avx512Vnni`.
    unsafe fn new() -> Wide {
        // SAFETY: the caller promises more features than these.
        Wide(unsafe { Avx512::new() })
    }
}

impl<const VNNI: bool> Narrow<VNNI> {
    /// Makes the value whose methods use these registers.
    ///
    /// # Safety
    ///
    /// The processor has the features of `IntegerSet::Avx2`, and with `VNNI` those of
    /// `IntegerSet::AvxVnni`.
    unsafe fn new() -> Narrow<VNNI> {
        // SAFETY: the caller promises these features.
        Narrow(unsafe { Avx2::new() })
    }
}

/// Returns four half-precision numbers as one.
#[inline(always)]
fn packed(bits: [u16; 4]) -> i64 {
    let [a, b, c, d] = bits.map(u64::from);
    (a | b << 16 | c << 32 | d << 48) as i64
}

impl Integers for Wide {
    type Floats = Avx512;
    type Codes = __m512i;
    type Sums = __m512i;

    #[inline(always)]
    fn floats(self) -> Avx512 {
        self.0
    }
    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    fn load(self, codes: &Codes) -> __m512i {
        // SAFETY: `new` promises the features; there are 64 bytes.
        unsafe { _mm512_loadu_si512(codes.0.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(self, codes: __m512i) -> Codes {
        let mut out = Codes([0; BYTES]);
        // SAFETY: `new` promises the features; there are 64 bytes.
        unsafe { _mm512_storeu_si512(out.0.as_mut_ptr().cast(), codes) };
        out
    }
    #[inline(always)]
    fn join(self, a: &[u8; 32], b: &[u8; 32]) -> __m512i {
        // SAFETY: `new` promises the features; the arrays have 32 bytes, and the loads take any
        // address.
        unsafe {
            let (a, b) = (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast()));
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
        }
    }
    #[inline(always)]
    fn join_halves(self, a: &[u8; 16], b: &[u8; 16]) -> __m512i {
        // SAFETY: `new` promises the features; the arrays have 16 bytes, and the loads take any
        // address.
        unsafe {
            let a = _mm256_broadcastsi128_si256(_mm_loadu_si128(a.as_ptr().cast()));
            let b = _mm256_broadcastsi128_si256(_mm_loadu_si128(b.as_ptr().cast()));
            let twice = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
            let shifts = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4);
            _mm512_and_si512(_mm512_srlv_epi64(twice, shifts), _mm512_set1_epi8(15))
        }
    }
    #[inline(always)]
    fn sixteens(self, a: u32, b: u32) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_maskz_set1_epi8(u64::from(a) | u64::from(b) << 32, 16) }
    }
    #[inline(always)]
    fn flip(self, codes: __m512i) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_xor_si512(codes, _mm512_set1_epi8(-128)) }
    }
    #[inline(always)]
    fn bits<const RIGHT: u32, const LEFT: u32>(self, codes: __m512i, mask: u8) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe {
            let kept = _mm512_and_si512(_mm512_srli_epi16::<RIGHT>(codes), _mm512_set1_epi8(mask as i8));
            _mm512_slli_epi16::<LEFT>(kept)
        }
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn dot_each<const FULL: bool>(self, sums: __m512i, codes: __m512i, x: &[i8; 4]) -> __m512i {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(quad(x))) }
    }
    #[inline(always)]
    fn dot_rows<const FULL: bool>(self, ab: __m512i, cd: __m512i, x: &[i8; 32]) -> [[i32; 4]; 2] {
        // SAFETY: `new` promises the features; `x` has 32 bytes, and so have the sums.
        unsafe {
            let x = _mm512_broadcast_i64x4(_mm256_loadu_si256(x.as_ptr().cast()));
            let zero = _mm512_setzero_si512();
            let (ab, cd) = (_mm512_dpbusd_epi32(zero, ab, x), _mm512_dpbusd_epi32(zero, cd, x));
            // Quarters of registers are halves of rows: a with c and b with d side by side, then
            // what is left of each.
            let two = _mm512_add_epi32(_mm512_unpacklo_epi32(ab, cd), _mm512_unpackhi_epi32(ab, cd));
            let one = _mm512_add_epi32(two, _mm512_shuffle_epi32::<0x4e>(two));
            let order = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 0, 0, 0, 0, 0, 0, 0);
            let mut sums = [[0; 4]; 2];
            let ordered = _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, one));
            _mm256_storeu_si256(sums.as_mut_ptr().cast(), ordered);
            sums
        }
    }
    #[inline(always)]
    fn to_floats(self, sums: __m512i, offset: i32) -> __m512 {
        // SAFETY: `new` promises the features.
        unsafe { _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(offset))) }
    }
    #[inline(always)]
    fn halves(self, bits: [u16; 4]) -> [f32; 4] {
        // SAFETY: `new` promises the features.
        unsafe { four(_mm_cvtph_ps(_mm_cvtsi64_si128(packed(bits)))) }
    }
}

impl<const VNNI: bool> Narrow<VNNI> {
    /// Adds to each sum four codes times four inputs.
    #[inline(always)]
    fn dot<const FULL: bool>(self, sums: __m256i, codes: __m256i, x: __m256i) -> __m256i {
        // SAFETY: `new` promises the features.
        unsafe {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sums, codes, x);
            }
            // Two products fit into 16 bits if their codes have seven; the eighth is multiplied
            // apart.
            let ones = _mm256_set1_epi16(1);
            let low = if FULL { _mm256_and_si256(codes, _mm256_set1_epi8(127)) } else { codes };
            let sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(low, x), ones));
            if !FULL {
                return sums;
            }
            let high = _mm256_and_si256(codes, _mm256_set1_epi8(-128));
            _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(high, x), ones))
        }
    }
}

impl<const VNNI: bool> Integers for Narrow<VNNI> {
    type Floats = Avx2;
    type Codes = [__m256i; 2];
    type Sums = [__m256i; 2];

    #[inline(always)]
    fn floats(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    fn zero(self) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_setzero_si256(); 2] }
    }
    #[inline(always)]
    fn load(self, codes: &Codes) -> [__m256i; 2] {
        let (halves, _) = codes.0.as_chunks::<32>();
        self.join(&halves[0], &halves[1])
    }
    #[inline(always)]
    fn store(self, codes: [__m256i; 2]) -> Codes {
        let mut out = Codes([0; BYTES]);
        // SAFETY: `new` promises the features; there are 64 bytes.
        unsafe {
            _mm256_storeu_si256(out.0.as_mut_ptr().cast(), codes[0]);
            _mm256_storeu_si256(out.0.as_mut_ptr().add(32).cast(), codes[1]);
        }
        out
    }
    #[inline(always)]
    fn join(self, a: &[u8; 32], b: &[u8; 32]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features; the arrays have 32 bytes, and the loads take any
        // address.
        unsafe { [_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())] }
    }
    #[inline(always)]
    fn join_halves(self, a: &[u8; 16], b: &[u8; 16]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features; the arrays have 16 bytes, and the loads take any
        // address.
        unsafe {
            let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            [nibbles(a), nibbles(b)]
        }
    }
    #[inline(always)]
    fn sixteens(self, a: u32, b: u32) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [spread(a), spread(b)] }
    }
    #[inline(always)]
    fn flip(self, codes: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe {
            let highest = _mm256_set1_epi8(-128);
            [_mm256_xor_si256(codes[0], highest), _mm256_xor_si256(codes[1], highest)]
        }
    }
    #[inline(always)]
    fn bits<const RIGHT: u32, const LEFT: u32>(self, codes: [__m256i; 2], mask: u8) -> [__m256i; 2] {
        // SAFETY: `new` promises the features; shifts are counted in registers because those of
        // this width want another type.
        unsafe {
            let (right, left) = (_mm_cvtsi32_si128(RIGHT as i32), _mm_cvtsi32_si128(LEFT as i32));
            let mask = _mm256_set1_epi8(mask as i8);
            let a = _mm256_and_si256(_mm256_srl_epi16(codes[0], right), mask);
            let b = _mm256_and_si256(_mm256_srl_epi16(codes[1], right), mask);
            [_mm256_sll_epi16(a, left), _mm256_sll_epi16(b, left)]
        }
    }
    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn dot_each<const FULL: bool>(self, sums: [__m256i; 2], codes: [__m256i; 2], x: &[i8; 4]) -> [__m256i; 2] {
        // SAFETY: `new` promises the features.
        let x = unsafe { _mm256_set1_epi32(quad(x)) };
        [self.dot::<FULL>(sums[0], codes[0], x), self.dot::<FULL>(sums[1], codes[1], x)]
    }
    #[inline(always)]
    fn dot_rows<const FULL: bool>(self, ab: [__m256i; 2], cd: [__m256i; 2], x: &[i8; 32]) -> [[i32; 4]; 2] {
        // SAFETY: `new` promises the features; `x` has 32 bytes, and so have the sums.
        unsafe {
            let x = _mm256_loadu_si256(x.as_ptr().cast());
            let zero = _mm256_setzero_si256();
            let ab = _mm256_hadd_epi32(self.dot::<FULL>(zero, ab[0], x), self.dot::<FULL>(zero, ab[1], x));
            let cd = _mm256_hadd_epi32(self.dot::<FULL>(zero, cd[0], x), self.dot::<FULL>(zero, cd[1], x));
            let mut sums = [[0; 4]; 2];
            _mm256_storeu_si256(sums.as_mut_ptr().cast(), _mm256_hadd_epi32(ab, cd));
            sums
        }
    }
    #[inline(always)]
    fn to_floats(self, sums: [__m256i; 2], offset: i32) -> [__m256; 2] {
        // SAFETY: `new` promises the features.
        unsafe {
            let offset = _mm256_set1_epi32(offset);
            let (a, b) = (_mm256_sub_epi32(sums[0], offset), _mm256_sub_epi32(sums[1], offset));
            [_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)]
        }
    }
    #[inline(always)]
    fn halves(self, bits: [u16; 4]) -> [f32; 4] {
        // SAFETY: `new` promises the features.
        unsafe { four(_mm_cvtph_ps(_mm_cvtsi64_si128(packed(bits)))) }
    }
}

/// Returns the low halves of the bytes, then the high ones.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles(bytes: __m128i) -> __m256i {
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(bytes), _mm_srli_epi16::<4>(bytes));
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// Returns 16 in each byte whose bit is set.
#[target_feature(enable = "avx2")]
#[inline]
fn spread(bits: u32) -> __m256i {
    // Byte i of the four to the lanes of its eight bits, then each lane's own bit.
    let places = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), places);
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, own), own);
    _mm256_and_si256(is_set, _mm256_set1_epi8(16))
}

#[target_feature(enable = "avx2")]
#[inline]
fn four(vector: __m128) -> [f32; 4] {
    let mut out = [0.0; 4];
    // SAFETY: the array has 16 bytes.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), vector) };
    out
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx2,fma,f16c")]
pub(super) fn run_avx512_vnni<B: IntegerBody>(body: B) {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Wide::new() });
}

#[target_feature(enable = "avxvnni,avx2,fma,f16c")]
pub(super) fn run_avx_vnni<B: IntegerBody>(body: B) {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Narrow::<true>::new() });
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run_avx2<B: IntegerBody>(body: B) {
    // SAFETY: this function can only be called where the features are.
    body.run(unsafe { Narrow::<false>::new() });
}
