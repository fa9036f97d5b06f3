//! The significance of the largest of many local significances: a search looks for signals at many
//! places, and the largest excess of many is often large by chance.
//!
//! Under the background alone the local significances Z of all signals are, for large counts,
//! jointly normal with unit variances, and linear in the data. With expected counts λ_b and their
//! gradients J_b at the best fit of the background, and a signal that adds s_b per unit of its
//! strength, the efficient score of the signal is
//!
//! U_s = Σ_b s_b (n_b/λ_b - 1) - a_sᵀ Σ_b J_b (n_b/λ_b - 1) - a_sᵀ (scores of the constraint
//! terms), a_s = F⁻¹ Σ_b J_b s_b/λ_b,
//!
//! F being the expected information of the background's parameters, and
//!
//! cov(U_s, U_t) = Σ_b s_b t_b/λ_b - a_sᵀ Σ_b J_b t_b/λ_b.
//!
//! So one fit gives the correlations of all Z without toys. The global p-value of a local
//! significance z is P(max_s Z_s ≥ z). [`SignificanceField::global_p`] estimates it with the
//! sampler of R. J. Adler, J. H. Blanchet and J. Liu (Ann. Appl. Probab. 22 (2012) 1167): one
//! component is drawn from its tail beyond z, the others conditionally on it, and the mean of m
//! Q(z)/N is unbiased, with m components of which N are beyond z. Its relative error stays small
//! however small the p-value is. For signals in a row the expected number of upcrossings of a level
//! gives the bound of E. Gross and O. Vitells (Eur. Phys. J. C 70 (2010) 525).

use crate::hessian::Hessian;
use crate::linear::scaled_factor;
use crate::minimize::Domain;
use crate::normal::{ln_upper_tail, significance, significance_of_ln, upper_tail};
use crate::parallel::{self, ExecutionContext};
use crate::toys::{Ensemble, RandomStream, normal};
use crate::yields::gradients;
use ns_core::expected::asimov;
use ns_core::{Constraint, DataLikelihood, Model};
use serde::Serialize;
use std::f64::consts::TAU;

/// Pivots of the correlation matrix that are smaller are rounding.
const SMALLEST_PIVOT: f64 = 1e-12;

/// A signal of which the background's parameters leave less than this part of the information
/// cannot be told from the background.
const TOLD_APART: f64 = 1e-10;

/// Samples that a thread draws at a time.
const BATCH: usize = 500;

/// The best fit of a background, and what the scores of signals need there.
#[derive(Debug)]
pub struct BackgroundScores {
    /// Expected counts (B).
    lambda: Vec<f64>,
    /// The gradient of each of them, as parameter and derivative (B).
    gradients: Vec<Vec<(usize, f64)>>,
    /// The expected information of the parameters.
    information: Hessian,
    /// The parameter of each count of a Poisson constraint term, with its value and τ.
    counts: Vec<(usize, f64, f64)>,
}

impl BackgroundScores {
    /// Returns the scores of the model of `likelihood` at `params` (P), its best fit in `domain`;
    /// `None` if the data do not determine the parameters. Leaves Asimov data in `likelihood`.
    pub fn new<L: DataLikelihood>(model: &Model, likelihood: &mut L, params: &[f64], domain: &Domain) -> Option<Self> {
        likelihood.set_data(&asimov(model, params));
        let information = Hessian::at(likelihood, params, domain);
        if !information.is_covariance() {
            return None;
        }
        let (mut lambda, mut all) = (Vec::new(), Vec::new());
        for channel in 0..model.channels.len() {
            let (yields, rows) = gradients(model, channel, params);
            all.extend((0..rows.len()).map(|bin| rows.row(bin).collect::<Vec<_>>()));
            lambda.extend(yields);
        }
        let count = |(i, term)| match term {
            Constraint::Poisson { tau } if information.free[i] => Some((i, params[i], tau)),
            _ => None,
        };
        let counts = model.constraint_terms().filter_map(count).collect();
        Some(Self { lambda, gradients: all, information, counts })
    }

    /// Returns the efficient score of a signal that adds `yields` (B) per unit of its strength.
    fn efficient(&mut self, yields: &[f64]) -> EfficientScore {
        let n_params = self.information.free.len();
        let weights: Vec<f64> =
            yields.iter().zip(&self.lambda).map(|(s, l)| if *l > 0.0 { s / l } else { 0.0 }).collect();
        let mut mixed = vec![0.0; n_params];
        for (row, weight) in self.gradients.iter().zip(&weights) {
            row.iter().for_each(|&(i, derivative)| mixed[i] += derivative * weight);
        }
        let mut response = vec![0.0; n_params];
        self.information.solve(&mixed, &mut response);
        let own: f64 = yields.iter().zip(&weights).map(|(s, w)| s * w).sum();
        let shared: f64 = mixed.iter().zip(&response).map(|(m, a)| m * a).sum();
        // The third cumulant of a Poisson count is its mean.
        let bin = |(b, row): (usize, &Vec<(usize, f64)>)| {
            let (lambda, moved) = (self.lambda[b], row.iter().map(|&(i, d)| d * response[i]).sum::<f64>());
            if lambda > 0.0 { (weights[b] - moved / lambda).powi(3) * lambda } else { 0.0 }
        };
        let bins = self.gradients.iter().enumerate().map(bin);
        let terms = self.counts.iter().map(|&(i, theta, tau)| -(response[i] / theta).powi(3) * tau * theta);
        let third = bins.chain(terms).sum();
        EfficientScore { weights, mixed, response, information: own - shared, own, third }
    }
}

