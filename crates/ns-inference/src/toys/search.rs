//! Local significances of toys of a background: each toy is fitted under every signal of a search.

use super::pilot::ToySearch;
use super::point::{Hypothesis, PointTest};
use super::throw::{AuxTreatment, Ensemble, ToySampler, ToySource};
use crate::options::{FitOptions, domain_and_start};
use crate::parallel::{self, ExecutionContext};
use crate::profile::Profiler;
use crate::test_statistic::TestStatistic;
use ns_core::likelihood::NonFinite;
use ns_core::{Data, DataLikelihood, Model};

/// Toys that a thread fits at a time.
const BATCH: u64 = 64;

/// One signal of a search, with the background that its toys are thrown of.
#[derive(Debug)]
pub struct SearchSignal<'a> {
    /// The model with the signal.
    pub model: &'a Model,
    /// How it is fitted.
    pub options: &'a FitOptions,
    /// The strength of the signal, one of its parameters.
    pub poi: usize,
    /// The best fit of the background, with the strength at 0 (P).
    pub background: Vec<f64>,
    /// Which auxiliary datum of the background each of its own is (K); `None` for those of the
    /// signal alone.
    pub shared: Vec<Option<usize>>,
}

impl SearchSignal<'_> {
    /// Returns √q₀ of each of the toys `0..n_toys` of `background`; `None` for toys whose fits did
    /// not converge. `likelihood` is that of the model with the signal.
    ///
    /// The toys have the counts and the auxiliary data of `background`; the auxiliary data that
    /// only the signal has are drawn for it. Fits start at the best fit of the background, and are
    /// not explored for further minima.
    ///
    /// Returns no toys if the monitor cancels.
    ///
    /// # Errors
    /// If no toys can be thrown at the best fit of the background.
    pub fn significances<L: DataLikelihood + Clone + Sync>(
        &self,
        likelihood: &L,
        background: &ToySampler,
        seed: u64,
        n_toys: u64,
        execution: ExecutionContext<'_>,
    ) -> Result<Option<Vec<Option<f64>>>, NonFinite> {
        let source = ToySource { seed, ensemble: Ensemble::Search, aux: AuxTreatment::Fluctuated };
        let sampler = ToySampler::new(self.model, likelihood.data(), &self.background, source)?;
        let (domain, _) = domain_and_start(self.model, self.options);
        let hypothesis = Hypothesis::new(self.model, &mut likelihood.clone(), &domain, sampler, &[self.poi]);
        let values = [(self.poi, 0.0)];
        let test = PointTest { statistic: TestStatistic::Q0, values: &values };
        let search = ToySearch::ONE_START;
        let batch = |likelihood: &mut L, index: usize| {
            let first = index as u64 * BATCH;
            let mut profiler = Profiler::unfitted(self.model, likelihood, self.options);
            profiler.set_exploring(false);
            let (mut data, mut thrown) = (Data::default(), Data::default());
            let mut one = |toy| {
                background.throw(toy, &mut thrown);
                hypothesis.sampler.throw(toy, &mut data);
                data.main.clone_from(&thrown.main);
                for (own, shared) in data.aux.iter_mut().zip(&self.shared) {
                    *own = shared.map_or(*own, |k| thrown.aux[k]);
                }
                test.test_data(&mut profiler, &data, &hypothesis, search).value.map(f64::sqrt)
            };
            (first..n_toys.min(first + BATCH)).map(&mut one).collect::<Vec<_>>()
        };
        let n_batches = n_toys.div_ceil(BATCH) as usize;
        let found = parallel::map(n_batches, execution, || likelihood.clone(), batch);
        let found: Option<Vec<Vec<_>>> = found.into_iter().collect();
        Ok(found.map(|batches| batches.into_iter().flatten().collect()))
    }
}
