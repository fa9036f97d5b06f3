//! Points at which the data and toys are tested against the best fit: toys are thrown at the
//! conditional minimum of the data there, and more of them on request.

use super::hypotest::ToysError;
use super::jobs::{ToyJob, ToyJobs, Unfinished};
use super::p_value::{SAME, StatisticSamples, ToyPValue, threshold};
use super::pilot::ToySearch;
use super::point::{Hypothesis, ToyStatistic};
use super::run::ToyRun;
use super::throw::ToySource;
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::search::told_apart;
use crate::test_statistic::TestStatistic;
use ns_core::{Data, DataLikelihood};

/// The tail of the distribution of toys that a p-value counts. The signed statistic is t_μ with the
/// sign of μ̂ - μ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Toys whose t_μ is at least that of the data.
    Both,
    /// Toys whose signed statistic is at most that of the data.
    Lower,
    /// Toys whose signed statistic is at least that of the data.
    Upper,
}

/// A point that has been tested.
#[derive(Debug)]
pub(super) struct TestedPoint {
    /// The tested parameters and their values.
    pub(super) values: Vec<(usize, f64)>,
    /// -ln L of the data at the conditional minimum.
    nll: f64,
    hypothesis: Hypothesis,
    /// The signed statistics of the toys of this point and of the alternative hypothesis.
    toys: StatisticSamples,
}

impl TestedPoint {
    /// Returns the number of toys of both hypotheses, including failed ones.
    pub(super) fn n_toys(&self) -> [u64; 2] {
        [0, 1].map(|which| self.toys.values[which].len() as u64 + self.toys.n_failed[which])
    }

    /// Returns the number of failed toys.
    pub(super) fn n_failed(&self) -> u64 {
        self.toys.n_failed.iter().sum()
    }
}

/// More toys of a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct MoreToys {
    /// The index of the point.
    pub(super) index: usize,
    /// 0 for toys thrown at the point, 1 for toys of the alternative hypothesis.
    pub(super) which: usize,
    /// How their minima are sought.
    pub(super) search: ToySearch,
    pub(super) n_toys: u64,
}

/// Returns `wanted`, or if their sum is above `left` shares of `left` that are proportional to them
/// to within 1.
fn shares(wanted: &[u64], left: u64) -> Vec<u64> {
    let (total, left) = (wanted.iter().map(|n| u128::from(*n)).sum::<u128>(), u128::from(left));
    if total <= left {
        return wanted.to_vec();
    }
    // A share is less than what is wanted because `left` is less than the sum.
    let mut shares: Vec<u64> = wanted.iter().map(|n| (u128::from(*n) * left / total) as u64).collect();
    let mut rest = left - shares.iter().map(|n| u128::from(*n)).sum::<u128>();
    for (share, _) in shares.iter_mut().zip(wanted).filter(|(_, wanted)| **wanted > 0) {
        if rest == 0 {
            break;
        }
        (*share, rest) = (*share + 1, rest - 1);
    }
    shares
}

fn signed(t: f64, mu_hat: f64, mu: f64) -> f64 {
    if mu_hat < mu { -t } else { t }
}

/// How toys are run, and the largest number of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToyBudget<'a> {
    pub(super) run: ToyRun<'a>,
    pub(super) max_toys: u64,
}

/// The tested points of one or two parameters.
pub(super) struct TestedPoints<'a, L> {
    tested: &'a [usize],
    source: ToySource,
    data: Data,
    pub(super) profiler: Profiler<'a, L>,
    pub(super) jobs: ToyJobs<'a, L>,
    pub(super) points: Vec<TestedPoint>,
    /// The hypothesis of toys that are compared with those of each point.
    alternative: Option<Hypothesis>,
    /// Whether fewer toys were thrown than were wanted.
    pub(super) is_cut_short: bool,
}

impl<'a, L: DataLikelihood + Clone + Sync> TestedPoints<'a, L> {
    /// Fits the data of `problem`. `likelihood` is another likelihood of the same model.
    pub(super) fn new(
        problem: Problem<'a, L>,
        likelihood: &'a L,
        tested: &'a [usize],
        source: ToySource,
        budget: ToyBudget<'a>,
    ) -> Self {
        let data = problem.data().clone();
        let Problem { model, likelihood: own, options } = problem;
        let profiler = Profiler::new(model, own, options);
        let jobs = ToyJobs {
            model,
            options,
            likelihood,
            statistic: TestStatistic::T,
            run: budget.run,
            n_thrown: 0,
            most: budget.max_toys,
        };
        Self { tested, source, data, profiler, jobs, points: Vec::new(), alternative: None, is_cut_short: false }
    }

    /// Returns t of the data at `values`; `None` if a fit did not converge.
    pub(super) fn statistic_at(&mut self, values: &[f64]) -> Option<(f64, Vec<f64>)> {
        let fixed: Vec<(usize, f64)> = self.tested.iter().copied().zip(values.iter().copied()).collect();
        let start = self.profiler.start().to_vec();
        let conditional = self.profiler.at_explored(&fixed, &[start]);
        let gradient = self.tested.iter().map(|&i| conditional.gradient.get(i).copied().unwrap_or(f64::NAN)).collect();
        let is_known = conditional.converged() && self.profiler.best().converged();
        is_known.then(|| (self.t_of(conditional.nll), gradient))
    }

