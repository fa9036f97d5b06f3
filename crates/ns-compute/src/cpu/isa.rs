//! Selects the instruction set of the bodies, once per process.
//!
//! There is one generic body. `dispatch` runs it inside a function that enables the instruction
//! set, so that the compiler vectorises the very same lines with it. Bits may differ between
//! instruction sets (fused multiply-add or not), never between runs or threads.

use std::sync::OnceLock;

/// The instruction sets that a body is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// AVX-512 with 512-bit or 256-bit vectors, as the compiler decides.
    Avx512,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// The baseline of the target: SSE2 on x86-64, NEON with fused multiply-add on aarch64.
    Baseline,
}

/// The operations of an instruction set that a body is compiled with.
pub(crate) trait Isa: Copy {
    /// Returns a·b + c, fused where the instruction set has it.
    fn fma(self, a: f64, b: f64, c: f64) -> f64;
}

/// Fused multiply-add in hardware.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy)]
pub(crate) struct FusedMultiplyAdd;

/// No fused multiply-add: two roundings.
#[cfg(any(test, not(target_arch = "aarch64")))]
#[derive(Clone, Copy)]
pub(crate) struct SeparateMultiplyAdd;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Isa for FusedMultiplyAdd {
    #[inline(always)]
    fn fma(self, a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

#[cfg(any(test, not(target_arch = "aarch64")))]
impl Isa for SeparateMultiplyAdd {
    #[inline(always)]
    fn fma(self, a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// A body, generic over the instruction set.
pub(crate) trait VectorBody {
    type Output;
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// Returns the best instruction set of this machine, but none above
/// `NEXTSTAT_ISA=baseline|avx2|avx512` (for tests, and for equal bits across machines). Other
/// values are ignored; `ns-terminal` warns about them.
pub fn best() -> InstructionSet {
    static BEST: OnceLock<InstructionSet> = OnceLock::new();
    *BEST.get_or_init(|| {
        let wanted = std::env::var("NEXTSTAT_ISA").unwrap_or_default();
        let ceiling = ALL.iter().position(|isa| name(*isa) == wanted).unwrap_or(0);
        ALL[ceiling..].iter().copied().find(|isa| is_available(*isa)).unwrap_or(InstructionSet::Baseline)
    })
}

/// Best first.
const ALL: [InstructionSet; 3] = [InstructionSet::Avx512, InstructionSet::Avx2, InstructionSet::Baseline];

fn name(isa: InstructionSet) -> &'static str {
    match isa {
        InstructionSet::Avx512 => "avx512",
        InstructionSet::Avx2 => "avx2",
        InstructionSet::Baseline => "baseline",
    }
}

/// Returns the instruction sets of this machine, best first.
pub fn available() -> Vec<InstructionSet> {
    ALL.into_iter().filter(|isa| is_available(*isa)).collect()
}

/// Returns `isa`, which must be among [`available`]: running a body compiled for another one is
/// undefined behaviour.
#[track_caller]
pub(crate) fn checked(isa: InstructionSet) -> InstructionSet {
    assert!(is_available(isa), "this machine has no {isa:?}");
    isa
}

#[cfg(target_arch = "x86_64")]
fn is_available(isa: InstructionSet) -> bool {
    use std::arch::is_x86_feature_detected;
    let avx2 = || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    match isa {
        InstructionSet::Avx512 => {
            avx2()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
        }
        InstructionSet::Avx2 => avx2(),
        InstructionSet::Baseline => true,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_available(isa: InstructionSet) -> bool {
    isa == InstructionSet::Baseline
}

/// Runs `body` compiled for `isa`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "calling a function compiled for an instruction set that was detected at run time")]
#[inline]
pub(crate) fn dispatch<B: VectorBody>(isa: InstructionSet, body: B) -> B::Output {
    match isa {
        // SAFETY: evaluators have an instruction set from `best` or `checked`, which ask the CPU
        // for these features.
        InstructionSet::Avx512 => unsafe { run_avx512(body) },
        // SAFETY: evaluators have an instruction set from `best` or `checked`, which ask the CPU
        // for these features.
        InstructionSet::Avx2 => unsafe { run_avx2(body) },
        InstructionSet::Baseline => body.run(SeparateMultiplyAdd),
    }
}

/// Runs `body`; every aarch64 processor has fused multiply-add and NEON.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn dispatch<B: VectorBody>(_: InstructionSet, body: B) -> B::Output {
    body.run(FusedMultiplyAdd)
}

/// Runs `body` with the baseline of the target.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn dispatch<B: VectorBody>(_: InstructionSet, body: B) -> B::Output {
    body.run(SeparateMultiplyAdd)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
fn run_avx512<B: VectorBody>(body: B) -> B::Output {
    body.run(FusedMultiplyAdd)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<B: VectorBody>(body: B) -> B::Output {
    body.run(FusedMultiplyAdd)
}
