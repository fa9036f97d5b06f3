//! NVIDIA GPUs. Two files with the same functions: with the feature, and without.

#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(feature = "cuda")]
mod enabled;

#[cfg(not(feature = "cuda"))]
pub(crate) use disabled::{found, open};
#[cfg(feature = "cuda")]
pub(crate) use enabled::{found, open};
