//! Determines from a few pilot toys whether the toys of an ensemble need a second starting point or
//! a wide search.
//!
//! A fit that starts where its toy was thrown nearly always ends in the lowest minimum. Likelihoods
//! with same-sign systematics have several minima, however: for one published model, 4% of such
//! fits end in another minimum, and a second start at the toy's own auxiliary data reduces this to
//! 1%. If the pilot toys show no difference, the second start is not worth its time. Fits with
//! parameters fixed at tested values are decided separately: a same-sign systematic can give them
//! two minima where the free fit has one. The decision depends only on the ensemble, not on the
//! requested toys.

use super::prefit::DataSetSource as _;
use super::run::ToyRun;
use super::throw::ToySampler;
use crate::monitor::WithoutProgress;
use crate::options::FitOptions;
use crate::parallel::{self, ExecutionContext};
use crate::profile::Profiler;
use crate::search::is_lower;
use ns_core::{Data, DataLikelihood, Model};

/// The number of pilot toys, and how many of them a thread takes at a time.
const TOYS: u64 = 48;
const BATCH: u64 = 6;

/// How the minima of toys are sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToySearch {
    /// The number of starting points of [`ToySampler::starts`] used.
    pub(crate) n_starts: usize,
    /// Whether every toy is searched widely.
    pub(crate) explores: bool,
    /// Whether fits with parameters fixed at tested values start at the toy's auxiliary data, too.
    pub(crate) restarts: bool,
}

impl ToySearch {
    /// Fits from where toys were thrown alone.
    pub(crate) const ONE_START: Self = Self { n_starts: 1, explores: false, restarts: false };
}

/// Returns how the minima of the toys of `sampler` are sought, free ones and those with the
/// parameters of `tested` at their values.
pub(super) fn toy_search<L: DataLikelihood + Clone + Sync>(
    model: &Model,
    likelihood: &L,
    options: &FitOptions,
    sampler: &ToySampler,
    tested: &[(usize, f64)],
    run: &ToyRun<'_>,
) -> ToySearch {
    let differs = |likelihood: &mut L, batch: usize| {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        let mut data = Data::default();
        let first = batch as u64 * BATCH;
        let mut found = [false; 3];
        for toy in first..first + BATCH {
            sampler.throw(toy, &mut data);
            profiler.likelihood().set_data(&data);
            profiler.set_exploring(false);
            let starts = sampler.starts(&data);
            let nll = starts.each_ref().map(|start| {
                profiler.refit(&[start]);
                profiler.best().nll
            });
            found[0] |= is_lower(nll[1], nll[0]);
            if !tested.is_empty() && !found[2] {
                let nll = starts.each_ref().map(|start| profiler.at_from(tested, std::slice::from_ref(start)).nll);
                found[2] = is_lower(nll[1], nll[0]);
            }
            profiler.set_exploring(true);
            if profiler.explores_widely() && !found[1] {
                profiler.refit(&starts.each_ref().map(Vec::as_slice));
                found[1] = is_lower(profiler.best().nll, nll[0].min(nll[1]));
            }
        }
        found
    };
    let n_batches = (TOYS / BATCH) as usize;
    let quiet = WithoutProgress(run.monitor);
    let execution = ExecutionContext::new(run.threads, &quiet);
    let found = parallel::map(n_batches, execution, || likelihood.clone(), differs);
    let any = |k: usize| found.iter().flatten().any(|differs| differs[k]);
    ToySearch { n_starts: if any(0) { 2 } else { 1 }, explores: any(1), restarts: any(2) }
}
