//! What a step of a plan computes: one function per kind of step, from views of memory into memory
//! in which the last axis runs fastest.

pub(super) mod backward;
mod elementwise;
mod functions;
pub(super) mod linear;
pub(super) mod movement;
mod products;
mod rounded;
mod rows;
pub(super) mod tables;

use std::sync::Arc;

use super::graph::{Binary, Reduction, Unary};
use super::tensor::{Class, Data, DataRef, Kind, View};
use crate::simd::{InstructionSet, Lanes, dispatch};
use linear::{Activation, PackedMatrix};
use movement::Running;
use rounded::RoundedScratch;
use tables::Table;

/// What a step computes.
#[derive(Debug, Clone)]
pub(super) enum Kernel {
    Binary(Binary),
    /// Between two numbers; either may be left out.
    Clip {
        has_lower: bool,
        has_upper: bool,
    },
    /// To another kind or class.
    Convert {
        to: Kind,
    },
    CumSum {
        length: usize,
        inner: usize,
        running: Running,
    },
    Gather {
        axis: usize,
    },
    GatherElements {
        axis: usize,
    },
    GatherNd {
        shape: Vec<usize>,
        inner: usize,
    },
    LayerNorm {
        epsilon: f32,
        is_rms: bool,
        length: usize,
    },
    Linear {
        weights: Arc<PackedMatrix>,
        activation: Activation,
    },
    MatMul,
    /// Inputs side by side: where each of them goes, and what is elsewhere.
    Place {
        parts: Vec<View>,
        fill: Option<f64>,
    },
    /// (batch, channels, places) with a constant matrix of channels.
    Pointwise {
        activation: Activation,
    },
    Reduce {
        reduction: Reduction,
        n_kept: usize,
    },
    /// Blocks of `inner` elements of the second input over the first.
    Scatter {
        points: Arc<[usize]>,
        inner: usize,
    },
    ScatterNd {
        inner: usize,
    },
    Softmax {
        length: usize,
        is_logarithm: bool,
        is_sum: bool,
    },
    TableRows {
        table: Arc<Table>,
    },
    Trilu {
        is_upper: bool,
        diagonal: i64,
    },
    Unary(Unary),
    Where,
}

/// An input of a step.
#[derive(Clone, Copy)]
pub(super) struct Arg<'a> {
    pub(super) data: DataRef<'a>,
    pub(super) view: &'a View,
}

/// Memory that kernels keep between steps.
#[derive(Debug, Default)]
pub(super) struct KernelScratch {
    panels: Vec<[Lanes; 2]>,
    rows: Vec<f32>,
    rounded: RoundedScratch,
}

impl KernelScratch {
    pub(super) fn n_bytes(&self) -> usize {
        self.panels.capacity() * size_of::<[Lanes; 2]>() + self.rows.capacity() * 4 + self.rounded.n_bytes()
    }
}

/// An index that is out of range: the only thing that can go wrong in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OutOfRange {
    /// Where the index lies in the memory of the indices.
    pub(super) place: usize,
    pub(super) index: i64,
    /// How many there are to choose from.
    pub(super) size: usize,
}

impl Kernel {
    /// Returns which argument has the indices, of a kernel that can go wrong.
    pub(super) fn indices_argument(&self) -> usize {
        if matches!(self, Kernel::TableRows { .. }) { 0 } else { 1 }
    }

    /// Returns whether every element of the output is made of the same element of the arguments.
    pub(super) fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Kernel::Binary(_) | Kernel::Unary(_) | Kernel::Convert { .. } | Kernel::Clip { .. } | Kernel::Where
        )
    }
}

type Pair<'a, T> = (&'a [T], &'a View);

impl<'a> Arg<'a> {
    fn f32(&self) -> Pair<'a, f32> {
        match self.data {
            DataRef::F32(values) => (values, self.view),
            _ => (&[], self.view),
        }
    }

    fn f64(&self) -> Pair<'a, f64> {
        match self.data {
            DataRef::F64(values) => (values, self.view),
            _ => (&[], self.view),
        }
    }

    fn int(&self) -> Pair<'a, i64> {
        match self.data {
            DataRef::Int(values) => (values, self.view),
            _ => (&[], self.view),
        }
    }

    /// Returns the numbers of a view without gaps.
    fn row_f32(&self) -> &'a [f32] {
        &self.f32().0[self.view.offset..][..self.view.len()]
    }

    fn row_f64(&self) -> &'a [f64] {
        &self.f64().0[self.view.offset..][..self.view.len()]
    }
}

