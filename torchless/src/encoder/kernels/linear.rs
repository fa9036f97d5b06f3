//! Products of matrices in single precision, by tiles that stay in registers.
//!
//! Every output is one chain of fused multiply-adds along the inner axis, from the first element to
//! the last. Tiles, panels and the number of rows do not change it, so a row's bits do not depend
//! on the other rows, and zeros at the end of the inner axis change no bit.

use crate::simd::{LANES, Lanes, Simd};

use super::functions;
use crate::encoder::tensor::View;

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

/// A matrix (rows, columns) in the order in which tiles read it: (panels, rows, 32 columns), with
/// zeros behind the last column.
#[derive(Clone, PartialEq)]
pub(in crate::encoder) struct PackedMatrix {
    pub(in crate::encoder) rows: usize,
    pub(in crate::encoder) columns: usize,
    panels: Vec<[Lanes; 2]>,
}

impl std::fmt::Debug for PackedMatrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}×{}", self.rows, self.columns)
    }
}

impl PackedMatrix {
    /// Arranges a matrix that `view` finds in `values`.
    pub(in crate::encoder) fn of(values: &[f32], view: &View) -> PackedMatrix {
        let mut panels = Vec::new();
        pack(values, view, &mut panels);
        PackedMatrix { rows: view.shape[0], columns: view.shape[1], panels }
    }

    pub(in crate::encoder) fn n_bytes(&self) -> usize {
        self.panels.len() * size_of::<[Lanes; 2]>()
    }
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
    fn row(&self, index: usize) -> &'a [f32] {
        &self.values[(self.offset as isize + index as isize * self.stride) as usize..][..self.k]
    }
}

