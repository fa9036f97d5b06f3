//! Adds JᵀWJ to an arrowhead matrix: rows of √W·J are collected and multiplied many at a time.

use super::channel::{Tile, TileWork};
use super::plan::ChannelPlan;
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use ns_core::Arrowhead;

/// The number of rows that are multiplied together.
const ROWS: usize = 64;

/// Rows of √W·J over the global parameters, to be multiplied.
#[derive(Debug, Clone)]
pub(crate) struct GramMatrix {
    n_global: usize,
    n_rows: usize,
    rows: Vec<f64>,
}

impl GramMatrix {
    pub(crate) fn new(n_global: usize) -> Self {
        Self { n_global, n_rows: 0, rows: Vec::new() }
    }

    /// Adds the bins of a tile: `second` is W = n/λ² of each bin.
    pub(crate) fn add_tile(
        &mut self,
        channel: &ChannelPlan,
        tile: Tile,
        work: &TileWork,
        second: &[f64],
        out: &mut Arrowhead,
    ) {
        for (bin, &weight) in second.iter().enumerate().take(tile.len) {
            if weight == 0.0 {
                continue;
            }
            if self.n_rows == ROWS {
                self.flush(out);
            }
            let root = weight.sqrt();
            let row = self.next_row();
            for (column, &position) in channel.columns.iter().enumerate() {
                row[position as usize] = root * work.jacobian.row(column)[bin];
            }
            let start = (self.n_rows - 1) * self.n_global;
            let row = &self.rows[start..start + self.n_global];
            add_local_rows(channel, tile.start + bin, |slot| root * work.local_jacobian.row(slot)[bin], row, out);
        }
    }

    fn next_row(&mut self) -> &mut [f64] {
        let start = self.n_rows * self.n_global;
        self.n_rows += 1;
        if self.rows.len() < start + self.n_global {
            self.rows.resize(start + self.n_global, 0.0);
        }
        let row = &mut self.rows[start..start + self.n_global];
        row.fill(0.0);
        row
    }

    /// Drops the rows collected so far.
    pub(crate) fn forget(&mut self) {
        self.n_rows = 0;
    }

    /// Multiplies the rows collected so far.
    pub(crate) fn flush(&mut self, out: &mut Arrowhead) {
        let (n, g) = (self.n_rows, self.n_global);
        self.n_rows = 0;
        if n == 0 || g == 0 {
            return;
        }
        let rows = MatRef::from_row_major_slice(&self.rows[..n * g], n, g);
        let target = MatMut::from_column_major_slice_mut(&mut out.global, g, g);
        let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        matmul(target, lower, Accum::Add, rows.transpose(), full, rows, full, 1.0, Par::Seq);
    }
}

/// Adds the rank-one contribution of one bin to the rows of its local parameters; `local(slot)` is
/// √W ∂λ/∂γ.
fn add_local_rows(channel: &ChannelPlan, bin: usize, local: impl Fn(usize) -> f64, row: &[f64], out: &mut Arrowhead) {
    let (m, g) = (channel.n_slots, row.len());
    if m == 0 {
        return;
    }
    let block = out.partition.block_offset[channel.first_block + bin];
    for slot in 0..m {
        let value = local(slot);
        let at = (channel.first_local + bin * m + slot) * g;
        for (coupling, &global) in out.coupling[at..at + g].iter_mut().zip(row) {
            *coupling += value * global;
        }
        for other in 0..=slot {
            out.blocks[block + slot * m + other] += value * local(other);
        }
    }
}
