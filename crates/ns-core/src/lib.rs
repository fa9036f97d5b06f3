//! The vocabulary and the mathematics of HistFactory models, for every other crate to stand on.
//!
//! A [`spec::Workspace`] is a model as written; [`compile()`] turns it into a [`Model`] of flat arrays, where every check is made and
//! every name becomes an index. No I/O, no threads, no unsafe code.

pub mod batch;
pub mod check;
pub mod compile;
pub mod curvature;
pub mod expected;
pub mod interpolate;
pub mod likelihood;
pub mod model;
pub mod nonlinearity;
pub mod parameters;
pub mod poisson;
pub mod scalar;
pub mod sensitivity;
pub mod spec;
pub mod summary;
pub mod taylor;
pub mod templates;
pub mod twofold;

pub use compile::{CompileError, CompileOptions, PoiChoice, compile};
pub use curvature::{Arrowhead, Curvature, GaussNewton, Partition, Structure};
pub use likelihood::{DataLikelihood, Likelihood};
pub use model::{BinPlace, Data, Model};
pub use parameters::{Constraint, Parameters};
pub use templates::{Inputs, TemplateLikelihood};

/// The candidate most like `name`, if any is like it at all: for "did you mean".
///
/// Alike are a name and its beginning, and names in which few letters differ.
///
/// ```
/// use ns_core::similar_name;
/// assert_eq!(similar_name("Mu", ["xs", "mu"].into_iter()), Some("mu"));
/// assert_eq!(similar_name("mu_SIG", ["MUO_ID", "xs"].into_iter()), None);
/// ```
pub fn similar_name<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness = |candidate: &str| {
        // Comparing takes time with the product of the lengths, and nobody mistypes a name of this size.
        if name.len().max(candidate.len()) > 500 {
            return 0.0;
        }
        let candidate = candidate.to_lowercase();
        let is_beginning = candidate.starts_with(&name) || name.starts_with(&candidate);
        let is_alike = is_beginning || strsim::normalized_damerau_levenshtein(&name, &candidate) >= 0.6;
        if is_alike { strsim::jaro_winkler(&name, &candidate) } else { 0.0 }
    };
    let scored = candidates.map(|candidate| (likeness(candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
