//! NVIDIA GPUs. Two files with the same functions: with the feature, and without.

#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(feature = "cuda")]
mod enabled;

#[cfg(not(feature = "cuda"))]
pub(crate) use disabled::{found, open};
#[cfg(feature = "cuda")]
pub(crate) use enabled::{found, open};

/// What `scripts/ptx.py` compiles for.
const LEAST_CAPABILITY: (u32, u32) = (7, 0);

/// Why a device that is there can't run our kernels, if it can't.
pub(crate) fn too_old(index: usize, facts: &crate::Facts) -> Option<crate::DeviceError> {
    let has = facts.compute_capability.filter(|has| *has < LEAST_CAPABILITY)?;
    Some(crate::DeviceError::TooOld { index, has, needs: LEAST_CAPABILITY })
}
