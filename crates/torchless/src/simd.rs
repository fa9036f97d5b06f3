//! Sixteen numbers at a time: the vectors that every kernel is written in, and the instruction set they are compiled for.
//!
//! There is one body per kernel, generic over [`Simd`]. `dispatch` runs it inside a function that enables an instruction set which was
//! detected at run time. A vector always has sixteen lanes, however many registers that takes, so sums have one order on every
//! machine: AVX-512, AVX2 and NEON give the same bits. Machines without fused multiply-add round twice.

use std::sync::OnceLock;

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// Sixteen numbers that begin where a cache line does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f32; LANES]);

/// The instruction sets that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// One 512-bit register to a vector.
    Avx512,
    /// Two 256-bit registers to a vector, with fused multiply-add and half-precision conversion.
    Avx2,
    /// What the target always has: SSE2 on x86-64, NEON with fused multiply-add on aarch64.
    Baseline,
}

impl InstructionSet {
    /// Best first.
    const ALL: [InstructionSet; 3] = [InstructionSet::Avx512, InstructionSet::Avx2, InstructionSet::Baseline];

    /// The name that `NEXTSTAT_ISA` knows.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Baseline => "baseline",
        }
    }

    /// The best one here, but none above the one that `NEXTSTAT_ISA=baseline|avx2|avx512` names.
    pub fn best() -> InstructionSet {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| {
            let wanted = std::env::var("NEXTSTAT_ISA").unwrap_or_default();
            let ceiling = Self::ALL.iter().position(|isa| isa.name() == wanted).unwrap_or(0);
            Self::ALL[ceiling..].iter().copied().find(|isa| isa.is_available()).unwrap_or(InstructionSet::Baseline)
        })
    }

    /// What this machine can run, best first.
    pub fn available() -> Vec<InstructionSet> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        use std::arch::is_x86_feature_detected;
        let avx2 =
            || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        match self {
            InstructionSet::Avx512 => {
                avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
            }
            InstructionSet::Avx2 => avx2(),
            InstructionSet::Baseline => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == InstructionSet::Baseline
    }
}

/// Sixteen `f32`, and the operations that kernels are made of. Nothing here reads outside its arguments.
pub(crate) trait Simd: Copy {
    /// Sixteen `f32`.
    type Vector: Copy;
    /// Whether there are 32 registers that hold a whole vector each: how large a tile of sums stays in registers.
    const IS_WIDE: bool;

    fn splat(self, value: f32) -> Self::Vector;
    fn load(self, from: &[f32; LANES]) -> Self::Vector;
    fn store(self, vector: Self::Vector, to: &mut [f32; LANES]);
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a·b + c, fused where the instruction set has it.
    fn fma(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Little-endian `f32`, at any address.
    fn load_f32(self, from: &[u8; 64]) -> Self::Vector;
    /// Little-endian half precision, at any address.
    fn load_f16(self, from: &[u8; 32]) -> Self::Vector;
    /// Little-endian bfloat16, at any address.
    fn load_bf16(self, from: &[u8; 32]) -> Self::Vector;
    /// Signed bytes.
    fn load_i8(self, from: &[u8; LANES]) -> Self::Vector;
    /// Of each byte two numbers: that of `low` which its low four bits choose, and that of `high` which its high four bits choose.
    fn look_up(self, codes: &[u8; LANES], low: Self::Vector, high: Self::Vector) -> [Self::Vector; 2];

    /// Says that what is `ahead` bytes behind the beginning of `bytes` will be read soon. It need not be anything's.
    #[inline(always)]
    fn prefetch(self, _bytes: &[u8], _ahead: usize) {}

    /// Half precision to single; exact.
    #[inline(always)]
    fn half1(self, bits: u16) -> f32 {
        half(bits)
    }

    /// Half precision in every lane.
    #[inline(always)]
    fn splat_half(self, bits: u16) -> Self::Vector {
        self.splat(self.half1(bits))
    }

    /// a·b + c of single numbers, fused where the instruction set has it.
    fn fma1(self, a: f32, b: f32, c: f32) -> f32;

    #[inline(always)]
    fn lanes(self, vector: Self::Vector) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        self.store(vector, &mut lanes);
        lanes
    }

