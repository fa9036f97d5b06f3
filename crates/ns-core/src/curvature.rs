//! Second-order information of a likelihood, in shapes whose linear systems are cheap to solve.
//!
//! Most parameters act on many bins ("global"), but a gamma of one bin meets only the parameters of
//! that bin ("local"). So the Hessian is an [`Arrowhead`]: a dense block of the G global
//! parameters, small dense blocks on the diagonal for the local parameters of each bin, and a
//! coupling row for each local parameter. Near the start of a fit the Gauss-Newton matrix D + JᵀJ
//! is used instead, with few rows in J ([`GaussNewton`]). A [`Partition`] says which parameter is
//! where. Where most global parameters never meet, as in a model that joins analyses, it also says
//! which do ([`Sparsity`]); the matrices have the same memory, and their other elements are left
//! alone.

mod sparsity;

pub use sparsity::{Clique, Sparsity};

use std::sync::Arc;

/// The partition of P = G + L parameters into global ones and ones that are local to a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// Parameter index of each global parameter (G), ascending.
    pub global: Vec<u32>,
    /// Parameter index of each local parameter (L), block by block.
    pub local: Vec<u32>,
    /// First local parameter of each block, and L at the end.
    pub block_start: Vec<u32>,
    /// Offset of each block's m × m matrix in [`Arrowhead::blocks`], and the total at the end.
    pub block_offset: Vec<usize>,
    /// For each parameter (P): its position among the globals, or G + its position among the
    /// locals.
    pub position: Vec<u32>,
    /// Which elements of matrices can differ from zero, if it is worth while to know.
    pub sparsity: Option<Sparsity>,
}

impl Partition {
    /// Returns the partition of `n_params` parameters whose local blocks are `blocks`; all other
    /// parameters are global. No bin may depend on local parameters of two blocks.
    #[must_use]
    pub fn new(n_params: usize, blocks: &[Vec<u32>]) -> Self {
        let mut partition = Self { position: vec![u32::MAX; n_params], ..Self::default() };
        partition.block_start.push(0);
        partition.block_offset.push(0);
        let mut offset = 0;
        for block in blocks {
            partition.local.extend_from_slice(block);
            offset += block.len() * block.len();
            partition.block_start.push(index(partition.local.len()));
            partition.block_offset.push(offset);
        }
        for &param in &partition.local {
            partition.position[param as usize] = 0;
        }
        partition.global = (0..index(n_params)).filter(|&p| partition.position[p as usize] == u32::MAX).collect();
        for (i, &param) in partition.global.iter().chain(&partition.local).enumerate() {
            partition.position[param as usize] = index(i);
        }
        partition
    }

    /// Returns G, the number of global parameters.
    #[must_use]
    pub fn n_global(&self) -> usize {
        self.global.len()
    }

    /// Returns L, the number of local parameters.
    #[must_use]
    pub fn n_local(&self) -> usize {
        self.local.len()
    }

    /// Returns P, the number of parameters.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.position.len()
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn n_blocks(&self) -> usize {
        self.block_start.len() - 1
    }

    /// Returns the positions (among the locals) of block `block`.
    #[must_use]
    pub fn block(&self, block: usize) -> std::ops::Range<usize> {
        self.block_start[block] as usize..self.block_start[block + 1] as usize
    }

    /// Returns the block of the local parameter at position `local` among the locals.
    #[must_use]
    pub fn block_of(&self, local: usize) -> usize {
        self.block_start.partition_point(|&start| start as usize <= local) - 1
    }

    /// Iterates over the parameter index at each position: the globals, then the locals (P).
    pub fn params(&self) -> impl Iterator<Item = usize> + '_ {
        self.global.iter().chain(&self.local).map(|&p| p as usize)
    }
}

/// Converts an index that fits into 32 bits: compilation refuses larger models.
fn index(i: usize) -> u32 {
    u32::try_from(i).expect("a compiled model has fewer than 2^32 of anything")
}

