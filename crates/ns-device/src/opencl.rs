//! Devices with an OpenCL driver. Two files with the same functions: with the feature, and without.

#[cfg(not(feature = "opencl"))]
mod disabled;
#[cfg(feature = "opencl")]
mod enabled;

#[cfg(not(feature = "opencl"))]
pub(crate) use disabled::{found, open};
#[cfg(feature = "opencl")]
pub(crate) use enabled::{found, open};
