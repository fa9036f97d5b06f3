//! Development only: random and small workspaces, published ones, points to evaluate them at, and
//! assertions. Shipped code never depends on it.

pub mod exhaustive;
pub mod multimodal;
pub mod parity;
pub mod published;
pub mod random;
pub mod small;

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
