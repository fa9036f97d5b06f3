//! What one does with a likelihood: fits, uncertainties, intervals.
//!
//! Everything here stands on the trait `ns_core::Likelihood` and knows neither documents nor devices.

pub mod linear;
pub mod minimize;
