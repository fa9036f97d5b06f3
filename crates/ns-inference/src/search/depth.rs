//! How deep minima are: which of two is the lower one, and how far apart two values of -ln L must
//! be to say so.
//!
//! Which tolerance applies depends on how the two values were found:
//!
//! | the two values are of | they differ by more than | function |
//! |---|---|---|
//! | minima of separate fits | 1e-6 | [`is_lower`], [`is_equally_deep`], [`is_negligible`] |
//! | minima of separate fits, where -ln L may be large | 1e-6 or 1e-12 of -ln L | [`is_distinctly_lower`], [`is_as_deep`], [`is_at_most`], [`differs`] |
//! | free minima by two ways to search, as 2NLL | 1e-5 | [`is_lower_in_twice_nll`] |
//! | a conditional minimum and the free one | 1e-9 | [`is_below_free`] |
//! | a point of a MINOS interval and the best fit | 1e-7 | [`is_below_best_fit`] |
//! | minima of one statistic | 1e-9 of -ln L | [`falls_below`], [`is_within_rounding`], [`without_rounding`] |
//! | converged fits that may have the same minimum | 1e-13 of -ln L | [`told_apart`] |
//! | points of one descent | 1e-10 or 1e-12 of -ln L | [`is_lower_behind_kink`], [`is_lower_than_point`] |
//! | both ends of the last Newton step | 2e-14 of -ln L | [`rises`] |
//! | ends of the same fit, of which one is kept | 0 | [`is_below`], [`is_better_end`], [`lowest_of`] |
//!
//! A part "of -ln L" is one of max(|-ln L|, 1).

use crate::minimize::Minimum;

/// Minima of separate fits that are further apart than this in -ln L are different ones.
const DISTINCT: f64 = 1e-6;

/// Differences that are smaller than this part of -ln L are rounding, however far apart different
/// minima must be.
const DISTINCT_PART: f64 = 1e-12;

/// Values of -2 ln L that two ways to search have found, and that differ by more than this, are of
/// different minima.
const DISTINCT_TWICE_NLL: f64 = 1e-5;

/// How far below the free minimum a conditional one must be for the free one to be looked for
/// again.
const BELOW_FREE: f64 = 1e-9;

/// How far below the best fit a conditional minimum of a MINOS interval must be to count as another
/// minimum.
const BELOW_BEST_FIT: f64 = 1e-7;

/// The part of -ln L that rounding alone can change between two minima of one statistic.
const ROUNDING: f64 = 1e-9;

/// The smallest part of -ln L by which two converged fits can be told apart: some hundred
/// roundings.
const RESOLUTION: f64 = 1e-13;

/// The part of -ln L by which a minimum must be below the point that a descent went on from.
const BELOW_POINT: f64 = 1e-12;

/// The part of -ln L by which a minimum behind a kink must be below the one before it.
const BELOW_KINK: f64 = 1e-10;

/// The part of -ln L that a last Newton step may raise it by, which is rounding.
const STEP_ROUNDING: f64 = 2e-14;

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

/// Returns how far apart different minima are near a value of `nll`, where rounding may be larger
/// than the usual distance.
pub(super) fn distinct(nll: f64) -> f64 {
    DISTINCT.max(DISTINCT_PART * nll.abs())
}

/// Returns `true` if -ln L at one minimum, `nll`, is lower than at another by more than rounding of
/// large values, so that they are different minima.
pub(crate) fn is_distinctly_lower(nll: f64, other: f64) -> bool {
    nll < other - distinct(other)
}

/// Returns `true` if -ln L at a point, `nll`, is no higher than at another, as far as fits find it
/// and as far as large values are rounded.
pub(super) fn is_at_most(nll: f64, other: f64) -> bool {
    nll <= other + distinct(other)
}

/// Returns `true` if -ln L at one minimum, `nll`, is that at another, as far as fits find it and as
/// far as large values are rounded.
pub(crate) fn is_as_deep(nll: f64, other: f64) -> bool {
    (nll - other).abs() <= distinct(other)
}

