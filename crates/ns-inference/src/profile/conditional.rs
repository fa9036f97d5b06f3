//! Minima with some parameters fixed: predicted from the free minimum, looked for from every basin
//! that is known, and explored.
//!
//! | entry point | fits start where | explored |
//! |---|---|---|
//! | [`Profiler::at`] | the minimum is predicted | if that is cheap |
//! | [`Profiler::at_from`] | the caller says | if that is cheap |
//! | [`Profiler::at_end`] | the caller says | always |
//! | [`Profiler::at_explored`] | it is predicted, and the caller says | always |
//! | [`Profiler::at_on_the_way`] | it is predicted, and the caller says | unless suspects would be moved |
//! | [`Profiler::at_with_last_factor`] | the last Hessian predicts it | always |
//!
//! Each returns the lowest minimum that it meets, and also starts from the basins of the pool.
//! Should all fail, the starting values of the model are tried. A conditional minimum below the
//! free one makes the profiler look for the free one again.

use super::Profiler;
use crate::accelerator::key;
use crate::minimize::Minimum;
use crate::search::{FoundBy, MetMinima, SearchBreadth, is_below_free};
use ns_core::SearchLikelihood;

/// The number of conditional fits of a profiler that have random starts of their own if those are
/// asked for, and starts near minima with large pulls. In models that do not explore widely, no
/// later fits are explored in full. Later ones start from the basins that these fits found.
const FULLY_SEARCHED: usize = 2;

/// Fits also start where other branches are: at conditional minima for values this many times as
/// far from the best fit as the value that is asked for.
const DISTANCES: [f64; 3] = [0.5, 2.0, 5.0];

/// Whether a conditional minimum is explored (`crate::search`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exploration {
    Always,
    IfCheap,
    Never,
}

