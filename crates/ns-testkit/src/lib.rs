//! Development only: random and small workspaces, published ones, points to evaluate them at, and
//! assertions. Shipped code never depends on it.
//!
//! | module | contents |
//! |---|---|
//! | [`small`] | models by hand, whose results are known |
//! | [`random`] | workspaces and points from a seed |
//! | [`multimodal`] | models with several minima, by cause |
//! | [`exhaustive`] | the lowest minimum by a long search: what `ns_inference::search` must find |
//! | [`published`] | published likelihoods with reference numbers |
//! | [`parity`] | how far a device may be off the CPU |
//! | [`layers`] | the order of a crate's modules |
//!
//! ```
//! use ns_core::spec::ModifierData::NormFactor;
//! use ns_testkit::assert_close;
//! use ns_testkit::small::{one_channel, sample};
//!
//! let signal = sample("signal", &[5.0], &[("mu", NormFactor)]);
//! let model = one_channel(vec![signal, sample("background", &[50.0], &[])], &[60.0]);
//! assert_eq!(model.parameters.names, ["mu"]);
//! assert_close(model.observed.main[0], 60.0, 0.0, "the observed count");
//! ```

pub mod exhaustive;
pub mod formulas;
pub mod inputs;
pub mod layers;
pub mod multimodal;
pub mod parity;
pub mod published;
pub mod random;
mod rules;
pub mod small;
mod terms;
mod yield_rules;

/// Fails unless `a` is `b` within `tolerance`, relative to the larger of 1 and |b|; `what` names
/// the number.
pub fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    let equal = a == b || (a - b).abs() <= tolerance * b.abs().max(1.0);
    assert!(equal, "{what}: {a} is not {b} within {tolerance:e}");
}

/// Calls [`assert_close`] for every element.
pub fn assert_all_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: lengths differ");
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        assert_close(a, b, tolerance, &format!("{what}[{i}]"));
    }
}
