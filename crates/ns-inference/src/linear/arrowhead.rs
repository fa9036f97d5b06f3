//! The factorisation of an arrowhead matrix: local parameters are eliminated bin by bin, what
//! remains is dense and small.
//!
//! With H = (A Cᵀ; C E), E block-diagonal with factors E = L Lᵀ and Y = L⁻¹ C, the Schur complement
//! is A - YᵀY. Legend: G global, L local parameters; g the free ones among the globals.

use super::cholesky::{DenseCholesky, dot};
use super::rows::{SparseRows, WhitenedRows};
use super::small::{factor_small, lower_small, upper_small};
use super::{NotPositiveDefinite, StopCheck};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use ns_core::curvature::{Arrowhead, Partition};
use std::sync::Arc;

/// A factorised arrowhead matrix, restricted to the free parameters.
#[derive(Debug, Default)]
pub struct ArrowheadFactor {
    partition: Arc<Partition>,
    /// Positions of the free global parameters (g).
    free_global: Vec<u32>,
    /// For each local parameter (L): whether it is free.
    free_local: Vec<bool>,
    /// Cholesky factors of the local blocks, row by row.
    blocks: Vec<f64>,
    /// Y = L⁻¹ C, L × g, row by row.
    coupling: Vec<f64>,
    schur: DenseCholesky,
    work: Vec<f64>,
}

