//! The factorisation of an arrowhead matrix, whether or not it is sparse.

use super::{ArrowheadFactor, NotPositiveDefinite, SparseFactor, SparseRows, StopCheck, WhitenedRows};
use ns_core::curvature::{Arrowhead, Partition};
use std::sync::Arc;

/// A factorised arrowhead matrix, restricted to the free parameters.
#[derive(Debug)]
pub enum MatrixFactor {
    /// One whose global parameters all meet.
    Arrowhead(ArrowheadFactor),
    /// One of a model in which few parameters meet.
    Sparse(Box<SparseFactor>),
}

impl MatrixFactor {
    /// Returns the memory for factors of matrices of the shape `partition`.
    #[must_use]
    pub fn new(partition: &Arc<Partition>) -> Self {
        match SparseFactor::new(partition) {
            Some(factor) => Self::Sparse(Box::new(factor)),
            None => Self::Arrowhead(ArrowheadFactor::default()),
        }
    }

    /// Factorises `matrix` + diag(`damping`) over the parameters that are `free` (both P, in
    /// parameter order). `stop` may give the factorisation of a dense matrix up.
    ///
    /// # Errors
    /// [`NotPositiveDefinite`] if it is not, or was given up; the factor is then unusable.
    pub fn factor(
        &mut self,
        matrix: &Arrowhead,
        damping: &[f64],
        free: &[bool],
        stop: StopCheck<'_>,
    ) -> Result<(), NotPositiveDefinite> {
        match self {
            Self::Arrowhead(factor) => factor.factor(matrix, damping, free, stop),
            Self::Sparse(factor) => factor.factor(matrix, damping, free),
        }
    }

    /// Solves for `x` (P), given `rhs` (P); parameters that are not free get 0.
    pub fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        match self {
            Self::Arrowhead(factor) => factor.solve(rhs, x),
            Self::Sparse(factor) => factor.solve(rhs, x),
        }
    }

    /// Returns each row j of `rows` as L⁻¹j, where L Lᵀ is the factorised matrix: inner products of
    /// the results are those of the rows in the metric of the inverse. Elements of parameters that
    /// are not free do not count.
    #[must_use]
    pub fn whiten(&self, rows: &SparseRows) -> WhitenedRows {
        match self {
            Self::Arrowhead(factor) => factor.whiten(rows),
            Self::Sparse(factor) => factor.whiten(rows),
        }
    }

    /// Writes the diagonal of the inverse to `out` (P); 0 for parameters that are not free, and
    /// for all if `stop` said so.
    pub fn inverse_diagonal(&self, out: &mut [f64], stop: StopCheck<'_>) {
        match self {
            Self::Arrowhead(factor) => factor.inverse_diagonal(out, stop),
            Self::Sparse(factor) => factor.inverse_diagonal(out, stop),
        }
    }
}
