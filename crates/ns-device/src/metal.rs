//! Apple GPUs. Two files with the same functions: with the feature, and without.

#[cfg(not(all(feature = "metal", target_os = "macos")))]
mod disabled;
#[cfg(all(feature = "metal", target_os = "macos"))]
mod enabled;

#[cfg(not(all(feature = "metal", target_os = "macos")))]
pub(crate) use disabled::{found, open, physical_memory};
#[cfg(all(feature = "metal", target_os = "macos"))]
pub(crate) use enabled::{found, open, physical_memory};
