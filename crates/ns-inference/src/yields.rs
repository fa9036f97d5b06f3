//! Yields before and after a fit, with uncertainties: of each sample and of all samples together,
//! bin by bin and summed over a channel.
//!
//! σ² = j C jᵀ with the exact derivatives j of the yield (`ns_core::sensitivity`) and the
//! covariance C of the parameters (`propagate`). Before a fit C is the constraint terms' widths
//! without correlations, after a fit the inverse of the exact Hessian. cabinetry varies each
//! parameter by its uncertainty instead of taking the derivative, which is the same where the yield
//! is linear over that range; [`YieldPropagation`] chooses.

use crate::linear::SparseRows;
use crate::options::domain_and_start;
use crate::parallel::{self, ExecutionContext};
use crate::problem::Problem;
use crate::propagate::Propagator;
use crate::result::FitResult;
use ns_core::sensitivity::{
    DerivativeColumns, SumDerivatives, Variations, complete_sum, derivatives, half_differences,
};
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

/// Several samples of a channel together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupPrediction {
    /// The group's name.
    pub group: String,
    /// The samples of the channel that are in it.
    pub samples: Vec<String>,
    /// Their yields, with the correlations between them.
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
    /// The groups that have a sample of the channel.
    pub groups: Vec<GroupPrediction>,
    /// All samples together, with the correlations between them.
    pub total: Prediction,
}

impl ChannelPrediction {
    /// Returns name and yields of each sample in the model's order, with each group instead of
    /// its samples.
    #[must_use]
    pub fn rows(&self) -> Vec<(&str, &Prediction)> {
        let group_of = |name: &String| self.groups.iter().position(|group| group.samples.contains(name));
        let mut is_shown = vec![false; self.groups.len()];
        let mut rows = Vec::new();
        for sample in &self.samples {
            match group_of(&sample.sample) {
                None => rows.push((sample.sample.as_str(), &sample.prediction)),
                Some(group) if !std::mem::replace(&mut is_shown[group], true) => {
                    rows.push((self.groups[group].group.as_str(), &self.groups[group].prediction));
                }
                Some(_) => {}
            }
        }
        rows
    }
}

/// Samples that are summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleGroup {
    /// The group's name.
    pub name: String,
    /// Indices of its samples in the model.
    pub samples: Vec<usize>,
}

/// How the uncertainties of parameters become those of yields: by which j in σ² = j C jᵀ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum YieldPropagation {
    /// Derivatives of the yields.
    #[default]
    Derivative,
    /// Half the difference of the yields with the parameter one standard deviation up and down, per
    /// standard deviation, as in cabinetry.
    HalfDifference,
}

/// What is predicted.
#[derive(Debug, Clone, Copy)]
pub struct PredictionRequest<'a> {
    /// The fitted model, or the same with bins that are not fitted.
    pub model: &'a Model,
    /// Samples to sum, in addition to each sample alone.
    pub groups: &'a [SampleGroup],
    /// How uncertainties are propagated.
    pub propagation: YieldPropagation,
    /// The number of threads.
    pub threads: NonZeroUsize,
}

/// Returns the yields at the starting values of a fit of `problem`, with the uncertainties that the
/// constraint terms give: widths without correlations.
///
/// Parameters without a constraint term, and fixed ones, contribute nothing.
#[must_use]
pub fn prefit<L: DataLikelihood + ?Sized>(
    problem: &Problem<'_, L>,
    request: PredictionRequest<'_>,
) -> Vec<ChannelPrediction> {
    let (domain, start) = domain_and_start(problem.model, problem.options);
    let propagator = Propagator::prefit(problem.model, problem.data(), &domain.fixed);
    at(&start, &propagator, request)
}

/// Returns the yields at the end of the fit of `problem` whose result is `result`, with the
/// uncertainties that its exact Hessian gives.
///
/// Fixed parameters and those at bounds contribute nothing. A fit that did not converge has no
/// uncertainties.
pub fn postfit<L: SearchLikelihood + ?Sized>(
    problem: &mut Problem<'_, L>,
    result: &FitResult,
    request: PredictionRequest<'_>,
) -> Vec<ChannelPrediction> {
    let (domain, _) = domain_and_start(problem.model, problem.options);
    let propagator = if result.converged {
        Propagator::postfit(problem.model, problem.likelihood, &result.bestfit, &domain)
    } else {
        Propagator::unknown()
    };
    at(&result.bestfit, &propagator, request)
}

