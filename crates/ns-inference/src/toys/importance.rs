//! Estimates small p-values of the background by importance sampling: toys are thrown with a signal
//! too, where large statistics are common, and weighted by the likelihood ratio of their data.
//!
//! The estimate is that of a deterministic mixture with the balance heuristic (E. Veach and L. J.
//! Guibas, SIGGRAPH 1995): with N_k toys of hypothesis k, a toy x has the weight
//! w(x) = N f₀(x) / Σ_k N_k f_k(x), whatever its hypothesis, where f₀ is the density of the
//! background. One toy in eight is of the background, so that no weight is above 8.

use super::binomial::upper_bound;
use super::hypotest::{HypotestSettings, ToyHypotest, ToysError};
use super::jobs::{ToyJob, ToyJobs, Unfinished};
use super::p_value::{ToyPValue, threshold};
use super::pilot::ToySearch;
use super::point::{Hypothesis, ToyStatistic};
use super::run::ToyRun;
use super::throw::{AuxTreatment, Ensemble, ToySampler, ToySource};
use crate::normal::significance;
use crate::options::domain_and_start;
use crate::problem::Problem;
use crate::test_statistic::TestStatistic;
use ns_core::{Data, DataLikelihood};
use serde::Serialize;

/// The numbers of toys of the hypotheses, of eight: the background, halfway to the signal, and the
/// signal.
const SHARES: [u64; N_HYPOTHESES] = [1, 1, 6];
const N_HYPOTHESES: usize = 3;
/// The part of the signal in each hypothesis.
const STRENGTHS: [f64; N_HYPOTHESES] = [0.0, 0.5, 1.0];

/// A mean weight that is further from 1 than this many of its errors, and than rounding, shows a
/// wrong estimate.
const SUSPICIOUS: f64 = 5.0;
const ROUNDING: f64 = 1e-9;
/// The number of toys of the background from which the error of the mean weight is known.
const ENOUGH: u64 = 30;
/// The effective number of toys from which the error of the p-value is known.
const ENOUGH_EFFECTIVE: f64 = 10.0;

/// What was sampled in place of the background alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportanceSampling {
    /// The values of the parameter of interest at which toys were thrown.
    pub thrown_at: Vec<f64>,
    /// The number of toys thrown at each.
    pub n_toys: Vec<u64>,
    /// (Σw)²/Σw² of the toys that are at least as extreme as the data: the number of toys of equal
    /// weights with the same relative error.
    pub n_effective: f64,
    /// The mean weight of all toys, which is 1 but for its error.
    pub mean_weight: f64,
    /// Its error.
    pub mean_weight_error: f64,
    /// The number of toys of the background alone that would give the same error of the p-value.
    pub n_toys_without: f64,
}

impl ImportanceSampling {
    /// Returns `true` if the mean weight is further from 1 than its error explains.
    pub(super) fn is_suspicious(&self) -> bool {
        let is_known = self.n_toys.first().is_some_and(|n| *n >= ENOUGH);
        is_known && (self.mean_weight - 1.0).abs() > SUSPICIOUS * self.mean_weight_error + ROUNDING
    }

    /// Returns `true` if there are enough toys for the error of the p-value to be known.
    pub(super) fn is_known(&self) -> bool {
        self.n_effective >= ENOUGH_EFFECTIVE
    }
}

/// A toy with its statistic, and -ln of the density of its data under each hypothesis, up to a
/// constant of the toy.
#[derive(Debug, Clone, Copy)]
struct MixtureToy {
    hypothesis: usize,
    value: Option<f64>,
    nll: [f64; N_HYPOTHESES],
}

/// Toys of the background and of signals.
pub(super) struct MixtureToys<'a, L> {
    jobs: ToyJobs<'a, L>,
    hypotheses: [Hypothesis; N_HYPOTHESES],
    /// How the minima of the toys of each are sought.
    searches: [ToySearch; N_HYPOTHESES],
    tested: [(usize, f64); 1],
    /// The smallest statistic that is as extreme as that of the data.
    threshold: f64,
    toys: Vec<MixtureToy>,
}

/// A p-value by importance sampling.
#[derive(Debug, Clone)]
pub(super) struct WeightedPValue {
    pub(super) p: ToyPValue,
    /// An upper bound on the p-value at the confidence level that was asked for.
    pub(super) upper: f64,
    pub(super) n_failed: u64,
    pub(super) sampling: ImportanceSampling,
}