/// Computes activation(rows · panels + bias) into `out`, (rows, columns).
#[inline(always)]
pub(super) fn multiply<S: Simd>(
    simd: S,
    rows: Rows<'_>,
    panels: &[[Lanes; 2]],
    end: Ending<'_>,
    out: &mut [f32],
    columns: usize,
) {
    if rows.k == 0 {
        return finish_empty(simd, end, out, columns);
    }
    for (index, panel) in panels.chunks_exact(rows.k).enumerate() {
        let first = index * PANEL;
        multiply_panel(
            simd,
            rows,
            panel,
            end,
            Place { out: &mut *out, columns, first, width: PANEL.min(columns - first) },
        );
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
fn finish_empty<S: Simd>(simd: S, end: Ending<'_>, out: &mut [f32], columns: usize) {
    for (row, out) in out.chunks_exact_mut(columns.max(1)).enumerate() {
        out.fill(0.0);
        finish_row(simd, end, row, 0, out);
    }
}

#[inline(always)]
fn multiply_panel<S: Simd>(simd: S, rows: Rows<'_>, panel: &[[Lanes; 2]], end: Ending<'_>, mut place: Place<'_>) {
    let mut row = 0;
    while row < rows.n_rows {
        let left = rows.n_rows - row;
        let n_here = match (S::IS_WIDE, left) {
            (_, 1) => tile::<S, 1>(simd, rows, row, panel, end, &mut place),
            (true, 9..) => tile::<S, 12>(simd, rows, row, panel, end, &mut place),
            (true, 5..) => tile::<S, 8>(simd, rows, row, panel, end, &mut place),
            (true, _) => tile::<S, 4>(simd, rows, row, panel, end, &mut place),
            (false, 4..) => tile::<S, 6>(simd, rows, row, panel, end, &mut place),
            (false, _) => tile::<S, 3>(simd, rows, row, panel, end, &mut place),
        };
        row += n_here;
    }
}

/// Computes up to `M` rows of a panel, and returns how many there were.
#[inline(always)]
fn tile<S: Simd, const M: usize>(
    simd: S,
    rows: Rows<'_>,
    first: usize,
    panel: &[[Lanes; 2]],
    end: Ending<'_>,
    place: &mut Place<'_>,
) -> usize {
    let n_here = M.min(rows.n_rows - first);
    // Behind the last row it is computed again: a tile has one size.
    let mut inputs = [rows.row(first); M];
    for row in 1..M {
        inputs[row] = rows.row(first + row.min(n_here - 1));
    }
    let mut sums = [[Lanes::default(); 2]; M];
    if S::IS_WIDE && place.width > LANES {
        sum_both(simd, inputs, panel, &mut sums);
    } else {
        sum_half(simd, inputs, panel, 0, &mut sums);
        if place.width > LANES {
            sum_half(simd, inputs, panel, 1, &mut sums);
        }
    }
    let mut numbers = [[0.0; PANEL]; M];
    for row in 0..n_here {
        numbers[row][..LANES].copy_from_slice(&sums[row][0].0);
        numbers[row][LANES..].copy_from_slice(&sums[row][1].0);
        add_bias(end.bias, first + row, place.first, &mut numbers[row][..place.width]);
    }
    end.activation.apply(simd, numbers[..n_here].as_flattened_mut());
    for (row, numbers) in numbers[..n_here].iter().enumerate() {
        let out = &mut place.out[(first + row) * place.columns + place.first..][..place.width];
        match out.first_chunk_mut::<PANEL>() {
            Some(out) => *out = *numbers,
            None => out.copy_from_slice(&numbers[..place.width]),
        }
    }
    n_here
}

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
fn sum_both<S: Simd, const M: usize>(simd: S, inputs: [&[f32]; M], panel: &[[Lanes; 2]], sums: &mut [[Lanes; 2]; M]) {
    let zero = simd.splat(0.0);
    for start in (0..panel.len()).step_by(BLOCK) {
        let panel = &panel[start..(start + BLOCK).min(panel.len())];
        let inputs = parts(inputs, start, panel.len());
        let mut here = [[zero; 2]; M];
        for (k, columns) in panel.iter().enumerate() {
            let [left, right] = [simd.load(&columns[0].0), simd.load(&columns[1].0)];
            for row in 0..M {
                let input = simd.splat(inputs[row][k]);
                here[row][0] = simd.fma(input, left, here[row][0]);
                here[row][1] = simd.fma(input, right, here[row][1]);
            }
        }
        for row in 0..M {
            for half in 0..2 {
                let sum = simd.add(simd.load(&sums[row][half].0), here[row][half]);
                simd.store(sum, &mut sums[row][half].0);
            }
        }
    }
}

/// Adds up the first or the last 16 columns of `M` rows.
#[inline(always)]
fn sum_half<S: Simd, const M: usize>(
    simd: S,
    inputs: [&[f32]; M],
    panel: &[[Lanes; 2]],
    half: usize,
    sums: &mut [[Lanes; 2]; M],
) {
    let zero = simd.splat(0.0);
    for start in (0..panel.len()).step_by(BLOCK) {
        let panel = &panel[start..(start + BLOCK).min(panel.len())];
        let inputs = parts(inputs, start, panel.len());
        let mut here = [zero; M];
        for (k, columns) in panel.iter().enumerate() {
            let column = simd.load(&columns[half].0);
            for row in 0..M {
                here[row] = simd.fma(simd.splat(inputs[row][k]), column, here[row]);
            }
        }
        for row in 0..M {
            let sum = simd.add(simd.load(&sums[row][half].0), here[row]);
            simd.store(sum, &mut sums[row][half].0);
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
fn finish_row<S: Simd>(simd: S, end: Ending<'_>, row: usize, first: usize, out: &mut [f32]) {
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
    pub(super) fn panels(&self) -> &[[Lanes; 2]] {
        &self.panels
    }

    /// Returns the transposed matrix.
    pub(super) fn transposed(&self) -> PackedMatrix {
        let mut values = vec![0.0; self.rows * self.columns];
        for (column, values) in values.chunks_exact_mut(self.rows.max(1)).enumerate() {
            let panel = &self.panels[column / PANEL * self.rows..][..self.rows];
            let (half, lane) = (column % PANEL / LANES, column % LANES);
            values.iter_mut().zip(panel).for_each(|(value, row)| *value = row[half].0[lane]);
        }
        PackedMatrix::of(&values, &View::contiguous(&[self.columns, self.rows]))
    }
}
