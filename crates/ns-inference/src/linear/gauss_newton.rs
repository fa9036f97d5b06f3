//! Solving with D + JᵀJ in the space of the rows of J, which are few: an R × R system instead of a P × P one (Woodbury).
//!
//! (D + JᵀJ)⁻¹ = D^{-½} (1 - Mᵀ (1 + M Mᵀ)⁻¹ M) D^{-½} with M = J D^{-½}. Where D is zero (free parameters without damping) it is raised to a small
//! fraction of the diagonal of JᵀJ, which changes steps in that direction by that fraction.

use super::NotPositiveDefinite;
use super::cholesky::{DenseCholesky, dot};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use ns_core::curvature::GaussNewton;

/// The least diagonal element, relative to that of JᵀJ.
const FLOOR: f64 = 1e-9;

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
    /// [`NotPositiveDefinite`] if a number is not finite.
    pub fn factor(&mut self, matrix: &GaussNewton, damping: &[f64], free: &[bool]) -> Result<(), NotPositiveDefinite> {
        let (r, p) = (matrix.n_rows, matrix.diagonal.len());
        self.n_rows = r;
        self.set_inverse_root(matrix, damping, free);
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
        self.core.factor()
    }

    fn set_inverse_root(&mut self, matrix: &GaussNewton, damping: &[f64], free: &[bool]) {
        let p = matrix.diagonal.len();
        self.inverse_root.clear();
        self.inverse_root.extend((0..p).map(|i| matrix.diagonal[i] + damping[i]));
        for i in 0..p {
            let d = self.inverse_root[i];
            let lowest = if free[i] && d < 1.0 { FLOOR * square_of_column(matrix, i) } else { 0.0 };
            let d = d.max(lowest);
            self.inverse_root[i] = if free[i] && d > 0.0 { 1.0 / d.sqrt() } else { 0.0 };
        }
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

fn square_of_column(matrix: &GaussNewton, column: usize) -> f64 {
    let p = matrix.diagonal.len();
    matrix.rows.iter().skip(column).step_by(p).map(|j| j * j).sum()
}
