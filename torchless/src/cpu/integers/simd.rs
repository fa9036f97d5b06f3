//! Bytes times bytes, summed in 32 bits: the vectors that the products of rounded inputs are
//! written in.
//!
//! As in `simd` there is one body for each kernel, generic over [`Integers`], run inside a function
//! that enables what was detected at run time. Sums of integers are exact, so the order in which an
//! instruction adds them changes nothing.

use crate::simd::{Array, InstructionSet, LANES, Simd};

/// Bytes of a vector: four to a sum.
pub(crate) const BYTES: usize = 4 * LANES;

/// 64 numbers of a byte that begin where a cache line does.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Codes(pub(crate) [u8; BYTES]);

/// The instructions that multiply bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerSet {
    /// Sums of four products at once, 512 bits wide.
    Avx512Vnni,
    /// The same, 256 bits wide.
    AvxVnni,
    /// Sums of two products at once, in 16 bits.
    Avx2,
    /// Sums of four products at once, 128 bits wide.
    NeonDot,
    /// Products of 16 bits, 128 bits wide.
    Neon,
    /// What the target always has.
    Baseline,
}

impl IntegerSet {
    /// Best first.
    const ALL: [IntegerSet; 6] = [
        IntegerSet::Avx512Vnni,
        IntegerSet::AvxVnni,
        IntegerSet::Avx2,
        IntegerSet::NeonDot,
        IntegerSet::Neon,
        IntegerSet::Baseline,
    ];

    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            IntegerSet::Avx512Vnni => "avx512-vnni",
            IntegerSet::AvxVnni => "avx-vnni",
            IntegerSet::Avx2 => "avx2",
            IntegerSet::NeonDot => "neon-dotprod",
            IntegerSet::Neon => "neon",
            IntegerSet::Baseline => "baseline",
        }
    }

    /// Returns the best set of this machine that goes with `isa`.
    pub fn best(isa: InstructionSet) -> IntegerSet {
        let first = match isa {
            InstructionSet::Avx512 => 0,
            InstructionSet::Avx2 => 1,
            InstructionSet::Neon => 3,
            InstructionSet::Baseline => 5,
        };
        Self::ALL[first..].iter().copied().find(|set| set.is_available()).unwrap_or(IntegerSet::Baseline)
    }

    /// Returns the sets that this machine can run, best first.
    pub fn available() -> Vec<IntegerSet> {
        Self::ALL.into_iter().filter(|set| set.is_available()).collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        use std::arch::is_x86_feature_detected;
        match self {
            IntegerSet::Avx512Vnni => {
                InstructionSet::Avx512.is_available()
                    && is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("avx512bw")
            }
            IntegerSet::AvxVnni => InstructionSet::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            IntegerSet::Avx2 => InstructionSet::Avx2.is_available(),
            IntegerSet::NeonDot | IntegerSet::Neon => false,
            IntegerSet::Baseline => true,
        }
    }

    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    fn is_available(self) -> bool {
        let neon = || InstructionSet::Neon.is_available();
        match self {
            IntegerSet::NeonDot => neon() && std::arch::is_aarch64_feature_detected!("dotprod"),
            IntegerSet::Neon => neon(),
            _ => self == IntegerSet::Baseline,
        }
    }

    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
    fn is_available(self) -> bool {
        self == IntegerSet::Baseline
    }
}

/// 64 bytes, sixteen sums of 32 bits, and what kernels make of them. Codes are unsigned or below
/// 128, inputs signed and at most 127 in size.
pub(crate) trait Integers: Copy {
    /// Sixteen `f32`, and operations on them.
    type Floats: Simd;
    /// 64 bytes.
    type Codes: Copy;
    /// Sixteen `i32`.
    type Sums: Copy;
    /// What [`flip`](Integers::flip) makes of a signed 0: 128 where products want unsigned codes.
    const FLIPPED_ZERO: i32 = 128;

