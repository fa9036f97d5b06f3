//! Sixteen numbers at a time: the vectors that every kernel is written in, and the instruction set
//! they are compiled for.
//!
//! There is one body per kernel, generic over [`Simd`]. `dispatch` runs it inside a function that
//! enables an instruction set which was detected at run time. A vector always has sixteen lanes,
//! however many registers that takes, so sums have one order on every machine: AVX-512, AVX2 and
//! NEON give the same bits. Machines without fused multiply-add round twice.

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
    /// Four 128-bit registers to a vector, with fused multiply-add: every aarch64 processor.
    Neon,
    /// What the compiler makes of arrays with what the target always has: SSE2 on x86-64, fused
    /// multiply-add on aarch64.
    Baseline,
}

impl InstructionSet {
    /// Best first.
    const ALL: [InstructionSet; 4] =
        [InstructionSet::Avx512, InstructionSet::Avx2, InstructionSet::Neon, InstructionSet::Baseline];

    /// Returns its name in `NEXTSTAT_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Neon => "neon",
            InstructionSet::Baseline => "baseline",
        }
    }

    /// Returns the best set of this machine, at most the one that
    /// `NEXTSTAT_ISA=baseline|neon|avx2|avx512` names.
    pub fn best() -> InstructionSet {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| {
            let wanted = std::env::var("NEXTSTAT_ISA").unwrap_or_default();
            let ceiling = Self::ALL.iter().position(|isa| isa.name() == wanted).unwrap_or(0);
            Self::ALL[ceiling..].iter().copied().find(|isa| isa.is_available()).unwrap_or(InstructionSet::Baseline)
        })
    }

    /// Returns the sets that this machine can run, best first.
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
            InstructionSet::Neon => false,
            InstructionSet::Baseline => true,
        }
    }

    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    pub(crate) fn is_available(self) -> bool {
        match self {
            InstructionSet::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => self == InstructionSet::Baseline,
        }
    }

    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
    pub(crate) fn is_available(self) -> bool {
        self == InstructionSet::Baseline
    }
}

/// Sixteen `f32`, and the operations that kernels are made of. Nothing here reads outside its
/// arguments.
pub(crate) trait Simd: Copy {
    /// Sixteen `f32`.
    type Vector: Copy;
    /// Sixteen unsigned numbers of at most eight bits.
    type Numbers: Copy;
    /// The numbers of sixteen codes of four bits.
    type Table: Copy;
    /// Whether there are 32 registers that hold a whole vector each: how large a tile of sums stays
    /// in registers.
    const IS_WIDE: bool;

    fn splat(self, value: f32) -> Self::Vector;
    fn load(self, from: &[f32; LANES]) -> Self::Vector;
    fn store(self, vector: Self::Vector, to: &mut [f32; LANES]);
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns a·b + c, fused where the instruction set has it.
    fn fma(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Loads little-endian `f32`, at any address.
    fn load_f32(self, from: &[u8; 64]) -> Self::Vector;
    /// Loads little-endian half precision, at any address.
    fn load_f16(self, from: &[u8; 32]) -> Self::Vector;
    /// Loads little-endian bfloat16, at any address.
    fn load_bf16(self, from: &[u8; 32]) -> Self::Vector;
    /// Loads signed bytes.
    fn load_i8(self, from: &[u8; LANES]) -> Self::Vector;
    /// Loads unsigned bytes.
    fn load_u8(self, from: &[u8; LANES]) -> Self::Vector;
    fn table(self, line: Line<Self::Vector>) -> Self::Table;
    /// Looks up two numbers for each byte: that of `low` which its low four bits choose, and that
    /// of `high` which its high four bits choose.
    fn look_up(self, codes: &[u8; LANES], low: Self::Table, high: Self::Table) -> [Self::Vector; 2];

    /// Returns the bytes as numbers.
    fn numbers(self, from: &[u8; LANES]) -> Self::Numbers;
    /// Returns ones and zeros: bit after bit, the lowest first.
    fn number_of_bits(self, bits: u16) -> Self::Numbers;
    /// Returns the bits of `mask`, after `right` others.
    fn bits_of(self, numbers: Self::Numbers, right: usize, mask: u32) -> Self::Numbers;
    /// Returns `low` | `high` << 4, less `offset`: at most 127 in size.
    fn joined(self, low: Self::Numbers, high: Self::Numbers, offset: i32) -> Self::Vector;

    /// Says that what is `ahead` bytes behind the beginning of `bytes` will be read soon. It need
    /// not be anything's.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], ahead: usize) {
        self.prefetch_line(bytes.as_ptr().wrapping_add(ahead));
    }

