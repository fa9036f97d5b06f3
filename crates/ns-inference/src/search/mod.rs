//! The search for the lowest minimum of -ln L: the one place that decides which minimum is the
//! right one.
//!
//! [`Search::run`] finds the minimum that a starting point leads to. [`Search::explore`] looks for
//! lower ones where the model indicates that they may be: across zero of same-sign systematics, and
//! with strongly nonlinear parameters ([`Suspect`]) moved away from where they are. Random starts
//! ([`Search::run_all`]) need no indication. What was found is kept in a [`BasinPool`], whose
//! basins are starting points for every further fit of the same model and data.
//!
//! The effort depends on the model. Without suspects only same-sign systematics are reflected. In a
//! small model every suspect is moved in every fit that is explored: all but those on the way to
//! another one. In a large model -ln L and its derivative with one parameter moved decide what is
//! minimised from, and the strongest suspects are moved in any case.

mod candidates;
mod explore;
mod growth;
mod local;
mod mirror;
mod nearby;
mod pool;
mod random;
mod suspects;

pub use candidates::Candidates;
pub use explore::SearchBreadth;
pub use local::{Search, SearchCost};
pub use mirror::Mirrors;
pub use pool::{Basin, BasinPool, FoundBy, MOST_BASINS};
pub use random::RandomStarts;
pub use suspects::{Suspect, SuspectKind, suspects};

pub(crate) use explore::{has_other_side, is_cheap, may_hide_minimum};

/// Minima further apart than this in -ln L are different ones.
const DISTINCT: f64 = 1e-6;

/// Differences that are smaller than this part of -ln L are rounding.
const ROUNDING: f64 = 1e-12;

/// Returns `true` if -ln L at one minimum, `nll`, is lower than at another, so that they are
/// different ones.
#[must_use]
pub fn is_lower(nll: f64, other: f64) -> bool {
    nll < other - DISTINCT
}

/// Returns `true` if -ln L is the same at two minima, as far as fits find it.
#[must_use]
pub(crate) fn is_equally_deep(nll: f64, other: f64) -> bool {
    (nll - other).abs() <= DISTINCT
}

/// Returns `true` if a minimum this far above another one may be the same.
#[must_use]
pub(crate) fn is_negligible(rise: f64) -> bool {
    rise < DISTINCT
}

/// Returns how far apart different minima are near a value of `nll`, where rounding may be larger.
pub(crate) fn distinct(nll: f64) -> f64 {
    DISTINCT.max(ROUNDING * nll.abs())
}