    fn floats(self) -> Self::Floats;
    fn zero(self) -> Self::Sums;
    fn load(self, codes: &Codes) -> Self::Codes;
    fn store(self, codes: Self::Codes) -> Codes;
    /// Returns the bytes of `a`, then those of `b`.
    fn join(self, a: &[u8; 32], b: &[u8; 32]) -> Self::Codes;
    /// Returns the low halves of the bytes of `a`, then their high halves, then those of `b`.
    fn join_halves(self, a: &[u8; 16], b: &[u8; 16]) -> Self::Codes;
    /// Returns 16 where a bit is set, from the lowest bit of `a` to the highest of `b`.
    fn sixteens(self, a: u32, b: u32) -> Self::Codes;
    /// Returns signed bytes as codes: with the highest bit turned, thus counted from -128, where
    /// products want unsigned codes.
    fn flip(self, codes: Self::Codes) -> Self::Codes;
    /// Moves `RIGHT` bits to the right, keeps what `mask` keeps, then moves `LEFT` bits to the
    /// left; what is kept stays within its byte.
    fn bits<const RIGHT: u32, const LEFT: u32>(self, codes: Self::Codes, mask: u8) -> Self::Codes;
    fn or(self, a: Self::Codes, b: Self::Codes) -> Self::Codes;
    /// Adds to each sum four codes times the same four inputs. Without `FULL` no code is above 127.
    fn dot_each<const FULL: bool>(self, sums: Self::Sums, codes: Self::Codes, x: &[i8; 4]) -> Self::Sums;
    /// Returns the sums of two times 32 codes, each times the same 32 inputs, of both halves of 16:
    /// [first halves, second halves], each of the two of `ab`, then of the two of `cd`. Without
    /// `FULL` no code is above 127.
    fn dot_rows<const FULL: bool>(self, ab: Self::Codes, cd: Self::Codes, x: &[i8; 32]) -> [[i32; 4]; 2];
    /// Returns each sum less `offset`, as a float; exact below 2^24.
    fn to_floats(self, sums: Self::Sums, offset: i32) -> <Self::Floats as Simd>::Vector;
    /// Converts half precision to single, four at once; exact.
    fn halves(self, bits: [u16; 4]) -> [f32; 4];
}

/// Returns four bytes as one number, to be copied to every lane.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline(always)]
fn quad(x: &[i8; 4]) -> i32 {
    i32::from_le_bytes(x.map(|x| x as u8))
}

/// A body, generic over the instructions.
pub(crate) trait IntegerBody {
    fn run<S: Integers>(self, simd: S);
}

impl Array {
    #[inline(always)]
    fn dot_quad(codes: &[u8], x: &[i8]) -> i32 {
        codes.iter().zip(x).map(|(code, x)| i32::from(*code) * i32::from(*x)).sum()
    }
}

impl Integers for Array {
    type Floats = Array;
    type Codes = [u8; BYTES];
    type Sums = [i32; LANES];

