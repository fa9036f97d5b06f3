//! NVIDIA GPUs. Two files with the same functions: with the feature, and without.

#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(feature = "cuda")]
mod enabled;

#[cfg(not(feature = "cuda"))]
pub(crate) use disabled::{found, open};
#[cfg(feature = "cuda")]
pub(crate) use enabled::{found, open};

/// The compute capability that `scripts/ptx.py` compiles for.
const LEAST_CAPABILITY: (u32, u32) = (7, 0);

/// Returns how many fused sums and products in double precision a multiprocessor starts in one
/// clock; `None` for unknown kinds.
///
/// Source: NVIDIA, CUDA C++ Programming Guide, table of the throughput of native arithmetic
/// instructions.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "asked by the backend alone"))]
pub(crate) fn double_units(capability: (u32, u32)) -> Option<u64> {
    match capability {
        (7, 0) | (8, 0) => Some(32),
        (9 | 10, 0) => Some(64),
        (7, 5) | (8, 6 | 7 | 9) | (10, 3) | (12, _) => Some(2),
        _ => None,
    }
}

/// Returns the error of a device that is too old for the kernels, or `None`.
pub(crate) fn too_old(index: usize, properties: &crate::DeviceProperties) -> Option<crate::DeviceError> {
    let has = properties.compute_capability.filter(|has| *has < LEAST_CAPABILITY)?;
    Some(crate::DeviceError::TooOld { index, has, needs: LEAST_CAPABILITY })
}
