//! Products of matrices in single precision, by tiles that stay in registers.
//!
//! Every output is one chain of fused multiply-adds along the inner axis, from the first element to
//! the last. Tiles, panels and the number of rows do not change it, so a row's bits do not depend
//! on the other rows, and zeros at the end of the inner axis change no bit.

use crate::simd::{self, LANES, Lanes, Simd};

use super::functions;
use crate::encoder::storage::{self, OutOfStorage, WeightStorage};
use crate::encoder::tensor::View;
use crate::weights::Matrix;

/// Columns of a panel.
const PANEL: usize = 2 * LANES;

/// The inner axis is summed in blocks of this many, whose sums are added: fewer roundings.
const BLOCK: usize = 64;

/// What is applied to every output of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::encoder) enum Activation {
    None,
    Gelu,
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    #[inline(always)]
    pub(super) fn apply<S: Simd>(self, simd: S, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Gelu => functions::apply::<functions::Gelu, S>(simd, values),
            Activation::GeluTanh => functions::apply::<functions::GeluTanh, S>(simd, values),
            Activation::Relu => values.iter_mut().for_each(|value| *value = if *value < 0.0 { 0.0 } else { *value }),
            Activation::Silu => functions::apply::<functions::Silu, S>(simd, values),
        }
    }
}

/// A constant right factor (rows, columns) of products.
#[derive(Clone)]
pub(in crate::encoder) struct PackedMatrix {
    pub(in crate::encoder) rows: usize,
    pub(in crate::encoder) columns: usize,
    pub(super) stored: StoredPanels,
}

/// A matrix in the order in which tiles read it: (panels, rows, 32 columns), with zeros behind the
/// last column.
#[derive(Clone)]
pub(super) enum StoredPanels {
    F32(Vec<[Lanes; 2]>),
    F16(Vec<HalfRow>),
    Bf16(Vec<BrainHalfRow>),
    /// (columns, rows) in blocks, rows filled up with zeros; none if the matrix is empty.
    Int8(Option<Matrix>),
}

/// A row of a panel, in the form in which it is stored.
pub(super) trait PanelRow: Copy {
    /// Returns the first or the last 16 numbers.
    fn half<S: Simd>(&self, simd: S, half: usize) -> S::Vector;

    /// Returns a panel in single precision, in `memory` if it is not.
    #[inline(always)]
    fn widen<'a, S: Simd>(simd: S, panel: &'a [Self], memory: &'a mut Vec<[Lanes; 2]>) -> &'a [[Lanes; 2]] {
        memory.resize(panel.len(), [Lanes::default(); 2]);
        for (from, to) in panel.iter().zip(memory.iter_mut()) {
            simd.store(from.half(simd, 0), &mut to[0].0);
            simd.store(from.half(simd, 1), &mut to[1].0);
        }
        memory
    }
}

impl PanelRow for [Lanes; 2] {
    #[inline(always)]
    fn half<S: Simd>(&self, simd: S, half: usize) -> S::Vector {
        simd.load(&self[half].0)
    }

    #[inline(always)]
    fn widen<'a, S: Simd>(_: S, panel: &'a [Self], _: &'a mut Vec<[Lanes; 2]>) -> &'a [[Lanes; 2]] {
        panel
    }
}

/// A row of a panel in half precision. One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct HalfRow([[u8; 2 * LANES]; 2]);

impl PanelRow for HalfRow {
    #[inline(always)]
    fn half<S: Simd>(&self, simd: S, half: usize) -> S::Vector {
        simd.load_f16(&self.0[half])
    }
}

/// A row of a panel in bfloat16. One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct BrainHalfRow([[u8; 2 * LANES]; 2]);

impl PanelRow for BrainHalfRow {
    #[inline(always)]
    fn half<S: Simd>(&self, simd: S, half: usize) -> S::Vector {
        simd.load_bf16(&self.0[half])
    }
}

impl std::fmt::Debug for PackedMatrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}×{}", self.rows, self.columns)
    }
}

