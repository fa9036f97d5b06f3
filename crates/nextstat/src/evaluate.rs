//! Evaluations at points: -ln L, its gradient and expected data, at one point or at many.

use crate::CompiledModel;
use crate::document::{about, to_document};
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch};
use ns_core::Data;
use ns_core::expected::{expected_data, expected_main};
use ns_core::likelihood::{NonFinite, diagnose};
use ns_inference::parallel::run_all;
use serde::Serialize;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Starting a thread takes about as long as evaluating this many points of a large model.
const WORTH_A_THREAD: usize = 16;

/// N points and their data.
#[derive(Debug, Clone, Copy)]
pub struct PointBatch<'a> {
    /// The points (N × P).
    pub params: &'a [f64],
    /// N, which the length of `params` does not tell if the model has no parameters.
    pub n: usize,
    /// The data of all points, or one data set for each.
    pub data: &'a [Data],
    /// Threads to use at most; no number depends on them.
    pub threads: NonZeroUsize,
}

/// What is wanted at each point.
enum Wanted<'a> {
    Nll,
    /// The gradients (N × P) too.
    Gradient(&'a mut [f64]),
}

impl<'a> Wanted<'a> {
    /// Splits off the first `n` values of the gradients.
    fn split_off(&mut self, n: usize) -> Wanted<'a> {
        match self {
            Wanted::Nll => Wanted::Nll,
            Wanted::Gradient(rest) => {
                let (part, others) = std::mem::take(rest).split_at_mut(n);
                *rest = others;
                Wanted::Gradient(part)
            }
        }
    }
}

impl CompiledModel {
    /// Writes -ln L at every point (N); +∞ outside the domain of the model.
    pub fn nll(&self, points: &PointBatch<'_>, nll: &mut [f64]) {
        self.evaluate_batch(points, nll, Wanted::Nll);
    }

    /// Writes -ln L at every point (N) and its gradients (N × P), NaN where -ln L is not finite.
    pub fn nll_and_grad(&self, points: &PointBatch<'_>, nll: &mut [f64], gradient: &mut [f64]) {
        self.evaluate_batch(points, nll, Wanted::Gradient(gradient));
    }

    fn evaluate_batch(&self, points: &PointBatch<'_>, mut nll: &mut [f64], mut wanted: Wanted<'_>) {
        let &PointBatch { params, n, data, threads } = points;
        let sets: Vec<BatchDataSet> = data.iter().map(|data| BatchDataSet::new(self.plan(), data.clone())).collect();
        let each: Vec<&BatchDataSet> = sets.iter().collect();
        let n_params = self.model().n_params();
        let batch = CpuBatch::new(Arc::clone(self.plan()));
        let part_len = n.div_ceil(threads.get()).max(WORTH_A_THREAD);
        let mut jobs = Vec::new();
        for first in (0..n).step_by(part_len) {
            let len = part_len.min(n - first);
            let nll_part;
            (nll_part, nll) = std::mem::take(&mut nll).split_at_mut(len);
            let wanted = wanted.split_off(len * n_params);
            let params = &params[first * n_params..(first + len) * n_params];
            let sets = match each.as_slice() {
                [one] => BatchDataSets::Shared(one),
                each => BatchDataSets::Each(&each[first..first + len]),
            };
            let mut batch = batch.clone();
            jobs.push(move || match wanted {
                Wanted::Nll => batch.nll(sets, params, nll_part),
                Wanted::Gradient(gradient) => {
                    batch.nll_and_grad(sets, params, nll_part, gradient);
                    hide_gradients(nll_part, gradient);
                }
            });
        }
        run_all(jobs);
    }

    /// Returns expected data at points (N × P): main bins (B), and auxiliary data (K) if `has_aux`.
    pub fn expected(&self, params: &[f64], has_aux: bool) -> impl Iterator<Item = f64> {
        let one = move |params| match has_aux {
            true => expected_data(self.model(), params),
            false => expected_main(self.model(), params),
        };
        params.chunks_exact(self.model().n_params()).flat_map(one)
    }

    /// Evaluates the observed data at `points` (P each).
    ///
    /// ```
    /// # use nextstat::CompiledModel;
    /// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
    /// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
    /// let points = [model.model().parameters.init.clone()];
    /// let found = model.evaluate(&points, std::num::NonZeroUsize::MIN);
    /// assert!((found.points[0].twice_nll - 25.598897).abs() < 1e-6);
    /// # Ok::<(), nextstat::Error>(())
    /// ```
    #[must_use]
    pub fn evaluate(&self, points: &[Vec<f64>], threads: NonZeroUsize) -> Evaluation {
        let (model, n, n_params) = (self.model(), points.len(), self.model().n_params());
        let (mut nll, mut gradient) = (vec![0.0; n], vec![0.0; n * n_params]);
        let (params, data) = (points.concat(), std::slice::from_ref(&model.observed));
        self.nll_and_grad(&PointBatch { params: &params, n, data, threads }, &mut nll, &mut gradient);
        let evaluated = |(i, params): (usize, &Vec<f64>)| {
            let is_finite = nll[i].is_finite();
            // Not `chunks`, because a model may have no parameters.
            let derivatives = gradient[i * n_params..(i + 1) * n_params].iter();
            EvaluatedPoint {
                twice_nll: 2.0 * nll[i],
                gradient: is_finite.then(|| derivatives.map(|derivative| 2.0 * derivative).collect()),
                expected_data: expected_data(model, params),
                not_finite: if is_finite { None } else { diagnose(model, &model.observed, params) },
            }
        };
        let points = points.iter().enumerate().map(evaluated).collect();
        Evaluation { par_names: model.parameters.names.clone(), points }
    }
}

impl CompiledModel {
    /// Returns the document of an evaluation.
    #[must_use]
    pub fn evaluation_document(&self, evaluation: &Evaluation) -> Value {
        let mut fields = to_document(evaluation);
        fields["warnings"] = json!([]);
        about("evaluate", &json!(self.model().measurement), json!(self.provenance()), fields)
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

/// The values at several points, as the command's document has them.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Parameter names (P).
    pub par_names: Vec<String>,
    /// One entry per point.
    pub points: Vec<EvaluatedPoint>,
}

/// The values at one point.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluatedPoint {
    /// 2·(-ln L).
    pub twice_nll: f64,
    /// Its gradient (P); `None` where `twice_nll` is not finite.
    pub gradient: Option<Vec<f64>>,
    /// Expected data: main bins (B), then auxiliary data (K).
    pub expected_data: Vec<f64>,
    /// Why `twice_nll` is not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_finite: Option<NonFinite>,
}