/// The efficient score of one signal.
struct EfficientScore {
    /// s/λ (B).
    weights: Vec<f64>,
    /// Σ_b J_b s_b/λ_b (P).
    mixed: Vec<f64>,
    /// a_s (P).
    response: Vec<f64>,
    /// The variance of the score.
    information: f64,
    /// What it would be if the background were known.
    own: f64,
    /// The third cumulant of the score.
    third: f64,
}

/// Returns what the signal whose strength is parameter `poi` adds to each bin per unit of it, at
/// `params` (P).
#[must_use]
pub fn signal_yields(model: &Model, poi: usize, params: &[f64]) -> Vec<f64> {
    let of_channel = |channel: usize| {
        let (_, rows) = gradients(model, channel, params);
        let derivative = move |bin: usize| rows.row(bin).filter(|(i, _)| *i == poi).map(|(_, d)| d).sum::<f64>();
        (0..model.channel_bins(channel).len()).map(derivative).collect::<Vec<_>>()
    };
    (0..model.channels.len()).flat_map(of_channel).collect()
}

/// The joint distribution of the local significances of all signals under the background.
#[derive(Debug, Clone, PartialEq)]
pub struct SignificanceField {
    /// The signals of the field (m), as indices of those that it was made for: the others cannot be
    /// told from the background.
    pub signals: Vec<usize>,
    /// Their correlations (m × m).
    correlation: Vec<f64>,
    /// Columns (m each) whose products give the correlations.
    factor: Vec<Vec<f64>>,
    /// The local significance of each signal to first order in the data (m).
    pub linear: Vec<f64>,
    /// The skewness of the score of each signal (m).
    pub skewness: Vec<f64>,
}

impl SignificanceField {
    /// Returns the field of the signals that add `yields` (B each) per unit of their strength and
    /// can be told from the background, with their significances in the counts `observed` (B).
    #[must_use]
    pub fn new(background: &mut BackgroundScores, yields: &[Vec<f64>], observed: &[f64]) -> Self {
        let scores: Vec<EfficientScore> = yields.iter().map(|yields| background.efficient(yields)).collect();
        let is_told = |&s: &usize| scores[s].information > TOLD_APART * scores[s].own;
        let signals: Vec<usize> = (0..scores.len()).filter(is_told).collect();
        let n = signals.len();
        let covariance = |s: usize, t: usize| -> f64 {
            let own: f64 = yields[s].iter().zip(&scores[t].weights).map(|(s, w)| s * w).sum();
            own - scores[s].mixed.iter().zip(&scores[t].response).map(|(m, r)| m * r).sum::<f64>()
        };
        let mut correlation = vec![1.0; n * n];
        for (i, &s) in signals.iter().enumerate() {
            for (j, &t) in signals.iter().enumerate().take(i) {
                let value = covariance(s, t) / (scores[s].information * scores[t].information).sqrt();
                correlation[i * n + j] = value;
                correlation[j * n + i] = value;
            }
        }
        // The constraint terms and the background's parameters contribute nothing at the best fit.
        let excess = |score: &EfficientScore| -> f64 {
            score.weights.iter().zip(observed.iter().zip(&background.lambda)).map(|(w, (n, l))| w * (n - l)).sum()
        };
        let linear = signals.iter().map(|&s| excess(&scores[s]) / scores[s].information.sqrt()).collect();
        let skewness = signals.iter().map(|&s| scores[s].third / scores[s].information.powf(1.5)).collect();
        let factor = scaled_factor(&correlation, n, SMALLEST_PIVOT);
        Self { signals, correlation, factor, linear, skewness }
    }

    /// Returns the field of `n` signals with these correlations (n × n).
    #[must_use]
    pub fn of_correlation(correlation: Vec<f64>, n: usize) -> Self {
        let factor = scaled_factor(&correlation, n, SMALLEST_PIVOT);
        Self { signals: (0..n).collect(), correlation, factor, linear: vec![0.0; n], skewness: vec![0.0; n] }
    }