impl PackedMatrix {
    /// Arranges a matrix that `view` finds in `values`, and stores it as `storage` says.
    pub(in crate::encoder) fn of(
        values: &[f32],
        view: &View,
        storage: WeightStorage,
    ) -> Result<PackedMatrix, OutOfStorage> {
        let [rows, columns] = [view.shape[0], view.shape[1]];
        let stored = match storage {
            WeightStorage::F32 => return Ok(PackedMatrix::wide(values, view)),
            WeightStorage::F16 => StoredPanels::F16(narrow(values, view, storage::to_half, HalfRow)?),
            WeightStorage::Bf16 => StoredPanels::Bf16(narrow(values, view, storage::to_brain_half, BrainHalfRow)?),
            WeightStorage::Int8 => {
                let of_column = |column| (0..rows).map(|row| values[place(view, row, column)]).collect();
                StoredPanels::Int8(storage::store(storage, (0..columns).map(of_column), rows)?)
            }
        };
        Ok(PackedMatrix { rows, columns, stored })
    }

    /// Arranges a matrix in single precision.
    fn wide(values: &[f32], view: &View) -> PackedMatrix {
        let mut panels = Vec::new();
        pack(values, view, &mut panels);
        PackedMatrix { rows: view.shape[0], columns: view.shape[1], stored: StoredPanels::F32(panels) }
    }

    /// Returns the matrix row by row, if it is stored in single precision.
    pub(in crate::encoder) fn rows_of_f32(&self) -> Option<Vec<f32>> {
        let StoredPanels::F32(panels) = &self.stored else { return None };
        let mut values = Vec::with_capacity(self.rows * self.columns);
        for row in 0..self.rows {
            let of_panel = |first: usize| {
                let [left, right] = &panels[first / PANEL * self.rows + row];
                left.0.iter().chain(&right.0).take(self.columns - first)
            };
            values.extend((0..self.columns).step_by(PANEL).flat_map(of_panel));
        }
        Some(values)
    }

    pub(in crate::encoder) fn n_bytes(&self) -> usize {
        match &self.stored {
            StoredPanels::F32(panels) => size_of_val(panels.as_slice()),
            StoredPanels::F16(panels) => size_of_val(panels.as_slice()),
            StoredPanels::Bf16(panels) => size_of_val(panels.as_slice()),
            StoredPanels::Int8(matrix) => matrix.as_ref().map_or(0, Matrix::n_bytes),
        }
    }
}

/// Returns where an element of a matrix is.
fn place(view: &View, row: usize, column: usize) -> usize {
    (view.offset as isize + row as isize * view.strides[0] + column as isize * view.strides[1]) as usize
}

/// Writes a matrix as panels of numbers of two bytes, one panel of single precision at a time.
fn narrow<R>(
    values: &[f32],
    view: &View,
    round: impl Fn(f32) -> Result<u16, OutOfStorage>,
    of_halves: impl Fn([[u8; 2 * LANES]; 2]) -> R,
) -> Result<Vec<R>, OutOfStorage> {
    let [rows, columns] = [view.shape[0], view.shape[1]];
    let mut wide = vec![[Lanes::default(); 2]; rows];
    let mut panels = Vec::with_capacity(columns.div_ceil(PANEL) * rows);
    for first in (0..columns).step_by(PANEL) {
        pack_panel(values, view, first, PANEL.min(columns - first), &mut wide);
        for row in &wide {
            let mut halves = [[0; 2 * LANES]; 2];
            for (half, lanes) in halves.iter_mut().zip(row) {
                for (to, &value) in half.as_chunks_mut::<2>().0.iter_mut().zip(&lanes.0) {
                    *to = round(value)?.to_le_bytes();
                }
            }
            panels.push(of_halves(halves));
        }
    }
    Ok(panels)
}

/// Writes the matrix (rows, columns) that `view` finds in `values` as panels.
pub(super) fn pack(values: &[f32], view: &View, panels: &mut Vec<[Lanes; 2]>) {
    let [rows, columns] = [view.shape[0], view.shape[1]];
    panels.resize(columns.div_ceil(PANEL) * rows, [Lanes::default(); 2]);
    for (index, panel) in panels.chunks_exact_mut(rows.max(1)).enumerate() {
        let first = index * PANEL;
        pack_panel(values, view, first, PANEL.min(columns - first), panel);
    }
}