    /// Makes `values` the alternative hypothesis.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn set_alternative(&mut self, values: &[f64]) -> Result<(), ToysError> {
        self.alternative = Some(self.fit_at(values)?.hypothesis);
        Ok(())
    }

    /// Adds a point, and returns its index.
    ///
    /// # Errors
    /// If the fit to the data there does not converge, or ends where no toys can be thrown.
    pub(super) fn add(&mut self, values: &[f64]) -> Result<usize, ToysError> {
        let point = self.fit_at(values)?;
        self.points.push(point);
        Ok(self.points.len() - 1)
    }

    fn fit_at(&mut self, values: &[f64]) -> Result<TestedPoint, ToysError> {
        let values: Vec<(usize, f64)> = self.tested.iter().copied().zip(values.iter().copied()).collect();
        let (hypothesis, nll) = Hypothesis::at_best_fit(&mut self.profiler, &self.data, &values, self.source)?;
        Ok(TestedPoint { values, nll, hypothesis, toys: StatisticSamples::default() })
    }

    /// Determines how the minima of toys at point `index` are sought.
    pub(super) fn search(&self, index: usize) -> ToySearch {
        self.jobs.search(&self.points[index].hypothesis, &self.points[index].values)
    }

    /// Determines the same for toys of the alternative hypothesis, at the last point.
    pub(super) fn search_of_alternative(&self) -> Option<ToySearch> {
        let values = self.points.last().map_or(&[][..], |point| &point.values);
        self.alternative.as_ref().map(|hypothesis| self.jobs.search(hypothesis, values))
    }

    /// Throws and tests the toys `wanted`, or about the same fraction of each if fewer are left.
    pub(super) fn throw(&mut self, wanted: &[MoreToys]) -> Result<(), Unfinished> {
        let numbers: Vec<u64> = wanted.iter().map(|more| more.n_toys).collect();
        let shares = shares(&numbers, self.jobs.left());
        self.is_cut_short |= shares != numbers;
        let limited = wanted.iter().zip(shares).map(|(more, n_toys)| MoreToys { n_toys, ..*more });
        let wanted: Vec<MoreToys> = limited.filter(|more| more.n_toys > 0).collect();
        let job = |&MoreToys { index, which, search, n_toys }: &MoreToys| {
            let TestedPoint { hypothesis, values, .. } = &self.points[index];
            let hypothesis = self.alternative.as_ref().filter(|_| which == 1).unwrap_or(hypothesis);
            ToyJob { hypothesis, values, search, n_toys }
        };
        let jobs: Vec<ToyJob<'_>> = wanted.iter().map(job).collect();
        let found = self.jobs.run(&jobs)?;
        for (&MoreToys { index, which, .. }, toys) in wanted.iter().zip(found) {
            let TestedPoint { values, toys: samples, .. } = &mut self.points[index];
            for ToyStatistic { value, mu_hat } in toys {
                samples.push(which, value.map(|t| signed(t, mu_hat, values[0].1)));
            }
        }
        Ok(())
    }

    /// Returns the statistics of upper limits of the data and of the toys at point `index`: t_μ
    /// where μ̂ < μ, and else 0.
    pub(super) fn upper(&self, index: usize) -> (f64, StatisticSamples) {
        let point = &self.points[index];
        let mut samples = point.toys.clone();
        samples.values.iter_mut().flatten().for_each(|signed| *signed = (-*signed).max(0.0));
        ((-self.signed_observed(index)).max(0.0), samples)
    }

    fn signed_observed(&self, index: usize) -> f64 {
        let mu_hat = self.profiler.best().params[self.tested[0]];
        signed(self.observed(index), mu_hat, self.points[index].values[0].1)
    }

    fn t_of(&self, nll: f64) -> f64 {
        let best = self.profiler.best().nll;
        2.0 * told_apart(nll - best, best).max(0.0)
    }

    /// Returns t of the data at point `index`, against the lowest free minimum known now.
    pub(super) fn observed(&self, index: usize) -> f64 {
        self.t_of(self.points[index].nll)
    }

    /// Returns the fraction of the toys at point `index` that are in `tail` of the data.
    pub(super) fn p_value(&self, index: usize, tail: Tail) -> ToyPValue {
        let (point, t) = (&self.points[index], self.observed(index));
        let (observed, toys) = (self.signed_observed(index), &point.toys.values[0]);
        let count = |is_extreme: &dyn Fn(f64) -> bool| toys.iter().filter(|toy| is_extreme(**toy)).count() as u64;
        let n_extreme = match tail {
            Tail::Both => count(&|toy| toy.abs() >= threshold(t)),
            Tail::Upper => count(&|toy| toy >= threshold(observed)),
            Tail::Lower => count(&|toy| -toy >= threshold(-observed)),
        };
        ToyPValue::from_counts(n_extreme, toys.len() as u64, point.toys.n_failed[0])
    }

    /// Returns the largest fraction of the toys at point `index` that have the same statistic,
    /// which is the largest step of its p-value. Values of 0 are left out, because they are never
    /// at the edge of a tail.
    pub(super) fn largest_step(&self, index: usize) -> f64 {
        let mut toys = self.points[index].toys.values[0].clone();
        toys.sort_by(f64::total_cmp);
        let is_same = |a: &f64, b: &f64| *b - *a <= b.abs().max(1.0) * SAME;
        let runs = toys.chunk_by(is_same).filter(|run| run[0].abs() > SAME);
        // One toy has always a value of its own.
        runs.map(|run| run.len() - 1).max().unwrap_or(0) as f64 / toys.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_use_up_what_is_left() {
        assert_eq!(shares(&[3, 0, 4], 7), [3, 0, 4]);
        assert_eq!(shares(&[200, 0, 200, 200], 2), [1, 0, 1, 0]);
        assert_eq!(shares(&[100, 300], 10), [3, 7]);
        assert_eq!(shares(&[5, 5], 0), [0, 0]);
        // The sum is above the largest number of 64 bits.
        assert_eq!(shares(&[u64::MAX; 4], 10), [3, 3, 2, 2]);
    }
}
