//! The rank and a factor of a symmetric positive semidefinite matrix, by Cholesky's factorisation
//! with the largest pivot first; whether a symmetric matrix is one; quadratic forms of its inverse.

use super::cholesky::DenseCholesky;

/// Returns the number of pivots of `matrix` (n × n), scaled to unit diagonal, above `tolerance`.
///
/// ```
/// use ns_inference::linear::rank;
/// assert_eq!(rank(&[4.0, 2.0, 2.0, 1.0], 2, 1e-12), 1);
/// assert_eq!(rank(&[4.0, 2.0, 2.0, 3.0], 2, 1e-12), 2);
/// assert_eq!(rank(&[0.0, 0.0, 0.0, 3.0], 2, 1e-12), 1);
/// ```
#[must_use]
pub fn rank(matrix: &[f64], n: usize, tolerance: f64) -> usize {
    scaled_factor(matrix, n, tolerance).len()
}

/// Returns the columns (n each) of L, where L Lᵀ is `matrix` (n × n) scaled to unit diagonal, up to
/// pivots of `tolerance`: as many as its rank.
///
/// ```
/// use ns_inference::linear::scaled_factor;
/// assert_eq!(scaled_factor(&[4.0, -2.0, -2.0, 1.0], 2, 1e-12), [[-1.0, 1.0]]);
/// ```
#[must_use]
pub fn scaled_factor(matrix: &[f64], n: usize, tolerance: f64) -> Vec<Vec<f64>> {
    let scale: Vec<f64> = (0..n).map(|i| 1.0 / matrix[i * n + i].max(f64::MIN_POSITIVE).sqrt()).collect();
    let is_felt = |i: usize| matrix[i * n + i] > 0.0;
    let mut rest: Vec<f64> = (0..n).map(|i| f64::from(is_felt(i))).collect();
    let mut done: Vec<Vec<f64>> = Vec::new();
    loop {
        let Some(pivot) = (0..n).max_by(|&a, &b| rest[a].total_cmp(&rest[b])).filter(|&p| rest[p] > tolerance) else {
            return done;
        };
        let root = rest[pivot].sqrt();
        let entry = |i: usize| {
            let product: f64 = done.iter().map(|column| column[i] * column[pivot]).sum();
            (matrix[i * n + pivot] * scale[i] * scale[pivot] - product) / root
        };
        let column: Vec<f64> = (0..n).map(|i| if is_felt(i) { entry(i) } else { 0.0 }).collect();
        rest.iter_mut().zip(&column).for_each(|(r, c)| *r -= c * c);
        rest[pivot] = f64::NEG_INFINITY;
        done.push(column);
    }
}

/// Returns `true` if no eigenvalue of the symmetric `matrix` (n × n) is below -`tolerance`.
///
/// ```
/// use ns_inference::linear::is_positive_semidefinite;
/// // eigenvalues 0 and 2, and -0.5 and 2.5
/// assert!(is_positive_semidefinite(&[1.0, 1.0, 1.0, 1.0], 2, 1e-9));
/// assert!(!is_positive_semidefinite(&[1.0, 1.5, 1.5, 1.0], 2, 1e-9));
/// ```
#[must_use]
pub fn is_positive_semidefinite(matrix: &[f64], n: usize, tolerance: f64) -> bool {
    let mut factor = DenseCholesky::default();
    let shifted = factor.matrix(n);
    shifted.copy_from_slice(matrix);
    (0..n).for_each(|i| shifted[i * n + i] += tolerance);
    factor.factor(&|| false).is_ok()
}

/// Returns rᵀ M⁻¹ r with the symmetric `matrix` M (n × n) and `r` (n); `None` if M is not positive
/// definite.
///
/// ```
/// use ns_inference::linear::inverse_form;
/// // M⁻¹ = [[2, -1], [-1, 2]] / 3
/// assert!((inverse_form(&[2.0, 1.0, 1.0, 2.0], 2, &[1.0, 2.0]).unwrap() - 2.0).abs() < 1e-15);
/// assert_eq!(inverse_form(&[1.0, 1.0, 1.0, 1.0], 2, &[1.0, 2.0]), None);
/// ```
#[must_use]
pub fn inverse_form(matrix: &[f64], n: usize, r: &[f64]) -> Option<f64> {
    let mut factor = DenseCholesky::default();
    factor.matrix(n).copy_from_slice(matrix);
    factor.factor(&|| false).ok()?;
    let mut x = r.to_vec();
    factor.solve_lower(&mut x);
    Some(x.iter().map(|x| x * x).sum())
}