/// Calls a generic function with the arguments and the output as numbers of one class.
macro_rules! by_class {
    ($out:expr, $args:expr, $length:expr, |$pairs:ident, $to:ident| $body:expr) => {
        match $out {
            Data::F32(values) => {
                let $pairs: Vec<Pair<'_, f32>> = $args.iter().map(Arg::f32).collect();
                let $to = &mut values[..$length];
                $body
            }
            Data::F64(values) => {
                let $pairs: Vec<Pair<'_, f64>> = $args.iter().map(Arg::f64).collect();
                let $to = &mut values[..$length];
                $body
            }
            Data::Int(values) => {
                let $pairs: Vec<Pair<'_, i64>> = $args.iter().map(Arg::int).collect();
                let $to = &mut values[..$length];
                $body
            }
        }
    };
}

/// Computes a step: `length` numbers of `out`.
pub(super) fn run(
    kernel: &Kernel,
    isa: InstructionSet,
    scratch: &mut KernelScratch,
    args: &[Arg<'_>],
    out: &mut Data,
    out_view: &View,
) -> Result<(), OutOfRange> {
    let length = out_view.len();
    match kernel {
        Kernel::Binary(op) => binary(isa, *op, args, out, length),
        Kernel::Unary(op) => unary(isa, *op, args, out, length),
        Kernel::Convert { to } => convert(*to, args[0], out, length),
        Kernel::Where => {
            let (condition, rest) = (args[0].int(), &args[1..]);
            by_class!(out, rest, length, |pairs, to| elementwise::choose(condition, pairs[0], pairs[1], to));
        }
        Kernel::Clip { has_lower, has_upper } => clip(isa, [*has_lower, *has_upper], args, out, length),
        Kernel::Place { parts, fill } => place(parts, *fill, args, out, length),
        Kernel::Trilu { is_upper, diagonal } => {
            by_class!(out, args, length, |pairs, to| triangle(pairs[0], *is_upper, *diagonal, to));
        }
        Kernel::Gather { axis } => {
            let (indices, rest) = (args[1].int(), &args[..1]);
            return by_class!(out, rest, length, |pairs, to| movement::gather(pairs[0], indices, *axis, to));
        }
        Kernel::TableRows { table } => {
            if let Data::F32(out) = out {
                return table.gather(args[0], &mut out[..length]);
            }
        }
        Kernel::GatherElements { .. } | Kernel::GatherNd { .. } | Kernel::Scatter { .. } | Kernel::ScatterNd { .. } => {
            return points(kernel, args, out, out_view);
        }
        Kernel::CumSum { length: along, inner, running } => by_class!(out, args, length, |pairs, to| {
            elementwise::map1(pairs[0].0, pairs[0].1, to, |x| x);
            movement::running_sum(to, *along, *inner, *running);
        }),
        Kernel::Reduce { reduction, n_kept } => {
            by_class!(out, args, length, |pairs, to| rows::reduce(*reduction, pairs[0].0, pairs[0].1, *n_kept, to));
        }
        Kernel::Softmax { length: along, is_logarithm, is_sum } => {
            softmax(isa, (*along, *is_logarithm, *is_sum), args, out, length);
        }
        Kernel::LayerNorm { epsilon, is_rms, length: along } => {
            layer_norm(isa, (*epsilon, *is_rms, *along), args, out, length);
        }
        Kernel::Linear { .. } | Kernel::MatMul | Kernel::Pointwise { .. } => {
            products::products(kernel, isa, scratch, args, out, out_view);
        }
    }
    Ok(())
}

fn binary(isa: InstructionSet, op: Binary, args: &[Arg<'_>], out: &mut Data, length: usize) {
    let [a, b] = [args[0], args[1]];
    match (out, a.data) {
        (Data::F32(out), _) => elementwise::binary_f32(isa, op, a.f32(), b.f32(), &mut out[..length]),
        (Data::F64(out), _) => elementwise::binary_f64(op, a.f64(), b.f64(), &mut out[..length]),
        (Data::Int(out), DataRef::F32(_)) => elementwise::compare(op, a.f32(), b.f32(), &mut out[..length]),
        (Data::Int(out), DataRef::F64(_)) => elementwise::compare(op, a.f64(), b.f64(), &mut out[..length]),
        (Data::Int(out), DataRef::Int(_)) => elementwise::binary_int(op, a.int(), b.int(), &mut out[..length]),
    }
}

fn unary(isa: InstructionSet, op: Unary, args: &[Arg<'_>], out: &mut Data, length: usize) {
    let a = args[0];
    match (out, a.data) {
        (Data::F32(out), _) => elementwise::unary_f32(isa, op, a.f32().0, a.view, &mut out[..length]),
        (Data::F64(out), _) => elementwise::unary_f64(op, a.f64().0, a.view, &mut out[..length]),
        (Data::Int(out), DataRef::Int(values)) => elementwise::unary_int(op, values, a.view, &mut out[..length]),
        (Data::Int(out), DataRef::F32(values)) => {
            elementwise::map1(values, a.view, &mut out[..length], |x| i64::from(x.is_nan()));
        }
        (Data::Int(out), DataRef::F64(values)) => {
            elementwise::map1(values, a.view, &mut out[..length], |x| i64::from(x.is_nan()));
        }
    }
}

fn convert(to: Kind, arg: Arg<'_>, out: &mut Data, length: usize) {
    let view = arg.view;
    match (arg.data, out, to) {
        (DataRef::F32(x), Data::F32(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x),
        (DataRef::F64(x), Data::F32(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x as f32),
        (DataRef::Int(x), Data::F32(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x as f32),
        (DataRef::F32(x), Data::F64(out), _) => elementwise::map1(x, view, &mut out[..length], f64::from),
        (DataRef::F64(x), Data::F64(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x),
        (DataRef::Int(x), Data::F64(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x as f64),
        (DataRef::F32(x), Data::Int(out), Kind::Bool) => {
            elementwise::map1(x, view, &mut out[..length], |x| i64::from(x != 0.0));
        }
        (DataRef::F64(x), Data::Int(out), Kind::Bool) => {
            elementwise::map1(x, view, &mut out[..length], |x| i64::from(x != 0.0));
        }
        (DataRef::Int(x), Data::Int(out), Kind::Bool) => {
            elementwise::map1(x, view, &mut out[..length], |x| i64::from(x != 0));
        }
        (DataRef::F32(x), Data::Int(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x as i64),
        (DataRef::F64(x), Data::Int(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x as i64),
        (DataRef::Int(x), Data::Int(out), _) => elementwise::map1(x, view, &mut out[..length], |x| x),
    }
}

/// Clips as the composition of a maximum and a minimum.
fn clip(isa: InstructionSet, [has_lower, has_upper]: [bool; 2], args: &[Arg<'_>], out: &mut Data, length: usize) {
    let (lower, upper) = (has_lower.then(|| args[1]), has_upper.then(|| args[args.len() - 1]));
    match lower {
        Some(lower) => binary(isa, Binary::Max, &[args[0], lower], out, length),
        None => by_class!(out, args, length, |pairs, to| elementwise::map1(pairs[0].0, pairs[0].1, to, |x| x)),
    }
    if let Some(upper) = upper {
        let scalar = |data: DataRef<'_>| match data {
            DataRef::F32(values) => (f64::from(values[upper.view.offset]), 0),
            DataRef::F64(values) => (values[upper.view.offset], 0),
            DataRef::Int(values) => (0.0, values[upper.view.offset]),
        };
        let (float, int) = scalar(upper.data);
        match out {
            Data::F32(out) => out[..length].iter_mut().filter(|x| **x > float as f32).for_each(|x| *x = float as f32),
            Data::F64(out) => out[..length].iter_mut().filter(|x| **x > float).for_each(|x| *x = float),
            Data::Int(out) => out[..length].iter_mut().filter(|x| **x > int).for_each(|x| *x = int),
        }
    }
}

fn place(parts: &[View], fill: Option<f64>, args: &[Arg<'_>], out: &mut Data, length: usize) {
    if let Some(fill) = fill {
        match out {
            Data::F32(out) => out[..length].fill(fill as f32),
            Data::F64(out) => out[..length].fill(fill),
            Data::Int(out) => out[..length].fill(fill as i64),
        }
    }
    by_class!(out, args, length, |pairs, to| {
        for ((values, view), part) in pairs.into_iter().zip(parts) {
            movement::place(values, view, to, part);
        }
    });
}

/// Copies matrices and clears what is below or above a diagonal.
fn triangle<T: Copy + Default>((values, view): Pair<'_, T>, is_upper: bool, diagonal: i64, out: &mut [T]) {
    elementwise::map1(values, view, out, |x| x);
    let [rows, columns] = [view.shape[view.shape.len() - 2], view.shape[view.shape.len() - 1]];
    for (index, value) in out.iter_mut().enumerate() {
        let (row, column) = ((index / columns.max(1) % rows.max(1)) as i64, (index % columns.max(1)) as i64);
        let is_kept = if is_upper { column - row >= diagonal } else { column - row <= diagonal };
        if !is_kept {
            *value = T::default();
        }
    }
}

/// Moves elements that tuples of indices name.
fn points(kernel: &Kernel, args: &[Arg<'_>], out: &mut Data, out_view: &View) -> Result<(), OutOfRange> {
    let length = out_view.len();
    let named = |indices: Arg<'_>, shape: &[usize]| movement::points(indices.int().0, indices.view, shape);
    let (points, inner): (Arc<[usize]>, usize) = match kernel {
        Kernel::GatherElements { axis } => {
            let found = movement::element_points(args[1].int().0, args[1].view, *axis, &args[0].view.shape);
            (found?.into(), 1)
        }
        Kernel::GatherNd { shape, inner } => (named(args[1], shape)?.into(), *inner),
        Kernel::Scatter { points, inner } => (Arc::clone(points), *inner),
        Kernel::ScatterNd { inner } => (named(args[1], &out_view.shape)?.into(), *inner),
        _ => return Ok(()),
    };
    let is_scatter = matches!(kernel, Kernel::Scatter { .. } | Kernel::ScatterNd { .. });
    by_class!(out, args, length, |pairs, to| {
        let (values, view) = pairs[0];
        if !is_scatter {
            let values = &values[view.offset..];
            let blocks = to.chunks_exact_mut(inner.max(1)).zip(&points[..]);
            blocks.for_each(|(to, &point)| to.copy_from_slice(&values[point..][..inner]));
            return Ok(());
        }
        elementwise::map1(values, view, to, |x| x);
        let (updates, view) = pairs[pairs.len() - 1];
        let updates = updates[view.offset..].chunks_exact(inner.max(1));
        updates.zip(&points[..]).for_each(|(from, &point)| to[point..][..inner].copy_from_slice(from));
    });
    Ok(())
}

fn softmax(
    isa: InstructionSet,
    (along, is_logarithm, is_sum): (usize, bool, bool),
    args: &[Arg<'_>],
    out: &mut Data,
    length: usize,
) {
    if along == 0 {
        return;
    }
    match is_sum {
        true => binary(isa, Binary::Add, args, out, length),
        false => by_class!(out, args, length, |pairs, to| elementwise::map1(pairs[0].0, pairs[0].1, to, |x| x)),
    }
    match out {
        Data::F32(out) => dispatch(isa, rows::Softmax { rows: &mut out[..length], length: along, is_logarithm }),
        Data::F64(out) => rows::softmax_f64(&mut out[..length], along, is_logarithm),
        Data::Int(_) => {}
    }
}

fn layer_norm(
    isa: InstructionSet,
    (epsilon, is_rms, along): (f32, bool, usize),
    args: &[Arg<'_>],
    out: &mut Data,
    length: usize,
) {
    if along == 0 {
        return;
    }
    match out {
        Data::F32(out) => {
            let (rows, weight) = (args[0].row_f32(), args[1].row_f32());
            let (bias, out) = (args.get(2).map(Arg::row_f32), &mut out[..length]);
            dispatch(isa, rows::LayerNorm { rows, weight, bias, epsilon, is_rms, out });
        }
        Data::F64(out) => {
            let bias = args.get(2).map_or(&[][..], Arg::row_f64);
            let factors = [args[1].row_f64(), bias];
            rows::layer_norm_f64(args[0].row_f64(), factors, f64::from(epsilon), is_rms, &mut out[..length]);
        }
        Data::Int(_) => {}
    }
}

/// Returns the class in which a kind is stored.
pub(super) fn class(kind: Kind, float: Class) -> Class {
    if kind == Kind::Float { float } else { Class::Int }
}
