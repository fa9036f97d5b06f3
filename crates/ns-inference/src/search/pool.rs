//! The basins that the fits of one model and data set have met.

use super::Search;
use super::depth::{differs, distinct, is_below};
use crate::minimize::Minimum;
use ns_core::SearchLikelihood;

/// The largest number of basins that are kept: each costs a fit whenever parameters are fixed.
pub const MOST_BASINS: usize = 8;

/// A minimum as high as another one is a mirror image if -ln L between the two is higher by this,
/// and else a point of the same flat valley.
const BARRIER: f64 = 1e-3;

/// Minima with different fixed values are of one branch if no free parameter differs by more than
/// this, in units of 1 or of itself.
const SAME_BRANCH: f64 = 0.3;

/// How a minimum was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FoundBy {
    /// From the starting values, or from where another fit pointed to.
    Start,
    /// From another minimum with the sign of this same-sign systematic changed.
    Reflection(usize),
    /// From another minimum with this parameter moved to this value.
    Move(usize, f64),
    /// From this one of the random starts.
    RandomStart(usize),
    /// From this one of the random starts near a minimum with large pulls.
    NearPulled(usize),
    /// From a minimum with some parameters fixed.
    Conditional,
}

impl FoundBy {
    /// Returns the same in words; `names` are the parameters' names.
    #[must_use]
    pub fn describe(self, names: &[String]) -> String {
        match self {
            Self::Start => "start".to_owned(),
            Self::Reflection(i) => format!("sign of `{}` changed", names[i]),
            Self::Move(i, value) => format!("`{}` moved to {value}", names[i]),
            Self::RandomStart(k) => format!("random start {}", k + 1),
            Self::NearPulled(k) => format!("random start {} near a minimum with large pulls", k + 1),
            Self::Conditional => "conditional fit".to_owned(),
        }
    }
}

/// A minimum, free or with some parameters fixed, as a starting point for other fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Basin {
    /// The minimum.
    pub minimum: Minimum,
    /// How it was found first.
    pub found_by: FoundBy,
    /// Starting points that led to it.
    pub n_starts: usize,
}

/// Distinct minima, in the order in which they were found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BasinPool {
    basins: Vec<Basin>,
    /// The number of basins ever added.
    n_added: usize,
}

impl BasinPool {
    /// Returns the basins.
    #[must_use]
    pub fn basins(&self) -> &[Basin] {
        &self.basins
    }

    /// Returns the number of basins ever added: it grows when something new is found.
    #[must_use]
    pub fn n_found(&self) -> usize {
        self.n_added
    }

    /// Forgets all basins.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns `true` if there is no room for more basins.
    fn is_full(&self) -> bool {
        self.basins.len() == MOST_BASINS
    }

    /// Adds `minimum` unless it is known, which `likelihood` decides where two are equally deep.
    /// Without room it takes the place of the highest basin, if it is lower.
    pub(crate) fn add<L: SearchLikelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        minimum: &Minimum,
        found_by: FoundBy,
    ) {
        if !minimum.converged() || self.count(likelihood, minimum, 1) {
            return;
        }
        if self.is_full() {
            let heights = self.basins.iter().map(|basin| basin.minimum.nll).enumerate();
            match heights.max_by(|a, b| a.1.total_cmp(&b.1)) {
                Some((highest, nll)) if is_below(minimum.nll, nll) => self.basins.remove(highest),
                _ => return,
            };
        }
        self.push(Basin { minimum: minimum.clone(), found_by, n_starts: 1 });
    }

    /// Counts `n` further starts that led to `minimum`. Returns whether that is known.
    pub(crate) fn count<L: SearchLikelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        minimum: &Minimum,
        n: usize,
    ) -> bool {
        let known = self.basins.iter_mut().find(|known| !are_distinct(likelihood, &known.minimum, minimum));
        known.map(|known| known.n_starts += n).is_some()
    }

    /// Adds `minimum`, which was found with some parameters fixed, unless a basin is near it: then
    /// that basin moves here. Without room it takes the place of the basin that was added longest
    /// ago: minima with different values fixed cannot be compared.
    pub(crate) fn add_branch(&mut self, minimum: &Minimum, found_by: FoundBy, fixed: &[(usize, f64)]) {
        let is_near = |known: &Basin| {
            let each = minimum.params.iter().zip(&known.minimum.params).enumerate();
            let mut free = each.filter(|(j, _)| fixed.iter().all(|(i, _)| i != j));
            free.all(|(_, (x, y))| (x - y).abs() <= SAME_BRANCH * y.abs().max(1.0))
        };
        match self.basins.iter().position(is_near) {
            Some(k) => self.update(k, minimum),
            None => self.push(Basin { minimum: minimum.clone(), found_by, n_starts: 1 }),
        }
    }

    /// Moves basin `k` to the minimum `to`, which a fit that started there has found.
    pub(crate) fn update(&mut self, k: usize, to: &Minimum) {
        self.basins[k].minimum = to.clone();
    }

    /// Adds a basin; without room, in place of the one that was added longest ago.
    fn push(&mut self, basin: Basin) {
        if self.is_full() {
            self.basins.remove(0);
        }
        self.basins.push(basin);
        self.n_added += 1;
    }
}

/// Returns `true` if `a` and `b` are different minima: of different depth, or mirror images.
pub(crate) fn are_distinct<L: SearchLikelihood + ?Sized>(likelihood: &mut L, a: &Minimum, b: &Minimum) -> bool {
    if differs(b.nll, a.nll) {
        return true;
    }
    let is_near = |(x, y): (&f64, &f64)| (x - y).abs() <= 0.1 * x.abs().max(1.0);
    if a.params.iter().zip(&b.params).all(is_near) {
        return false;
    }
    let middle: Vec<f64> = a.params.iter().zip(&b.params).map(|(x, y)| 0.5 * (x + y)).collect();
    likelihood.nll(&middle) > a.nll.max(b.nll) + BARRIER.max(distinct(a.nll))
}

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Returns `true` if `a` and `b` are different minima.
    pub(crate) fn are_distinct(&mut self, a: &Minimum, b: &Minimum) -> bool {
        are_distinct(self.likelihood, a, b)
    }
}
