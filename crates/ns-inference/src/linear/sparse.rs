//! The factorisation of a matrix in which few parameters meet: that of a model that joins analyses.
//!
//! Global and local parameters are eliminated alike, in the order of
//! [`ns_core::curvature::Sparsity`]; groups of columns with the same elements are dense blocks.

use super::rows::{SparseRows, WhitenedRows};
use super::{NotPositiveDefinite, StopCheck};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::perm::PermRef;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::supernodal::SupernodalLltRef;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side, Spec};
use ns_core::curvature::{Arrowhead, Partition, Sparsity};
use std::sync::Arc;

/// Right-hand sides that are solved for at the same time.
const TOGETHER: usize = 64;

/// A factorised sparse matrix, restricted to the free parameters.
pub struct SparseFactor {
    partition: Arc<Partition>,
    symbolic: SymbolicCholesky<usize>,
    /// Elements of the matrix, in the order of its sparsity.
    elements: Vec<f64>,
    /// Elements of the factor.
    factor: Vec<f64>,
    /// Whether the parameter at each position is free (P).
    free: Vec<bool>,
    stack: MemBuffer,
    work: Vec<f64>,
}

impl std::fmt::Debug for SparseFactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseFactor").field("n", &self.symbolic.nrows()).finish_non_exhaustive()
    }
}

fn pattern(sparsity: &Sparsity) -> SymbolicSparseColMatRef<'_, usize> {
    let n = sparsity.order.len();
    SymbolicSparseColMatRef::new_checked(n, n, &sparsity.column_start, None, &sparsity.rows)
}

