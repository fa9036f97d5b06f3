//! Yields before and after a fit, with uncertainties: of each sample and of all samples together,
//! bin by bin and summed over a channel.
//!
//! σ² = j C jᵀ with the exact derivatives j of the yield (`ns_core::sensitivity`) and the
//! covariance C of the parameters (`propagate`). Before a fit C is the constraint terms' widths
//! without correlations, after a fit the inverse of the exact Hessian. cabinetry varies each
//! parameter by its uncertainty instead of taking the derivative, which is the same where the yield
//! is linear over that range.

use crate::linear::SparseRows;
use crate::options::domain_and_start;
use crate::parallel::{self, ExecutionContext};
use crate::problem::Problem;
use crate::propagate::Propagator;
use crate::result::FitResult;
use ns_core::sensitivity::{DerivativeColumns, derivatives};
use ns_core::{DataLikelihood, Model, SearchLikelihood};
use serde::Serialize;
use std::num::NonZeroUsize;

/// What a sample, or all of them, give in the bins of a channel. b is the channel's number of bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Yields (b).
    pub yields: Vec<f64>,
    /// Their standard deviations (b); `None` where the covariance does not tell.
    pub uncertainties: Vec<Option<f64>>,
    /// Sum of the yields.
    pub sum: f64,
    /// Its standard deviation, with the correlations between the bins.
    pub sum_uncertainty: Option<f64>,
}

/// One sample's share of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplePrediction {
    /// The sample's name.
    pub sample: String,
    /// Its yields.
    #[serde(flatten)]
    pub prediction: Prediction,
}

/// What is expected in a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelPrediction {
    /// The channel's name.
    pub channel: String,
    /// The samples that it has, in the model's order.
    pub samples: Vec<SamplePrediction>,
    /// All samples together, with the correlations between them.
    pub total: Prediction,
}

/// Returns the yields of `model` at the starting values of a fit of `problem`, with the
/// uncertainties that the constraint terms give: widths without correlations.
///
/// `model` is the fitted one, or the same with bins that are not fitted. Parameters without a
/// constraint term, and fixed ones, contribute nothing.
#[must_use]
pub fn prefit<L: DataLikelihood + ?Sized>(
    problem: &Problem<'_, L>,
    model: &Model,
    threads: NonZeroUsize,
) -> Vec<ChannelPrediction> {
    let (domain, start) = domain_and_start(problem.model, problem.options);
    let propagator = Propagator::prefit(problem.model, problem.data(), &domain.fixed);
    at(model, &start, &propagator, threads)
}

/// Returns the yields of `model` at the end of the fit of `problem` whose result is `result`, with
/// the uncertainties that its exact Hessian gives.
///
/// `model` is the fitted one, or the same with bins that are not fitted. Fixed parameters and those
/// at bounds contribute nothing. A fit that did not converge has no
/// uncertainties.
pub fn postfit<L: SearchLikelihood + ?Sized>(
    problem: &mut Problem<'_, L>,
    model: &Model,
    result: &FitResult,
    threads: NonZeroUsize,
) -> Vec<ChannelPrediction> {
    let (domain, _) = domain_and_start(problem.model, problem.options);
    let propagator = if result.converged {
        Propagator::postfit(problem.model, problem.likelihood, &result.bestfit, &domain)
    } else {
        Propagator::unknown()
    };
    at(model, &result.bestfit, &propagator, threads)
}

/// Returns the yields at `params` (P) with the uncertainties that `propagator` gives, channel by
/// channel.
#[must_use]
pub fn at(model: &Model, params: &[f64], propagator: &Propagator, threads: NonZeroUsize) -> Vec<ChannelPrediction> {
    let channel = |_: &mut (), channel: usize| channel_at(model, channel, params, propagator);
    parallel::map(model.channels.len(), ExecutionContext::with_threads(threads), || (), channel)
        .into_iter()
        .flatten()
        .collect()
}