    /// The sum of the lanes, always in the same order: halves are added until one number is left.
    #[inline(always)]
    fn sum(self, vector: Self::Vector) -> f32 {
        let mut lanes = self.lanes(vector);
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
    }

    /// The sums of four vectors, each in that order.
    #[inline(always)]
    fn sum4(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        [self.sum(vectors[0]), self.sum(vectors[1]), self.sum(vectors[2]), self.sum(vectors[3])]
    }
}

/// A body, generic over the instruction set.
pub(crate) trait Body {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Arrays that the compiler vectorises with what the target always has.
#[derive(Clone, Copy)]
pub(crate) struct Array;

impl Array {
    #[inline(always)]
    fn each(from: impl Fn(usize) -> f32) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        for (lane, value) in lanes.iter_mut().enumerate() {
            *value = from(lane);
        }
        lanes
    }
}

impl Simd for Array {
    type Vector = [f32; LANES];
    const IS_WIDE: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; LANES] {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> [f32; LANES] {
        *from
    }
    #[inline(always)]
    fn store(self, vector: [f32; LANES], to: &mut [f32; LANES]) {
        *to = vector;
    }
    #[inline(always)]
    fn add(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        Self::each(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    fn mul(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        Self::each(|lane| a[lane] * b[lane])
    }
    #[inline(always)]
    fn fma(self, a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        Self::each(|lane| self.fma1(a[lane], b[lane], c[lane]))
    }
    #[inline(always)]
    fn load_f32(self, from: &[u8; 64]) -> [f32; LANES] {
        let (numbers, _) = from.as_chunks::<4>();
        Self::each(|lane| f32::from_le_bytes(numbers[lane]))
    }
    #[inline(always)]
    fn load_f16(self, from: &[u8; 32]) -> [f32; LANES] {
        let (numbers, _) = from.as_chunks::<2>();
        Self::each(|lane| half(u16::from_le_bytes(numbers[lane])))
    }
    #[inline(always)]
    fn load_bf16(self, from: &[u8; 32]) -> [f32; LANES] {
        let (numbers, _) = from.as_chunks::<2>();
        Self::each(|lane| brain_half(u16::from_le_bytes(numbers[lane])))
    }
    #[inline(always)]
    fn load_i8(self, from: &[u8; LANES]) -> [f32; LANES] {
        Self::each(|lane| f32::from(from[lane] as i8))
    }
    #[inline(always)]
    fn look_up(self, codes: &[u8; LANES], low: [f32; LANES], high: [f32; LANES]) -> [[f32; LANES]; 2] {
        [Self::each(|lane| low[usize::from(codes[lane] & 15)]), Self::each(|lane| high[usize::from(codes[lane] >> 4)])]
    }
    #[inline(always)]
    fn fma1(self, a: f32, b: f32, c: f32) -> f32 {
        if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
    }
}

/// Half precision to single: exact, subnormal numbers, infinities and NaN included.
#[inline(always)]
pub(crate) fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // A power of two puts the exponent right; it makes subnormal numbers normal, too.
    let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = magnitude | 0x7f80_0000;
    f32::from_bits(sign | if magnitude < 0x0f80_0000 { finite } else { special })
}

/// bfloat16 to single: the upper half of its bits.
#[inline(always)]
pub(crate) fn brain_half(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Vectors of AVX-512 and AVX2. Made only by `dispatch`, inside functions that enable their features.
    #![expect(unsafe_code, reason = "instructions that were detected at run time")]

    use super::{LANES, Simd};
    use std::arch::x86_64::*;

    /// One 512-bit register.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(());

    /// Two 256-bit registers.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx512 {
        /// # Safety
        ///
        /// The processor has the features of `InstructionSet::Avx512`.
        pub(super) unsafe fn new() -> Avx512 {
            Avx512(())
        }
    }

    impl Avx2 {
        /// # Safety
        ///
        /// The processor has the features of `InstructionSet::Avx2`.
        pub(super) unsafe fn new() -> Avx2 {
            Avx2(())
        }
    }

    impl Simd for Avx512 {
        type Vector = __m512;
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
            // SAFETY: `new` promises the features; the array has 64 bytes, and the load takes any address.
            unsafe { _mm512_loadu_ps(from.as_ptr().cast()) }
        }
        #[inline(always)]
        fn load_f16(self, from: &[u8; 32]) -> __m512 {
            // SAFETY: `new` promises the features; the array has 32 bytes, and the load takes any address.
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
        }
        #[inline(always)]
        fn load_bf16(self, from: &[u8; 32]) -> __m512 {
            // SAFETY: `new` promises the features; the array has 32 bytes, and the load takes any address.
            unsafe {
                let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast()));
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
            }
        }
        #[inline(always)]
        fn load_i8(self, from: &[u8; LANES]) -> __m512 {
            // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any address.
            unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
        }
        #[inline(always)]
        fn look_up(self, codes: &[u8; LANES], low: __m512, high: __m512) -> [__m512; 2] {
            // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any address.
            unsafe {
                // A permutation heeds the low four bits of its indices only.
                let codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from_bytes(codes)));
                [_mm512_permutexvar_ps(codes, low), _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(codes), high)]
            }
        }
        #[inline(always)]
        fn sum4(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
            // SAFETY: `new` promises the features; the array has 16 bytes.
            unsafe {
                // Quarters of registers: 0 + 2 and 1 + 3 of two vectors side by side, then those two, then pairs, then neighbours.
                let halves =
                    |a, b| _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
                let (ab, cd) = (halves(a, b), halves(c, d));
                let four = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
                let two = _mm512_add_ps(four, _mm512_shuffle_ps::<0xee>(four, four));
                let one = _mm512_add_ps(two, _mm512_shuffle_ps::<0x55>(two, two));
                let firsts =
                    _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), one);
                let mut sums = [0.0; 4];
                _mm_storeu_ps(sums.as_mut_ptr(), _mm512_castps512_ps128(firsts));
                sums
            }
        }
        #[inline(always)]
        fn prefetch(self, bytes: &[u8], ahead: usize) {
            prefetch(bytes, ahead);
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
            // SAFETY: `new` promises the features; the array has 64 bytes, and the load takes any address.
            unsafe { [_mm256_loadu_ps(from.as_ptr().cast()), _mm256_loadu_ps(from.as_ptr().add(32).cast())] }
        }
        #[inline(always)]
        fn load_f16(self, from: &[u8; 32]) -> [__m256; 2] {
            // SAFETY: `new` promises the features; the array has 32 bytes, and the loads take any address.
            unsafe {
                [
                    _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())),
                    _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(16).cast())),
                ]
            }
        }
        #[inline(always)]
        fn load_bf16(self, from: &[u8; 32]) -> [__m256; 2] {
            // SAFETY: `new` promises the features; the array has 32 bytes, and the loads take any address.
            unsafe {
                let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast()));
                let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().add(16).cast()));
                [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high))]
            }
        }
        #[inline(always)]
        fn load_i8(self, from: &[u8; LANES]) -> [__m256; 2] {
            // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any address.
            unsafe {
                let bytes = _mm_loadu_si128(from.as_ptr().cast());
                [
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes))),
                ]
            }
        }
        #[inline(always)]
        fn look_up(self, codes: &[u8; LANES], low: [__m256; 2], high: [__m256; 2]) -> [[__m256; 2]; 2] {
            // SAFETY: `new` promises the features; the array has 16 bytes, and the load takes any address.
            unsafe {
                let codes = _mm_loadu_si128(from_bytes(codes));
                let codes = [_mm256_cvtepu8_epi32(codes), _mm256_cvtepu8_epi32(_mm_srli_si128::<8>(codes))];
                let upper = [_mm256_srli_epi32::<4>(codes[0]), _mm256_srli_epi32::<4>(codes[1])];
                [[choose(codes[0], low), choose(codes[1], low)], [choose(upper[0], high), choose(upper[1], high)]]
            }
        }
        #[inline(always)]
        fn prefetch(self, bytes: &[u8], ahead: usize) {
            prefetch(bytes, ahead);
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

    /// The address that loads of sixteen bytes take.
    #[inline(always)]
    fn from_bytes(bytes: &[u8; LANES]) -> *const __m128i {
        bytes.as_ptr().cast()
    }

    #[inline(always)]
    fn prefetch(bytes: &[u8], ahead: usize) {
        // SAFETY: every processor of this target has the instruction, and it reads nothing: any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(ahead).cast()) }
    }

    /// The numbers of `from` that the low four bits of `codes` choose.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn choose(codes: __m256i, from: [__m256; 2]) -> __m256 {
        // A permutation heeds three bits; the fourth, moved to the sign, says which half.
        let (low, high) = (_mm256_permutevar8x32_ps(from[0], codes), _mm256_permutevar8x32_ps(from[1], codes));
        _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32::<28>(codes)))
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
}

