//! Products of stacks of matrices: by panels in single precision, by plain loops in double
//! precision and for integers.

use super::linear::{self, Activation, Bias, Ending, PackedMatrix, PanelRow, Rows, StoredPanels};
use super::rounded::RoundedScratch;
use super::{Arg, Kernel, KernelScratch};
use crate::encoder::tensor::{Data, View};
use crate::simd::{Body, InstructionSet, Lanes, Simd, dispatch};

/// A product with panels, compiled per instruction set.
struct Panels<'a, R> {
    rows: Rows<'a>,
    panels: &'a [R],
    /// For a panel that is widened.
    memory: &'a mut Vec<[Lanes; 2]>,
    end: Ending<'a>,
    out: &'a mut [f32],
    columns: usize,
}

impl<R: PanelRow> Body for Panels<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Panels { rows, panels, memory, end, out, columns } = self;
        linear::multiply(simd, rows, (panels, memory), end, out, columns);
    }
}

/// Computes a product of matrices.
pub(super) fn products(
    kernel: &Kernel,
    isa: InstructionSet,
    scratch: &mut KernelScratch,
    args: &[Arg<'_>],
    out: &mut Data,
    out_view: &View,
) {
    let length = out_view.len();
    match (kernel, out) {
        (Kernel::Linear { weights, activation }, Data::F32(out)) => {
            let bias = args.get(1).map_or(Bias::None, |bias| Bias::OfColumns(bias.row_f32()));
            let (values, view) = args[0].f32();
            let KernelScratch { rows, rounded, panels } = scratch;
            let (rows, out) = (KernelScratch::rows(rows, values, view), &mut out[..length]);
            let end = Ending { bias, activation: *activation };
            linear(isa, (rounded, panels), rows, weights, end, out);
        }
        (Kernel::Pointwise { activation }, Data::F32(out)) => {
            pointwise(isa, scratch, args, *activation, (&mut out[..length], out_view));
        }
        (_, Data::F32(out)) => matmul(isa, scratch, args, (&mut out[..length], out_view)),
        (Kernel::Pointwise { .. }, Data::F64(out)) => pointwise_f64(args, &mut out[..length], out_view),
        (_, Data::F64(out)) => matmul_f64(args, &mut out[..length], out_view),
        (_, Data::Int(out)) => {
            let (a, b) = (args[0].int(), args[1].int());
            each_matrix(a.1, b.1, out_view, |a_view, b_view, to| {
                plain(a.0, &a_view, b.0, &b_view, &mut out[to], |a, b, sum| a.wrapping_mul(b).wrapping_add(sum));
            });
        }
    }
}

/// Computes a product with constant weights, in the form in which they are stored.
fn linear(
    isa: InstructionSet,
    (rounded, memory): (&mut RoundedScratch, &mut Vec<[Lanes; 2]>),
    rows: Rows<'_>,
    weights: &PackedMatrix,
    end: Ending<'_>,
    out: &mut [f32],
) {
    let columns = weights.columns;
    match &weights.stored {
        StoredPanels::F32(panels) => dispatch(isa, Panels { rows, panels, memory, end, out, columns }),
        StoredPanels::F16(panels) => dispatch(isa, Panels { rows, panels, memory, end, out, columns }),
        StoredPanels::Bf16(panels) => dispatch(isa, Panels { rows, panels, memory, end, out, columns }),
        StoredPanels::Int8(Some(matrix)) => rounded.multiply(isa, rows, matrix, end, out),
        // Sums of nothing.
        StoredPanels::Int8(None) => {
            let rows = Rows { k: 0, ..rows };
            dispatch(isa, Panels::<[Lanes; 2]> { rows, panels: &[], memory, end, out, columns });
        }
    }
}

/// Calls `f` with the matrices of two stacks, and where their product goes.
fn each_matrix(a: &View, b: &View, out: &View, mut f: impl FnMut(View, View, std::ops::Range<usize>)) {
    let split = |view: &View| {
        let n = view.shape.len() - 2;
        let part = |range: std::ops::Range<usize>| (view.shape[range.clone()].to_vec(), view.strides[range].to_vec());
        (part(0..n), part(n..n + 2))
    };
    let (((shape, a_strides), a_matrix), ((_, b_strides), b_matrix)) = (split(a), split(b));
    let (a_stack, b_stack) = (
        View { shape: shape.clone(), strides: a_strides, offset: a.offset },
        View { shape, strides: b_strides, offset: b.offset },
    );
    let size: usize = out.shape[out.shape.len() - 2..].iter().product();
    for (index, (a_offset, b_offset)) in a_stack.places().zip(b_stack.places()).enumerate() {
        let matrix = |(shape, strides): &(Vec<usize>, Vec<isize>), offset| View {
            shape: shape.clone(),
            strides: strides.clone(),
            offset,
        };
        f(matrix(&a_matrix, a_offset), matrix(&b_matrix, b_offset), index * size..(index + 1) * size);
    }
}

fn matmul(isa: InstructionSet, scratch: &mut KernelScratch, args: &[Arg<'_>], (out, out_view): (&mut [f32], &View)) {
    let ((a, a_view), (b, b_view)) = (args[0].f32(), args[1].f32());
    let mut packed = None;
    let KernelScratch { panels, rows, .. } = scratch;
    each_matrix(a_view, b_view, out_view, |a_view, b_view, to| {
        // The same matrix for a whole stack is packed once.
        if packed != Some(b_view.offset) {
            linear::pack(b, &b_view, panels);
            packed = Some(b_view.offset);
        }
        let rows = KernelScratch::rows(rows, a, &a_view);
        let end = Ending { bias: Bias::None, activation: Activation::None };
        dispatch(
            isa,
            Panels {
                rows,
                panels: &panels[..],
                memory: &mut Vec::new(),
                end,
                out: &mut out[to],
                columns: b_view.shape[1],
            },
        );
    });
}

fn pointwise(
    isa: InstructionSet,
    scratch: &mut KernelScratch,
    args: &[Arg<'_>],
    activation: Activation,
    (out, out_view): (&mut [f32], &View),
) {
    let ((x, view), (weights, weights_view)) = (args[0].f32(), args[1].f32());
    let bias = args.get(2).map_or(Bias::None, |bias| Bias::OfRows(bias.row_f32()));
    let size: usize = out_view.shape[1..].iter().product();
    for (event, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
        let offset = (view.offset as isize + event as isize * view.strides[0]) as usize;
        let matrix = View { shape: view.shape[1..].to_vec(), strides: view.strides[1..].to_vec(), offset };
        linear::pack(x, &matrix, &mut scratch.panels);
        let rows = KernelScratch::rows(&mut scratch.rows, weights, weights_view);
        let end = Ending { bias, activation };
        dispatch(
            isa,
            Panels { rows, panels: &scratch.panels[..], memory: &mut Vec::new(), end, out, columns: matrix.shape[1] },
        );
    }
}

fn matmul_f64(args: &[Arg<'_>], out: &mut [f64], out_view: &View) {
    let ((a, a_view), (b, b_view)) = (args[0].f64(), args[1].f64());
    each_matrix(a_view, b_view, out_view, |a_view, b_view, to| {
        plain(a, &a_view, b, &b_view, &mut out[to], f64::mul_add);
    });
}

fn pointwise_f64(args: &[Arg<'_>], out: &mut [f64], out_view: &View) {
    let ((x, view), (weights, weights_view)) = (args[0].f64(), args[1].f64());
    let size: usize = out_view.shape[1..].iter().product();
    for (event, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
        let offset = (view.offset as isize + event as isize * view.strides[0]) as usize;
        let matrix = View { shape: view.shape[1..].to_vec(), strides: view.strides[1..].to_vec(), offset };
        plain(weights, weights_view, x, &matrix, out, f64::mul_add);
        if let Some(bias) = args.get(2) {
            let rows = out.chunks_exact_mut(out_view.shape[2].max(1)).zip(bias.row_f64());
            rows.for_each(|(row, bias)| row.iter_mut().for_each(|value| *value += bias));
        }
    }
}

/// Multiplies matrices without tiles.
fn plain<T: Copy + Default>(a: &[T], a_view: &View, b: &[T], b_view: &View, out: &mut [T], fma: impl Fn(T, T, T) -> T) {
    let [k, columns] = [b_view.shape[0], b_view.shape[1]];
    let at = |view: &View, row: usize, column: usize| {
        (view.offset as isize + row as isize * view.strides[0] + column as isize * view.strides[1]) as usize
    };
    for (row, out) in out.chunks_exact_mut(columns.max(1)).enumerate() {
        out.fill(T::default());
        for inner in 0..k {
            let factor = a[at(a_view, row, inner)];
            for (column, sum) in out.iter_mut().enumerate() {
                *sum = fma(factor, b[at(b_view, inner, column)], *sum);
            }
        }
    }
}