/// Writes `width` columns from `first` on as one panel.
fn pack_panel(values: &[f32], view: &View, first: usize, width: usize, panel: &mut [[Lanes; 2]]) {
    let (down, right) = (view.strides[0], view.strides[1]);
    let start = view.offset as isize + first as isize * right;
    if right == 1 {
        for (row, to) in panel.iter_mut().enumerate() {
            let from = (start + row as isize * down) as usize;
            let mut numbers = [0.0; PANEL];
            match values[from..].first_chunk::<PANEL>() {
                Some(whole) if width == PANEL => numbers = *whole,
                _ => numbers[..width].copy_from_slice(&values[from..][..width]),
            }
            let (halves, _) = numbers.as_chunks::<LANES>();
            *to = [Lanes(halves[0]), Lanes(halves[1])];
        }
        return;
    }
    panel.fill([Lanes::default(); 2]);
    for column in 0..width {
        let mut from = start + column as isize * right;
        for to in panel.iter_mut() {
            to[column / LANES].0[column % LANES] = values[from as usize];
            from += down;
        }
    }
}

/// What is added to a product before the activation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    OfColumns(&'a [f32]),
    OfRows(&'a [f32]),
}

/// The left factor: rows of `k` numbers each, side by side in memory.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) offset: usize,
    /// Numbers between the beginnings of rows.
    pub(super) stride: isize,
    pub(super) n_rows: usize,
    pub(super) k: usize,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> &'a [f32] {
        &self.values[(self.offset as isize + index as isize * self.stride) as usize..][..self.k]
    }
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// What is read after a panel: the next one. Its lines are requested a few at a time while tiles
/// are computed, so that the first tile of a panel does not wait for each of them.
#[derive(Clone, Copy)]
struct NextPanel {
    place: *const u8,
    n_lines: usize,
}

impl NextPanel {
    const NOTHING: NextPanel = NextPanel { place: std::ptr::null(), n_lines: 0 };

    /// Returns what is as large as `panel`, right behind it.
    #[inline(always)]
    fn behind<R>(panel: &[R]) -> NextPanel {
        NextPanel { place: panel.as_ptr_range().end.cast(), n_lines: size_of_val(panel).div_ceil(LINE) }
    }

    /// Returns part `index` of `n_parts`.
    #[inline(always)]
    fn part(self, index: usize, n_parts: usize) -> NextPanel {
        let n_lines = self.n_lines.div_ceil(n_parts);
        NextPanel { place: self.place.wrapping_add(index * n_lines * LINE), n_lines }
    }

    #[inline(always)]
    fn request<S: Simd>(self, simd: S) {
        for line in 0..self.n_lines {
            simd.prefetch_line(self.place.wrapping_add(line * LINE));
        }
    }
}

/// Computes activation(rows · panels + bias) into `out`, (rows, columns).
///
/// A row alone reads each number once, and widens it in a register; for several rows a panel is
/// widened once.
#[inline(always)]
pub(super) fn multiply<S: Simd, R: PanelRow>(
    simd: S,
    rows: Rows<'_>,
    (panels, memory): (&[R], &mut Vec<[Lanes; 2]>),
    end: Ending<'_>,
    out: &mut [f32],
    columns: usize,
) {
    if rows.k == 0 {
        return finish_empty(simd, end, out, columns);
    }
    for (index, panel) in panels.chunks_exact(rows.k).enumerate() {
        let first = index * PANEL;
        let mut place = Place { out: &mut *out, columns, first, width: PANEL.min(columns - first) };
        if rows.n_rows == 1 {
            tile::<S, R, 1>(simd, rows, 0, (panel, NextPanel::NOTHING), end, &mut place);
        } else {
            let wide = R::widen(simd, panel, memory);
            multiply_panel(simd, rows, (wide, NextPanel::behind(panel)), end, place);
        }
    }
}

/// What follows the product.
#[derive(Clone, Copy)]
pub(super) struct Ending<'a> {
    pub(super) bias: Bias<'a>,
    pub(super) activation: Activation,
}

/// Where the outputs of a panel go.
struct Place<'a> {
    out: &'a mut [f32],
    columns: usize,
    first: usize,
    width: usize,
}

/// Writes sums of nothing.
pub(super) fn finish_empty<S: Simd>(simd: S, end: Ending<'_>, out: &mut [f32], columns: usize) {
    for (row, out) in out.chunks_exact_mut(columns.max(1)).enumerate() {
        out.fill(0.0);
        finish_row(simd, end, row, 0, out);
    }
}

