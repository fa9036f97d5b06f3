//! The simplified model of yields: polynomials of correlated normal variables with given moments.

use super::YieldMoments;
use faer::{Mat, Side};

/// The forms of a simplified model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SimplifiedForm {
    /// Yields are linear, with the covariance to first order.
    #[default]
    Linear,
    /// Yields are quadratic, with means, covariance and third moments to second order.
    ThirdMoments,
}

impl SimplifiedForm {
    /// Returns the form that is called `name` in documents.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Linear, Self::ThirdMoments].into_iter().find(|form| form.name() == name)
    }

    /// Returns its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::ThirdMoments => "third_moments",
        }
    }
}

/// Eigenvalues of the correlations below this fraction of the largest are zero.
const NULL: f64 = 1e-12;

/// The simplified yields of K bins: λ_b = a_b + b_b θ_b + c_b θ_b², θ = F z, with R independent
/// standard normal variables z.
#[derive(Debug, Clone, PartialEq)]
pub struct SimplifiedYields {
    /// a (K).
    pub constants: Vec<f64>,
    /// b (K), not negative.
    pub linear: Vec<f64>,
    /// c (K).
    pub quadratic: Vec<f64>,
    /// F (K × R, by rows); its rows have unit length, or are zero in bins that do not vary.
    pub factor: Vec<f64>,
    /// R.
    pub n_variables: usize,
    /// The bins whose third moment no quadratic yield has: it is left out there.
    pub too_skewed: Vec<usize>,
    /// The largest deviation of a covariance from its moment, in units of the standard deviations
    /// of its bins.
    pub largest_deviation: f64,
}

impl SimplifiedYields {
    /// Returns the yields of `form` with the moments `moments`.
    ///
    /// With the second and third moments m₂, m₃ of a bin, c = √(2m₂) sin(⅓ asin(m₃/(2m₂)^{3/2})),
    /// b² = m₂ - 2c², and a is the mean less c. The correlation of two bins solves
    /// bb'ρ + 2cc'ρ² = m₂'.
    #[must_use]
    pub fn of(moments: &YieldMoments, form: SimplifiedForm) -> Self {
        let n = moments.yields.len();
        let (means, covariance) = match form {
            SimplifiedForm::Linear => (&moments.yields, &moments.linear_covariance),
            SimplifiedForm::ThirdMoments => (&moments.means, &moments.covariance),
        };
        let variance = |i: usize| covariance[i * n + i].max(0.0);
        let mut too_skewed = Vec::new();
        let quadratic: Vec<f64> = (0..n)
            .map(|i| match form {
                SimplifiedForm::Linear => 0.0,
                SimplifiedForm::ThirdMoments => bend(variance(i), moments.third_moments[i]).unwrap_or_else(|| {
                    too_skewed.push(i);
                    0.0
                }),
            })
            .collect();
        let linear: Vec<f64> = (0..n).map(|i| (variance(i) - 2.0 * quadratic[i].powi(2)).max(0.0).sqrt()).collect();
        let bins = Bins { linear: &linear, quadratic: &quadratic, covariance };
        let (factor, n_variables) = factorised(&Mat::from_fn(n, n, |i, j| bins.correlation(i, j)));
        let largest_deviation = bins.largest_deviation(&factor, n_variables);
        let constants = means.iter().zip(&quadratic).map(|(mean, c)| mean - c).collect();
        Self { constants, linear, quadratic, factor, n_variables, too_skewed, largest_deviation }
    }

    /// Returns the row of F of `bin` (R).
    #[must_use]
    pub fn row(&self, bin: usize) -> &[f64] {
        &self.factor[bin * self.n_variables..(bin + 1) * self.n_variables]
    }
}

/// Returns c of a yield with second moment `variance` and third moment `third`; `None` if no
/// quadratic yield is as skewed.
fn bend(variance: f64, third: f64) -> Option<f64> {
    if variance <= 0.0 || third == 0.0 {
        return Some(0.0);
    }
    let skewness = third / (2.0 * variance).powf(1.5);
    // A pure square is at the limit, up to rounding.
    let is_reached = skewness.abs() <= 1.0 + 1e-12;
    is_reached.then(|| (2.0 * variance).sqrt() * (skewness.clamp(-1.0, 1.0).asin() / 3.0).sin())
}

/// The polynomials of all bins, and the covariance that they are to have (K × K).
struct Bins<'a> {
    linear: &'a [f64],
    quadratic: &'a [f64],
    covariance: &'a [f64],
}

