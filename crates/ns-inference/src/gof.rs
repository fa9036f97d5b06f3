//! Goodness of fit: how far the best fit is from the saturated model, which expects in each bin
//! exactly what was seen.
//!
//! q = 2 (-ln L(θ̂) + ln L_saturated) = Σ_bins 2 D(n, λ(θ̂)) + Σ_terms 2 D(a, θ̂), D being the
//! half-deviance of a bin or constraint term (S. Baker and R. D. Cousins, Nucl. Instrum. Meth. 221
//! (1984) 437; R. D. Cousins, "Generalization of chisquare goodness-of-fit test for binned data
//! using saturated models", 2013). For large counts q follows χ² with as many degrees of freedom as
//! there are bins and constraint terms, less what the parameters take. Both halves matter: without
//! the constraint terms a fit could buy agreement with impossible pulls, without the parameters'
//! share everything fits well.

use crate::chi_squared::upper_tail;
use crate::hessian::Hessian;
use crate::linear::{SparseRows, rank};
use crate::minimize::Domain;
use crate::options::domain_and_start;
use crate::parallel::{self, ExecutionContext};
use crate::problem::Problem;
use crate::result::FitResult;
use crate::result::UNDETERMINED;
use crate::yields::gradients;
use ns_core::expected::{asimov, expected_main};
use ns_core::poisson::half_deviance;
use ns_core::{Data, DataLikelihood, Model};
use serde::Serialize;
use std::num::NonZeroUsize;

/// Bins that expect fewer events than this do not follow the χ² law well.
pub(crate) const FEW_EVENTS: f64 = 5.0;

/// With fewer degrees of freedom than this a channel is fitted whatever it contains.
const NO_DEGREE: f64 = 1e-6;

/// The distance to the saturated model and what it is made of. Every number is twice a difference
/// of -ln L.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deviance {
    /// q, the sum of all.
    pub total: f64,
    /// Σ 2 D(n, λ) over the bins of each channel (C).
    pub channels: Vec<f64>,
    /// Σ 2 D(a, θ) over the constraint terms of parameters that are not fixed; for a Gaussian term
    /// the squared pull.
    pub constraints: f64,
}

/// The goodness of a fit, with χ² probabilities that hold for large counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoodnessOfFit {
    /// q, the statistic; `None` if the fit did not converge.
    pub statistic: Option<f64>,
    /// The part of q that the constraint terms contribute; likewise.
    pub constraint_deviance: Option<f64>,
    /// `n_bins` + `n_constraints` - `n_free` + `n_undetermined`.
    pub n_dof: i64,
    /// P(χ² ≥ q); `None` if no degree of freedom is left, or the fit did not converge.
    pub p_value: Option<f64>,
    /// Bins that expect or have seen anything.
    pub n_bins: usize,
    /// Constraint terms of parameters that are not fixed.
    pub n_constraints: usize,
    /// Parameters that are not fixed; those at a bound count.
    pub n_free: usize,
    /// Directions in the space of the parameters that no bin and no constraint term feels: they
    /// take no degree of freedom.
    pub n_undetermined: usize,
    /// Each channel by itself (C).
    pub channels: Vec<ChannelGoodness>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
}

/// How well one channel is fitted.
///
/// The parameters are those of the fit to all channels, so the residuals of a channel are smaller
/// than those of bins that were not fitted. For large counts its deviance is a sum of squares with
/// covariance M = 1 - W^½ J F⁻¹ Jᵀ W^½ (J: ∂λ/∂θ of its bins, W = 1/λ, F: the expected information
/// of the whole fit); `n_dof` is the trace of M, and the p-value that of a scaled χ² with the same
/// mean and variance (F. E. Satterthwaite, Biometrics 2 (1946) 110). Channels share parameters:
/// these p-values are not independent of each other, and the smallest of many is small.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelGoodness {
    /// The channel's name.
    pub channel: String,
    /// Σ 2 D(n, λ) over its bins; `None` if the fit did not converge.
    pub deviance: Option<f64>,
    /// Bins that expect or have seen anything.
    pub n_bins: usize,
    /// Effective degrees of freedom that the fit leaves, not whole in general; `None` if the
    /// Hessian is not positive definite.
    pub n_dof: Option<f64>,
    /// The probability of a deviance at least as large; `None` without degrees of freedom.
    pub p_value: Option<f64>,
}

