//! Draws Poisson counts and normal numbers, exact in distribution for any mean, with each draw
//! reproducible on its own.
//!
//! Poisson counts are drawn by inversion for means below 10, and by transformed rejection above (W.
//! Hörmann, Insurance: Mathematics and Economics 12 (1993) 39, algorithm PTRS). The acceptance uses
//! the cancellation-free Poisson term, so that means of 1e11 and more work. Normal numbers are
//! drawn with the Box-Muller transform. Logarithms are those of `libm`, and therefore the same on
//! every platform.

use crate::random::philox;
use ns_core::poisson::{half_deviance, log_normaliser};

/// Poisson counts of smaller means are drawn by inversion.
const INVERSION_BELOW: f64 = 10.0;

/// The random numbers for one element (a bin or an auxiliary datum) of one toy: unlimited, and
/// always the same sequence.
#[derive(Debug, Clone)]
pub struct RandomStream {
    key: [u32; 2],
    counter: [u32; 4],
}

impl RandomStream {
    /// Creates the stream with the counters `[draw, element, toy, ensemble and high bits of toy]`
    /// for draw = 0, 1, … under `seed`.
    ///
    /// The top bit of the last counter word is set. It is clear in the streams of
    /// [`crate::random::uniform`], so that the two never overlap.
    #[must_use]
    pub fn new(seed: u64, ensemble: u16, toy: u64, element: u32) -> Self {
        let last = (1 << 31) | (u32::from(ensemble & 0x7fff) << 16) | ((toy >> 32) as u32 & 0xffff);
        Self { key: [seed as u32, (seed >> 32) as u32], counter: [0, element, toy as u32, last] }
    }

    /// Returns two independent numbers in (0, 1), the first from 64 random bits and the second from
    /// 52.
    pub fn pair(&mut self) -> (f64, f64) {
        let words = philox(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(1);
        let first = (u64::from(words[0]) << 32) | u64::from(words[1]);
        let second = (u64::from(words[2]) << 20) | u64::from(words[3] >> 12);
        // The first number can round to 1, which is a valid argument of a logarithm.
        ((first as f64 + 0.5) / (u64::MAX as f64), (second as f64 + 0.5) / (1_u64 << 52) as f64)
    }
}

/// Returns a Poisson count of expectation `mean` ≥ 0; 0 for a mean of 0. For a mean that is not
/// finite it is the mean.
///
/// ```
/// use ns_inference::toys::{RandomStream, poisson};
/// assert_eq!(poisson(0.0, &mut RandomStream::new(1, 0, 0, 0)), 0.0);
/// let count = poisson(1.9e11, &mut RandomStream::new(1, 0, 0, 0));
/// assert!((count - 1.9e11).abs() < 6.0 * 1.9e11_f64.sqrt());
/// ```
pub fn poisson(mean: f64, stream: &mut RandomStream) -> f64 {
    if mean <= 0.0 {
        0.0
    } else if !mean.is_finite() {
        // Rejection would go on for ever.
        mean
    } else if mean < INVERSION_BELOW {
        invert(mean, stream.pair().1)
    } else {
        reject(mean, stream)
    }
}

/// Returns the smallest count whose cumulative probability exceeds `u`.
fn invert(mean: f64, u: f64) -> f64 {
    let (mut count, mut probability) = (0.0, libm::exp(-mean));
    let mut rest = u;
    while rest > probability && probability > 0.0 {
        rest -= probability;
        count += 1.0;
        probability *= mean / count;
    }
    count
}

/// Returns a count by Hörmann's algorithm PTRS, with the names of its constants.
fn reject(mean: f64, stream: &mut RandomStream) -> f64 {
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (v, u) = stream.pair();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let count = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= v_r {
            return count;
        }
        if count < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let log_probability = -half_deviance(count, mean) - log_normaliser(count);
        if libm::log(v * inverse_alpha / (a / (us * us) + b)) <= log_probability {
            return count;
        }
    }
}

