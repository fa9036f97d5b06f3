//! vForce logarithms and vDSP differences. Type-checked for Apple targets; it has not run on Apple
//! hardware yet.

use crate::cpu::plan::TILE;
use ns_core::poisson::{half_deviance, half_deviance_from};
use std::ffi::{c_int, c_long, c_ulong};
use std::sync::OnceLock;

#[link(name = "Accelerate", kind = "framework")]
#[expect(unsafe_code, reason = "functions of a system framework")]
unsafe extern "C" {
    /// Computes y[i] = ln x[i] for i < *n.
    fn vvlog(y: *mut f64, x: *const f64, n: *const c_int);
    /// Computes c[i] = a[i] - b[i] for i < n, each with its stride.
    fn vDSP_vsubD(
        b: *const f64,
        b_stride: c_long,
        a: *const f64,
        a_stride: c_long,
        c: *mut f64,
        c_stride: c_long,
        n: c_ulong,
    );
}

fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("NEXTSTAT_DISABLE_ACCELERATE").is_none_or(|value| value != "1"))
}

/// Returns Σ half-deviances of bins that expect `lambda` where `observed` was seen; the slices have
/// equal lengths.
pub(crate) fn half_deviances(observed: &[f64], lambda: &[f64]) -> f64 {
    if !is_on() {
        return observed.iter().zip(lambda).map(|(&n, &l)| half_deviance(n, l)).sum();
    }
    observed.chunks(TILE).zip(lambda.chunks(TILE)).map(|(n, l)| tile(n, l)).sum()
}

fn tile(observed: &[f64], lambda: &[f64]) -> f64 {
    let len = observed.len();
    let (mut ratio, mut logarithm, mut excess) = ([1.0; TILE], [0.0; TILE], [0.0; TILE]);
    for bin in 0..len {
        ratio[bin] = if observed[bin] > 0.0 { lambda[bin] / observed[bin] } else { 1.0 };
    }
    #[expect(unsafe_code, reason = "functions of a system framework")]
    // SAFETY: all five arrays hold at least `len` ≤ TILE numbers, and the functions write no
    // further than that.
    unsafe {
        vvlog(logarithm.as_mut_ptr(), ratio.as_ptr(), &(len as c_int));
        vDSP_vsubD(observed.as_ptr(), 1, lambda.as_ptr(), 1, excess.as_mut_ptr(), 1, len as c_ulong);
    }
    (0..len).map(|bin| half_deviance_from(observed[bin], lambda[bin], excess[bin], || logarithm[bin])).sum()
}