/// Returns the distance of `data` from what `params` (P) expect, for parameters of which `fixed`
/// (P) are fixed at a value and have no pull.
///
/// At a point outside the domain it is infinite.
#[must_use]
pub fn saturated_deviance(model: &Model, data: &Data, params: &[f64], fixed: &[bool]) -> Deviance {
    let lambda = expected_main(model, params);
    let bin = |b: usize| 2.0 * half_deviance(data.main[b], lambda[b]);
    let channels: Vec<f64> = (0..model.channels.len()).map(|c| model.channel_bins(c).map(bin).sum()).collect();
    let constraints = free_terms(model, fixed)
        .filter_map(|(i, k)| Some(2.0 * model.parameters.constraint[i]?.deviance(data.aux[k], params[i]).round()))
        .sum();
    Deviance { total: channels.iter().sum::<f64>() + constraints, channels, constraints }
}

/// Returns the parameter and the auxiliary datum of each constraint term of a parameter that is not
/// fixed.
fn free_terms(model: &Model, fixed: &[bool]) -> impl Iterator<Item = (usize, usize)> {
    let params = model.table(model.layout.constraint_param).iter().map(|&param| param as usize);
    params.enumerate().filter(|(_, i)| !fixed[*i]).map(|(k, i)| (i, k))
}

/// Returns the goodness of the fit of `problem` whose result is `result`.
///
/// The likelihood is given other data in between, and its own again at the end.
pub fn goodness_of_fit<L: DataLikelihood + ?Sized>(
    problem: &mut Problem<'_, L>,
    result: &FitResult,
    threads: NonZeroUsize,
) -> GoodnessOfFit {
    let Problem { model, options, .. } = *problem;
    let likelihood = &mut *problem.likelihood;
    let data = likelihood.data().clone();
    let (domain, _) = domain_and_start(model, options);
    let deviance = saturated_deviance(model, &data, &result.bestfit, &domain.fixed);
    let information = result.converged.then(|| {
        likelihood.set_data(&asimov(model, &result.bestfit));
        let information = Hessian::at(likelihood, &result.bestfit, &domain);
        likelihood.set_data(&data);
        information
    });
    let channel = |_: &mut (), c: usize| {
        let seen = &data.main[model.channel_bins(c)];
        let residuals = Residuals::of(model, c, &result.bestfit, seen);
        let goodness = residuals.goodness(model.channels[c].clone(), deviance.channels[c], information.as_ref());
        (goodness, residuals)
    };
    let parts = parallel::map(model.channels.len(), ExecutionContext::with_threads(threads), || (), channel);
    let (channels, residuals): (Vec<_>, Vec<_>) = parts.into_iter().flatten().unzip();
    let n_few = residuals.iter().map(Residuals::n_few).sum();
    let counts = Counts::of(model, &domain, &residuals);
    counts.report(&deviance, channels, result, n_few)
}

/// The bins of a channel that expect or have seen anything: λ, and the gradient of λ.
struct Residuals {
    expected: Vec<f64>,
    gradients: SparseRows,
}

impl Residuals {
    fn of(model: &Model, channel: usize, params: &[f64], seen: &[f64]) -> Self {
        let (expected, gradients) = gradients(model, channel, params);
        let counts: Vec<usize> = (0..seen.len()).filter(|&b| expected[b] > 0.0 || seen[b] > 0.0).collect();
        let mut rows = SparseRows::default();
        counts.iter().for_each(|&b| rows.push(gradients.row(b)));
        Self { expected: counts.iter().map(|&b| expected[b]).collect(), gradients: rows }
    }

    fn n_few(&self) -> usize {
        self.expected.iter().filter(|lambda| **lambda < FEW_EVENTS).count()
    }

    fn goodness(&self, channel: String, deviance: f64, information: Option<&Hessian>) -> ChannelGoodness {
        let moments = information.filter(|hessian| hessian.is_covariance()).map(|hessian| self.moments(hessian));
        let p_value = moments.filter(|(trace, _)| *trace > NO_DEGREE).map(|(trace, square)| {
            // g χ²(h) has mean g h and variance 2 g² h.
            let (scale, n_dof) = (square / trace, trace * trace / square);
            upper_tail(deviance / scale, n_dof)
        });
        let n_dof = moments.map(|(trace, _)| trace.max(0.0));
        let deviance = information.map(|_| deviance);
        ChannelGoodness { channel, deviance, n_bins: self.expected.len(), n_dof, p_value }
    }

