//! Logarithms and differences of whole arrays by Apple's Accelerate framework, where it was built
//! in and is not switched off.
//!
//! The feature `accelerate` builds it in on macOS; `NEXTSTAT_DISABLE_ACCELERATE=1` switches it off
//! at run time. Elsewhere [`half_deviances`] is the plain loop.

#[cfg(all(feature = "accelerate", target_os = "macos"))]
mod enabled;
#[cfg(all(feature = "accelerate", target_os = "macos"))]
pub(crate) use enabled::half_deviances;

#[cfg(not(all(feature = "accelerate", target_os = "macos")))]
mod disabled;
#[cfg(not(all(feature = "accelerate", target_os = "macos")))]
pub(crate) use disabled::half_deviances;