impl Bins<'_> {
    /// Returns the correlation of the variables of bins `i` and `j` that gives the yields their
    /// covariance, or comes nearest to it.
    fn correlation(&self, i: usize, j: usize) -> f64 {
        let covariance = self.covariance[i * self.linear.len() + j];
        let (b, c) = (self.linear[i] * self.linear[j], self.quadratic[i] * self.quadratic[j]);
        if i == j {
            return if covariance > 0.0 { 1.0 } else { 0.0 };
        }
        let root = (b * b + 8.0 * c * covariance).max(0.0).sqrt();
        if b + root > 0.0 { (2.0 * covariance / (b + root)).clamp(-1.0, 1.0) } else { 0.0 }
    }

    /// Returns the largest deviation of a covariance of the yields whose variables have the factor
    /// `factor` (K × `n_variables`), in units of the standard deviations.
    fn largest_deviation(&self, factor: &[f64], n_variables: usize) -> f64 {
        let n = self.linear.len();
        let row = |i: usize| &factor[i * n_variables..(i + 1) * n_variables];
        let deviation = |i: usize, j: usize| {
            let rho: f64 = row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum();
            let (b, c) = (self.linear[i] * self.linear[j], self.quadratic[i] * self.quadratic[j]);
            let scale = (self.covariance[i * n + i] * self.covariance[j * n + j]).sqrt();
            let found = b * rho + 2.0 * c * rho * rho;
            if scale > 0.0 { (found - self.covariance[i * n + j]).abs() / scale } else { 0.0 }
        };
        (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| deviation(i, j)).fold(0.0, f64::max)
    }
}

/// Returns F (K × R, by rows) with F Fᵀ nearest to the matrix of correlations, negative eigenvalues
/// left out and the rows scaled to unit length; and R.
fn factorised(correlation: &Mat<f64>) -> (Vec<f64>, usize) {
    let n = correlation.nrows();
    // It fails only for numbers that are not finite, which moments are not.
    let Ok(eigen) = correlation.self_adjoint_eigen(Side::Lower) else { return (Vec::new(), 0) };
    let (vectors, values) = (eigen.U(), eigen.S().column_vector());
    let largest = (0..n).map(|k| values[k]).fold(0.0, f64::max);
    // The largest first.
    let kept: Vec<usize> = (0..n).rev().filter(|&k| values[k] > NULL * largest).collect();
    let mut factor = Vec::with_capacity(n * kept.len());
    for i in 0..n {
        let row: Vec<f64> = kept.iter().map(|&k| vectors[(i, k)] * values[k].sqrt()).collect();
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = if correlation[(i, i)] > 0.0 && length > 0.0 { 1.0 / length } else { 0.0 };
        factor.extend(row.iter().map(|x| x * scale));
    }
    (factor, kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments of a + bθ + cθ² are a + c, b² + 2c² and 6b²c + 8c³, and the covariance of two of
    /// them is bb'ρ + 2cc'ρ².
    #[test]
    fn quadratic_yields_have_the_moments_that_they_were_made_of() {
        let (b, c, rho) = ([3.0, 2.0], [0.5, -0.7], 0.4);
        let variance = |i: usize| b[i] * b[i] + 2.0 * c[i] * c[i];
        let both = b[0] * b[1] * rho + 2.0 * c[0] * c[1] * rho * rho;
        let moments = YieldMoments {
            params: Vec::new(),
            yields: vec![10.0, 20.0],
            linear_covariance: vec![9.0, 2.4, 2.4, 4.0],
            means: vec![10.0 + c[0], 20.0 + c[1]],
            covariance: vec![variance(0), both, both, variance(1)],
            third_moments: (0..2).map(|i| 6.0 * b[i] * b[i] * c[i] + 8.0 * c[i].powi(3)).collect(),
        };
        let found = SimplifiedYields::of(&moments, SimplifiedForm::ThirdMoments);
        for i in 0..2 {
            assert!((found.linear[i] - b[i]).abs() < 1e-12 && (found.quadratic[i] - c[i]).abs() < 1e-12, "{found:?}");
            assert!((found.constants[i] - [10.0, 20.0][i]).abs() < 1e-12, "{found:?}");
        }
        let product: f64 = found.row(0).iter().zip(found.row(1)).map(|(x, y)| x * y).sum();
        assert!((product - rho).abs() < 1e-12 && found.largest_deviation < 1e-12, "{found:?}");
    }

    #[test]
    fn a_third_moment_that_no_parabola_has_is_left_out() {
        let moments = YieldMoments {
            params: Vec::new(),
            yields: vec![1.0],
            linear_covariance: vec![1.0],
            means: vec![1.0],
            covariance: vec![1.0],
            third_moments: vec![3.0],
        };
        let found = SimplifiedYields::of(&moments, SimplifiedForm::ThirdMoments);
        assert_eq!((found.too_skewed, found.quadratic[0], found.linear[0]), (vec![0], 0.0, 1.0));
    }

    #[test]
    fn equal_bins_share_one_variable() {
        let moments = YieldMoments {
            params: Vec::new(),
            yields: vec![5.0, 5.0, 7.0],
            linear_covariance: vec![4.0, 4.0, 0.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0],
            means: vec![],
            covariance: vec![],
            third_moments: vec![],
        };
        let found = SimplifiedYields::of(&moments, SimplifiedForm::Linear);
        assert_eq!(found.n_variables, 1);
        assert_eq!(found.row(2), [0.0]);
        assert!((found.row(0)[0].abs() - 1.0).abs() < 1e-12 && found.row(0) == found.row(1), "{found:?}");
    }
}