/// Returns the yields at `params` (P) with the uncertainties that `propagator` gives, channel by
/// channel.
#[must_use]
pub fn at(params: &[f64], propagator: &Propagator, request: PredictionRequest<'_>) -> Vec<ChannelPrediction> {
    let PredictionRequest { model, groups, propagation, threads } = request;
    let widths = (propagation == YieldPropagation::HalfDifference).then(|| propagator.widths(params.len()));
    let widths = widths.as_deref();
    let channel = |_: &mut (), channel: usize| ChannelAt { model, channel, params, widths, propagator }.predict(groups);
    parallel::map(model.channels.len(), ExecutionContext::with_threads(threads), || (), channel)
        .into_iter()
        .flatten()
        .collect()
}

/// A channel of a model at a point, with the covariance there.
struct ChannelAt<'a> {
    model: &'a Model,
    channel: usize,
    params: &'a [f64],
    /// Standard deviations of the parameters (P), by which they are varied; `None` for derivatives.
    widths: Option<&'a [Option<f64>]>,
    propagator: &'a Propagator,
}

impl ChannelAt<'_> {
    fn predict(&self, groups: &[SampleGroup]) -> ChannelPrediction {
        let Self { model, channel, propagator, .. } = *self;
        let mut samples = Vec::new();
        let mut sums: Vec<Option<(Vec<String>, YieldDerivatives<'_>)>> = vec![None; groups.len()];
        let columns = DerivativeColumns::of(model, model.channel_templates(channel));
        let total = self.each_template(&columns, |template, part| {
            let index = model.table(model.layout.template_sample)[template] as usize;
            let sample = &model.samples[index];
            for (sum, _) in sums.iter_mut().zip(groups).filter(|(_, group)| group.samples.contains(&index)) {
                match sum {
                    None => *sum = Some((vec![sample.clone()], part.clone())),
                    Some((names, sum)) => {
                        names.push(sample.clone());
                        sum.add(part);
                    }
                }
            }
            samples.push(SamplePrediction { sample: sample.clone(), prediction: part.predict(propagator) });
        });
        let predicted = groups.iter().zip(sums).filter_map(|(group, sum)| {
            let (samples, sum) = sum?;
            Some(GroupPrediction { group: group.name.clone(), samples, prediction: sum.predict(propagator) })
        });
        let groups = predicted.collect();
        ChannelPrediction {
            channel: model.channels[channel].clone(),
            samples,
            groups,
            total: total.predict(propagator),
        }
    }
}

impl ChannelAt<'_> {
    /// Shows `visit` the yields of each template of the channel; returns their sum.
    fn each_template<'c>(
        &self,
        columns: &'c DerivativeColumns,
        mut visit: impl FnMut(usize, &YieldDerivatives<'c>),
    ) -> YieldDerivatives<'c> {
        let Self { model, channel, params, .. } = *self;
        let n_bins = model.channel_bins(channel).len();
        let mut total =
            YieldDerivatives { columns, yields: vec![0.0; n_bins], derivatives: vec![0.0; columns.len() * n_bins] };
        let mut part = total.clone();
        for template in model.channel_templates(channel) {
            derivatives(model, template, params, columns, &mut part.yields, &mut part.derivatives);
            if let Some(widths) = self.widths {
                half_differences(model, template, Variations { params, widths }, columns, &mut part.derivatives);
            }
            total.add(&part);
            visit(template, &part);
        }
        if !model.rules.is_empty() {
            let sum = &mut SumDerivatives { total: &mut total.yields, derivatives: &mut total.derivatives };
            complete_sum(model, channel, params, columns, sum);
        }
        total
    }
}

/// Returns what all samples together give in the bins of `channel` at `params` (P), and the
/// gradients: one row per bin.
pub(crate) fn gradients(model: &Model, channel: usize, params: &[f64]) -> (Vec<f64>, SparseRows) {
    let columns = DerivativeColumns::of(model, model.channel_templates(channel));
    let at = ChannelAt { model, channel, params, widths: None, propagator: &Propagator::unknown() };
    let total = at.each_template(&columns, |_, _| {});
    let mut rows = SparseRows::default();
    (0..total.yields.len()).for_each(|bin| rows.push(total.row(bin)));
    (total.yields, rows)
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