/// Returns `true` if -ln L differs at two minima by more than fits find it to and than large values
/// are rounded. Values that are not finite do not differ.
pub(super) fn differs(nll: f64, other: f64) -> bool {
    (nll - other).abs() > distinct(other)
}

/// Returns `true` if -2 ln L at one minimum is lower than at another that was searched for in a
/// different way, so that they are different minima.
#[must_use]
pub fn is_lower_in_twice_nll(twice_nll: f64, other: f64) -> bool {
    twice_nll < other - DISTINCT_TWICE_NLL
}

/// Returns `true` if a conditional minimum is so far below the free one, at `free`, that the free
/// one is not the lowest.
pub(crate) fn is_below_free(nll: f64, free: f64) -> bool {
    nll < free - BELOW_FREE
}

/// Returns `true` if a conditional minimum of a MINOS interval, which is higher than the best fit
/// by `rise`, shows that the best fit is not the lowest minimum.
pub(crate) fn is_below_best_fit(rise: f64) -> bool {
    rise < -BELOW_BEST_FIT
}

/// Returns the difference of -ln L near a value of `nll` that rounding alone can make.
fn rounding(nll: f64) -> f64 {
    ROUNDING * nll.abs().max(1.0)
}

/// Returns `true` if a conditional minimum, which is higher than the free one at `free` by `rise`,
/// is below it by more than rounding: the statistic that compares the two is meaningless then.
pub(crate) fn falls_below(rise: f64, free: f64) -> bool {
    rise < -rounding(free)
}

/// Returns the `rise` of a conditional minimum above the free one at `free`; 0 where it is negative
/// by rounding only.
pub(crate) fn without_rounding(rise: f64, free: f64) -> f64 {
    if rise < 0.0 && rise > -rounding(free) { 0.0 } else { rise }
}

/// Returns `true` if two values of -ln L differ by no more than rounding.
pub(crate) fn is_within_rounding(nll: f64, other: f64) -> bool {
    (nll - other).abs() <= rounding(other)
}

/// Returns the `rise` of -ln L between two minima near `nll`; 0 if two converged fits to the same
/// minimum may differ as much. So at μ = 0 both q̃ and its Asimov value are 0.
pub(crate) fn told_apart(rise: f64, nll: f64) -> f64 {
    if rise < RESOLUTION * nll.abs().max(1.0) { 0.0 } else { rise }
}

/// Returns `true` if -ln L at the end of a descent, `nll`, is below that at the point which the
/// descent went on from, by more than rounding.
pub(super) fn is_lower_than_point(nll: f64, point: f64) -> bool {
    nll < point - BELOW_POINT * point.abs().max(1.0)
}

/// Returns `true` if -ln L at a minimum behind a kink, `nll`, is below that at the minimum before
/// it, by more than rounding.
pub(super) fn is_lower_behind_kink(nll: f64, before: f64) -> bool {
    nll < before - BELOW_KINK * before.abs().max(1.0)
}

/// Returns `true` if a last Newton step has raised -ln L from `before` to `nll` by more than
/// rounding, or has left the domain.
pub(crate) fn rises(nll: f64, before: f64) -> bool {
    nll.is_nan() || nll > before + STEP_ROUNDING * before.abs().max(1.0)
}

/// Returns `true` if -ln L is lower at one point, `nll`, than at `other`, by however little: to
/// keep the lower of two ends of the same fit, or to notice that a minimum was replaced.
pub(crate) fn is_below(nll: f64, other: f64) -> bool {
    nll < other
}

/// Returns `true` if `a` is the better of two ends of the same fit: of two minima the lower one,
/// and a minimum rather than a point where the fit did not converge.
pub(crate) fn is_better_end(a: &Minimum, b: &Minimum) -> bool {
    match (a.converged(), b.converged()) {
        (true, true) => is_below(a.nll, b.nll),
        (a, b) => a && !b,
    }
}

/// Returns the lowest of `ends`, the first one of equals; `nll` returns -ln L at an end.
pub(crate) fn lowest_of<T>(ends: impl Iterator<Item = T>, nll: impl Fn(&T) -> f64) -> Option<T> {
    ends.min_by(|a, b| nll(a).total_cmp(&nll(b)))
}