fn channel_at(model: &Model, channel: usize, params: &[f64], propagator: &Propagator) -> ChannelPrediction {
    let mut samples = Vec::new();
    let columns = DerivativeColumns::of(model, model.channel_templates(channel));
    let total = each_template(model, channel, params, &columns, |template, part| {
        let sample = model.samples[model.table(model.layout.template_sample)[template] as usize].clone();
        samples.push(SamplePrediction { sample, prediction: part.predict(propagator) });
    });
    ChannelPrediction { channel: model.channels[channel].clone(), samples, total: total.predict(propagator) }
}

/// Returns what all samples together give in the bins of `channel` at `params` (P), and the
/// gradients: one row per bin.
pub(crate) fn gradients(model: &Model, channel: usize, params: &[f64]) -> (Vec<f64>, SparseRows) {
    let columns = DerivativeColumns::of(model, model.channel_templates(channel));
    let total = each_template(model, channel, params, &columns, |_, _| {});
    let mut rows = SparseRows::default();
    (0..total.yields.len()).for_each(|bin| rows.push(total.row(bin)));
    (total.yields, rows)
}

/// Shows `visit` the yields of each template of `channel`; returns their sum.
fn each_template<'a>(
    model: &Model,
    channel: usize,
    params: &[f64],
    columns: &'a DerivativeColumns,
    mut visit: impl FnMut(usize, &YieldDerivatives<'a>),
) -> YieldDerivatives<'a> {
    let n_bins = model.channel_bins(channel).len();
    let mut total =
        YieldDerivatives { columns, yields: vec![0.0; n_bins], derivatives: vec![0.0; columns.len() * n_bins] };
    let mut part = total.clone();
    for template in model.channel_templates(channel) {
        derivatives(model, template, params, columns, &mut part.yields, &mut part.derivatives);
        total.add(&part);
        visit(template, &part);
    }
    total
}

/// Yields of the bins of a channel, and their derivatives (columns × bins).
#[derive(Debug, Clone)]
struct YieldDerivatives<'a> {
    columns: &'a DerivativeColumns,
    yields: Vec<f64>,
    derivatives: Vec<f64>,
}

impl YieldDerivatives<'_> {
    fn add(&mut self, other: &Self) {
        self.yields.iter_mut().zip(&other.yields).for_each(|(a, b)| *a += b);
        self.derivatives.iter_mut().zip(&other.derivatives).for_each(|(a, b)| *a += b);
    }

    fn derivative(&self, column: usize, bin: usize) -> f64 {
        self.derivatives[column * self.yields.len() + bin]
    }

    /// Returns the gradient of the yield in `bin`.
    fn row(&self, bin: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..self.columns.len()).map(move |column| (self.columns.param(column, bin), self.derivative(column, bin)))
    }

    /// Returns the gradient of the sum over bins.
    fn sum_row(&self) -> impl Iterator<Item = (usize, f64)> {
        let n_bins = self.yields.len();
        let n_shared = self.columns.shared.len();
        let shared = (0..n_shared).map(move |column| {
            let sum = (0..n_bins).map(|bin| self.derivative(column, bin)).sum();
            (self.columns.param(column, 0), sum)
        });
        let per_bin = (n_shared..self.columns.len()).flat_map(move |column| {
            (0..n_bins).map(move |bin| (self.columns.param(column, bin), self.derivative(column, bin)))
        });
        shared.chain(per_bin)
    }

    fn predict(&self, propagator: &Propagator) -> Prediction {
        let mut rows = SparseRows::default();
        (0..self.yields.len()).for_each(|bin| rows.push(self.row(bin)));
        rows.push(self.sum_row());
        let mut uncertainties = propagator.uncertainties(&rows);
        let sum_uncertainty = uncertainties.pop().flatten();
        Prediction { yields: self.yields.clone(), uncertainties, sum: self.yields.iter().sum(), sum_uncertainty }
    }
}
