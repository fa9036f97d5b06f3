//! Simplified likelihoods: the yields of a few channels as polynomials of correlated normal
//! variables, with the moments that the full model gives them.
//!
//! The parameters are normal around a fit of the other channels, with the covariance of that fit.
//! A yield is expanded to second order in them with exact derivatives ([`YieldMoments`]), and its
//! first three moments, with all covariances, determine the yield of the simplified model
//! ([`SimplifiedYields`]): λ_b = a_b + b_b θ_b + c_b θ_b², with θ normal with unit variances and
//! correlations ρ (arXiv:1809.05548). The linear form (CMS NOTE-2017/001) has c = 0.

mod form;
mod moments;

pub use form::{SimplifiedForm, SimplifiedYields};
pub use moments::{NoMoments, YieldMoments};
