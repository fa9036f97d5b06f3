//! Compares data with the prediction of a fit that did not use them, as in validation regions.
//!
//! χ² = (n - λ)ᵀ V⁻¹ (n - λ) with V = diag(λ) + J C Jᵀ: counts n, expected counts λ at the fit,
//! their derivatives J by the parameters, and the covariance C of the fit. The first term of V is
//! the variance of the counts, the second that of the prediction, with its correlations between
//! bins. For large counts χ² follows its law with one degree of freedom per bin, because no
//! parameter was adjusted to these bins. Bins that the fit did use have smaller residuals.

use crate::chi_squared::upper_tail;
use crate::gof::{FEW_EVENTS, few_events};
use crate::linear::{SparseRows, inverse_form};
use crate::parallel::{self, ExecutionContext};
use crate::yields::gradients;
use ns_core::{Data, Model};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::ops::Range;

/// How well a fit predicts data that it did not use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictionTest {
    /// χ² over all bins, with their correlations; `None` if the covariance does not tell the
    /// uncertainty of the prediction, or if a bin has events where none are possible.
    pub statistic: Option<f64>,
    /// Degrees of freedom: bins that expect or have seen anything.
    pub n_dof: usize,
    /// P(χ² ≥ `statistic`); `None` without a statistic or a bin.
    pub p_value: Option<f64>,
    /// Each channel by itself (C).
    pub channels: Vec<ChannelTest>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
}

/// How well one channel is predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelTest {
    /// The channel's name.
    pub channel: String,
    /// χ² over its bins; `None` as in [`PredictionTest`].
    pub statistic: Option<f64>,
    /// Degrees of freedom: bins that expect or have seen anything.
    pub n_dof: usize,
    /// P(χ² ≥ `statistic`).
    pub p_value: Option<f64>,
}

/// The point and the covariance of a fit. P is the number of parameters.
#[derive(Debug, Clone, Copy)]
pub struct FitPoint<'a> {
    /// Best-fit values (P).
    pub params: &'a [f64],
    /// The covariance (P × P, by rows), NaN where it is not known.
    pub covariance: &'a [f64],
}

/// Returns how well `fit` predicts `data`.
#[must_use]
pub fn test_prediction(model: &Model, data: &Data, fit: FitPoint<'_>, threads: NonZeroUsize) -> PredictionTest {
    let execution = ExecutionContext::with_threads(threads);
    let channel = |_: &mut (), c: usize| gradients(model, c, fit.params);
    let parts = parallel::map(model.channels.len(), execution, || (), channel);
    let mut bins = Bins::default();
    let mut channels = Vec::with_capacity(parts.len());
    for (c, (expected, gradients)) in parts.into_iter().flatten().enumerate() {
        let first = bins.residuals.len();
        for (bin, b) in model.channel_bins(c).enumerate() {
            bins.add(b, [data.main[b], expected[bin]], gradients.row(bin));
        }
        channels.push(first..bins.residuals.len());
    }
    let variance = bins.variance(fit.covariance);
    let test = |(c, range): (usize, &Range<usize>)| {
        let (statistic, p_value) = bins.test(&variance, range.clone());
        ChannelTest { channel: model.channels[c].clone(), statistic, n_dof: range.len(), p_value }
    };
    let n_dof = bins.residuals.len();
    let (statistic, p_value) = bins.test(&variance, 0..n_dof);
    let n_few = bins.expected.iter().filter(|lambda| **lambda < FEW_EVENTS).count();
    let impossible = bins
        .impossible(&variance)
        .map(|(bin, seen)| format!("{}: no events are possible where {seen} were observed", model.place(bin)));
    let unknown = || (n_dof > 0).then(|| "the covariance does not tell the uncertainty of the prediction".to_owned());
    let absent = if statistic.is_some() { None } else { impossible.or_else(unknown) };
    PredictionTest {
        statistic,
        n_dof,
        p_value,
        channels: channels.iter().enumerate().map(test).collect(),
        warnings: few_events(n_few, n_dof).into_iter().chain(absent).collect(),
    }
}

/// The bins that expect or have seen anything (B).
#[derive(Default)]
struct Bins {
    /// Their indices in the model (B).
    bins: Vec<usize>,
    /// λ (B).
    expected: Vec<f64>,
    /// n - λ (B).
    residuals: Vec<f64>,
    /// The gradients of λ (B rows).
    gradients: SparseRows,
}

impl Bins {
    fn add(&mut self, bin: usize, [seen, expected]: [f64; 2], gradient: impl Iterator<Item = (usize, f64)>) {
        if expected > 0.0 || seen > 0.0 {
            self.bins.push(bin);
            self.expected.push(expected);
            self.residuals.push(seen - expected);
            self.gradients.push(gradient);
        }
    }

    /// Returns V (B × B).
    fn variance(&self, covariance: &[f64]) -> Vec<f64> {
        let (n, n_params) = (self.residuals.len(), covariance.len().isqrt());
        let mut variance = vec![0.0; n * n];
        let mut row = vec![0.0; n_params];
        for a in 0..n {
            // Row a of J C; what does not change the bin may be unknown.
            row.fill(0.0);
            for (i, derivative) in self.gradients.row(a).filter(|(_, derivative)| *derivative != 0.0) {
                let column = &covariance[i * n_params..(i + 1) * n_params];
                row.iter_mut().zip(column).for_each(|(sum, c)| *sum += derivative * c);
            }
            for b in 0..=a {
                let moves = self.gradients.row(b).filter(|(_, derivative)| *derivative != 0.0);
                let entry: f64 = moves.map(|(j, derivative)| derivative * row[j]).sum();
                (variance[a * n + b], variance[b * n + a]) = (entry, entry);
            }
            variance[a * n + a] += self.expected[a];
        }
        variance
    }

    /// Returns the first bin, with its events, that has no variance: χ² is infinite.
    fn impossible(&self, variance: &[f64]) -> Option<(usize, f64)> {
        let n = self.bins.len();
        let found = (0..n).find(|&a| variance[a * n + a] == 0.0)?;
        Some((self.bins[found], self.residuals[found] + self.expected[found]))
    }

    /// Returns χ² and its p-value over the bins `range`, of which `variance` (B × B) is the
    /// covariance.
    fn test(&self, variance: &[f64], range: Range<usize>) -> (Option<f64>, Option<f64>) {
        let (n, len) = (self.residuals.len(), range.len());
        let part: Vec<f64> =
            range.clone().flat_map(|a| variance[a * n + range.start..a * n + range.end].to_vec()).collect();
        if len == 0 || part.iter().any(|entry| !entry.is_finite()) {
            return (None, None);
        }
        // There is no Cholesky factor if a bin has no variance.
        let statistic = inverse_form(&part, len, &self.residuals[range]);
        (statistic, statistic.map(|statistic| upper_tail(statistic, len as f64)))
    }
}