    /// Returns the number of signals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.signals.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.signals.is_empty()
    }

    /// Returns the correlation of the significances of two signals.
    #[must_use]
    pub fn correlation(&self, a: usize, b: usize) -> f64 {
        self.correlation[a * self.len() + b]
    }

    /// Estimates P(max Z ≥ z) from `n_samples` draws; `None` if the monitor cancels.
    #[must_use]
    pub fn global_p(
        &self,
        z: f64,
        n_samples: usize,
        seed: u64,
        execution: ExecutionContext<'_>,
    ) -> Option<GlobalPValue> {
        let batch = |point: &mut Vec<f64>, index: usize| {
            let samples = index * BATCH..n_samples.min((index + 1) * BATCH);
            let mut sums = [0.0; 2];
            for sample in samples {
                let inverse = 1.0 / self.beyond(z, seed, sample as u64, point) as f64;
                sums[0] += inverse;
                sums[1] += inverse * inverse;
            }
            sums
        };
        let batches = parallel::map(n_samples.div_ceil(BATCH), execution, Vec::new, batch);
        let mut sums = [0.0; 2];
        for batch in batches {
            let batch = batch?;
            sums.iter_mut().zip(batch).for_each(|(sum, part)| *sum += part);
        }
        let n = n_samples as f64;
        let (mean, bound) = (sums[0] / n, self.len() as f64 * upper_tail(z));
        let variance = (sums[1] / n - mean * mean).max(0.0) / n;
        // The estimate may exceed 1 where nearly every field is beyond z.
        let ln_p = ((self.len() as f64).ln() + ln_upper_tail(z) + mean.ln()).min(0.0);
        let (p_value, error) = ((bound * mean).min(1.0), Some(bound * variance.sqrt()));
        Some(GlobalPValue { p_value, error, significance: (ln_p < 0.0).then(|| significance_of_log(ln_p)) })
    }

    /// Draws one field given that a random component is beyond `z`, and returns how many are.
    fn beyond(&self, z: f64, seed: u64, sample: u64, point: &mut Vec<f64>) -> usize {
        let mut stream = RandomStream::new(seed, Ensemble::Field as u16, sample, 0);
        let (first, second) = stream.pair();
        let chosen = ((second * self.len() as f64) as usize).min(self.len() - 1);
        // Q⁻¹(u Q(z)), also where Q(z) underflows.
        let ln_tail = first.ln() + ln_upper_tail(z);
        let in_tail = significance_of_log(ln_tail);
        point.clear();
        point.resize(self.len(), 0.0);
        for (column, element) in self.factor.iter().zip(1..) {
            let g = normal(&mut RandomStream::new(seed, Ensemble::Field as u16, sample, element));
            point.iter_mut().zip(column).for_each(|(x, c)| *x += g * c);
        }
        let moved = in_tail - point[chosen];
        let is_beyond = |(j, x): (usize, &f64)| j == chosen || x + self.correlation(j, chosen) * moved >= z;
        point.iter().enumerate().filter(|&(j, x)| is_beyond((j, x))).count()
    }

    /// Returns the expected number of upcrossings of `level` along the signals `order`.
    #[must_use]
    pub fn expected_upcrossings(&self, order: &[usize], level: f64) -> f64 {
        let pair = |pair: &[usize]| upper_tail(level) - both_beyond(level, self.correlation(pair[0], pair[1]));
        order.windows(2).map(pair).sum()
    }
}

/// Returns z such that ln Q(z) = `ln_p`.
fn significance_of_log(ln_p: f64) -> f64 {
    if ln_p < -1.0 { significance_of_ln(ln_p) } else { significance(ln_p.exp()) }
}