    /// Says that the line of the cache at a place will be read soon. The place need not be
    /// anything's.
    #[inline(always)]
    fn prefetch_line(self, _place: *const u8) {}

    /// Converts half precision to single; exact.
    #[inline(always)]
    fn half1(self, bits: u16) -> f32 {
        half(bits)
    }

    /// Returns half precision in every lane.
    #[inline(always)]
    fn splat_half(self, bits: u16) -> Self::Vector {
        self.splat(self.half1(bits))
    }

    /// Returns the first number of half precision in the lower eight lanes, the second in the
    /// others.
    fn splat_halves(self, bits: [u16; 2]) -> Self::Vector;

    /// Returns a·b + c of single numbers, fused where the instruction set has it.
    fn fma1(self, a: f32, b: f32, c: f32) -> f32;

    #[inline(always)]
    fn lanes(self, vector: Self::Vector) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        self.store(vector, &mut lanes);
        lanes
    }

    /// Returns the sum of the lanes, always in the same order: halves are added until one number is
    /// left.
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

    /// Returns the sums of four vectors, each in that order.
    #[inline(always)]
    fn sum4(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        [self.sum(vectors[0]), self.sum(vectors[1]), self.sum(vectors[2]), self.sum(vectors[3])]
    }
}

/// The numbers of codes of four bits that lie on a line: `factor`·(code − `zero`), plus `offset` if
/// there is one. The product must be exact where there is an offset; then the sum is rounded once,
/// whether or not it is fused.
#[derive(Clone, Copy)]
pub(crate) struct Line<V> {
    pub(crate) factor: V,
    pub(crate) zero: Zero,
    pub(crate) offset: Option<V>,
}

/// The code of 0 if there is no offset.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Zero {
    First,
    Eighth,
}

impl<V: Copy> Line<V> {
    /// Returns the numbers of all sixteen codes.
    #[inline(always)]
    fn numbers<S: Simd<Vector = V>>(self, simd: S) -> V {
        const FIRST: [f32; LANES] =
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
        const EIGHTH: [f32; LANES] =
            [-8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let codes = match self.zero {
            Zero::First => simd.load(&FIRST),
            Zero::Eighth => simd.load(&EIGHTH),
        };
        self.of(simd, codes)
    }

    /// Returns the numbers of codes, of which `zero` was subtracted.
    #[inline(always)]
    fn of<S: Simd<Vector = V>>(self, simd: S, codes: V) -> V {
        match self.offset {
            Some(offset) => simd.fma(self.factor, codes, offset),
            None => simd.mul(self.factor, codes),
        }
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
    type Table = [f32; LANES];
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
    fn load_u8(self, from: &[u8; LANES]) -> [f32; LANES] {
        Self::each(|lane| f32::from(from[lane]))
    }
    #[inline(always)]
    fn table(self, line: Line<[f32; LANES]>) -> [f32; LANES] {
        line.numbers(self)
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
    fn splat_halves(self, bits: [u16; 2]) -> [f32; LANES] {
        let [low, high] = bits.map(half);
        Self::each(|lane| if lane < LANES / 2 { low } else { high })
    }
    #[inline(always)]
    fn fma1(self, a: f32, b: f32, c: f32) -> f32 {
        if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
    }
}

/// Converts half precision to single: exact, subnormal numbers, infinities and NaN included.
#[inline(always)]
pub(crate) fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // A power of two puts the exponent right; it makes subnormal numbers normal, too.
    let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = magnitude | 0x7f80_0000;
    f32::from_bits(sign | if magnitude < 0x0f80_0000 { finite } else { special })
}

/// Converts bfloat16 to single: the upper half of its bits.
#[inline(always)]
pub(crate) fn brain_half(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(crate) mod neon;
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

/// Runs `body` compiled for `isa`, or for what the target always has if this machine has no `isa`.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[expect(unsafe_code, reason = "calling a function compiled for an instruction set that was detected at run time")]
#[inline]
pub(crate) fn dispatch<B: Body>(isa: InstructionSet, body: B) -> B::Output {
    match isa {
        // SAFETY: the guard asked the CPU for this feature.
        InstructionSet::Neon if isa.is_available() => unsafe { neon::run_neon(body) },
        _ => body.run(Array),
    }
}

/// Runs `body` as the target has it.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
#[inline]
pub(crate) fn dispatch<B: Body>(_: InstructionSet, body: B) -> B::Output {
    body.run(Array)
}

#[cfg(test)]
pub(crate) mod tests;