impl<'a, L: DataLikelihood + Clone + Sync> MixtureToys<'a, L> {
    /// Takes the free best fit to the data as the signal: data as extreme as the observed ones are
    /// most probable near it. That is exact if the fit reproduces every bin; elsewhere it costs
    /// toys, and leaves the estimate without bias.
    ///
    /// # Errors
    /// Auxiliary data that are fixed, and a hypothesis at which no toys can be thrown.
    pub(super) fn new(
        problem: &'a mut Problem<'_, L>,
        hypotest: &ToyHypotest<'_>,
        run: ToyRun<'a>,
    ) -> Result<Self, ToysError> {
        let HypotestSettings { poi, mu, seed, aux, n_toys: [most, _], .. } = *hypotest.settings();
        if aux == AuxTreatment::Fixed {
            return Err(ToysError::ImportanceOfFixedAux);
        }
        let observed = hypotest.observed();
        let (background, signal) = (hypotest.thrown_at()[0], hypotest.best_fit());
        let Problem { model, options, ref mut likelihood } = *problem;
        let (data, domain) = (likelihood.data().clone(), domain_and_start(model, options).0);
        let source = ToySource { seed, ensemble: Ensemble::Importance, aux };
        // Without an excess, the signal is none.
        let has_signal = observed.value > 0.0;
        let between = |part: f64| -> Vec<f64> {
            let part = if has_signal { part } else { 0.0 };
            background.iter().zip(signal).map(|(from, to)| from + part * (to - from)).collect()
        };
        let mut at = |part| {
            let sampler = ToySampler::new(model, &data, &between(part), source)?;
            Ok::<_, ToysError>(Hypothesis::new(model, &mut **likelihood, &domain, sampler, &[poi]))
        };
        let [none, half, whole] = STRENGTHS;
        let hypotheses = [at(none)?, at(half)?, at(whole)?];
        likelihood.set_data(&data);
        let (likelihood, statistic) = (&**likelihood, TestStatistic::Q0);
        let jobs = ToyJobs { model, options, likelihood, statistic, run, n_thrown: 0, most };
        let searches = hypotheses.each_ref().map(|hypothesis| jobs.search(hypothesis, &[(poi, mu)]));
        let (tested, threshold) = ([(poi, mu)], threshold(observed.value));
        Ok(Self { jobs, hypotheses, searches, tested, threshold, toys: Vec::new() })
    }

    /// Returns the number of toys so far.
    pub(super) fn n_toys(&self) -> u64 {
        self.toys.len() as u64
    }

    /// Throws `n` more toys.
    ///
    /// # Errors
    /// If the run is cancelled or the accelerator fails. The toys are then lost.
    pub(super) fn throw(&mut self, n: u64) -> Result<(), Unfinished> {
        let first = self.jobs.n_thrown;
        let numbers = divided(n);
        let jobs: [ToyJob<'_>; N_HYPOTHESES] = std::array::from_fn(|k| ToyJob {
            hypothesis: &self.hypotheses[k],
            values: &self.tested,
            search: self.searches[k],
            n_toys: numbers[k],
        });
        let found = self.jobs.run(&jobs)?;
        if self.jobs.run.monitor.is_cancelled() {
            return Err(Unfinished::Cancelled);
        }
        // Data are thrown again: that takes far less time than the fits, and no memory.
        let (mut likelihood, mut data, mut toy) = (self.jobs.likelihood.clone(), Data::default(), first);
        for (hypothesis, tests) in found.into_iter().enumerate() {
            for ToyStatistic { value, .. } in tests {
                self.hypotheses[hypothesis].sampler.throw(toy, &mut data);
                likelihood.set_data(&data);
                let nll = self.hypotheses.each_ref().map(|other| likelihood.nll(other.sampler.params()));
                self.toys.push(MixtureToy { hypothesis, value, nll });
                toy += 1;
            }
        }
        Ok(())
    }

    /// Returns the p-value of the toys so far, with an upper bound at confidence level `cl`.
    pub(super) fn p_value(&self, cl: f64) -> WeightedPValue {
        let n = self.toys.len() as f64;
        let mut n_of = [0_u64; N_HYPOTHESES];
        self.toys.iter().for_each(|toy| n_of[toy.hypothesis] += 1);
        let shares = n_of.map(|n_of| n_of as f64 / n);
        let weighted: Vec<(MixtureToy, f64)> = self.toys.iter().map(|toy| (*toy, weight(&toy.nll, &shares))).collect();
        let moments = |counts: &dyn Fn(&MixtureToy) -> bool| {
            Moments::of(weighted.iter().map(|(toy, w)| (toy.hypothesis, if counts(toy) { *w } else { 0.0 })))
        };
        // Toys that the background cannot give have the weight 0, and no fits that could fail.
        let number = |counts: &dyn Fn(&MixtureToy) -> bool| {
            weighted.iter().filter(|(toy, w)| *w > 0.0 && counts(toy)).count() as u64
        };
        let is_extreme = |toy: &MixtureToy| toy.value.is_some_and(|value| value >= self.threshold);
        let has_failed = |toy: &MixtureToy| toy.value.is_none();
        let [all, tail, failed] = [moments(&|_| true), moments(&is_extreme), moments(&has_failed)];
        let (n_extreme, n_failed) = (number(&is_extreme), number(&has_failed));
        let n_converged = self.toys.len() as u64 - n_failed;
        // Failed toys count by their weights, too; without others there is no p-value.
        let scale = if failed.mean < 1.0 { 1.0 / (1.0 - failed.mean) } else { f64::NAN };
        let largest = 1.0 / shares[0];
        let bound = (largest * upper_bound(n_extreme, n_converged, cl)).min(1.0);
        let (value, mut error) = (tail.mean * scale, tail.error * scale);
        if n_extreme == 0 {
            let smoothed = 0.5 / (n + 1.0);
            error = largest * (smoothed * (1.0 - smoothed) / n).sqrt();
        }
        let upper = if n_extreme == 0 { bound } else { bound.min(value * (one_sided(cl) * error / value).exp()) };
        let (low, high) = (tail.mean, tail.mean + failed.mean);
        let p = ToyPValue { value, error, low, high, n_extreme, n_toys: n_converged };
        let sampling = ImportanceSampling {
            thrown_at: self.hypotheses.iter().map(|h| h.sampler.params()[self.tested[0].0]).collect(),
            n_toys: n_of.to_vec(),
            n_effective: tail.effective,
            mean_weight: all.mean,
            mean_weight_error: all.error,
            // The square of a very small error is 0.
            n_toys_without: if error > 0.0 { (1.0 - value) * (value / error) / error } else { n },
        };
        WeightedPValue { p, upper, n_failed, sampling }
    }
}

