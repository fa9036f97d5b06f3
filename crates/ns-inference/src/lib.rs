//! What one does with a likelihood: fits, uncertainties, intervals.
//!
//! Everything here stands on the trait `ns_core::Likelihood` and knows neither documents nor devices.

pub mod accelerator;
pub mod asymptotic;
pub mod chi_squared;
pub mod contour;
mod crossing;
pub mod degeneracy;
pub mod differentiable;
pub mod fit;
pub mod gof;
pub mod hessian;
pub mod hypotest;
pub mod limit;
pub mod linear;
pub mod memory;
pub mod minimize;
pub mod minos;
pub mod monitor;
pub mod normal;
pub mod options;
mod parabolic;
pub mod parallel;
mod polish;
pub mod problem;
pub mod profile;
pub mod propagate;
pub mod pulls;
pub mod random;
pub mod ranking;
mod response;
pub mod result;
mod root;
pub mod scan;
pub mod search;
pub mod test_statistic;
pub mod toys;
pub mod yields;

pub use accelerator::Accelerator;
pub use degeneracy::degeneracy;
pub use differentiable::{DifferentiableError, DifferentiableOptions, ProfiledDifferentiableSession};
pub use fit::fit;
pub use options::{FitOptions, MultiStart, Uncertainties};
pub use problem::Problem;
pub use result::FitResult;

/// The examples of `docs/rust.md`, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct RustGuide;
