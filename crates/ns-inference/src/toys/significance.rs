//! The significance of a discovery by toys: p₀ with its Monte Carlo error, and a bound on it where
//! no toy is as extreme as the data.

use super::binomial::upper_bound;
use super::hypotest::{HypotestSettings, ToyHypotest, ToysError, require_inside};
use super::importance::{ImportanceSampling, MixtureToys, WeightedPValue};
use super::jobs::Unfinished;
use super::p_value::{ObservedStatistic, ToyPValue};
use super::run::{RunStatus, ToyRun};
use super::throw::AuxTreatment;
use crate::normal::{density, significance};
use crate::options::domain_and_start;
use crate::problem::Problem;
use crate::result::PoiBestFit;
use crate::test_statistic::TestStatistic;
use ns_core::DataLikelihood;
use serde::Serialize;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The number of toys between two checks of the error.
const CHECK: u64 = 500;

/// The confidence level of the bounds on p₀ and Z.
const BOUND_CL: f64 = 0.95;

/// Which significance is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToySignificanceSettings {
    /// The index of the parameter of interest.
    pub poi: usize,
    /// The error of p₀ that is small enough, relative to p₀.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// The seed.
    pub seed: u64,
    /// The treatment of the auxiliary data; importance sampling needs those that fluctuate.
    pub aux: AuxTreatment,
    /// Whether toys are thrown with a signal, too, and weighted.
    pub importance_sampling: bool,
}

/// The significance of a discovery by toys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToySignificanceResult {
    /// The parameter of interest, with its best fit.
    pub poi: PoiBestFit,
    /// q₀ of the data.
    pub q0: f64,
    /// The significance; 0 for p-values above ½; `None` if no toy is as extreme as the data.
    #[serde(rename = "Z_obs")]
    pub z_observed: Option<f64>,
    /// The Monte Carlo error of the significance.
    #[serde(rename = "Z_obs_error")]
    pub z_observed_error: Option<f64>,
    /// A lower bound on the significance at 95 % confidence level.
    #[serde(rename = "Z_obs_lower")]
    pub z_observed_lower: f64,
    /// The p-value of the background.
    #[serde(rename = "p0_obs")]
    pub p0_observed: f64,
    /// Its Monte Carlo error.
    #[serde(rename = "p0_obs_error")]
    pub p0_observed_error: f64,
    /// An upper bound on the p-value at 95 % confidence level: Clopper and Pearson's, and with
    /// importance sampling p·exp(1.64 σ/p), as if ln p were normally distributed.
    #[serde(rename = "p0_obs_upper")]
    pub p0_observed_upper: f64,
    /// The counts behind the p-value.
    pub tail_probability: ToyPValue,
    /// What was sampled in place of the background alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance_sampling: Option<ImportanceSampling>,
    /// How nuisance parameters of toys are chosen: `conditional_best_fit`.
    pub nuisance_parameters: &'static str,
    /// The wanted relative error of the p-value.
    pub tolerance: f64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
    /// The seed.
    pub seed: u64,
    /// The number of toys, including failed ones.
    pub n_toys: u64,
    /// The number of toys for which a fit did not converge.
    pub n_failed: u64,
    /// Whether the p-value is known to the tolerance and the fits of all toys converged.
    pub converged: bool,
    /// Whether the run was not cancelled.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
}

/// Computes the significance of a discovery by toys.
///
/// # Errors
/// If 0 is outside the range of the parameter of interest, if a fit to the data does not converge
/// or ends where no toys can be thrown, or if the accelerator fails.
pub fn toy_significance<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: ToySignificanceSettings,
    run: &ToyRun<'_>,
) -> Result<ToySignificanceResult, ToysError> {
    let ToySignificanceSettings { poi, max_toys, seed, aux, importance_sampling, .. } = settings;
    let test = HypotestSettings { test_statistic: TestStatistic::Q0, poi, mu: 0.0, n_toys: [max_toys, 0], seed, aux };
    require_inside(&domain_and_start(problem.model, problem.options).0, poi, test.mu)?;
    let hypotest = ToyHypotest::new(problem.model, problem.likelihood, problem.options, test)?;
    let name = problem.model.parameters.names[poi].clone();
    let run = ToyRun { whole: Some([0, max_toys]), ..*run };
    let counted = if importance_sampling {
        weighted(problem, &hypotest, &settings, run)?
    } else {
        unweighted(problem, &hypotest, &settings, &run)?
    };
    Ok(counted.into_result(name, hypotest.observed(), &settings))
}

/// The p-value of the toys of the background, or of a mixture.
struct Counted {
    p: ToyPValue,
    /// An upper bound on the p-value.
    upper: f64,
    n_toys: u64,
    n_failed: u64,
    is_complete: bool,
    sampling: Option<ImportanceSampling>,
}

/// Returns the number of toys at which a run that has `n_toys` checks the error next.
fn next_check(n_toys: u64, max_toys: u64) -> u64 {
    max_toys.min(n_toys + CHECK.max(n_toys / 4))
}

