//! Whether few parameters of a model meet each other, and in which order they are then eliminated
//! best.
//!
//! All parameters of a channel meet. In a model that joins analyses those of different ones do not,
//! apart from the few that they have in common, and a Cholesky factor of the Hessian has few
//! elements if the parameters are eliminated in the order that the approximate minimum degree
//! algorithm gives (Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17 (1996) 886).

use faer::Side;
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{CholeskySymbolicParams, SymmetricOrdering, factorize_symbolic_cholesky};
use ns_core::curvature::{Clique, Partition, Sparsity};

/// Models with fewer global parameters have dense matrices: those are fast enough.
const LEAST_GLOBAL: usize = 200;

/// Models with more are not looked into, which takes memory that grows with the square of this
/// number: up to 0.45 GB here, where a dense matrix has 3.2 GB.
const MOST_GLOBAL: usize = 20_000;

/// Matrices are sparse if they and their factors have at most one in this number of the elements of
/// dense ones.
const SPARSE: usize = 4;

/// Returns which elements of the matrices of a model can differ from zero, if they are few; each of
/// `cliques` is what meets in a channel.
pub(super) fn sparsity(partition: &Partition, cliques: &[Clique<'_>]) -> Option<Sparsity> {
    let (g, l) = (partition.n_global(), partition.n_local());
    if !(LEAST_GLOBAL..=MOST_GLOBAL).contains(&g) {
        return None;
    }
    let sparsity = Sparsity::new(partition, cliques, (g * (g + 1) / 2 + l * g) / SPARSE)?;
    let (order, n_stored) = best_order(&sparsity)?;
    // Factors are stored with the zeros above their diagonals.
    (n_stored <= (g * g + l * g) / SPARSE).then(|| sparsity.with_order(order))
}

/// Returns the positions in the order of elimination, and the number of stored elements of the
/// factor.
fn best_order(sparsity: &Sparsity) -> Option<(Vec<usize>, usize)> {
    let n = sparsity.order.len();
    let matrix = SymbolicSparseColMatRef::new_checked(n, n, &sparsity.column_start, None, &sparsity.rows);
    let params = CholeskySymbolicParams {
        supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
        ..CholeskySymbolicParams::default()
    };
    let symbolic = factorize_symbolic_cholesky(matrix, Side::Lower, SymmetricOrdering::Amd, params).ok()?;
    let order = symbolic.perm()?.arrays().0.to_vec();
    Some((order, symbolic.len_val()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a chain of `n` parameters, each of which meets the next one, is sparse.
    fn is_chain_sparse(n: u32) -> bool {
        let pairs: Vec<[u32; 2]> = (1..n).map(|j| [j - 1, j]).collect();
        let cliques: Vec<Clique<'_>> = pairs.iter().map(|pair| Clique { global: pair, blocks: 0..0 }).collect();
        sparsity(&Partition::new(n as usize, &[]), &cliques).is_some()
    }

    #[test]
    fn models_of_too_few_or_too_many_parameters_are_not_looked_into() {
        assert_eq!([199, 200, 1000, 20_001].map(is_chain_sparse), [false, true, true, false]);
    }
}