impl<L: SearchLikelihood + ?Sized> Profiler<'_, L> {
    /// Returns the minimum with each parameter of `fixed` at its value, which may lie outside its
    /// range. The fit starts where the Hessian of the free minimum predicts the conditional one,
    /// and is explored if that costs little.
    pub fn at(&mut self, fixed: &[(usize, f64)]) -> Minimum {
        let predicted = self.predict(fixed);
        self.at_from(fixed, &[predicted])
    }

    /// Returns the minimum with parameter `i` fixed at `value`, explored. The fit starts where the
    /// Hessian predicts it that the search for the free minimum factorised last: nearly the one at
    /// the minimum, and at no cost. If the minimiser has done something else since, or that Hessian
    /// was not exact, this is [`Profiler::at_explored`].
    pub(crate) fn at_with_last_factor(&mut self, i: usize, value: f64) -> Minimum {
        let best = &self.known.best.params;
        let mut column = vec![0.0; best.len()];
        if self.hessian.is_some() || !self.search.covariance_column(best, i, &mut column) {
            return self.at_explored(&[(i, value)], &[]);
        }
        let step = (value - best[i]) / column[i];
        let predicted = best.iter().zip(&column).map(|(x, c)| x + step * c).collect();
        self.conditional(&[(i, value)], &[predicted], Exploration::Always)
    }

    /// Returns the lowest minimum with each parameter of `fixed` at its value that `starts` (each
    /// P) lead to, not where it is predicted; explored if that costs little.
    pub fn at_from(&mut self, fixed: &[(usize, f64)], starts: &[Vec<f64>]) -> Minimum {
        self.conditional(fixed, starts, Exploration::IfCheap)
    }

    /// Returns the lowest minimum with each parameter of `fixed` at its value, explored. Fits start
    /// where the minimum is predicted, and from `others` (each P).
    pub fn at_explored(&mut self, fixed: &[(usize, f64)], others: &[Vec<f64>]) -> Minimum {
        let mut starts = vec![self.predict(fixed)];
        starts.extend_from_slice(others);
        self.conditional(fixed, &starts, Exploration::Always)
    }

    /// Returns the lowest minimum with each parameter of `fixed` at its value that `starts` (each
    /// P) lead to, explored: for the ends of a sequence of fits.
    pub(crate) fn at_end(&mut self, fixed: &[(usize, f64)], starts: &[Vec<f64>]) -> Minimum {
        self.conditional(fixed, starts, Exploration::Always)
    }

    /// Returns the lowest minimum with each parameter of `fixed` at its value, without exploring
    /// where that would move suspects: for fits on the way to one that is explored. Fits start
    /// where the minimum is predicted, and from `others` (each P).
    pub fn at_on_the_way(&mut self, fixed: &[(usize, f64)], others: &[Vec<f64>]) -> Minimum {
        let mut starts = vec![self.predict(fixed)];
        starts.extend_from_slice(others);
        let exploration = if self.explores_widely() { Exploration::Never } else { Exploration::Always };
        self.conditional(fixed, &starts, exploration)
    }

    fn conditional(&mut self, fixed: &[(usize, f64)], starts: &[Vec<f64>], exploration: Exploration) -> Minimum {
        let (is_thorough, widely) =
            self.with_fixed(fixed, |profiler| (profiler.search.is_thorough(), profiler.explores_widely()));
        let explores = match exploration {
            Exploration::Always => self.explores,
            Exploration::IfCheap => self.explores && is_thorough,
            Exploration::Never => false,
        };
        let mut starts: Vec<Vec<f64>> = starts.iter().map(|start| self.allowed(start)).collect();
        // Predicted with the Hessian of the free minimum, in which these parameters are free.
        let nearby = if explores && widely { self.predicted_nearby(fixed) } else { Vec::new() };
        if explores && widely {
            // Where the fit would start that has these parameters fixed from the beginning.
            starts.push(self.start.clone());
        }
        let lowest = self.with_fixed(fixed, |profiler| profiler.lowest_fixed(fixed, &mut starts, &nearby, explores));
        self.learn_from(fixed, &lowest);
        lowest
    }

    /// Returns the lowest minimum from `starts` (each P), from the basins of the pool, and from
    /// where the minima lead that are met from `nearby` (each P) with `fixed` at other values;
    /// explored if `explores`. The parameters `fixed` are fixed.
    fn lowest_fixed(
        &mut self,
        fixed: &[(usize, f64)],
        starts: &mut Vec<Vec<f64>>,
        nearby: &[Vec<f64>],
        explores: bool,
    ) -> Minimum {
        let with_values = |start: &[f64]| {
            let mut start = start.to_vec();
            fixed.iter().for_each(|&(i, value)| start[i] = value);
            start
        };
        let warm_starts = self.warm_starts.clone();
        let warm_start = warm_starts.of(fixed).filter(|_| self.tried.insert(key(fixed)));
        let (main, mut met) = self.lowest_conditional(&with_values(warm_start.unwrap_or(&starts[0])));
        let ends = nearby.iter().map(|predicted| self.search.run(predicted));
        starts.extend(ends.filter(|end| end.nll.is_finite()).map(|end| end.params));
        for start in &starts[1..] {
            met.push((self.search.run(&with_values(start)), FoundBy::Start));
        }
        let from_basins: Vec<Minimum> =
            self.known.pool.basins().iter().map(|basin| self.search.run(&with_values(&basin.minimum.params))).collect();
        let others = met.iter().map(|(other, _)| other).chain(&from_basins);
        let mut lowest = others.fold(main.clone(), |lowest, other| self.known.better_of(lowest, other.clone()));
        if explores {
            (lowest, met) = self.explored_fixed(lowest, &from_basins, met);
        }
        if !lowest.converged() {
            let fallback = self.search.run(&with_values(&self.start.clone()));
            lowest = self.known.better_of(lowest, fallback);
        }
        met.push((main, FoundBy::Start));
        let met = MetMinima { from_basins, others: met };
        self.known.keep_branches(&mut self.search, fixed, &lowest, met);
        lowest
    }

    /// Returns the lowest minimum that `lowest`, `from_basins` and `met` lead to with what is
    /// fixed, and all that was met.
    fn explored_fixed(
        &mut self,
        lowest: Minimum,
        from_basins: &[Minimum],
        met: Vec<(Minimum, FoundBy)>,
    ) -> (Minimum, Vec<(Minimum, FoundBy)>) {
        let by = FoundBy::Conditional;
        let from_basins = from_basins.iter().map(|other| (other.clone(), by));
        let known = std::iter::once((lowest, by)).chain(from_basins).chain(met).collect();
        let (mut lowest, mut met) = self.search.explore(known, self.breadth());
        let is_rescued = self.explores_widely() || self.n_conditional <= FULLY_SEARCHED;
        if (!lowest.converged() && is_rescued) || (lowest.at_edge && self.explores_widely()) {
            lowest = self.known.rescued(&mut self.search, self.model, lowest);
        }
        if self.n_conditional <= FULLY_SEARCHED && self.search.is_strained(self.model, &lowest) {
            met.extend(self.search.kicked(self.model, &lowest));
            lowest = met.iter().fold(lowest, |lowest, (other, _)| self.known.better_of(lowest, other.clone()));
        }
        (lowest, met)
    }

    /// Returns where conditional minima are predicted with the parameters nearer to their best fit
    /// than `fixed`, and farther from it: from there a fit can reach a branch that nothing else
    /// leads to.
    fn predicted_nearby(&mut self, fixed: &[(usize, f64)]) -> Vec<Vec<f64>> {
        let best = self.known.best.params.clone();
        if fixed.iter().all(|&(i, value)| value == best[i]) {
            return Vec::new();
        }
        let moved = |factor: f64| -> Vec<(usize, f64)> {
            fixed.iter().map(|&(i, value)| (i, best[i] + factor * (value - best[i]))).collect()
        };
        DISTANCES.map(|factor| self.predict(&moved(factor))).to_vec()
    }

    /// Does `work` with the parameters `fixed` fixed, and frees them again.
    fn with_fixed<T>(&mut self, fixed: &[(usize, f64)], work: impl FnOnce(&mut Self) -> T) -> T {
        let was_fixed: Vec<bool> = fixed.iter().map(|&(i, _)| self.search.domain.fixed[i]).collect();
        fixed.iter().for_each(|&(i, _)| self.search.domain.fixed[i] = true);
        let done = work(self);
        for (&(i, _), fixed) in fixed.iter().zip(was_fixed) {
            self.search.domain.fixed[i] = fixed;
        }
        done
    }

    /// Returns how much the current conditional fit explores: the first few everything.
    fn breadth(&self) -> SearchBreadth {
        if self.n_conditional <= FULLY_SEARCHED || self.explores_widely() {
            SearchBreadth::Full
        } else {
            SearchBreadth::Reflections
        }
    }

    /// Returns the lowest conditional minimum from `start` (P), and for the first few fits from
    /// random points if those are asked for; and what else those led to.
    fn lowest_conditional(&mut self, start: &[f64]) -> (Minimum, Vec<(Minimum, FoundBy)>) {
        self.n_conditional += 1;
        if self.n_conditional > FULLY_SEARCHED {
            return (self.search.run(start), Vec::new());
        }
        let mut met = self.lowest(start).minima;
        let (lowest, _) = met.swap_remove(0);
        (lowest, met)
    }

    /// Looks for the free minimum again from a conditional one that lies below it.
    pub(crate) fn learn_from(&mut self, fixed: &[(usize, f64)], minimum: &Minimum) {
        if minimum.converged() && is_below_free(minimum.nll, self.known.best.nll) {
            self.improve(fixed, minimum);
        }
    }

    /// Looks for the free minimum again from a conditional one inside the domain that lies below
    /// it.
    fn improve(&mut self, fixed: &[(usize, f64)], lower: &Minimum) {
        let domain = &self.search.domain;
        let is_inside =
            |&(i, value): &(usize, f64)| !domain.fixed[i] && (domain.lower[i]..=domain.upper[i]).contains(&value);
        if fixed.iter().all(is_inside) {
            self.try_from_point(&lower.params);
        }
    }

    /// Returns where the conditional minimum should be if -ln L were a parabola: the free minimum
    /// moved along the covariance of the fixed parameters.
    fn predict(&mut self, fixed: &[(usize, f64)]) -> Vec<f64> {
        let mut start = self.known.best.params.clone();
        let hessian = self.hessian_with(fixed);
        let mut columns = vec![vec![0.0; start.len()]; fixed.len()];
        for (column, &(i, _)) in columns.iter_mut().zip(fixed) {
            hessian.covariance_column(i, column);
        }
        // One fixed parameter after the other, each along the covariance that is left once the
        // earlier ones are fixed.
        for a in 0..fixed.len() {
            let (done, rest) = columns.split_at_mut(a + 1);
            let (column, (i, value)) = (&done[a], fixed[a]);
            if column[i] > 0.0 {
                let step = (value - start[i]) / column[i];
                start.iter_mut().zip(column).for_each(|(s, c)| *s += step * c);
                for other in rest {
                    let overlap = other[i] / column[i];
                    other.iter_mut().zip(column).for_each(|(o, c)| *o -= overlap * c);
                }
            }
        }
        fixed.iter().for_each(|&(i, value)| start[i] = value);
        start
    }
}
