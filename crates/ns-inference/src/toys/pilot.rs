//! Whether toys of an ensemble need a second starting point, or to be explored, found out on a few of them.
//!
//! Started where it was thrown, a toy nearly always ends in its lowest minimum; but likelihoods with folded systematics have several, and of one published
//! model 4% of the toys then end in another, which a second start at the toy's own auxiliary data brings down to 1%. Where the first toys of an
//! ensemble show no such thing, the second start is not worth its time. The answer depends on the ensemble alone, not on which toys are wanted.

use super::run::ToyRun;
use super::throw::ToySampler;
use crate::monitor::WithoutProgress;
use crate::options::FitOptions;
use crate::parallel::{self, ExecutionContext};
use crate::profile::{DISTINCT, Profiler};
use ns_core::{Data, DataLikelihood, Model};

/// Toys that are looked at, and how many of them at a time.
const TOYS: u64 = 48;
const BATCH: u64 = 6;

/// How the minima of toys are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToySearch {
    /// How many of [`ToySampler::starts`] are used.
    pub(super) n_starts: usize,
    /// Whether every toy's fits are explored.
    pub(super) explores: bool,
}

/// What the toys of `sampler` need.
pub(super) fn toy_search<L: DataLikelihood + Clone + Sync>(
    model: &Model,
    likelihood: &L,
    options: &FitOptions,
    sampler: &ToySampler,
    run: &ToyRun<'_>,
) -> ToySearch {
    let differs = |likelihood: &mut L, batch: usize| {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        let mut data = Data::default();
        let first = batch as u64 * BATCH;
        let mut found = [false; 2];
        for toy in first..first + BATCH {
            sampler.throw(toy, &mut data);
            profiler.likelihood().set_data(&data);
            profiler.set_exploring(false);
            let starts = sampler.starts(&data);
            let nll = starts.each_ref().map(|start| {
                profiler.refit(&[start]);
                profiler.best().nll
            });
            found[0] |= nll[1] < nll[0] - DISTINCT;
            profiler.set_exploring(true);
            if profiler.explores_widely() && !found[1] {
                profiler.refit(&starts.each_ref().map(Vec::as_slice));
                found[1] = profiler.best().nll < nll[0].min(nll[1]) - DISTINCT;
            }
        }
        found
    };
    let n_batches = (TOYS / BATCH) as usize;
    let quiet = WithoutProgress(run.monitor);
    let execution = ExecutionContext::new(run.threads, &quiet);
    let found = parallel::map(n_batches, execution, || likelihood.clone(), differs);
    let any = |k: usize| found.iter().flatten().any(|differs| differs[k]);
    ToySearch { n_starts: if any(0) { 2 } else { 1 }, explores: any(1) }
}
