//! Cholesky factors of small matrices: those of the parameters of one bin, or of the kinks of one
//! step. A factor L is m × m, row by row.

use super::NotPositiveDefinite;

/// Replaces the m × m matrix in `block` (row by row, lower triangle) by its Cholesky factor L.
pub(crate) fn factor_small(block: &mut [f64], m: usize) -> Result<(), NotPositiveDefinite> {
    for j in 0..m {
        for i in j..m {
            let product: f64 = (0..j).map(|k| block[i * m + k] * block[j * m + k]).sum();
            let value = block[i * m + j] - product;
            if i > j {
                block[i * m + j] = value / block[j * m + j];
            } else if value > 0.0 && value.is_finite() {
                block[j * m + j] = value.sqrt();
            } else {
                return Err(NotPositiveDefinite);
            }
        }
    }
    Ok(())
}

/// Sets x := L⁻¹ x (x: m).
pub(crate) fn lower_small(factor: &[f64], m: usize, x: &mut [f64]) {
    for i in 0..m {
        let sum: f64 = (0..i).map(|k| factor[i * m + k] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * m + i];
    }
}

/// Sets x := L⁻ᵀ x (x: m).
pub(crate) fn upper_small(factor: &[f64], m: usize, x: &mut [f64]) {
    for i in (0..m).rev() {
        let sum: f64 = (i + 1..m).map(|k| factor[k * m + i] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * m + i];
    }
}
