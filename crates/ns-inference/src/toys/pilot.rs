//! Whether toys of an ensemble need a second starting point, found out on a few of them.
//!
//! Started where it was thrown, a toy nearly always ends in its lowest minimum; but likelihoods with folded systematics have several, and of one published
//! model 4% of the toys then end in another, which a second start at the toy's own auxiliary data brings down to 1%. Where the first toys of an
//! ensemble show no such thing, the second start is not worth its time. The answer depends on the ensemble alone, not on which toys are wanted.

use super::run::Run;
use super::throw::Thrower;
use crate::fit::FitOptions;
use crate::monitor::Quiet;
use crate::parallel::{self, Crew};
use crate::profile::{DISTINCT, Profiler};
use ns_core::{Data, DataLikelihood, Model};

/// Toys that are looked at, and how many of them at a time.
const TOYS: u64 = 48;
const BATCH: u64 = 6;

/// How many of [`Thrower::starts`] the toys of `thrower` need.
pub(super) fn n_starts<L: DataLikelihood + Clone + Sync>(
    model: &Model,
    likelihood: &L,
    options: &FitOptions,
    thrower: &Thrower,
    run: &Run<'_>,
) -> usize {
    let differs = |likelihood: &mut L, batch: usize| {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        let mut data = Data::default();
        let first = batch as u64 * BATCH;
        (first..first + BATCH).any(|toy| {
            thrower.throw(toy, &mut data);
            profiler.likelihood().set_data(&data);
            let nll = thrower.starts(&data).map(|start| {
                profiler.refit(&[&start]);
                profiler.best().nll
            });
            nll[1] < nll[0] - DISTINCT
        })
    };
    let n_batches = (TOYS / BATCH) as usize;
    let quiet = Quiet(run.monitor);
    let crew = Crew::new(run.threads, &quiet);
    let found = parallel::map(n_batches, crew, || likelihood.clone(), differs);
    if found.into_iter().flatten().any(|differs| differs) { 2 } else { 1 }
}
