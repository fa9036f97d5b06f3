//! Throws and tests toys at several points in one run, for procedures that decide from the toys so
//! far where to throw more.

use super::hypotest::ToysError;
use super::pilot::{ToySearch, toy_search};
use super::point::{Hypothesis, PointTest, ToyStatistic};
use super::prefit::{DataSetRequest, DevicePrefit, PrefitRequest};
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use crate::accelerator::Accelerator;
use crate::options::{FitOptions, domain_and_start};
use crate::profile::Profiler;
use crate::test_statistic::TestStatistic;
use ns_core::{Data, DataLikelihood, Model};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

/// Toys of one hypothesis, tested at one point.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToyJob<'a> {
    pub(super) hypothesis: &'a Hypothesis,
    /// The tested parameters, the same ones in all jobs, and their values.
    pub(super) values: &'a [(usize, f64)],
    pub(super) search: ToySearch,
    pub(super) n_toys: u64,
}

/// Why jobs are not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// The monitor cancelled them.
    Cancelled,
    /// The accelerator failed; it keeps the error.
    Failed,
}

/// Why a search ended early.
pub(super) enum Stop {
    Unfinished(Unfinished),
    Toys(ToysError),
}

impl From<Unfinished> for Stop {
    fn from(reason: Unfinished) -> Self {
        Self::Unfinished(reason)
    }
}

impl From<ToysError> for Stop {
    fn from(error: ToysError) -> Self {
        Self::Toys(error)
    }
}

/// Runs jobs one after the other. Toys are numbered in the order of the jobs, so that no two share
/// random numbers.
pub(super) struct ToyJobs<'a, L> {
    pub(super) model: &'a Model,
    pub(super) options: &'a FitOptions,
    pub(super) likelihood: &'a L,
    pub(super) statistic: TestStatistic,
    pub(super) run: ToyRun<'a>,
    /// The number of toys so far.
    pub(super) n_thrown: u64,
    /// The largest number of toys.
    pub(super) most: u64,
}

impl<L: DataLikelihood + Clone + Sync> ToyJobs<'_, L> {
    /// Determines how the minima of the toys of `hypothesis` are sought, where they are tested at
    /// `values`.
    pub(super) fn search(&self, hypothesis: &Hypothesis, values: &[(usize, f64)]) -> ToySearch {
        toy_search(self.model, self.likelihood, self.options, &hypothesis.sampler, values, &self.run)
    }

    /// Returns the number of toys that may still be thrown.
    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.n_thrown)
    }

    /// Throws and tests the toys of `jobs`, and returns their statistics for each job.
    ///
    /// # Errors
    /// If the run is cancelled or the accelerator fails. The toys are then lost.
    pub(super) fn run(&mut self, jobs: &[ToyJob<'_>]) -> Result<Vec<Vec<ToyStatistic>>, Unfinished> {
        let first = self.n_thrown;
        let ends: Vec<u64> = jobs
            .iter()
            .scan(first, |end, job| {
                *end += job.n_toys;
                Some(*end)
            })
            .collect();
        let Some(&end) = ends.last() else { return Ok(Vec::new()) };
        let job_of = |unit: u64| &jobs[ends.partition_point(|end| *end <= unit)];
        let Self { model, options, likelihood, statistic, run, .. } = *self;
        let (domain, _) = domain_and_start(model, options);
        let test_of = |unit| PointTest { statistic, values: job_of(unit).values };
        let prefit = |accelerator: &Accelerator, units: Range<u64>| {
            let request_of = |index| {
                let ToyJob { hypothesis, search, .. } = job_of(index);
                DataSetRequest { source: &hypothesis.sampler, index, search: *search }
            };
            let request = PrefitRequest { accelerator, model, options, run: &run, variance_of: None };
            let free = request.free(units, request_of)?;
            let tested: Vec<usize> = jobs[0].values.iter().map(|(i, _)| *i).collect();
            let predict = |unit, best: &[f64]| test_of(unit).predict(job_of(unit).hypothesis, best);
            free.then_conditional(accelerator, &domain, &tested, predict)
        };
        let work = |likelihood: &mut L, prefit: &DevicePrefit, units: Range<u64>| -> Vec<ToyStatistic> {
            let mut profiler = Profiler::unfitted(model, likelihood, options);
            let mut data = Data::default();
            let mut one = |unit| {
                let ToyJob { hypothesis, search, .. } = job_of(unit);
                profiler.set_exploring(search.explores);
                let tested = match prefit.of(unit).zip(run.accelerator) {
                    Some((fitted, accelerator)) => {
                        test_of(unit).test_fitted(&mut profiler, hypothesis, fitted, accelerator)
                    }
                    None => test_of(unit).test(&mut profiler, &mut data, hypothesis, unit, *search),
                };
                ToyStatistic::from(tested)
            };
            units.map(&mut one).collect()
        };
        let mut all = Vec::new();
        let run = ToyRun { whole: Some([0, self.most.max(end)]), ..run };
        let Ok(ended) =
            in_batches(first..end, &run, BatchWork { prefit, make: || likelihood.clone(), work }, |tests| {
                all.extend(tests);
                Ok::<_, Infallible>(ControlFlow::Continue(()))
            });
        match ended {
            RunStatus::Done | RunStatus::Enough => {}
            RunStatus::Cancelled => return Err(Unfinished::Cancelled),
            RunStatus::Failed => return Err(Unfinished::Failed),
        }
        self.n_thrown = end;
        let mut rest = all.into_iter();
        Ok(jobs.iter().map(|job| rest.by_ref().take(job.n_toys as usize).collect()).collect())
    }
}
