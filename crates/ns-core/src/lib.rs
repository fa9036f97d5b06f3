//! The vocabulary and the mathematics of HistFactory models, for every other crate to stand on.
//!
//! A [`spec::Workspace`] is a model as written; [`compile()`] turns it into a [`Model`] of flat arrays, where every check is made and
//! every name becomes an index. No I/O, no threads, no unsafe code.

pub mod check;
pub mod compile;
pub mod curvature;
pub mod expected;
pub mod interpolate;
pub mod likelihood;
pub mod model;
pub mod parameters;
pub mod poisson;
pub mod scalar;
pub mod spec;
pub mod summary;
pub mod twofold;

pub use compile::{CompileError, CompileOptions, PoiChoice, compile};
pub use curvature::{Arrowhead, Curvature, GaussNewton, Partition, Structure};
pub use likelihood::Likelihood;
pub use model::{BinPlace, Data, Model};
pub use parameters::{Constraint, Parameters};

/// The candidate most like `name`, if any is like it at all: for "did you mean".
pub fn similar_name<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let scored = candidates.map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