#[inline(always)]
fn multiply_panel<S: Simd>(
    simd: S,
    rows: Rows<'_>,
    (panel, next): (&[[Lanes; 2]], NextPanel),
    end: Ending<'_>,
    mut place: Place<'_>,
) {
    let n_tiles = rows.n_rows.div_ceil(if S::IS_WIDE { 12 } else { 6 });
    let (mut row, mut index) = (0, 0);
    while row < rows.n_rows {
        let left = rows.n_rows - row;
        let panel = (panel, next.part(index, n_tiles));
        let n_here = match (S::IS_WIDE, left) {
            (_, 1) => tile::<S, [Lanes; 2], 1>(simd, rows, row, panel, end, &mut place),
            (true, 9..) => tile::<S, [Lanes; 2], 12>(simd, rows, row, panel, end, &mut place),
            (true, 5..) => tile::<S, [Lanes; 2], 8>(simd, rows, row, panel, end, &mut place),
            (true, _) => tile::<S, [Lanes; 2], 4>(simd, rows, row, panel, end, &mut place),
            (false, 4..) => tile::<S, [Lanes; 2], 6>(simd, rows, row, panel, end, &mut place),
            (false, _) => tile::<S, [Lanes; 2], 3>(simd, rows, row, panel, end, &mut place),
        };
        row += n_here;
        index += 1;
    }
}

/// Computes up to `M` rows of a panel, and returns how many there were.
#[inline(always)]
fn tile<S: Simd, R: PanelRow, const M: usize>(
    simd: S,
    rows: Rows<'_>,
    first: usize,
    (panel, ahead): (&[R], NextPanel),
    end: Ending<'_>,
    place: &mut Place<'_>,
) -> usize {
    let n_here = M.min(rows.n_rows - first);
    // Behind the last row it is computed again: a tile has one size.
    let mut inputs = [rows.row(first); M];
    for row in 1..M {
        inputs[row] = rows.row(first + row.min(n_here - 1));
    }
    let mut tile = Tile([[0.0; PANEL]; M]);
    let Tile(sums) = &mut tile;
    if S::IS_WIDE && place.width > LANES {
        sum_both(simd, inputs, (panel, ahead), sums);
    } else {
        sum_half(simd, inputs, (panel, ahead), 0, sums);
        if place.width > LANES {
            sum_half(simd, inputs, (panel, NextPanel::NOTHING), 1, sums);
        }
    }
    for (row, sums) in sums[..n_here].iter_mut().enumerate() {
        add_bias(end.bias, first + row, place.first, &mut sums[..place.width]);
    }
    end.activation.apply(simd, sums[..n_here].as_flattened_mut());
    for (row, sums) in sums[..n_here].iter().enumerate() {
        let out = &mut place.out[(first + row) * place.columns + place.first..][..place.width];
        match out.first_chunk_mut::<PANEL>() {
            Some(out) => *out = *sums,
            None => out.copy_from_slice(&sums[..place.width]),
        }
    }
    n_here
}

/// Sums of `M` rows of a panel.
#[repr(C, align(64))]
struct Tile<const M: usize>([[f32; PANEL]; M]);

/// Returns the `length` numbers of each row from `start` on.
#[inline(always)]
fn parts<const M: usize>(mut rows: [&[f32]; M], start: usize, length: usize) -> [&[f32]; M] {
    for row in 0..M {
        rows[row] = &rows[row][start..][..length];
    }
    rows
}

/// Adds up 32 columns of `M` rows: the sums stay in registers.
#[inline(always)]
fn sum_both<S: Simd, R: PanelRow, const M: usize>(
    simd: S,
    inputs: [&[f32]; M],
    (panel, ahead): (&[R], NextPanel),
    sums: &mut [[f32; PANEL]; M],
) {
    let (zero, n_blocks) = (simd.splat(0.0), panel.len().div_ceil(BLOCK));
    for block in 0..n_blocks {
        ahead.part(block, n_blocks).request(simd);
        let start = block * BLOCK;
        let panel = &panel[start..(start + BLOCK).min(panel.len())];
        let inputs = parts(inputs, start, panel.len());
        let mut here = [[zero; 2]; M];
        for (k, columns) in panel.iter().enumerate() {
            let [left, right] = [columns.half(simd, 0), columns.half(simd, 1)];
            for row in 0..M {
                let input = simd.splat(inputs[row][k]);
                here[row][0] = simd.fma(input, left, here[row][0]);
                here[row][1] = simd.fma(input, right, here[row][1]);
            }
        }
        for row in 0..M {
            let (halves, _) = sums[row].as_chunks_mut::<LANES>();
            for half in 0..2 {
                let sum = simd.add(simd.load(&halves[half]), here[row][half]);
                simd.store(sum, &mut halves[half]);
            }
        }
    }
}

