//! The search for the lowest minimum of -ln L: the one place that decides which minimum is the
//! right one.
//!
//! [`Search::run`] finds the minimum that a starting point leads to. [`Search::explore`] looks for
//! lower ones where the model indicates that they may be: across zero of same-sign systematics, and
//! with strongly nonlinear parameters ([`Suspect`]) moved away from where they are. Random starts
//! ([`Search::run_all`]) need no indication. What was found is kept in a [`BasinPool`], whose
//! basins are starting points for every further fit of the same model and data. `KnownMinima` keeps
//! the lowest free minimum, replaces it by lower ones, and rescues fits that failed; `depth` has
//! every comparison of minima, with its tolerance.
//!
//! The effort depends on the model. Without suspects only same-sign systematics are reflected. In a
//! small model every suspect is moved in every fit that is explored: all but those on the way to
//! another one. In a large model -ln L and its derivative with one parameter moved decide what is
//! minimised from, and the strongest suspects are moved in any case.

mod candidates;
mod depth;
mod explore;
mod growth;
mod known;
mod local;
mod mirror;
mod nearby;
mod pool;
mod random;
mod suspects;

pub use candidates::Candidates;
pub use depth::{is_lower, is_lower_in_twice_nll};
pub use explore::SearchBreadth;
pub use local::{Search, SearchCost};
pub use mirror::Mirrors;
pub use pool::{Basin, BasinPool, FoundBy, MOST_BASINS};
pub use random::RandomStarts;
pub use suspects::{Suspect, SuspectKind, suspects};

pub(crate) use depth::{
    falls_below, is_as_deep, is_below, is_below_best_fit, is_below_free, is_better_end, is_distinctly_lower,
    is_equally_deep, is_negligible, is_within_rounding, lowest_of, rises, told_apart, without_rounding,
};
pub(crate) use explore::{has_other_side, is_cheap, may_hide_minimum};
pub(crate) use known::{KnownMinima, MetMinima, unknown};
