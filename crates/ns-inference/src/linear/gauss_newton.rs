//! Solving with D + JᵀJ in the space of the rows of J, which are few: an R × R system instead of a
//! P × P one (Woodbury).
//!
//! (D + JᵀJ)⁻¹ = D^{-½} (1 - Mᵀ (1 + M Mᵀ)⁻¹ M) D^{-½} with M = J D^{-½}. D must be positive:
//! unconstrained parameters need some damping.

use super::NotPositiveDefinite;
use super::cholesky::{DenseCholesky, dot};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use ns_core::curvature::GaussNewton;

/// A factorised Gauss-Newton matrix, restricted to the free parameters.
#[derive(Debug, Default)]
pub struct GaussNewtonFactor {
    /// D^{-½} (P); 0 for parameters that are not free.
    inverse_root: Vec<f64>,
    /// M = J D^{-½}, R × P, row by row.
    scaled: Vec<f64>,
    core: DenseCholesky,
    work: Vec<f64>,
    n_rows: usize,
}

impl GaussNewtonFactor {
    /// Factorises `matrix` + diag(`damping`) over the parameters that are `free` (both P).
    ///
    /// # Errors
    /// [`NotPositiveDefinite`] if D + diag(`damping`) is not, or a number is not finite.
    pub fn factor(&mut self, matrix: &GaussNewton, damping: &[f64], free: &[bool]) -> Result<(), NotPositiveDefinite> {
        let (r, p) = (matrix.n_rows, matrix.diagonal.len());
        self.n_rows = r;
        self.inverse_root.clear();
        for i in 0..p {
            let d = matrix.diagonal[i] + damping[i];
            if free[i] && (d.is_nan() || d <= 0.0) {
                return Err(NotPositiveDefinite);
            }
            self.inverse_root.push(if free[i] { 1.0 / d.sqrt() } else { 0.0 });
        }
        self.scaled.clear();
        self.scaled.reserve(r * p);
        for row in matrix.rows.chunks_exact(p.max(1)) {
            self.scaled.extend(row.iter().zip(&self.inverse_root).map(|(j, d)| j * d));
        }
        let core = self.core.matrix(r);
        core.fill(0.0);
        for i in 0..r {
            core[i * r + i] = 1.0;
        }
        if r > 0 && p > 0 {
            let m = MatRef::from_row_major_slice(&self.scaled, r, p);
            let target = MatMut::from_column_major_slice_mut(core, r, r);
            let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            matmul(target, lower, Accum::Add, m, full, m.transpose(), full, 1.0, Par::Seq);
        }
        self.core.factor(&|| false)
    }

    /// Solves for `x` (P), given `rhs` (P); parameters that are not free get 0.
    pub fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        let p = self.inverse_root.len();
        for i in 0..p {
            x[i] = rhs[i] * self.inverse_root[i];
        }
        self.work.clear();
        self.work.extend(self.scaled.chunks_exact(p.max(1)).map(|row| dot(row, x)));
        self.core.solve_lower(&mut self.work);
        self.core.solve_upper(&mut self.work);
        for (row, &weight) in self.scaled.chunks_exact(p.max(1)).zip(&self.work) {
            x.iter_mut().zip(row).for_each(|(x, m)| *x -= weight * m);
        }
        for i in 0..p {
            x[i] *= self.inverse_root[i];
        }
    }
}
