//! Cholesky factors of dense symmetric matrices, column by column, lower triangle.

use super::NotPositiveDefinite;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{MatMut, MatRef, Par, Spec};

/// A lower triangular factor L (n × n, column by column), with the memory to make it.
pub(super) struct DenseCholesky {
    n: usize,
    values: Vec<f64>,
    stack: MemBuffer,
    stack_for: usize,
}

impl std::fmt::Debug for DenseCholesky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DenseCholesky").field("n", &self.n).finish_non_exhaustive()
    }
}

impl Default for DenseCholesky {
    fn default() -> Self {
        Self {
            n: 0,
            values: Vec::new(),
            stack: MemBuffer::new(cholesky_in_place_scratch::<f64>(0, Par::Seq, Spec::default())),
            stack_for: 0,
        }
    }
}

impl DenseCholesky {
    /// The matrix to be filled in before [`Self::factor`]: n × n, column by column, lower triangle; its contents are undefined.
    pub(super) fn matrix(&mut self, n: usize) -> &mut [f64] {
        self.n = n;
        if self.values.len() < n * n {
            self.values.resize(n * n, 0.0);
        }
        &mut self.values[..n * n]
    }

    /// Replaces the matrix by its factor.
    pub(super) fn factor(&mut self) -> Result<(), NotPositiveDefinite> {
        let n = self.n;
        if n == 0 {
            return Ok(());
        }
        if self.stack_for < n {
            self.stack = MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, Spec::default()));
            self.stack_for = n;
        }
        let matrix = MatMut::from_column_major_slice_mut(&mut self.values[..n * n], n, n);
        let stack = MemStack::new(&mut self.stack);
        cholesky_in_place(matrix, LltRegularization::default(), Par::Seq, stack, Spec::default())
            .map_err(|_| NotPositiveDefinite)?;
        // What is not finite is no pivot: callers must not divide by it.
        let sound = (0..n).all(|i| self.values[i * n + i].is_finite());
        if sound { Ok(()) } else { Err(NotPositiveDefinite) }
    }

    /// x := L⁻¹ x (n).
    pub(super) fn solve_lower(&self, x: &mut [f64]) {
        let n = self.n;
        for j in 0..n {
            let column = &self.values[j * n + j..(j + 1) * n];
            let pivot = x[j] / column[0];
            x[j] = pivot;
            for (x, l) in x[j + 1..n].iter_mut().zip(&column[1..]) {
                *x -= pivot * l;
            }
        }
    }

    /// x := L⁻ᵀ x (n).
    pub(super) fn solve_upper(&self, x: &mut [f64]) {
        let n = self.n;
        for j in (0..n).rev() {
            let column = &self.values[j * n + j..(j + 1) * n];
            let (head, tail) = x[j..n].split_at_mut(1);
            head[0] = (head[0] - dot(&column[1..], tail)) / column[0];
        }
    }

    /// x := L⁻¹ x for every column of `columns` (n each, back to back).
    pub(super) fn solve_lower_many(&self, columns: &mut [f64]) {
        let n = self.n;
        if n > 0 && !columns.is_empty() {
            let count = columns.len() / n;
            let factor = MatRef::from_column_major_slice(&self.values[..n * n], n, n);
            solve_lower_triangular_in_place(factor, MatMut::from_column_major_slice_mut(columns, n, count), Par::Seq);
        }
    }

    /// L⁻¹ (n × n, column by column, lower triangle).
    pub(super) fn inverse_of_factor(&self) -> Vec<f64> {
        let n = self.n;
        let mut inverse = vec![0.0; n * n];
        if n > 0 {
            let factor = MatRef::from_column_major_slice(&self.values[..n * n], n, n);
            invert_lower_triangular(MatMut::from_column_major_slice_mut(&mut inverse, n, n), factor, Par::Seq);
        }
        inverse
    }
}

/// Σ a_i b_i in four interleaved chains.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, a_rest) = a.as_chunks::<4>();
    let (b4, b_rest) = b.as_chunks::<4>();
    let mut chains = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for lane in 0..4 {
            chains[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    (chains[0] + chains[2]) + (chains[1] + chains[3]) + rest
}

/// Replaces the m × m matrix in `block` (row by row, lower triangle) by its Cholesky factor; for the few parameters of one bin.
pub(super) fn factor_small(block: &mut [f64], m: usize) -> Result<(), NotPositiveDefinite> {
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
