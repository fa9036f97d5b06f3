//! Adds JᵀWJ to an arrowhead matrix: rows of √W·J are collected and multiplied many at a time.
//!
//! Rows over all global parameters make large products of several channels; rows over the columns
//! of one channel make small ones without zeros, which are faster where many parameters act in few
//! channels. The sums differ in the last bits, so each model has one of the two.
//!
//! Where derived quantities are to be pulled back to parameters, rows over all global parameters
//! are pulled back before the product, which then has fewer columns.

use super::channel::{Tile, TileWork};
use super::plan::ChannelPlan;
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};
use ns_core::Arrowhead;

/// The number of rows that are multiplied together.
pub(super) const ROWS: usize = 64;

/// The derivative of a derived quantity with respect to an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PulledColumn {
    /// The global position of the derived quantity.
    pub(crate) from: usize,
    /// The global position of the argument.
    pub(crate) to: usize,
    pub(crate) rate: f64,
}

/// Rows of √W·J over the global parameters, to be multiplied.
#[derive(Debug, Clone)]
pub(crate) struct GramMatrix {
    n_global: usize,
    /// The number of columns that are multiplied; the others were added to these.
    n_multiplied: usize,
    pulled: Vec<PulledColumn>,
    n_rows: usize,
    rows: Vec<f64>,
    /// Whether rows are over the columns of one channel.
    by_channel: bool,
    /// The product of rows over the columns of a channel, column by column.
    product: Vec<f64>,
}

impl GramMatrix {
    pub(crate) fn new(n_global: usize, by_channel: bool) -> Self {
        let (rows, pulled, product) = (Vec::new(), Vec::new(), Vec::new());
        Self { n_global, n_multiplied: n_global, pulled, n_rows: 0, rows, by_channel, product }
    }

    /// Adds, from now on, the columns of derived quantities, the last of the global positions, to
    /// those of their arguments, the first `n_arguments` of them; `each` calls its argument with
    /// every derivative.
    pub(crate) fn pull(&mut self, n_arguments: usize, each: impl FnOnce(&mut dyn FnMut(PulledColumn))) {
        if !self.by_channel {
            let Self { pulled, n_multiplied, .. } = self;
            pulled.clear();
            each(&mut |column| pulled.push(column));
            *n_multiplied = n_arguments;
        }
    }

    /// Multiplies all columns from now on.
    pub(crate) fn pull_none(&mut self) {
        self.pulled.clear();
        self.n_multiplied = self.n_global;
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
        if self.by_channel {
            return self.add_tile_of_channel(channel, tile, work, second, out);
        }
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
            let row = &mut self.rows[start..start + self.n_global];
            for &PulledColumn { from, to, rate } in &self.pulled {
                row[to] += rate * row[from];
            }
            let row = &row[..self.n_multiplied];
            let couple = |coupling: &mut [f64], value: f64| {
                coupling.iter_mut().zip(row).for_each(|(coupling, global)| *coupling += value * global);
            };
            add_local_rows(channel, tile.start + bin, |slot| root * work.local_jacobian.row(slot)[bin], couple, out);
        }
    }

    /// Adds the bins of a tile by a product over the columns of its channel.
    fn add_tile_of_channel(
        &mut self,
        channel: &ChannelPlan,
        tile: Tile,
        work: &TileWork,
        second: &[f64],
        out: &mut Arrowhead,
    ) {
        let n_columns = channel.columns.len();
        self.rows.clear();
        for (bin, &weight) in second.iter().enumerate().take(tile.len).filter(|(_, weight)| **weight != 0.0) {
            let root = weight.sqrt();
            let start = self.rows.len();
            self.rows.extend((0..n_columns).map(|column| root * work.jacobian.row(column)[bin]));
            let row = &self.rows[start..];
            let couple = |coupling: &mut [f64], value: f64| {
                let columns = channel.columns.iter().zip(row);
                columns.for_each(|(&position, global)| coupling[position as usize] += value * global);
            };
            add_local_rows(channel, tile.start + bin, |slot| root * work.local_jacobian.row(slot)[bin], couple, out);
        }
        if self.rows.is_empty() {
            return;
        }
        self.product.clear();
        self.product.resize(n_columns * n_columns, 0.0);
        add_product(&self.rows, [n_columns; 2], &mut self.product);
        for (j, column) in self.product.chunks_exact(n_columns).enumerate() {
            // Positions are ascending, so that this stays in the lower triangle.
            let target = &mut out.global[channel.columns[j] as usize * self.n_global..][..self.n_global];
            for (&position, value) in channel.columns.iter().zip(column).skip(j) {
                target[position as usize] += value;
            }
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
        add_product(&self.rows[..n * g], [g, self.n_multiplied], &mut out.global);
    }
}

/// Adds the lower triangle of RᵀR to the same part of `out`, column by column; R is the first
/// `n_multiplied` of `n_columns` columns of `rows`, row by row.
fn add_product(rows: &[f64], [n_columns, n_multiplied]: [usize; 2], out: &mut [f64]) {
    let rows = MatRef::from_row_major_slice(rows, rows.len() / n_columns, n_columns).subcols(0, n_multiplied);
    let target = MatMut::from_column_major_slice_mut(out, n_columns, n_columns);
    let target = target.submatrix_mut(0, 0, n_multiplied, n_multiplied);
    let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    matmul(target, lower, Accum::Add, rows.transpose(), full, rows, full, 1.0, Par::Seq);
}

/// Adds the lower triangle of LᵀR to the same part of `out`, column by column; L and R have
/// `n_columns` columns, row by row.
pub(super) fn add_lower_product(left: &[f64], right: &[f64], n_columns: usize, out: &mut [f64]) {
    let matrix = |rows| MatRef::from_row_major_slice(rows, left.len() / n_columns, n_columns);
    let target = MatMut::from_column_major_slice_mut(out, n_columns, n_columns);
    let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    matmul(target, lower, Accum::Add, matrix(left).transpose(), full, matrix(right), full, 1.0, Par::Seq);
}

/// Adds the rank-one contribution of one bin to the rows of its local parameters; `local(slot)` is
/// √W ∂λ/∂γ, and `couple` adds a multiple of √W ∂λ/∂θ to a row.
fn add_local_rows(
    channel: &ChannelPlan,
    bin: usize,
    local: impl Fn(usize) -> f64,
    couple: impl Fn(&mut [f64], f64),
    out: &mut Arrowhead,
) {
    let (m, g) = (channel.n_slots, out.partition.n_global());
    if m == 0 {
        return;
    }
    let block = out.partition.block_offset[channel.first_block + bin];
    for slot in 0..m {
        let value = local(slot);
        let at = (channel.first_local + bin * m + slot) * g;
        couple(&mut out.coupling[at..at + g], value);
        for other in 0..=slot {
            out.blocks[block + slot * m + other] += value * local(other);
        }
    }
}