impl ArrowheadFactor {
    /// Factorises `matrix` + diag(`damping`) over the parameters that are `free` (both P, in
    /// parameter order), unless `stop` says to give it up.
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
        let partition = matrix.partition.clone();
        self.free_global.clear();
        self.free_global
            .extend((0..partition.n_global() as u32).filter(|&i| free[partition.global[i as usize] as usize]));
        self.free_local.clear();
        self.free_local.extend(partition.local.iter().map(|&p| free[p as usize]));
        self.partition = partition;
        self.factor_blocks(matrix, damping)?;
        self.eliminate(matrix);
        self.factor_schur(matrix, damping, stop)
    }

    fn factor_blocks(&mut self, matrix: &Arrowhead, damping: &[f64]) -> Result<(), NotPositiveDefinite> {
        let partition = &*self.partition;
        self.blocks.clear();
        self.blocks.extend_from_slice(&matrix.blocks);
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            let (m, offset) = (range.len(), partition.block_offset[block]);
            let values = &mut self.blocks[offset..offset + m * m];
            for (i, local) in range.enumerate() {
                if self.free_local[local] {
                    values[i * m + i] += damping[partition.local[local] as usize];
                    continue;
                }
                for k in 0..m {
                    values[i * m + k] = 0.0;
                    values[k * m + i] = 0.0;
                }
                values[i * m + i] = 1.0;
            }
            factor_small(values, m)?;
        }
        Ok(())
    }

    /// Computes Y = L⁻¹ C over the free parameters.
    fn eliminate(&mut self, matrix: &Arrowhead) {
        let partition = &*self.partition;
        let (g_all, g) = (partition.n_global(), self.free_global.len());
        self.coupling.clear();
        self.coupling.resize(partition.n_local() * g, 0.0);
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            let (m, offset, first) = (range.len(), partition.block_offset[block], range.start);
            for i in 0..m {
                let (done, rest) = self.coupling[first * g..].split_at_mut(i * g);
                let row = &mut rest[..g];
                if self.free_local[first + i] {
                    let source = &matrix.coupling[(first + i) * g_all..(first + i + 1) * g_all];
                    for (y, &position) in row.iter_mut().zip(&self.free_global) {
                        *y = source[position as usize];
                    }
                }
                for k in 0..i {
                    let l = self.blocks[offset + i * m + k];
                    for (y, other) in row.iter_mut().zip(&done[k * g..(k + 1) * g]) {
                        *y -= l * other;
                    }
                }
                let inverse = 1.0 / self.blocks[offset + i * m + i];
                row.iter_mut().for_each(|y| *y *= inverse);
            }
        }
    }

    fn factor_schur(
        &mut self,
        matrix: &Arrowhead,
        damping: &[f64],
        stop: StopCheck<'_>,
    ) -> Result<(), NotPositiveDefinite> {
        let (g_all, g) = (self.partition.n_global(), self.free_global.len());
        let schur = self.schur.matrix(g);
        for (j, &position) in self.free_global.iter().enumerate() {
            let source = &matrix.global[position as usize * g_all..(position as usize + 1) * g_all];
            let column = &mut schur[j * g..(j + 1) * g];
            for (value, &row) in column[j..].iter_mut().zip(&self.free_global[j..]) {
                *value = source[row as usize];
            }
            column[j] += damping[self.partition.global[position as usize] as usize];
        }
        let n_local = self.partition.n_local();
        if n_local > 0 && g > 0 {
            let y = MatRef::from_row_major_slice(&self.coupling, n_local, g);
            let target = MatMut::from_column_major_slice_mut(schur, g, g);
            let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            matmul(target, lower, Accum::Add, y.transpose(), full, y, full, -1.0, Par::Seq);
        }
        self.schur.factor(stop)
    }

    /// Solves for `x` (P), given `rhs` (P); parameters that are not free get 0.
    pub fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        let partition = self.partition.clone();
        let g = self.free_global.len();
        let mut work = std::mem::take(&mut self.work);
        work.clear();
        work.extend(self.free_global.iter().map(|&i| rhs[partition.global[i as usize] as usize]));
        work.extend(
            partition.local.iter().zip(&self.free_local).map(|(&p, &free)| if free { rhs[p as usize] } else { 0.0 }),
        );
        let (global, local) = work.split_at_mut(g);
        self.each_block(|block, m, range| lower_small(block, m, &mut local[range]));
        for (row, &z) in self.coupling.chunks_exact(g.max(1)).zip(local.iter()) {
            global.iter_mut().zip(row).for_each(|(r, y)| *r -= z * y);
        }
        self.schur.solve_lower(global);
        self.schur.solve_upper(global);
        for (row, z) in self.coupling.chunks_exact(g.max(1)).zip(local.iter_mut()) {
            *z -= dot(row, global);
        }
        self.each_block(|block, m, range| upper_small(block, m, &mut local[range]));
        x.fill(0.0);
        for (&i, &value) in self.free_global.iter().zip(global.iter()) {
            x[partition.global[i as usize] as usize] = value;
        }
        for ((&p, &free), &value) in partition.local.iter().zip(&self.free_local).zip(local.iter()) {
            x[p as usize] = if free { value } else { 0.0 };
        }
        self.work = work;
    }

    fn each_block(&self, mut visit: impl FnMut(&[f64], usize, std::ops::Range<usize>)) {
        for block in 0..self.partition.n_blocks() {
            let range = self.partition.block(block);
            let (m, offset) = (range.len(), self.partition.block_offset[block]);
            visit(&self.blocks[offset..offset + m * m], m, range);
        }
    }

    /// Returns each row j of `rows` as L⁻¹j, where L Lᵀ is the factorised matrix: inner products of
    /// the results are those of the rows in the metric of the inverse. Elements of parameters that
    /// are not free do not count.
    #[must_use]
    pub fn whiten(&self, rows: &SparseRows) -> WhitenedRows {
        let (partition, g) = (&*self.partition, self.free_global.len());
        let mut place = vec![None; partition.n_global()];
        self.free_global.iter().enumerate().for_each(|(i, &position)| place[position as usize] = Some(i));
        let mut whitened = WhitenedRows { n_global: g, global: vec![0.0; rows.len() * g], local: Vec::new() };
        let mut rhs = vec![0.0; partition.n_local()];
        for r in 0..rows.len() {
            let global = &mut whitened.global[r * g..(r + 1) * g];
            let mut blocks: Vec<usize> = Vec::new();
            for (param, value) in rows.row(r) {
                let position = partition.position[param] as usize;
                match position.checked_sub(partition.n_global()) {
                    None => place[position].into_iter().for_each(|i| global[i] += value),
                    Some(local) if self.free_local[local] => {
                        rhs[local] += value;
                        blocks.push(partition.block_of(local));
                    }
                    Some(_) => {}
                }
            }
            blocks.sort_unstable();
            blocks.dedup();
            whitened.local.push(self.eliminate_row(&blocks, &mut rhs, global));
        }
        self.schur.solve_lower_many(&mut whitened.global);
        whitened
    }

    /// Returns z = L⁻¹ of the local part of a row, which is in `rhs` (L) and in `blocks`; takes Yᵀz
    /// off its global part. Leaves `rhs` zero.
    fn eliminate_row(&self, blocks: &[usize], rhs: &mut [f64], global: &mut [f64]) -> Vec<(u32, f64)> {
        let g = self.free_global.len();
        let mut local = Vec::new();
        for &block in blocks {
            let range = self.partition.block(block);
            let (m, offset) = (range.len(), self.partition.block_offset[block]);
            lower_small(&self.blocks[offset..offset + m * m], m, &mut rhs[range.clone()]);
            for l in range {
                let z = std::mem::take(&mut rhs[l]);
                let row = &self.coupling[l * g..(l + 1) * g];
                global.iter_mut().zip(row).for_each(|(x, y)| *x -= z * y);
                local.push((l as u32, z));
            }
        }
        local
    }

    /// Writes the diagonal of the inverse to `out` (P); 0 for parameters that are not free, and
    /// for all if `stop` said so.
    pub fn inverse_diagonal(&self, out: &mut [f64], stop: StopCheck<'_>) {
        out.fill(0.0);
        let Some(diagonal) = self.schur.inverse_diagonal(stop) else { return };
        for (&position, &variance) in self.free_global.iter().zip(&diagonal) {
            out[self.partition.global[position as usize] as usize] = variance;
        }
        self.local_inverse_diagonal(out);
    }

    /// Writes the diagonal of the inverse at local parameters to `out`: with e = L⁻¹ (a unit
    /// vector) in its block, |e|² + |S^{-½} Yᵀ e|², where S is the Schur complement.
    fn local_inverse_diagonal(&self, out: &mut [f64]) {
        let partition = self.partition.clone();
        let g = self.free_global.len();
        let mut projected = self.coupling.clone();
        self.schur.solve_lower_many(&mut projected);
        let (mut unit, mut sum) = (Vec::new(), vec![0.0; g]);
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            let (m, offset) = (range.len(), partition.block_offset[block]);
            for i in (0..m).filter(|&i| self.free_local[range.start + i]) {
                unit.clear();
                unit.resize(m, 0.0);
                unit[i] = 1.0;
                lower_small(&self.blocks[offset..offset + m * m], m, &mut unit);
                sum.fill(0.0);
                for (k, &weight) in unit.iter().enumerate().skip(i) {
                    let row = &projected[(range.start + k) * g..(range.start + k + 1) * g];
                    sum.iter_mut().zip(row).for_each(|(s, z)| *s += weight * z);
                }
                out[partition.local[range.start + i] as usize] = dot(&unit, &unit) + dot(&sum, &sum);
            }
        }
    }
}