/// A symmetric P × P matrix of arrowhead shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrowhead {
    /// Which parameter is where.
    pub partition: Arc<Partition>,
    /// Global block, G × G, column by column; only the lower triangle is used: entry (i, j), i ≥ j,
    /// is at `j·G + i`.
    pub global: Vec<f64>,
    /// Coupling of each local parameter to the globals, L × G, row by row.
    pub coupling: Vec<f64>,
    /// The local blocks, each m × m, row by row; only the lower triangle is used.
    pub blocks: Vec<f64>,
}

impl Arrowhead {
    /// Returns the size of a matrix of this shape in bytes, at most [`u64::MAX`].
    #[must_use]
    pub fn bytes(partition: &Partition) -> u64 {
        let (g, l) = (partition.n_global() as u128, partition.n_local() as u128);
        let numbers = (g + l) * g + partition.block_offset[partition.n_blocks()] as u128;
        u64::try_from(numbers * size_of::<f64>() as u128).unwrap_or(u64::MAX)
    }

    /// Returns the zero matrix. It must fit into memory: check [`Arrowhead::bytes`] first if the
    /// model may be large.
    #[must_use]
    pub fn zeros(partition: Arc<Partition>) -> Self {
        let (g, l) = (partition.n_global(), partition.n_local());
        let n_blocks = partition.block_offset[partition.n_blocks()];
        Self { global: vec![0.0; g * g], coupling: vec![0.0; l * g], blocks: vec![0.0; n_blocks], partition }
    }

    /// Sets every entry to zero.
    pub fn clear(&mut self) {
        let partition = Arc::clone(&self.partition);
        if let Some(sparsity) = &partition.sparsity {
            return self.clear_sparse(sparsity);
        }
        self.global.fill(0.0);
        self.coupling.fill(0.0);
        self.blocks.fill(0.0);
    }

    /// Returns the diagonal element of the parameter at `position`.
    fn diagonal_slot(&mut self, position: usize) -> &mut f64 {
        let g = self.partition.n_global();
        if position < g {
            return &mut self.global[position * g + position];
        }
        let local = position - g;
        let block = self.partition.block_of(local);
        let range = self.partition.block(block);
        let (m, i) = (range.len(), local - range.start);
        &mut self.blocks[self.partition.block_offset[block] + i * m + i]
    }

    /// Adds `value` to the diagonal element of parameter `param`.
    pub fn add_diagonal(&mut self, param: usize, value: f64) {
        let position = self.partition.position[param] as usize;
        *self.diagonal_slot(position) += value;
    }

    /// Writes the diagonal to `out` (P) in parameter order.
    pub fn diagonal(&self, out: &mut [f64]) {
        let partition = &*self.partition;
        let g = partition.n_global();
        for (i, &param) in partition.global.iter().enumerate() {
            out[param as usize] = self.global[i * g + i];
        }
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            let m = range.len();
            for (i, local) in range.enumerate() {
                let offset = partition.block_offset[block];
                out[partition.local[local] as usize] = self.blocks[offset + i * m + i];
            }
        }
    }

    /// Writes the product with `x` (P) to `out` (P), both in parameter order.
    pub fn multiply(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let partition = &*self.partition;
        match &partition.sparsity {
            Some(sparsity) => self.multiply_sparse(sparsity, x, out),
            None => self.multiply_global(x, out),
        }
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            let (m, offset) = (range.len(), partition.block_offset[block]);
            for (i, li) in range.clone().enumerate() {
                for (j, lj) in range.clone().enumerate().take(i + 1) {
                    let (pi, pj) = (partition.local[li] as usize, partition.local[lj] as usize);
                    let h = self.blocks[offset + i * m + j];
                    out[pi] += h * x[pj];
                    if i != j {
                        out[pj] += h * x[pi];
                    }
                }
            }
        }
    }

    fn multiply_global(&self, x: &[f64], out: &mut [f64]) {
        let partition = &*self.partition;
        let g = partition.n_global();
        for (i, &pi) in partition.global.iter().enumerate() {
            for (j, &pj) in partition.global[..=i].iter().enumerate() {
                let h = self.global[j * g + i];
                out[pi as usize] += h * x[pj as usize];
                if i != j {
                    out[pj as usize] += h * x[pi as usize];
                }
            }
        }
        for (l, &pl) in partition.local.iter().enumerate() {
            for (j, &pj) in partition.global.iter().enumerate() {
                let h = self.coupling[l * g + j];
                out[pl as usize] += h * x[pj as usize];
                out[pj as usize] += h * x[pl as usize];
            }
        }
    }

    /// Returns the matrix in full, P × P in parameter order, row by row.
    #[must_use]
    pub fn to_dense(&self) -> Vec<f64> {
        let n = self.partition.n_params();
        let mut dense = vec![0.0; n * n];
        let (mut unit, mut column) = (vec![0.0; n], vec![0.0; n]);
        for j in 0..n {
            unit[j] = 1.0;
            self.multiply(&unit, &mut column);
            unit[j] = 0.0;
            for i in 0..n {
                dense[i * n + j] = column[i];
            }
        }
        dense
    }
}