/// Runs `body` compiled for `isa`, or for what the target always has if this machine has no `isa`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "calling a function compiled for an instruction set that was detected at run time")]
#[inline]
pub(crate) fn dispatch<B: Body>(isa: InstructionSet, body: B) -> B::Output {
    match isa {
        // SAFETY: the guard asked the CPU for these features.
        InstructionSet::Avx512 if isa.is_available() => unsafe { x86::run_avx512(body) },
        // SAFETY: the guard asked the CPU for these features.
        InstructionSet::Avx2 if isa.is_available() => unsafe { x86::run_avx2(body) },
        _ => body.run(Array),
    }
}

/// Runs `body` as the target has it.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn dispatch<B: Body>(_: InstructionSet, body: B) -> B::Output {
    body.run(Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_converted_exactly() {
        for bits in 0..=u16::MAX {
            let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let expected = match exponent {
                0 => sign * fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => sign * f64::INFINITY,
                31 => f64::NAN,
                _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
            };
            let got = f64::from(half(bits));
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:04x}: {got}");
        }
    }

    struct Loads([u8; 64]);
    impl Body for Loads {
        type Output = Vec<[u32; LANES]>;
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let bytes = self.0;
            let half: &[u8; 32] = bytes.first_chunk().expect("64 bytes");
            let codes: &[u8; LANES] = bytes.first_chunk().expect("64 bytes");
            let numbers = simd.load_f32(&bytes);
            let [low, high] = simd.look_up(codes, numbers, simd.load_i8(codes));
            let vectors = [numbers, simd.load_f16(half), simd.load_bf16(half), simd.load_i8(codes), low, high];
            let [a, b, c, d] = simd.sum4([low, high, simd.load_bf16(half), simd.load_i8(codes)]);
            let sums = simd.splat(a + 2.0 * b + 4.0 * c + 8.0 * d);
            let vectors = [&vectors[..], &[sums]].concat();
            vectors.iter().map(|vector| simd.lanes(*vector).map(f32::to_bits)).collect()
        }
    }

    #[test]
    fn every_instruction_set_reads_the_same_numbers() {
        for round in 0..100_u8 {
            let bytes = std::array::from_fn(|at| (at as u8).wrapping_mul(37).wrapping_add(round) & 0x7b);
            let plain = dispatch(InstructionSet::Baseline, Loads(bytes));
            for isa in InstructionSet::available() {
                assert_eq!(dispatch(isa, Loads(bytes)), plain, "{isa:?}");
            }
        }
    }
}
