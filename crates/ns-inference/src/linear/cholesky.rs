//! Cholesky factors of dense symmetric matrices, column by column, lower triangle.

use super::{NotPositiveDefinite, StopCheck};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par, Spec};

/// Matrices with more columns are worked on block by block, with a look at the request to stop
/// before each: a tenth of a second and more is too long to wait for.
const WHOLE: usize = 1024;

/// Columns of a block.
const BLOCK: usize = 128;

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
    /// Returns the matrix to be filled in before [`Self::factor`]: n × n, column by column, lower
    /// triangle; its contents are undefined.
    pub(super) fn matrix(&mut self, n: usize) -> &mut [f64] {
        self.n = n;
        if self.values.len() < n * n {
            self.values.resize(n * n, 0.0);
        }
        &mut self.values[..n * n]
    }

    /// Replaces the matrix by its factor; a request to stop leaves it unusable, like a matrix that
    /// has none.
    pub(super) fn factor(&mut self, stop: StopCheck<'_>) -> Result<(), NotPositiveDefinite> {
        let n = self.n;
        let block = if n > WHOLE { BLOCK } else { n };
        if self.stack_for < block {
            self.stack = MemBuffer::new(cholesky_in_place_scratch::<f64>(block, Par::Seq, Spec::default()));
            self.stack_for = block;
        }
        for first in (0..n).step_by(block.max(1)) {
            if first > 0 && stop() {
                return Err(NotPositiveDefinite);
            }
            self.factor_columns(first, block.min(n - first))?;
        }
        // What is not finite is no pivot: callers must not divide by it.
        let sound = (0..n).all(|i| self.values[i * n + i].is_finite());
        if sound { Ok(()) } else { Err(NotPositiveDefinite) }
    }

    /// Computes columns `first..first + width` of the factor from those before.
    fn factor_columns(&mut self, first: usize, width: usize) -> Result<(), NotPositiveDefinite> {
        let n = self.n;
        let (done, rest) = self.values[..n * n].split_at_mut(first * n);
        let panel = MatMut::from_column_major_slice_mut(&mut rest[..width * n], n, width);
        let mut panel = panel.subrows_mut(first, n - first);
        if first > 0 {
            let left = MatRef::from_column_major_slice(done, n, first).subrows(first, n - first);
            let top = left.subrows(0, width).transpose();
            matmul(panel.as_mut(), Accum::Add, left, top, -1.0, Par::Seq);
        }
        let (mut square, below) = panel.split_at_row_mut(width);
        let stack = MemStack::new(&mut self.stack);
        cholesky_in_place(square.as_mut(), LltRegularization::default(), Par::Seq, stack, Spec::default())
            .map_err(|_| NotPositiveDefinite)?;
        if below.nrows() > 0 {
            solve_lower_triangular_in_place(square.as_ref(), below.transpose_mut(), Par::Seq);
        }
        Ok(())
    }

    /// Sets x := L⁻¹ x (n).
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

    /// Sets x := L⁻ᵀ x (n).
    pub(super) fn solve_upper(&self, x: &mut [f64]) {
        let n = self.n;
        for j in (0..n).rev() {
            let column = &self.values[j * n + j..(j + 1) * n];
            let (head, tail) = x[j..n].split_at_mut(1);
            head[0] = (head[0] - dot(&column[1..], tail)) / column[0];
        }
    }

    /// Sets x := L⁻¹ x for every column of `columns` (n each, back to back).
    pub(super) fn solve_lower_many(&self, columns: &mut [f64]) {
        let n = self.n;
        if n > 0 && !columns.is_empty() {
            let count = columns.len() / n;
            let factor = MatRef::from_column_major_slice(&self.values[..n * n], n, n);
            solve_lower_triangular_in_place(factor, MatMut::from_column_major_slice_mut(columns, n, count), Par::Seq);
        }
    }

    /// Returns the diagonal of the inverse of the matrix (n): squared lengths of the columns of
    /// L⁻¹. None after a request to stop.
    pub(super) fn inverse_diagonal(&self, stop: StopCheck<'_>) -> Option<Vec<f64>> {
        let n = self.n;
        let length = |column: &[f64]| dot(column, column);
        if n <= WHOLE {
            let inverse = self.inverse_of_factor();
            return Some((0..n).map(|j| length(&inverse[j * n + j..(j + 1) * n])).collect());
        }
        let mut diagonal = Vec::with_capacity(n);
        for first in (0..n).step_by(BLOCK) {
            if stop() {
                return None;
            }
            let (rows, width) = (n - first, BLOCK.min(n - first));
            let mut columns = vec![0.0; rows * width];
            (0..width).for_each(|j| columns[j * rows + j] = 1.0);
            let factor = MatRef::from_column_major_slice(&self.values[..n * n], n, n);
            let factor = factor.submatrix(first, first, rows, rows);
            let right = MatMut::from_column_major_slice_mut(&mut columns, rows, width);
            solve_lower_triangular_in_place(factor, right, Par::Seq);
            diagonal.extend((0..width).map(|j| length(&columns[j * rows + j..(j + 1) * rows])));
        }
        Some(diagonal)
    }

    /// Returns L⁻¹ (n × n, column by column, lower triangle).
    fn inverse_of_factor(&self) -> Vec<f64> {
        let n = self.n;
        let mut inverse = vec![0.0; n * n];
        if n > 0 {
            let factor = MatRef::from_column_major_slice(&self.values[..n * n], n, n);
            invert_lower_triangular(MatMut::from_column_major_slice_mut(&mut inverse, n, n), factor, Par::Seq);
        }
        inverse
    }
}

/// Returns Σ a_i b_i, summed in four interleaved chains.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns a positive definite matrix, 1/(1 + |i - j|) with 2 on the diagonal, as a dense
    /// system of `n`.
    fn system(n: usize) -> DenseCholesky {
        let mut system = DenseCholesky::default();
        let matrix = system.matrix(n);
        for j in 0..n {
            for i in j..n {
                matrix[j * n + i] = if i == j { 2.0 } else { 1.0 / (1 + i - j) as f64 };
            }
        }
        system
    }

    #[test]
    fn blocks_make_the_factor_that_the_whole_makes() {
        let n = WHOLE + BLOCK + 5;
        let mut blocked = system(n);
        assert!(blocked.factor(&|| false).is_ok());
        let mut whole = system(n);
        whole.stack = MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, Spec::default()));
        assert!(whole.factor_columns(0, n).is_ok());
        for j in 0..n {
            for i in j..n {
                assert!((blocked.values[j * n + i] - whole.values[j * n + i]).abs() < 1e-13, "entry {i}, {j}");
            }
        }
        let inverse = whole.inverse_of_factor();
        let diagonal = blocked.inverse_diagonal(&|| false).expect("it is not cancelled");
        for (j, found) in diagonal.iter().enumerate() {
            let column = &inverse[j * n + j..(j + 1) * n];
            assert!((found / dot(column, column) - 1.0).abs() < 1e-12, "diagonal element {j}");
        }
    }

    #[test]
    fn large_matrices_are_given_up_on_request() {
        let n = 2 * WHOLE;
        let n_questions = Cell::new(0);
        let stop = || {
            n_questions.set(n_questions.get() + 1);
            n_questions.get() == 3
        };
        assert_eq!(system(n).factor(&stop), Err(NotPositiveDefinite));
        assert_eq!(n_questions.get(), 3, "nothing is computed after the request");
        let mut system = system(n);
        assert!(system.factor(&|| false).is_ok());
        assert_eq!(system.inverse_diagonal(&|| true), None);
    }
}