    /// Returns tr M and tr M² of the residuals' covariance M.
    fn moments(&self, information: &Hessian) -> (f64, f64) {
        let whitened = information.whiten(&self.gradients);
        let n = self.expected.len();
        let (mut trace, mut square) = (0.0, 0.0);
        for a in 0..n {
            for b in 0..=a {
                let taken = whitened.covariance(a, b) / (self.expected[a] * self.expected[b]).sqrt();
                let left = if a == b { 1.0 - taken } else { -taken };
                trace += if a == b { left } else { 0.0 };
                square += if a == b { left * left } else { 2.0 * left * left };
            }
        }
        (trace, square)
    }
}

/// What the degrees of freedom are made of.
struct Counts {
    n_bins: usize,
    n_constraints: usize,
    n_free: usize,
    n_undetermined: usize,
}

impl Counts {
    fn of(model: &Model, domain: &Domain, residuals: &[Residuals]) -> Self {
        Self {
            n_bins: residuals.iter().map(|channel| channel.expected.len()).sum(),
            n_constraints: free_terms(model, &domain.fixed).count(),
            n_free: domain.fixed.iter().filter(|fixed| !**fixed).count(),
            n_undetermined: n_undetermined(model, domain, residuals),
        }
    }

    fn report(
        self,
        deviance: &Deviance,
        channels: Vec<ChannelGoodness>,
        result: &FitResult,
        n_few: usize,
    ) -> GoodnessOfFit {
        let Self { n_bins, n_constraints, n_free, n_undetermined } = self;
        let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let n_dof = signed(n_bins + n_constraints + n_undetermined) - signed(n_free);
        let testable = result.converged && n_dof > 0 && deviance.total.is_finite();
        GoodnessOfFit {
            statistic: result.converged.then_some(deviance.total),
            constraint_deviance: result.converged.then_some(deviance.constraints),
            n_dof,
            p_value: testable.then(|| upper_tail(deviance.total, n_dof as f64)),
            n_bins,
            n_constraints,
            n_free,
            n_undetermined,
            channels,
            warnings: warnings(result, n_dof, n_few, n_bins, n_undetermined),
        }
    }
}

/// Returns the directions that the data leave undetermined, at bounds or not.
///
/// A direction without any curvature has no share of a parameter with a constraint term, so the
/// rank of the other parameters' gradients tells.
fn n_undetermined(model: &Model, domain: &Domain, residuals: &[Residuals]) -> usize {
    let is_loose = |i: &usize| !domain.fixed[*i] && model.parameters.constraint[*i].is_none();
    let loose: Vec<usize> = (0..model.n_params()).filter(is_loose).collect();
    let n = loose.len();
    let mut place = vec![None; model.n_params()];
    loose.iter().enumerate().for_each(|(k, &i)| place[i] = Some(k));
    let mut gram = vec![0.0; n * n];
    for channel in residuals {
        for (r, lambda) in channel.expected.iter().enumerate() {
            let row: Vec<(usize, f64)> =
                channel.gradients.row(r).filter_map(|(i, derivative)| Some((place[i]?, derivative))).collect();
            for &(a, x) in &row {
                row.iter().for_each(|&(b, y)| gram[a * n + b] += x * y / lambda.max(1.0));
            }
        }
    }
    // PERF: cubic in the parameters without a constraint; thousands of free shapefactors would want
    // the structure.
    n - rank(&gram, n, UNDETERMINED)
}

fn warnings(result: &FitResult, n_dof: i64, n_few: usize, n_bins: usize, n_undetermined: usize) -> Vec<String> {
    let bad = (!result.converged).then(|| "the fit did not converge, so there is no p-value".to_owned());
    let n_at_bounds = result.at_bounds.len();
    let none = (n_dof <= 0).then(|| match n_at_bounds {
        0 => "the model has at least as many free parameters as data, so nothing can be tested"
            .to_owned(),
        n => format!("no degree of freedom is left if the parameters at a bound, {n}, count as free; toys do not count, and have a p-value"),
    });
    let few = few_events(n_few, n_bins);
    let bounds = (n_at_bounds > 0 && n_dof > 0).then(|| {
        format!("parameters at a bound: {n_at_bounds}; they count as free, so the p-value is rather too small")
    });
    let flat = (n_undetermined > 0).then(|| {
        format!("directions that the data do not determine: {n_undetermined}; they take no degree of freedom")
    });
    [bad, none, few, bounds, flat].into_iter().flatten().collect()
}

/// Returns the warning about `n_few` of `n_bins` bins that expect few events; `None` if there are
/// none.
pub(crate) fn few_events(n_few: usize, n_bins: usize) -> Option<String> {
    (n_few > 0).then(|| {
        format!(
            "bins that expect fewer than {FEW_EVENTS} events: {n_few} of {n_bins}; with them p-values from χ² are rough"
        )
    })
}
