//! Toys of toys: whether a toy's Feldman-Cousins interval contains the true value.
//!
//! It does if more than 1 - CL of the inner toys, which are thrown at the true value with the other
//! parameters at their conditional best fit to the toy, have at least its t_μ. Inner toys are
//! thrown in rounds, for all toys that are still open at once, until the fraction is significantly
//! on one side of 1 - CL.

use super::CoverageMethod;
use super::decide::{CoverageFits, Decision, OpenToy, ToyDecisions};
use crate::test_statistic::TestStatistic;
use crate::toys::crossing::Estimate;
use crate::toys::jobs::{ToyJob, ToyJobs, Unfinished};
use crate::toys::p_value::threshold;
use crate::toys::pilot::ToySearch;
use crate::toys::point::ToyStatistic;
use crate::toys::run::ToyRun;
use ns_core::DataLikelihood;

/// The number of inner toys in the first round.
const FIRST: u64 = 16;

/// A toy is decided if its fraction is this number of standard deviations from 1 - CL.
const SIGNIFICANT: f64 = 3.0;

/// Throws inner toys.
pub(super) struct InnerToys<'a, L> {
    jobs: ToyJobs<'a, L>,
    /// 1 - CL.
    level: f64,
    /// The largest number of inner toys of a toy.
    most: u64,
}

/// The inner toys of one toy so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    n_toys: u64,
    n_extreme: u64,
    n_failed: u64,
}

impl Counts {
    /// Returns on which side of `level` the fraction of extreme toys is significantly: `true` above
    /// it.
    fn side(self, level: f64) -> Option<bool> {
        let n = self.n_toys as f64;
        let side = |n_extreme: u64| {
            Estimate { x: 0.0, probability: n_extreme as f64 / n, trials: n }.side_by(level, SIGNIFICANT)
        };
        // Failed toys may be extreme or not.
        let sides = [side(self.n_extreme), side(self.n_extreme + self.n_failed)];
        sides[0].filter(|_| sides[0] == sides[1])
    }

    /// Returns the decision, which is made with the estimate after `most` toys.
    fn decision(self, level: f64, most: u64) -> Option<Decision> {
        match self.side(level) {
            Some(true) => Some(Decision::Covers),
            Some(false) => Some(Decision::Misses),
            None if self.n_toys >= most => {
                let n_converged = (self.n_toys - self.n_failed) as f64;
                Some(Decision::Undecided { covers: self.n_extreme as f64 > level * n_converged })
            }
            None => None,
        }
    }
}

/// The inner toys of the toy with this index.
struct InnerEnsemble {
    index: usize,
    toy: Box<OpenToy>,
    counts: Counts,
}

impl InnerEnsemble {
    /// Returns the next toys to throw, at most `most` in all.
    fn job<'a>(&'a self, tested: &'a [(usize, f64)], search: ToySearch, most: u64) -> ToyJob<'a> {
        let n_toys = FIRST.max(self.counts.n_toys / 2).min(most - self.counts.n_toys);
        ToyJob { hypothesis: &self.toy.hypothesis, values: tested, search, n_toys }
    }

    fn count(&mut self, toys: &[ToyStatistic]) {
        let counts = &mut self.counts;
        counts.n_toys += toys.len() as u64;
        let values = toys.iter().filter_map(|toy| toy.value);
        counts.n_extreme += values.clone().filter(|t| *t >= threshold(self.toy.t)).count() as u64;
        counts.n_failed += (toys.len() - values.count()) as u64;
    }
}

impl<'a, L: DataLikelihood + Clone + Sync> InnerToys<'a, L> {
    pub(super) fn new(
        CoverageFits { model, options, settings }: CoverageFits<'a>,
        likelihood: &'a L,
        run: ToyRun<'a>,
    ) -> Self {
        let statistic = TestStatistic::T;
        let jobs = ToyJobs { model, options, likelihood, statistic, run, n_thrown: 0, most: u64::MAX };
        Self { jobs, level: 1.0 - settings.cl, most: settings.max_inner_toys.max(1) }
    }

    /// Decides the open ones of `toys`, which were tested at `tested`. Tells `progress` how many of
    /// `toys` are decided.
    pub(super) fn decide(
        &mut self,
        toys: &mut [ToyDecisions],
        tested: &[(usize, f64)],
        search: ToySearch,
        progress: impl Fn(u64),
    ) -> Result<(), Unfinished> {
        let mut open = Vec::new();
        for (index, toy) in toys.iter_mut().enumerate() {
            let decision = &mut toy.decisions[CoverageMethod::FeldmanCousins.index()];
            match decision.take() {
                Some(Decision::Open(toy)) => open.push(InnerEnsemble { index, toy, counts: Counts::default() }),
                other => *decision = other,
            }
        }
        let n_toys = toys.len();
        while !open.is_empty() {
            progress((n_toys - open.len()) as u64);
            let jobs: Vec<ToyJob<'_>> = open.iter().map(|ensemble| ensemble.job(tested, search, self.most)).collect();
            let found = self.jobs.run(&jobs)?;
            open.iter_mut().zip(found).for_each(|(ensemble, toys)| ensemble.count(&toys));
            open.retain(|InnerEnsemble { index, counts, .. }| {
                let decision = counts.decision(self.level, self.most);
                let is_open = decision.is_none();
                if !is_open {
                    toys[*index].decisions[CoverageMethod::FeldmanCousins.index()] = decision;
                    toys[*index].n_inner = counts.n_toys;
                }
                is_open
            });
        }
        progress(n_toys as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// -2 ln(L(0.05)/L(k/n)) of a binomial count is 9 at three standard deviations: for no event of
    /// n it is -2 n ln 0.95, which 88 trials exceed.
    #[test]
    fn decisions_take_three_standard_deviations() {
        let none = |n_toys| Counts { n_toys, n_extreme: 0, n_failed: 0 }.side(0.05);
        assert_eq!((none(87), none(88)), (None, Some(false)));
        let all = |n_toys| Counts { n_toys, n_extreme: n_toys, n_failed: 0 }.side(0.05);
        assert_eq!((all(1), all(2)), (None, Some(true)));
    }

    #[test]
    fn failed_toys_can_leave_a_decision_open() {
        let counts = Counts { n_toys: 200, n_extreme: 0, n_failed: 5 };
        assert_eq!(counts.side(0.05), None);
        assert!(matches!(counts.decision(0.05, 200), Some(Decision::Undecided { covers: false })));
        assert!(counts.decision(0.05, 300).is_none());
        assert_eq!(Counts { n_failed: 0, ..counts }.side(0.05), Some(false));
    }
}