/// Adds up the first or the last 16 columns of `M` rows.
#[inline(always)]
fn sum_half<S: Simd, R: PanelRow, const M: usize>(
    simd: S,
    inputs: [&[f32]; M],
    (panel, ahead): (&[R], NextPanel),
    half: usize,
    sums: &mut [[f32; PANEL]; M],
) {
    let (zero, n_blocks) = (simd.splat(0.0), panel.len().div_ceil(BLOCK));
    for block in 0..n_blocks {
        ahead.part(block, n_blocks).request(simd);
        let start = block * BLOCK;
        let panel = &panel[start..(start + BLOCK).min(panel.len())];
        let inputs = parts(inputs, start, panel.len());
        let mut here = [zero; M];
        for (k, columns) in panel.iter().enumerate() {
            let column = columns.half(simd, half);
            for row in 0..M {
                here[row] = simd.fma(simd.splat(inputs[row][k]), column, here[row]);
            }
        }
        for row in 0..M {
            let (halves, _) = sums[row].as_chunks_mut::<LANES>();
            let sum = simd.add(simd.load(&halves[half]), here[row]);
            simd.store(sum, &mut halves[half]);
        }
    }
}

#[inline(always)]
fn add_bias(bias: Bias<'_>, row: usize, first: usize, numbers: &mut [f32]) {
    match bias {
        Bias::None => {}
        Bias::OfColumns(bias) => {
            numbers.iter_mut().zip(&bias[first..]).for_each(|(number, bias)| *number += bias);
        }
        Bias::OfRows(bias) => numbers.iter_mut().for_each(|number| *number += bias[row]),
    }
}

#[inline(always)]
pub(super) fn finish_row<S: Simd>(simd: S, end: Ending<'_>, row: usize, first: usize, out: &mut [f32]) {
    add_bias(end.bias, row, first, out);
    end.activation.apply(simd, out);
}

impl super::KernelScratch {
    /// Writes `a` with its rows side by side, if they are not.
    pub(super) fn rows<'a>(buffer: &'a mut Vec<f32>, values: &'a [f32], view: &View) -> Rows<'a> {
        let [n_rows, k] = [view.shape[0], view.shape[1]];
        if view.strides[1] == 1 || k == 1 {
            return Rows { values, offset: view.offset, stride: view.strides[0], n_rows, k };
        }
        buffer.clear();
        buffer.extend(view.places().map(|place| values[place]));
        Rows { values: buffer, offset: 0, stride: k as isize, n_rows, k }
    }
}

impl PackedMatrix {
    /// Returns the transposed matrix. Numbers of two bytes stay so; bytes become the numbers that
    /// they stand for.
    pub(super) fn transposed(&self) -> PackedMatrix {
        let mut values = vec![0.0; self.rows * self.columns];
        for (column, values) in values.chunks_exact_mut(self.rows.max(1)).enumerate() {
            self.column(column, values);
        }
        let view = View::contiguous(&[self.columns, self.rows]);
        let storage = match &self.stored {
            StoredPanels::F16(_) => WeightStorage::F16,
            StoredPanels::Bf16(_) => WeightStorage::Bf16,
            _ => WeightStorage::F32,
        };
        PackedMatrix::of(&values, &view, storage).unwrap_or_else(|_| PackedMatrix::wide(&values, &view))
    }

    /// Writes a column (rows).
    fn column(&self, column: usize, out: &mut [f32]) {
        let (half, lane, first) = (column % PANEL / LANES, column % LANES, column / PANEL * self.rows);
        let bits = |row: &[[u8; 2 * LANES]; 2]| u16::from_le_bytes([row[half][2 * lane], row[half][2 * lane + 1]]);
        for (row, out) in out.iter_mut().enumerate() {
            *out = match &self.stored {
                StoredPanels::F32(panels) => panels[first + row][half].0[lane],
                StoredPanels::F16(panels) => simd::half(bits(&panels[first + row].0)),
                StoredPanels::Bf16(panels) => simd::brain_half(bits(&panels[first + row].0)),
                StoredPanels::Int8(_) => 0.0,
            };
        }
        if let StoredPanels::Int8(Some(matrix)) = &self.stored {
            let mut whole = vec![0.0; matrix.columns()];
            matrix.row(column, &mut whole);
            out.copy_from_slice(&whole[..out.len()]);
        }
    }
}
