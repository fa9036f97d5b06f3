//! Bounds on a probability from a binomial count.
//!
//! C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404.

/// Returns the central interval at confidence level `cl` of the probability of an event that was
/// counted `k` times in `n` trials; 0 to 1 without trials.
pub(super) fn clopper_pearson(k: u64, n: u64, cl: f64) -> [f64; 2] {
    let one_sided = 0.5 * (1.0 + cl);
    [1.0 - upper_bound(n - k, n, one_sided), upper_bound(k, n, one_sided)]
}

/// Returns the p at which `k` or fewer of `n` trials have the probability 1 - `cl`; 1 without
/// trials.
pub(super) fn upper_bound(k: u64, n: u64, cl: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let (mut low, mut high) = (k as f64 / n as f64, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if at_most(k, n, middle) > 1.0 - cl { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability of at most `k` of `n` events, each of probability 0 < p < 1.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    // Terms are summed downwards from the last one, relative to it.
    let (n, odds) = (n as f64, p / (1.0 - p));
    let (mut term, mut sum) = (1.0, 0.0);
    for i in (0..=k).rev() {
        sum += term;
        let i = i as f64;
        term *= i / ((n - i + 1.0) * odds);
        if term < 1e-17 * sum {
            break;
        }
    }
    let k = k as f64;
    let log_last =
        libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0) + k * p.ln() + (n - k) * (-p).ln_1p();
    log_last.exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 - 0.05^(1/n) without events; the others from SciPy 1.17.1:
    /// `scipy.stats.beta.ppf(0.95, k + 1, n - k)`.
    #[test]
    fn upper_bounds_are_those_of_clopper_and_pearson() {
        let exact = [
            (0, 1000, 1.0 - 0.05_f64.powf(1e-3)),
            (3, 1000, 0.007_735_244_718_479_458),
            (10, 50, 0.315_596_061_420_013_84),
        ];
        for (k, n, exact) in exact {
            let found = upper_bound(k, n, 0.95);
            assert!((found / exact - 1.0).abs() < 1e-9, "{k} of {n}: {found} is not {exact}");
        }
        assert_eq!((upper_bound(0, 0, 0.95), upper_bound(5, 5, 0.95)), (1.0, 1.0));
    }

    /// From SciPy 1.17.1: `scipy.stats.beta.ppf(0.025, k, n - k + 1)` and `(0.975, k + 1, n - k)`.
    const INTERVALS: [(u64, u64, [f64; 2]); 5] = [
        (0, 100, [0.0, 0.036_216_692_645_176_41]),
        (938, 1000, [0.921_220_050_338_967_5, 0.952_138_151_886_638_8]),
        (4750, 5000, [0.943_591_086_757_821_1, 0.955_876_756_019_999_9]),
        (20, 20, [0.831_566_529_016_914_6, 1.0]),
        (3, 17, [0.037_985_068_070_626, 0.434_317_872_844_274]),
    ];

    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        for (k, n, exact) in INTERVALS {
            let found = clopper_pearson(k, n, 0.95);
            assert!((0..2).all(|i| (found[i] - exact[i]).abs() < 1e-12), "{k} of {n}: {found:?} is not {exact:?}");
        }
    }
}