impl SparseFactor {
    /// Returns the memory for factors of matrices of the shape of `partition`; `None` if those are
    /// not sparse.
    pub(super) fn new(partition: &Arc<Partition>) -> Option<Self> {
        let sparsity = partition.sparsity.as_ref()?;
        let n = sparsity.order.len();
        let mut inverse = vec![0; n];
        sparsity.order.iter().enumerate().for_each(|(k, &position)| inverse[position] = k);
        let order = SymmetricOrdering::Custom(PermRef::new_checked(&sparsity.order, &inverse, n));
        let params = CholeskySymbolicParams {
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
            ..CholeskySymbolicParams::default()
        };
        let symbolic = factorize_symbolic_cholesky(pattern(sparsity), Side::Lower, order, params).ok()?;
        let scratch = StackReq::any_of(&[
            symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Spec::default()),
            symbolic.solve_in_place_scratch::<f64>(TOGETHER, Par::Seq),
        ]);
        Some(Self {
            partition: Arc::clone(partition),
            factor: vec![0.0; symbolic.len_val()],
            symbolic,
            elements: Vec::new(),
            free: vec![false; n],
            stack: MemBuffer::new(scratch),
            work: Vec::new(),
        })
    }

    /// Factorises `matrix` + diag(`damping`) over the parameters that are `free` (both P, in
    /// parameter order).
    ///
    /// # Errors
    /// [`NotPositiveDefinite`] if it is not; the factor is then unusable.
    pub(super) fn factor(
        &mut self,
        matrix: &Arrowhead,
        damping: &[f64],
        free: &[bool],
    ) -> Result<(), NotPositiveDefinite> {
        let partition = Arc::clone(&self.partition);
        let Some(sparsity) = &partition.sparsity else { return Err(NotPositiveDefinite) };
        self.free.clear();
        self.free.extend(partition.params().map(|param| free[param]));
        matrix.gather(sparsity, &mut self.elements);
        for (j, param) in partition.params().enumerate() {
            let column = &mut self.elements[sparsity.column_start[j]..sparsity.column_start[j + 1]];
            if !self.free[j] {
                column.fill(0.0);
                column[0] = 1.0;
                continue;
            }
            column[0] += damping[param];
            for (element, &i) in column.iter_mut().zip(sparsity.column(j)) {
                if !self.free[i] {
                    *element = 0.0;
                }
            }
        }
        let matrix = SparseColMatRef::new(pattern(sparsity), &self.elements);
        let (regularization, stack) = (LltRegularization::default(), MemStack::new(&mut self.stack));
        self.symbolic
            .factorize_numeric_llt(
                &mut self.factor,
                matrix,
                Side::Lower,
                regularization,
                Par::Seq,
                stack,
                Spec::default(),
            )
            .map_err(|_| NotPositiveDefinite)?;
        // What is not finite is no pivot: callers must not divide by it.
        if self.factor.iter().all(|element| element.is_finite()) { Ok(()) } else { Err(NotPositiveDefinite) }
    }

    /// Solves for `x` (P), given `rhs` (P); parameters that are not free get 0.
    pub(super) fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        let n = x.len();
        self.work.clear();
        let right = self.partition.params().zip(&self.free).map(|(param, &free)| if free { rhs[param] } else { 0.0 });
        self.work.extend(right);
        let columns = MatMut::from_column_major_slice_mut(&mut self.work, n, 1);
        let factor = LltRef::new(&self.symbolic, &self.factor);
        factor.solve_in_place_with_conj(Conj::No, columns, Par::Seq, MemStack::new(&mut self.stack));
        for ((param, &free), &value) in self.partition.params().zip(&self.free).zip(&self.work) {
            x[param] = if free { value } else { 0.0 };
        }
    }

    /// Sets x := L⁻¹ x for every column of `columns` (P each, back to back, in the order of
    /// elimination).
    fn solve_lower(&self, columns: &mut [f64]) {
        let n = self.symbolic.nrows();
        let SymbolicCholeskyRaw::Supernodal(symbolic) = self.symbolic.raw() else {
            unreachable!("the factorisation is by groups of columns")
        };
        let factor = SupernodalLltRef::new(symbolic, &self.factor);
        let mut stack = MemBuffer::new(symbolic.solve_in_place_scratch::<f64>(TOGETHER, Par::Seq));
        for columns in columns.chunks_mut((n * TOGETHER).max(1)) {
            let count = columns.len() / n;
            let columns = MatMut::from_column_major_slice_mut(columns, n, count);
            factor.l_solve_with_conj(Conj::No, columns, Par::Seq, MemStack::new(&mut stack));
        }
    }

    /// Returns each row j of `rows` as L⁻¹j, where L Lᵀ is the factorised matrix. Elements of
    /// parameters that are not free do not count.
    pub(super) fn whiten(&self, rows: &SparseRows) -> WhitenedRows {
        let n = self.symbolic.nrows();
        let mut place = vec![None; n];
        for (k, &position) in self.order().iter().enumerate() {
            if self.free[position] {
                place[position] = Some(k);
            }
        }
        let mut whitened = vec![0.0; rows.len() * n];
        for (r, row) in whitened.chunks_exact_mut(n.max(1)).enumerate() {
            for (param, value) in rows.row(r) {
                place[self.partition.position[param] as usize].into_iter().for_each(|k: usize| row[k] += value);
            }
        }
        self.solve_lower(&mut whitened);
        WhitenedRows { n_global: n, global: whitened, local: vec![Vec::new(); rows.len()] }
    }

    /// Writes the diagonal of the inverse to `out` (P); 0 for parameters that are not free, and
    /// for all if `stop` says so.
    pub(super) fn inverse_diagonal(&self, out: &mut [f64], stop: StopCheck<'_>) {
        let n = self.symbolic.nrows();
        let params: Vec<usize> = self.partition.params().collect();
        let mut columns = Vec::new();
        for first in (0..n).step_by(TOGETHER) {
            if stop() {
                return out.fill(0.0);
            }
            let width = TOGETHER.min(n - first);
            columns.clear();
            columns.resize(n * width, 0.0);
            (0..width).for_each(|k| columns[k * n + first + k] = 1.0);
            self.solve_lower(&mut columns);
            for (column, &position) in columns.chunks_exact(n).zip(&self.order()[first..]) {
                let variance = column.iter().map(|element| element * element).sum();
                out[params[position]] = if self.free[position] { variance } else { 0.0 };
            }
        }
    }

    /// Returns the positions in the order of elimination (P).
    fn order(&self) -> &[usize] {
        self.partition.sparsity.as_ref().map_or(&[], |sparsity| &sparsity.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::ArrowheadFactor;
    use crate::random::uniform;
    use ns_core::curvature::Clique;

    /// Returns four analyses of five global parameters each, with one in common, position 20, and
    /// two bins with a local parameter each.
    fn joint() -> Arc<Partition> {
        let blocks: Vec<Vec<u32>> = (21..29).map(|param| vec![param]).collect();
        let mut partition = Partition::new(29, &blocks);
        let globals: Vec<Vec<u32>> = (0..4).map(|k| (5 * k..5 * k + 5).chain([20]).collect()).collect();
        let clique = |(k, global)| Clique { global, blocks: 2 * k..2 * k + 2 };
        let cliques: Vec<Clique<'_>> = globals.iter().map(Vec::as_slice).enumerate().map(clique).collect();
        let mut sparsity = Sparsity::new(&partition, &cliques, usize::MAX).expect("there are few elements");
        // Any order gives the same result, a bad one, too.
        sparsity.order = (0..29).map(|k| k * 11 % 29).collect();
        partition.sparsity = Some(sparsity);
        Arc::new(partition)
    }

    /// Returns a positive definite matrix of this shape, and the same as one that is not sparse.
    fn matrices() -> [Arrowhead; 2] {
        let partition = joint();
        let mut sparse = Arrowhead::zeros(partition.clone());
        let sparsity = partition.sparsity.as_ref().expect("it is sparse");
        for j in 0..21 {
            for &i in sparsity.column(j) {
                let value = uniform(5, j as u64, i as u64) - 0.5 + if i == j { 8.0 } else { 0.0 };
                if i < 21 {
                    sparse.global[j * 21 + i] = value;
                } else {
                    sparse.coupling[(i - 21) * 21 + j] = value;
                }
            }
        }
        sparse.blocks.fill(5.0);
        let dense = Partition { sparsity: None, ..Partition::clone(&partition) };
        let dense = Arrowhead { partition: Arc::new(dense), ..sparse.clone() };
        [sparse, dense]
    }

    /// Returns factors of both matrices, with parameters 3, 20 and 25 fixed.
    fn factors() -> (SparseFactor, ArrowheadFactor) {
        let [sparse, dense] = matrices();
        let free: Vec<bool> = (0..29).map(|i| ![3, 20, 25].contains(&i)).collect();
        let damping: Vec<f64> = (0..29).map(|i| 0.01 * f64::from(i)).collect();
        let mut factor = SparseFactor::new(&sparse.partition).expect("it is sparse");
        factor.factor(&sparse, &damping, &free).expect("it is positive definite");
        let mut other = ArrowheadFactor::default();
        other.factor(&dense, &damping, &free, &|| false).expect("it is positive definite");
        (factor, other)
    }

    fn assert_equal(a: &[f64], b: &[f64]) {
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!((a - b).abs() < 1e-14, "element {i} is {a} and {b}");
        }
    }

    #[test]
    fn sparse_systems_have_the_solutions_of_dense_ones() {
        let (mut sparse, mut dense) = factors();
        let rhs: Vec<f64> = (0..29).map(|i| uniform(6, 0, i) - 0.5).collect();
        let [mut x, mut y] = [vec![7.0; 29], vec![7.0; 29]];
        sparse.solve(&rhs, &mut x);
        dense.solve(&rhs, &mut y);
        assert_equal(&x, &y);
        assert_eq!([x[3], x[20], x[25]], [0.0; 3]);
    }

    #[test]
    fn variances_and_covariances_of_sparse_systems_are_those_of_dense_ones() {
        let (sparse, dense) = factors();
        let [mut x, mut y] = [vec![7.0; 29], vec![7.0; 29]];
        sparse.inverse_diagonal(&mut x, &|| false);
        dense.inverse_diagonal(&mut y, &|| false);
        assert_equal(&x, &y);
        sparse.inverse_diagonal(&mut x, &|| true);
        assert_eq!(x, [0.0; 29]);
        let mut rows = SparseRows::default();
        rows.push([(0, 1.0), (7, 2.0), (21, -1.0), (3, 9.0)]);
        rows.push([(8, 1.0), (28, 0.5), (25, 3.0), (8, 1.0)]);
        let (a, b) = (sparse.whiten(&rows), dense.whiten(&rows));
        let covariances = |w: &WhitenedRows| [w.variance(0), w.variance(1), w.covariance(0, 1)];
        assert_equal(&covariances(&a), &covariances(&b));
    }

    #[test]
    fn indefinite_sparse_matrices_have_no_factor() {
        let [mut sparse, _] = matrices();
        let mut factor = SparseFactor::new(&sparse.partition).expect("it is sparse");
        let free = [true; 29];
        for wrong in [-8.0, f64::NAN, f64::INFINITY] {
            sparse.global[7 * 22] = wrong;
            assert_eq!(factor.factor(&sparse, &[0.0; 29], &free), Err(NotPositiveDefinite), "with {wrong}");
        }
        let without: Vec<bool> = (0..29).map(|i| i != 7).collect();
        assert_eq!(factor.factor(&sparse, &[0.0; 29], &without), Ok(()), "the wrong element does not count");
    }
}