/// The Gauss-Newton matrix D + JᵀJ: positive semidefinite everywhere, equal to the Hessian where
/// the model is linear.
///
/// Row r of J is √n_b/λ_b · ∂λ_b/∂θ for one bin; D holds the second derivatives of the constraint
/// terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GaussNewton {
    /// R, the number of rows.
    pub n_rows: usize,
    /// D (P).
    pub diagonal: Vec<f64>,
    /// J, R × P, row by row.
    pub rows: Vec<f64>,
}

impl GaussNewton {
    /// Returns the zero matrix with `n_rows` rows for `n_params` parameters.
    #[must_use]
    pub fn zeros(n_rows: usize, n_params: usize) -> Self {
        Self { n_rows, diagonal: vec![0.0; n_params], rows: vec![0.0; n_rows * n_params] }
    }
}

/// The shape of a likelihood's second-order information.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurvatureStructure {
    /// Which parameters are global and which are local to which bin.
    pub partition: Arc<Partition>,
    /// R, the number of rows of the Gauss-Newton factors.
    pub n_rows: usize,
}

/// The kind of second-order information that a caller wants, with the memory to write it to.
#[derive(Debug, Clone, PartialEq)]
pub enum Curvature {
    /// D + JᵀJ as its factors.
    GaussNewton(GaussNewton),
    /// D + JᵀJ multiplied out.
    GaussNewtonProduct(Arrowhead),
    /// The exact Hessian.
    Exact(Arrowhead),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiply_and_diagonal_agree_with_the_dense_matrix() {
        let partition = Arc::new(Partition::new(5, &[vec![1, 3], vec![4]]));
        assert_eq!(partition.global, [0, 2]);
        assert_eq!(partition.position, [0, 2, 1, 3, 4]);
        let mut matrix = Arrowhead::zeros(partition);
        matrix.global = vec![4.0, 1.0, 9.0, 5.0];
        matrix.coupling = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        matrix.blocks = vec![6.0, 9.0, 0.7, 7.0, 8.0];
        let dense = matrix.to_dense();
        #[rustfmt::skip]
        let expected = [
            4.0, 0.1, 1.0, 0.3, 0.5,
            0.1, 6.0, 0.2, 0.7, 0.0,
            1.0, 0.2, 5.0, 0.4, 0.6,
            0.3, 0.7, 0.4, 7.0, 0.0,
            0.5, 0.0, 0.6, 0.0, 8.0,
        ];
        assert_eq!(dense, expected);
        let mut diagonal = [0.0; 5];
        matrix.add_diagonal(3, 1.0);
        matrix.diagonal(&mut diagonal);
        assert_eq!(diagonal, [4.0, 6.0, 5.0, 8.0, 8.0]);
    }
}