    #[inline(always)]
    fn floats(self) -> Array {
        self
    }
    #[inline(always)]
    fn zero(self) -> [i32; LANES] {
        [0; LANES]
    }
    #[inline(always)]
    fn load(self, codes: &Codes) -> [u8; BYTES] {
        codes.0
    }
    #[inline(always)]
    fn store(self, codes: [u8; BYTES]) -> Codes {
        Codes(codes)
    }
    #[inline(always)]
    fn join(self, a: &[u8; 32], b: &[u8; 32]) -> [u8; BYTES] {
        let mut codes = [0; BYTES];
        codes[..32].copy_from_slice(a);
        codes[32..].copy_from_slice(b);
        codes
    }
    #[inline(always)]
    fn join_halves(self, a: &[u8; 16], b: &[u8; 16]) -> [u8; BYTES] {
        let mut codes = [0; BYTES];
        for lane in 0..16 {
            (codes[lane], codes[lane + 16]) = (a[lane] & 15, a[lane] >> 4);
            (codes[lane + 32], codes[lane + 48]) = (b[lane] & 15, b[lane] >> 4);
        }
        codes
    }
    #[inline(always)]
    fn sixteens(self, a: u32, b: u32) -> [u8; BYTES] {
        let bits = u64::from(a) | u64::from(b) << 32;
        let mut codes = [0; BYTES];
        for (lane, code) in codes.iter_mut().enumerate() {
            *code = ((bits >> lane & 1) << 4) as u8;
        }
        codes
    }
    #[inline(always)]
    fn flip(self, codes: [u8; BYTES]) -> [u8; BYTES] {
        codes.map(|code| code ^ 0x80)
    }
    #[inline(always)]
    fn bits<const RIGHT: u32, const LEFT: u32>(self, codes: [u8; BYTES], mask: u8) -> [u8; BYTES] {
        codes.map(|code| (code >> RIGHT & mask) << LEFT)
    }
    #[inline(always)]
    fn or(self, mut a: [u8; BYTES], b: [u8; BYTES]) -> [u8; BYTES] {
        a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        a
    }
    #[inline(always)]
    fn dot_each<const FULL: bool>(self, mut sums: [i32; LANES], codes: [u8; BYTES], x: &[i8; 4]) -> [i32; LANES] {
        for (sum, codes) in sums.iter_mut().zip(codes.as_chunks::<4>().0) {
            *sum += Array::dot_quad(codes, x);
        }
        sums
    }
    #[inline(always)]
    fn dot_rows<const FULL: bool>(self, ab: [u8; BYTES], cd: [u8; BYTES], x: &[i8; 32]) -> [[i32; 4]; 2] {
        let (first, second) = x.split_at(16);
        let mut sums = [[0; 4]; 2];
        for (pair, codes) in [ab, cd].iter().enumerate() {
            for (row, codes) in codes.as_chunks::<32>().0.iter().enumerate() {
                sums[0][2 * pair + row] = Array::dot_quad(&codes[..16], first);
                sums[1][2 * pair + row] = Array::dot_quad(&codes[16..], second);
            }
        }
        sums
    }
    #[inline(always)]
    fn to_floats(self, sums: [i32; LANES], offset: i32) -> [f32; LANES] {
        sums.map(|sum| (sum - offset) as f32)
    }
    #[inline(always)]
    fn halves(self, bits: [u16; 4]) -> [f32; 4] {
        bits.map(crate::simd::half)
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Runs `body` compiled for `set`, or for what the target always has if this machine has no `set`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "calling a function compiled for instructions that were detected at run time")]
#[inline]
pub(crate) fn dispatch_integers<B: IntegerBody>(set: IntegerSet, body: B) {
    match set {
        // SAFETY: the guard asked the CPU for these features.
        IntegerSet::Avx512Vnni if set.is_available() => unsafe { x86::run_avx512_vnni(body) },
        // SAFETY: the guard asked the CPU for these features.
        IntegerSet::AvxVnni if set.is_available() => unsafe { x86::run_avx_vnni(body) },
        // SAFETY: the guard asked the CPU for these features.
        IntegerSet::Avx2 if set.is_available() => unsafe { x86::run_avx2(body) },
        _ => body.run(Array),
    }
}

/// Runs `body` compiled for `set`, or for what the target always has if this machine has no `set`.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[expect(unsafe_code, reason = "calling a function compiled for instructions that were detected at run time")]
#[inline]
pub(crate) fn dispatch_integers<B: IntegerBody>(set: IntegerSet, body: B) {
    match set {
        // SAFETY: the guard asked the CPU for these features.
        IntegerSet::NeonDot if set.is_available() => unsafe { neon::run_neon_dot(body) },
        // SAFETY: the guard asked the CPU for these features.
        IntegerSet::Neon if set.is_available() => unsafe { neon::run_neon(body) },
        _ => body.run(Array),
    }
}

/// Runs `body` as the target has it.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
#[inline]
pub(crate) fn dispatch_integers<B: IntegerBody>(_: IntegerSet, body: B) {
    body.run(Array);
}
