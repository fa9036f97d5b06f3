//! The host as a device. Two files with the same functions: with the feature, and without.

#[cfg(not(feature = "emulated"))]
mod disabled;
#[cfg(feature = "emulated")]
mod enabled;

#[cfg(not(feature = "emulated"))]
pub(crate) use disabled::{found, open};
#[cfg(feature = "emulated")]
pub(crate) use enabled::{found, open};