/// Returns a normal number of expectation 0 and variance 1, with an absolute value of up to 9.
pub fn normal(stream: &mut RandomStream) -> f64 {
    let (radius, angle) = stream.pair();
    (-2.0 * libm::log(radius)).max(0.0).sqrt() * libm::cos(std::f64::consts::TAU * angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::upper_tail;

    const N: u64 = 100_000;

    /// Returns the upper limit of χ² with `n` degrees of freedom at about four standard deviations
    /// (Wilson and Hilferty).
    fn limit(n: f64) -> f64 {
        let c = 2.0 / (9.0 * n);
        n * (1.0 - c + 4.0 * c.sqrt()).powi(3)
    }

    fn draws(mean: f64) -> Vec<f64> {
        (0..N).map(|toy| poisson(mean, &mut RandomStream::new(11, 1, toy, 3))).collect()
    }

    fn probability(count: f64, mean: f64) -> f64 {
        (-half_deviance(count, mean) - log_normaliser(count)).exp()
    }

    /// Computes χ² over cells of `width` counts within five standard deviations of the mean, each
    /// with at least ten expected entries.
    #[test]
    fn counts_follow_the_poisson_distribution() {
        for mean in [0.1_f64, 5.0, 9.9, 10.1, 1e3, 1e6] {
            let width = (mean.sqrt() / 5.0).floor().max(1.0);
            let first = (mean - 5.0 * mean.sqrt()).floor().max(0.0);
            let n_cells = ((10.0 * mean.sqrt() + 6.0) / width) as usize;
            let mut observed = vec![0.0; n_cells];
            for count in draws(mean) {
                let cell = (count - first) / width;
                if cell >= 0.0 && (cell as usize) < n_cells {
                    observed[cell as usize] += 1.0;
                }
            }
            let (mut chi_squared, mut n) = (0.0, 0.0);
            for (cell, &observed) in observed.iter().enumerate() {
                let start = first + width * cell as f64;
                let expected: f64 =
                    (0..width as usize).map(|k| probability(start + k as f64, mean)).sum::<f64>() * N as f64;
                if expected >= 10.0 {
                    chi_squared += (observed - expected).powi(2) / expected;
                    n += 1.0;
                }
            }
            assert!(chi_squared < limit(n), "mean {mean}: χ² = {chi_squared} for {n} cells");
        }
    }

    #[test]
    fn poisson_moments_are_right_for_any_mean() {
        for mean in [0.1_f64, 3.0, 9.99, 10.01, 47.3, 1e4, 1e8, 1.9e11, 1e15] {
            let pulls: Vec<f64> = draws(mean).iter().map(|count| (count - mean) / mean.sqrt()).collect();
            let moment = |k: i32| pulls.iter().map(|p| p.powi(k)).sum::<f64>() / N as f64;
            let error = |variance: f64| 4.0 * (variance / N as f64).sqrt();
            let kurtosis = 3.0 + 1.0 / mean;
            assert!(moment(1).abs() < error(1.0), "mean at {mean}: {}", moment(1));
            assert!((moment(2) - 1.0).abs() < error(kurtosis - 1.0), "variance at {mean}: {}", moment(2));
            assert!((moment(3) - 1.0 / mean.sqrt()).abs() < error(15.0 + 30.0 / mean + 10.0 / (mean * mean)), "{mean}");
            assert!(pulls.iter().all(|p| p.is_finite() && *p > -mean.sqrt() - 1e-9));
        }
    }

    #[test]
    fn means_that_are_not_finite_are_returned() {
        let count = |mean| poisson(mean, &mut RandomStream::new(1, 0, 0, 0));
        assert!(count(f64::NAN).is_nan());
        assert_eq!((count(f64::INFINITY), count(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
    }

    #[test]
    fn neighbouring_bins_toys_ensembles_and_seeds_are_uncorrelated() {
        let at = |seed, ensemble, toy: u64, element| {
            let numbers = (0..20_000).map(|shift| normal(&mut RandomStream::new(seed, ensemble, toy + shift, element)));
            numbers.collect::<Vec<f64>>()
        };
        let base = at(5, 0, 0, 0);
        for other in [at(6, 0, 0, 0), at(5, 1, 0, 0), at(5, 0, 1 << 40, 0), at(5, 0, 0, 1), at(5, 0, 1, 0)] {
            let correlation = base.iter().zip(&other).map(|(a, b)| a * b).sum::<f64>() / base.len() as f64;
            assert!(correlation.abs() < 4.0 / (base.len() as f64).sqrt(), "{correlation}");
        }
    }

    #[test]
    fn normal_numbers_have_the_right_moments_and_tails() {
        let n = 2_000_000_u64;
        let (mut beyond, mut sums) = ([0.0; 5], [0.0; 4]);
        for toy in 0..n {
            let z = normal(&mut RandomStream::new(3, 2, toy, 0));
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += z.powi(k as i32 + 1);
            }
            for (k, count) in beyond.iter_mut().enumerate() {
                *count += f64::from(z.abs() > k as f64 + 0.5);
            }
        }
        for (k, count) in beyond.into_iter().enumerate() {
            let p = 2.0 * upper_tail(k as f64 + 0.5);
            let error = (p * (1.0 - p) / n as f64).sqrt();
            assert!((count / n as f64 - p).abs() < 4.0 * error, "beyond {}: {count}", k as f64 + 0.5);
        }
        for (k, (expected, variance)) in [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)].into_iter().enumerate() {
            assert!((sums[k] / n as f64 - expected).abs() < 4.0 * (variance / n as f64).sqrt(), "moment {}", k + 1);
        }
    }
}