/// Throws toys of the background alone.
fn unweighted<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    hypotest: &ToyHypotest<'_>,
    settings: &ToySignificanceSettings,
    run: &ToyRun<'_>,
) -> Result<Counted, ToysError> {
    let ToySignificanceSettings { tolerance, max_toys, .. } = *settings;
    let (mut values, mut n_failed, mut n_toys) = (Vec::new(), 0, 0);
    let mut is_complete = true;
    let p_value = |values: &[f64], n_failed| ToyPValue::of(values, hypotest.observed().value, n_failed);
    while n_toys < max_toys && is_complete {
        let end = next_check(n_toys, max_toys);
        let Ok(ended) = hypotest.run(&*problem.likelihood, n_toys..end, run, |tests| {
            for test in tests {
                n_toys += 1;
                test.value.map_or_else(|| n_failed += 1, |value| values.push(value));
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        match ended {
            RunStatus::Failed => return Err(ToysError::Accelerator),
            RunStatus::Cancelled => is_complete = false,
            RunStatus::Done | RunStatus::Enough => {}
        }
        if is_precise(&p_value(&values, n_failed), tolerance) {
            break;
        }
    }
    let p = p_value(&values, n_failed);
    Ok(Counted {
        upper: upper_bound(p.n_extreme, p.n_toys, BOUND_CL),
        p,
        n_toys,
        n_failed,
        is_complete,
        sampling: None,
    })
}

/// Throws toys of the background and of signals, and weights them.
fn weighted<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    hypotest: &ToyHypotest<'_>,
    settings: &ToySignificanceSettings,
    run: ToyRun<'_>,
) -> Result<Counted, ToysError> {
    let ToySignificanceSettings { tolerance, max_toys, .. } = *settings;
    let mut toys = MixtureToys::new(problem, hypotest, run)?;
    loop {
        let is_complete = match toys.throw(next_check(toys.n_toys(), max_toys) - toys.n_toys()) {
            Ok(()) => true,
            Err(Unfinished::Cancelled) => false,
            Err(Unfinished::Failed) => return Err(ToysError::Accelerator),
        };
        let WeightedPValue { p, upper, n_failed, sampling } = toys.p_value(BOUND_CL);
        let counted = Counted { p, upper, n_toys: toys.n_toys(), n_failed, is_complete, sampling: Some(sampling) };
        if !is_complete || counted.n_toys >= max_toys || counted.is_precise(tolerance) {
            return Ok(counted);
        }
    }
}

impl Counted {
    fn into_result(
        self,
        name: String,
        observed: ObservedStatistic,
        settings: &ToySignificanceSettings,
    ) -> ToySignificanceResult {
        let ToySignificanceSettings { poi, tolerance, seed, aux, .. } = *settings;
        let warnings = self.warnings(settings);
        let is_consistent = !self.sampling.as_ref().is_some_and(ImportanceSampling::is_suspicious);
        let is_precise = self.is_precise(tolerance);
        let Self { p, upper, n_toys, n_failed, is_complete, sampling } = self;
        let (z, z_error) = significance_of(&p);
        ToySignificanceResult {
            poi: PoiBestFit { name, index: poi, bestfit: Some(observed.mu_hat) },
            q0: observed.value,
            z_observed: z,
            z_observed_error: z_error,
            z_observed_lower: significance(upper).max(0.0),
            p0_observed: p.value,
            p0_observed_error: p.error,
            p0_observed_upper: upper,
            tail_probability: p,
            importance_sampling: sampling,
            nuisance_parameters: "conditional_best_fit",
            tolerance,
            aux,
            seed,
            n_toys,
            n_failed,
            converged: is_complete && is_precise && n_failed == 0 && is_consistent,
            is_complete,
            warnings,
        }
    }

    /// Returns whether the error is known and small enough.
    fn is_precise(&self, tolerance: f64) -> bool {
        self.sampling.as_ref().is_none_or(ImportanceSampling::is_known) && is_precise(&self.p, tolerance)
    }

    fn warnings(&self, settings: &ToySignificanceSettings) -> Vec<String> {
        let Self { p, upper, n_toys, n_failed, is_complete, sampling } = self;
        let ToySignificanceSettings { tolerance, max_toys, .. } = *settings;
        let mut warnings = Vec::new();
        if !is_complete {
            warnings.push(format!("interrupted after {n_toys} of at most {max_toys} toys"));
        }
        if p.n_extreme == 0 {
            warnings.push(format!(
                "no toy of {n_toys} is as extreme as the data, so that only bounds are known: p₀ < {upper:.2e} and Z > {:.2} at 95 % confidence level",
                significance(*upper).max(0.0)
            ));
        } else if *is_complete && !self.is_precise(tolerance) {
            warnings.push(format!("the relative error of the p-value is above {tolerance} after {n_toys} toys"));
        }
        if *n_failed > 0 {
            warnings
                .push(format!("the fits of {n_failed} of {n_toys} toys did not converge; the p-value excludes them"));
        }
        if let Some(sampling) = sampling.as_ref().filter(|sampling| sampling.is_suspicious()) {
            warnings.push(format!(
                "the mean weight of the toys is {:.3} ± {:.3} instead of 1: do not use this p-value; throw toys of the background alone",
                sampling.mean_weight, sampling.mean_weight_error
            ));
        }
        warnings
    }
}

/// Returns whether the error of `p` is small enough.
fn is_precise(p: &ToyPValue, tolerance: f64) -> bool {
    p.n_extreme > 0 && p.error <= tolerance * p.value
}

/// Returns the significance of a fraction of toys, at least 0, and its error; `None` for a fraction
/// of 0.
fn significance_of(p: &ToyPValue) -> (Option<f64>, Option<f64>) {
    if p.n_extreme == 0 {
        return (None, None);
    }
    let z = significance(p.value);
    let error = Some(p.error / density(z)).filter(|error| error.is_finite());
    (Some(z.max(0.0)), error)
}
