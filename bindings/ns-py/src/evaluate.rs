//! Evaluations at points: -ln L, its gradient, expected data; of one point or of many at once.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ns_compute::cpu::Plan;
use ns_compute::{CpuBatch, DataSet, DataSets};
use ns_core::expected::{expected_data, expected_main};
use ns_core::{Data, Model};

/// Starting a thread costs about as much as evaluating this many points of a large model.
const WORTH_A_THREAD: usize = 16;

/// N points (N × P) with the data of all, or one set for each.
pub(crate) struct Points<'a> {
    pub(crate) model: &'a Model,
    pub(crate) plan: &'a Arc<Plan>,
    pub(crate) params: &'a [f64],
    pub(crate) n: usize,
    pub(crate) data: &'a [Data],
    pub(crate) threads: NonZeroUsize,
}

/// What `Points` are.
#[derive(Default)]
pub(crate) struct Evaluated {
    /// -ln L (N).
    pub(crate) nll: Vec<f64>,
    /// Its gradients (N × P), if asked for.
    pub(crate) gradient: Vec<f64>,
}

impl Points<'_> {
    /// -ln L at every point, and its gradients.
    pub(crate) fn nll<const GRADIENT: bool>(&self) -> Evaluated {
        let sets: Vec<DataSet> = self.data.iter().map(|data| DataSet::new(self.plan, data.clone())).collect();
        let each: Vec<&DataSet> = sets.iter().collect();
        let n_params = self.model.n_params();
        let mut found =
            Evaluated { nll: vec![0.0; self.n], gradient: vec![0.0; if GRADIENT { self.n * n_params } else { 0 }] };
        let batch = CpuBatch::new(Arc::clone(self.plan));
        let part_len = self.n.div_ceil(self.threads.get()).max(WORTH_A_THREAD);
        let (mut nll, mut gradient) = (&mut found.nll[..], &mut found.gradient[..]);
        std::thread::scope(|scope| {
            for first in (0..self.n).step_by(part_len) {
                let len = part_len.min(self.n - first);
                let (nll_part, gradient_part);
                (nll_part, nll) = nll.split_at_mut(len);
                (gradient_part, gradient) = gradient.split_at_mut(if GRADIENT { len * n_params } else { 0 });
                let params = &self.params[first * n_params..(first + len) * n_params];
                let sets = match each.as_slice() {
                    [one] => DataSets::Shared(one),
                    each => DataSets::Each(&each[first..first + len]),
                };
                let mut batch = batch.clone();
                let mut work = move || match GRADIENT {
                    true => batch.nll_and_grad(sets, params, nll_part, gradient_part),
                    false => batch.nll(sets, params, nll_part),
                };
                // The last part is this thread's own.
                if first + len < self.n { drop(scope.spawn(work)) } else { work() }
            }
        });
        found
    }
}

/// Expected data at each of `n` points (N × P): main bins (B), and auxiliary data (K) if `has_aux`.
pub(crate) fn expected(model: &Model, params: &[f64], n: usize, has_aux: bool) -> Vec<f64> {
    let n_params = model.n_params();
    let one = |i: usize| {
        let params = &params[i * n_params..(i + 1) * n_params];
        if has_aux { expected_data(model, params) } else { expected_main(model, params) }
    };
    (0..n).flat_map(one).collect()
}