/// Returns the probability that two unit normal variables with correlation `rho` are both beyond
/// `z`.
///
/// By R. L. Plackett's identity (Biometrika 41 (1954) 351) it is Q(z)² + (2π)⁻¹ ∫ exp(-z²/(1 + sin
/// θ)) dθ from 0 to arcsin ρ; with Simpson's rule.
fn both_beyond(z: f64, rho: f64) -> f64 {
    const STEPS: usize = 400;
    let end = rho.clamp(-1.0, 1.0).asin();
    let integrand = |k: usize| {
        let sine = (end * k as f64 / STEPS as f64).sin();
        if sine <= -1.0 { 0.0 } else { (-z * z / (1.0 + sine)).exp() }
    };
    let weight = |k: usize| match k {
        0 | STEPS => 1.0,
        k if k % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let integral: f64 = (0..=STEPS).map(|k| weight(k) * integrand(k)).sum::<f64>() * end / (3.0 * STEPS as f64);
    (upper_tail(z).powi(2) + integral / TAU).clamp(0.0, upper_tail(z))
}

/// Returns how often `values` go from below `level` to it or beyond.
#[must_use]
pub fn upcrossings(values: &[f64], level: f64) -> usize {
    values.windows(2).filter(|pair| pair[0] < level && pair[1] >= level).count()
}

/// Returns the global p-value of a local significance `z` ≥ `level`, given the expected number of
/// upcrossings of `level`: Q(z) + N exp(-(z² - level²)/2), no more than 1.
#[must_use]
pub fn upcrossing_p(z: f64, level: f64, expected: f64) -> GlobalPValue {
    let p_value = (upper_tail(z) + expected * (-0.5 * (z * z - level * level)).exp()).min(1.0);
    GlobalPValue { p_value, error: None, significance: (p_value < 1.0).then(|| significance(p_value)) }
}

/// Returns the share of `maxima`, the largest local significance of each toy, that are `z` or more.
#[must_use]
pub fn toy_p(maxima: &[f64], z: f64) -> GlobalPValue {
    let (n, above) = (maxima.len() as f64, maxima.iter().filter(|&&max| max >= z).count() as f64);
    let p_value = above / n;
    let error = (above.max(1.0) * (1.0 - p_value)).sqrt() / n;
    let is_finite = above > 0.0 && above < n;
    GlobalPValue { p_value, error: Some(error), significance: is_finite.then(|| significance(p_value)) }
}

/// A global p-value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GlobalPValue {
    /// The probability that the background alone gives a local significance as large somewhere.
    pub p_value: f64,
    /// Its Monte Carlo error; `None` if it has none.
    pub error: Option<f64>,
    /// Q⁻¹ of it; `None` if it is 1, or if no toy was as large.
    #[serde(rename = "Z")]
    pub significance: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: usize = 20_000;

    #[test]
    fn independent_signals_have_the_p_value_of_as_many_trials() {
        let n = 10;
        let identity: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k / n == k % n))).collect();
        let field = SignificanceField::of_correlation(identity, n);
        for z in [0.5_f64, 1.0, 2.0, 4.0, 8.0, 39.0] {
            let found = field.global_p(z, SAMPLES, 3, ExecutionContext::SINGLE_THREADED).unwrap();
            let exact = -(n as f64 * (-upper_tail(z)).ln_1p()).exp_m1();
            let tolerance = 5.0 * found.error.unwrap() + 1e-12 * exact;
            assert!((found.p_value - exact).abs() <= tolerance, "{z}: {found:?} and {exact}");
            assert!(found.error.unwrap() <= 0.01 * found.p_value);
        }
    }

    #[test]
    fn equal_signals_are_one_trial() {
        let field = SignificanceField::of_correlation(vec![1.0; 25], 5);
        let found = field.global_p(2.0, SAMPLES, 1, ExecutionContext::SINGLE_THREADED).unwrap();
        assert!((found.p_value / upper_tail(2.0) - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(field.expected_upcrossings(&[0, 1, 2, 3, 4], 1.0), 0.0);
    }

    #[test]
    fn two_correlated_signals_agree_with_the_bivariate_integral() {
        for rho in [-0.99, -0.5, 0.0, 0.3, 0.8, 0.999] {
            let field = SignificanceField::of_correlation(vec![1.0, rho, rho, 1.0], 2);
            for z in [0.7, 2.0, 3.5] {
                let found = field.global_p(z, SAMPLES, 5, ExecutionContext::SINGLE_THREADED).unwrap();
                let exact = 2.0 * upper_tail(z) - both_beyond(z, rho);
                assert!((found.p_value - exact).abs() <= 5.0 * found.error.unwrap() + 1e-9 * exact, "{rho} {z}");
            }
        }
        // Orthant probability 1/4 + arcsin(ρ)/2π.
        assert!((both_beyond(0.0, 0.5) - 1.0 / 3.0).abs() < 1e-12);
        assert!((both_beyond(1.0, 1.0) - upper_tail(1.0)).abs() < 1e-9);
    }

    #[test]
    fn upcrossings_are_counted_and_bound_the_p_value() {
        assert_eq!(upcrossings(&[0.0, 1.0, 0.5, 0.9, 2.0, 0.0, 1.0], 0.8), 3);
        let found = upcrossing_p(3.0, 1.0, 2.0);
        assert!((found.p_value - (upper_tail(3.0) + 2.0 * (-4.0_f64).exp())).abs() < 1e-15);
        assert_eq!(upcrossing_p(0.0, 0.0, 5.0).p_value, 1.0);
    }

    #[test]
    fn samples_do_not_depend_on_the_threads() {
        let field = SignificanceField::of_correlation(vec![1.0, 0.5, 0.5, 1.0], 2);
        let threads = |n| ExecutionContext::with_threads(std::num::NonZeroUsize::new(n).unwrap());
        assert_eq!(field.global_p(1.5, 5_000, 9, threads(1)), field.global_p(1.5, 5_000, 9, threads(3)));
    }
}
