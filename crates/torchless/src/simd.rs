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
    pub(crate) fn is_available(self) -> bool {
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
    pub(crate) fn is_available(self) -> bool {
        self == InstructionSet::Baseline
    }
}

/// Sixteen `f32`, and the operations that kernels are made of. Nothing here reads outside its arguments.
pub(crate) trait Simd: Copy {
    /// Sixteen `f32`.
    type Vector: Copy;
    /// Sixteen `u32`.
    type Numbers: Copy;
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

    /// Bytes as numbers.
    fn numbers(self, from: &[u8; LANES]) -> Self::Numbers;
    /// Ones and zeros: bit after bit, the lowest first.
    fn number_of_bits(self, bits: u16) -> Self::Numbers;
    /// The bits of `mask`, after `right` others.
    fn bits_of(self, numbers: Self::Numbers, right: usize, mask: u32) -> Self::Numbers;
    /// `low` | `high` << 4, less `offset`.
    fn joined(self, low: Self::Numbers, high: Self::Numbers, offset: i32) -> Self::Vector;

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
    type Numbers = [u32; LANES];
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
    fn numbers(self, from: &[u8; LANES]) -> [u32; LANES] {
        from.map(u32::from)
    }
    #[inline(always)]
    fn number_of_bits(self, bits: u16) -> [u32; LANES] {
        let mut numbers = [0; LANES];
        for (lane, number) in numbers.iter_mut().enumerate() {
            *number = u32::from(bits >> lane & 1);
        }
        numbers
    }
    #[inline(always)]
    fn bits_of(self, numbers: [u32; LANES], right: usize, mask: u32) -> [u32; LANES] {
        numbers.map(|number| number >> right & mask)
    }
    #[inline(always)]
    fn joined(self, low: [u32; LANES], high: [u32; LANES], offset: i32) -> [f32; LANES] {
        Self::each(|lane| ((low[lane] | high[lane] << 4) as i32 - offset) as f32)
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
pub(crate) mod x86;

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