/// Divides `n` toys among the hypotheses; the background gets one at least.
fn divided(n: u64) -> [u64; N_HYPOTHESES] {
    let whole: u64 = SHARES.iter().sum();
    let [background, half] = [SHARES[0], SHARES[1]].map(|share| (n * share).div_ceil(whole));
    let half = half.min(n - background);
    [background, half, n - background - half]
}

/// Returns f₀ / Σ_k share_k f_k of a toy with -ln f_k = `nll`.
fn weight(nll: &[f64; N_HYPOTHESES], shares: &[f64; N_HYPOTHESES]) -> f64 {
    if nll[0] == f64::INFINITY {
        return 0.0;
    }
    let of_share = |(nll_k, share): (&f64, &f64)| if *share > 0.0 { share * (nll[0] - nll_k).exp() } else { 0.0 };
    let mixture: f64 = nll.iter().zip(shares).map(of_share).sum();
    1.0 / mixture
}

/// Returns the number of standard deviations of a one-sided confidence level.
fn one_sided(cl: f64) -> f64 {
    significance(1.0 - cl)
}

/// The mean of numbers of several hypotheses, with its error.
struct Moments {
    mean: f64,
    error: f64,
    /// (Σx)²/Σx².
    effective: f64,
}

impl Moments {
    /// Returns the mean and the error of `numbers`, pairs of a hypothesis and a value. The variance
    /// of the mean is the sum of those of the hypotheses, whose numbers of toys are not random; a
    /// single toy has its square.
    fn of(numbers: impl Iterator<Item = (usize, f64)> + Clone) -> Self {
        // Squares of weights of very small p-values are no normal numbers.
        let largest = numbers.clone().map(|(_, x)| x).fold(0.0, f64::max);
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let mut sums = [[0.0_f64; 3]; N_HYPOTHESES];
        for (k, x) in numbers {
            let x = x / unit;
            sums[k][0] += 1.0;
            sums[k][1] += x;
            sums[k][2] += x * x;
        }
        let n: f64 = sums.iter().map(|sum| sum[0]).sum();
        let (first, second): (f64, f64) = (sums.iter().map(|s| s[1]).sum(), sums.iter().map(|s| s[2]).sum());
        let of_one =
            |[n, sum, squares]: &[f64; 3]| if *n > 1.0 { n / (n - 1.0) * (squares - sum * sum / n) } else { *squares };
        let variance: f64 = sums.iter().map(|sum| of_one(sum).max(0.0)).sum();
        Self {
            mean: unit * (first / n),
            error: unit * (variance.sqrt() / n),
            effective: if second > 0.0 { first * first / second } else { 0.0 },
        }
    }
}
