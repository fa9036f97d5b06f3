//! What a modifier says of its constraint term.

use ns_core::spec::{ConstraintTerm, ModifierKind};

use super::document::Read;
use crate::json::{JsonCursor, JsonObject};

/// The constraint term of a modifier with one parameter, as written.
pub(super) enum WrittenConstraint<'c> {
    None,
    /// A term of the standard, with its datum.
    Implied(ConstraintTerm, f64),
    /// A reference to a distribution.
    Named(JsonCursor<'c>),
}

/// Reads the constraint term of a modifier of kind `kind`.
///
/// A type is that of a distribution of unit width: of a Gaussian around 0 for a `normsys` or
/// `histosys` and around 1 for a `normfactor`, of a Poisson distribution with one event. A
/// log-normal one has ln a = 0 around α, and so is the same as the Gaussian.
pub(super) fn constraint<'c>(object: &JsonObject<'c>, kind: ModifierKind) -> Read<WrittenConstraint<'c>> {
    if let Some(reference) = object.get("constraint_name") {
        return Ok(WrittenConstraint::Named(reference));
    }
    let is_factor = kind == ModifierKind::NormFactor;
    let written = object.get("constraint_type").or_else(|| object.get("constraint")).filter(|word| !word.is_null());
    let Some(word) = written else {
        let unit = WrittenConstraint::Implied(ConstraintTerm::Gaussian { sigma: 1.0 }, 0.0);
        return Ok(if is_factor { WrittenConstraint::None } else { unit });
    };
    Ok(match (word.text()?, is_factor) {
        ("Gauss", _) => {
            WrittenConstraint::Implied(ConstraintTerm::Gaussian { sigma: 1.0 }, if is_factor { 1.0 } else { 0.0 })
        }
        ("Poisson", _) => WrittenConstraint::Implied(ConstraintTerm::Poisson { tau: 1.0 }, 1.0),
        ("LogNormal" | "Lognormal", false) => WrittenConstraint::Implied(ConstraintTerm::Gaussian { sigma: 1.0 }, 0.0),
        _ => return Err(super::unsupported("a constraint term of type", &word)),
    })
}

/// Returns the names that ROOT gives the factors of bins.
pub(super) fn names_of_bins(base: &str, n_bins: usize) -> Vec<String> {
    (0..n_bins).map(|bin| format!("{base}_bin_{bin}")).collect()
}
