//! The central interval of a Poisson mean that an observed count allows, for error bars of data.
//!
//! With the probability α outside, it is [½ χ²(α/2; 2n), ½ χ²(1 - α/2; 2n + 2)] of quantiles of the
//! χ² distribution (F. Garwood, Biometrika 28 (1936) 437). Here α is that of one standard
//! deviation. Counts that are not integers, as those of Asimov data, need no other formula.

use crate::chi_squared::upper_tail;

/// P(x > 1) of a standard normal variable.
const TAIL: f64 = 0.158_655_253_931_457_05;

/// Above this count the expansion of the quantile in 1/√n is exact to 1e-9 of the
/// interval's width.
const LARGE: f64 = 1e5;

/// The end of an interval that is to be found: where the χ² distribution with `n_dof` degrees of
/// freedom has the probability `tail` above.
struct End {
    n_dof: f64,
    tail: f64,
    /// The normal quantile for it.
    z: f64,
}

/// Returns the ends of the central interval of 68.27 % for `count` events; the lower one of no
/// events is 0. NaN for counts that are negative or not finite.
///
/// ```
/// use ns_inference::poisson_interval::poisson_interval;
/// let [lower, upper] = poisson_interval(9.0);
/// assert!((lower - 6.056_5).abs() < 1e-4 && (upper - 13.110_2).abs() < 1e-4);
/// ```
#[must_use]
pub fn poisson_interval(count: f64) -> [f64; 2] {
    if !(0.0..f64::INFINITY).contains(&count) {
        return [f64::NAN; 2];
    }
    let lower = if count > 0.0 { End { n_dof: 2.0 * count, tail: 1.0 - TAIL, z: -1.0 }.mean() } else { 0.0 };
    [lower, End { n_dof: 2.0 * (count + 1.0), tail: TAIL, z: 1.0 }.mean()]
}

impl End {
    /// Returns half the quantile.
    fn mean(&self) -> f64 {
        let a = 0.5 * self.n_dof;
        if a > LARGE {
            return self.expansion(a);
        }
        // The tail falls with the mean; half of an interval is lost with every step.
        let (mut low, mut high) = (0.0, a + 10.0 * a.sqrt() + 20.0);
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                return middle;
            }
            if upper_tail(2.0 * middle, self.n_dof) > self.tail { low = middle } else { high = middle }
        }
    }

    /// Returns the Cornish-Fisher expansion of the quantile of the gamma distribution (Abramowitz
    /// and Stegun 26.2.49).
    fn expansion(&self, a: f64) -> f64 {
        let z = self.z;
        a + z * a.sqrt() + (z * z - 1.0) / 3.0 + (z.powi(3) - 7.0 * z) / (36.0 * a.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::poisson_interval;

    /// Quantiles of the χ² distribution by SciPy 1.17.1: `chi2.ppf(z, 2 * n) / 2` and `chi2.isf(z,
    /// 2 * n + 2) / 2` with `z = norm.cdf(-1)`.
    const SCIPY: &[(f64, [f64; 2])] = &[
        (0.0, [0.0, 1.841_021_645_009_263_1]),
        (0.02, [6.013_350_590_649_6e-41, 1.872_401_624_561_638_4]),
        (0.3, [0.001_509_222_188_442_642, 2.299_369_861_964_392_7]),
        (1.0, [0.172_753_779_023_449_96, 3.299_526_559_115_855]),
        (5.5, [3.227_523_222_324_418, 8.985_086_632_571_312]),
        (20.0, [15.565_552_017_785_88, 25.546_519_229_511_46]),
        (350.0, [331.300_643_609_107_74, 369.726_118_447_589_4]),
        (90_000.0, [89_700.000_555_638_02, 90_301.001_111_191_71]),
        (100_002.0, [99_685.769_598_836_53, 100_319.231_982_433_32]),
        (30_000_000.0, [29_994_522.774_455_376, 30_005_478.225_635_91]),
    ];

    #[test]
    fn intervals_are_those_of_scipy() {
        for (count, ends) in SCIPY {
            // Twelve digits of the width, which is what is drawn.
            let tolerance = 1e-12 * ends[1].max(1e-30);
            for (found, wanted) in poisson_interval(*count).iter().zip(ends) {
                assert!((found - wanted).abs() <= tolerance.min(1e-9 * wanted), "{count}: {found}, not {wanted}");
            }
        }
    }

    #[test]
    fn counts_that_are_none_have_no_interval() {
        for count in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(poisson_interval(count).iter().all(|end| end.is_nan()));
        }
    }
}
