//! Evaluations at points: -ln L, its gradient, expected data; at one point or at many.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ns_compute::cpu::ModelPlan;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch};
use ns_core::expected::{expected_data, expected_main};
use ns_core::{Data, Model};
use ns_inference::parallel::run_all;

/// Starting a thread costs about as much as evaluating this many points of a large model.
const WORTH_A_THREAD: usize = 16;

/// N points (N × P) with the data of all, or one set for each.
pub(crate) struct Points<'a> {
    pub(crate) model: &'a Model,
    pub(crate) plan: &'a Arc<ModelPlan>,
    pub(crate) params: &'a [f64],
    pub(crate) n: usize,
    pub(crate) data: &'a [Data],
    pub(crate) threads: NonZeroUsize,
}

/// Values at `Points`.
#[derive(Default)]
pub(crate) struct BatchValues {
    /// -ln L (N).
    pub(crate) nll: Vec<f64>,
    /// Its gradients (N × P), if asked for.
    pub(crate) gradient: Vec<f64>,
}

impl Points<'_> {
    /// Writes -ln L at every point (N), and its gradients (N × P), NaN where -ln L is not finite.
    pub(crate) fn nll<const GRADIENT: bool>(&self, mut nll: &mut [f64], mut gradient: &mut [f64]) {
        let sets: Vec<BatchDataSet> = self.data.iter().map(|data| BatchDataSet::new(self.plan, data.clone())).collect();
        let each: Vec<&BatchDataSet> = sets.iter().collect();
        let n_params = self.model.n_params();
        let batch = CpuBatch::new(Arc::clone(self.plan));
        let part_len = self.n.div_ceil(self.threads.get()).max(WORTH_A_THREAD);
        let mut jobs = Vec::new();
        for first in (0..self.n).step_by(part_len) {
            let len = part_len.min(self.n - first);
            let (nll_part, gradient_part);
            (nll_part, nll) = std::mem::take(&mut nll).split_at_mut(len);
            (gradient_part, gradient) =
                std::mem::take(&mut gradient).split_at_mut(if GRADIENT { len * n_params } else { 0 });
            let params = &self.params[first * n_params..(first + len) * n_params];
            let sets = match each.as_slice() {
                [one] => BatchDataSets::Shared(one),
                each => BatchDataSets::Each(&each[first..first + len]),
            };
            let mut batch = batch.clone();
            jobs.push(move || match GRADIENT {
                true => {
                    batch.nll_and_grad(sets, params, nll_part, gradient_part);
                    hide_gradients(nll_part, gradient_part);
                }
                false => batch.nll(sets, params, nll_part),
            });
        }
        run_all(jobs);
    }
}

/// Writes NaN as the gradients of points outside the domain.
///
/// Evaluators write zeros, which a caller's minimiser would take for a minimum.
fn hide_gradients(nll: &[f64], gradient: &mut [f64]) {
    if nll.is_empty() || gradient.is_empty() {
        return;
    }
    for (nll, gradient) in nll.iter().zip(gradient.chunks_exact_mut(gradient.len() / nll.len())) {
        if !nll.is_finite() {
            gradient.fill(f64::NAN);
        }
    }
}

/// Returns expected data at points (N × P): main bins (B), and auxiliary data (K) if `has_aux`.
pub(crate) fn expected(model: &Model, params: &[f64], has_aux: bool) -> impl Iterator<Item = f64> {
    let one = move |params| if has_aux { expected_data(model, params) } else { expected_main(model, params) };
    params.chunks_exact(model.n_params()).flat_map(one)
}
