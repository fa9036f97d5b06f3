//! Where a profile that rises along a line reaches a height.
//!
//! Heights are √(2 Δ(-ln L)), which is a straight line for a parabola, so that Newton's steps are
//! nearly right from the first one on; a bracket keeps them honest.

use crate::minimize::{Minimum, Outcome};

/// A line from a minimum outwards, and what is looked for on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileLine {
    /// The height to reach.
    pub(crate) target: f64,
    /// How well.
    pub(crate) tolerance: f64,
    /// The first place to look at.
    pub(crate) first: f64,
    /// Where the line ends.
    pub(crate) end: f64,
}

/// The profile at a place of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileRise {
    /// √(2 Δ); infinite where the likelihood is.
    pub(crate) value: f64,
    /// Its derivative along the line.
    pub(crate) derivative: f64,
}

impl ProfileRise {
    /// Returns the rise of the conditional minimum `at` above `best` (-ln L), where the derivative
    /// of -ln L along the line is `derivative`.
    pub(crate) fn of(at: &Minimum, best: f64, derivative: f64) -> Result<Self, Outcome> {
        match at.outcome {
            Outcome::Converged => {
                let value = (2.0 * (at.nll - best).max(0.0)).sqrt();
                Ok(Self { value, derivative: derivative / value })
            }
            Outcome::NotFinite => Ok(Self { value: f64::INFINITY, derivative: f64::NAN }),
            outcome => Err(outcome),
        }
    }
}

/// How far out the height is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Crossing {
    /// At this distance from the start of the line.
    At(f64),
    /// Nowhere before the line's end, or as far as was searched.
    Open(f64),
    /// Nowhere: the likelihood is infinite beyond this.
    EndOfDomain(f64),
    /// A conditional fit did not converge.
    Failed(Outcome),
}

/// Most conditional fits along a line.
const PATIENCE: usize = 60;

/// Follows `line`, on which `height_at` is the profile.
pub(crate) fn crossing(line: &ProfileLine, mut height_at: impl FnMut(f64) -> Result<ProfileRise, Outcome>) -> Crossing {
    let resolution = 1e-3 * line.tolerance * line.first;
    let (mut inner, mut outer) = (0.0, None);
    let mut next = line.first.min(line.end);
    if next.is_nan() || next <= 0.0 {
        return Crossing::Open(0.0);
    }
    for _ in 0..PATIENCE {
        let height = match height_at(next) {
            Ok(height) => height,
            Err(outcome) => return Crossing::Failed(outcome),
        };
        if (height.value - line.target).abs() < line.tolerance {
            return Crossing::At(next);
        }
        if height.value > line.target {
            outer = Some((next, height.value.is_finite()));
        } else if next >= line.end {
            return Crossing::Open(line.end);
        } else {
            inner = next;
        }
        if let Some((outer, is_finite)) = outer
            && outer - inner <= resolution
        {
            return if is_finite { Crossing::At(next) } else { Crossing::EndOfDomain(inner) };
        }
        next = propose(next, line, height, inner, outer.map(|(at, _)| at)).min(line.end);
    }
    if outer.is_none() { Crossing::Open(inner) } else { Crossing::Failed(Outcome::IterationLimit) }
}

/// Returns the Newton step, kept inside the bracket; bisection where it leaves it, and at most
/// threefold outwards.
fn propose(at: f64, line: &ProfileLine, height: ProfileRise, inner: f64, outer: Option<f64>) -> f64 {
    let newton = at + (line.target - height.value) / height.derivative;
    match outer {
        Some(outer) if newton > inner && newton < outer => newton,
        Some(outer) => 0.5 * (inner + outer),
        None if newton > at => newton.min(3.0 * at),
        None => 2.0 * at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(end: f64) -> ProfileLine {
        ProfileLine { target: 2.0, tolerance: 1e-9, first: 1.0, end }
    }

    #[test]
    fn lines_end_in_four_ways() {
        let curved = |t: f64| Ok(ProfileRise { value: t + 0.1 * t * t, derivative: 1.0 + 0.2 * t });
        let expected = -5.0 + 45.0_f64.sqrt();
        let found = crossing(&line(9.0), curved);
        assert!(matches!(found, Crossing::At(t) if (t - expected).abs() < 1e-8), "{found:?}");
        assert_eq!(crossing(&line(1.5), curved), Crossing::Open(1.5));
        assert_eq!(crossing(&line(0.0), curved), Crossing::Open(0.0));
        let ends =
            |t: f64| if t < 1.2 { curved(t) } else { Ok(ProfileRise { value: f64::INFINITY, derivative: f64::NAN }) };
        let found = crossing(&line(9.0), ends);
        assert!(matches!(found, Crossing::EndOfDomain(t) if (t - 1.2).abs() < 1e-8), "{found:?}");
        assert_eq!(crossing(&line(9.0), |_| Err(Outcome::Stalled)), Crossing::Failed(Outcome::Stalled));
    }

    #[test]
    fn a_jump_is_bracketed_and_a_plateau_passed() {
        let jump = |t: f64| Ok(ProfileRise { value: if t < 1.7 { 0.5 } else { 3.0 }, derivative: 0.0 });
        let found = crossing(&line(9.0), jump);
        assert!(matches!(found, Crossing::At(t) if (t - 1.7).abs() < 1e-8), "{found:?}");
    }
}
