//! The plain loop, for builds without Accelerate.

use ns_core::poisson::half_deviance;

/// Returns Σ half-deviances of bins that expect `lambda` where `observed` was seen.
#[inline(always)]
pub(crate) fn half_deviances(observed: &[f64], lambda: &[f64]) -> f64 {
    observed.iter().zip(lambda).map(|(&n, &l)| half_deviance(n, l)).sum()
}
