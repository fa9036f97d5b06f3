//! Means, covariances and correlations over replicas of an analysis.

/// Means and covariances of P values over replicas, added one at a time.
///
/// ```
/// use ns_inference::replicas::ReplicaMoments;
/// let mut moments = ReplicaMoments::new(2);
/// for values in [[1.0, 2.0], [2.0, 4.0], [3.0, 9.0]] {
///     moments.add(&values);
/// }
/// assert_eq!(moments.mean(), [2.0, 5.0]);
/// // Σ (x - 2)(y - 5) / 2
/// assert_eq!(moments.covariance(0, 1), Some(3.5));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaMoments {
    n: u64,
    mean: Vec<f64>,
    /// Σ (x_i - m_i)(x_j - m_j) for j ≤ i, row by row.
    products: Vec<f64>,
    deviations: Vec<f64>,
}

impl ReplicaMoments {
    /// Starts the moments of `n_values` values.
    #[must_use]
    pub fn new(n_values: usize) -> Self {
        let products = vec![0.0; n_values * (n_values + 1) / 2];
        Self { n: 0, mean: vec![0.0; n_values], products, deviations: vec![0.0; n_values] }
    }

    /// Adds the values (P) of a replica, after Welford, Technometrics 4 (1962) 419.
    ///
    /// # Panics
    /// If there are more or fewer values.
    pub fn add(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.mean.len(), "values of a replica");
        self.n += 1;
        let n = self.n as f64;
        for ((deviation, mean), value) in self.deviations.iter_mut().zip(&mut self.mean).zip(values) {
            *deviation = value - *mean;
            *mean += *deviation / n;
        }
        let share = (n - 1.0) / n;
        let mut products = self.products.iter_mut();
        for (i, a) in self.deviations.iter().enumerate() {
            let scaled = a * share;
            self.deviations[..=i].iter().zip(&mut products).for_each(|(b, product)| *product += scaled * b);
        }
    }

    /// Returns the number of replicas.
    #[must_use]
    pub fn n_replicas(&self) -> u64 {
        self.n
    }

    /// Returns the means (P).
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns the covariance of values `i` and `j`, Σ (x_i - m_i)(x_j - m_j) / (n - 1); `None` for
    /// fewer than two replicas.
    #[must_use]
    pub fn covariance(&self, i: usize, j: usize) -> Option<f64> {
        let (row, column) = (i.max(j), i.min(j));
        (self.n > 1).then(|| self.products[row * (row + 1) / 2 + column] / (self.n as f64 - 1.0))
    }

    /// Returns the standard deviation of value `i`; `None` for fewer than two replicas.
    #[must_use]
    pub fn standard_deviation(&self, i: usize) -> Option<f64> {
        self.covariance(i, i).map(f64::sqrt)
    }

    /// Returns the correlation of values `i` and `j`; `None` for fewer than two replicas, or if one
    /// of them is constant.
    #[must_use]
    pub fn correlation(&self, i: usize, j: usize) -> Option<f64> {
        let widths = self.standard_deviation(i)? * self.standard_deviation(j)?;
        let covariance = self.covariance(i, j)?;
        let rho = if i == j { 1.0 } else { (covariance / widths).clamp(-1.0, 1.0) };
        (widths > 0.0).then_some(rho)
    }

    /// Returns the statistical error of [`Self::correlation`], (1 - ρ²)/√(n - 1).
    ///
    /// This is the leading term for values that are normally distributed (Kendall and Stuart, The
    /// Advanced Theory of Statistics 1, section 10.17).
    #[must_use]
    pub fn correlation_error(&self, i: usize, j: usize) -> Option<f64> {
        self.correlation(i, j).map(|rho| (1.0 - rho * rho) / (self.n as f64 - 1.0).sqrt())
    }
}
