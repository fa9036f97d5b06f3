//! Launches of sums along rows: reductions, running sums, softmax, normalisations.

use super::{
    Class, Done, EncoderKernel, Input, LANES, Launches, Operand, Views, blocks_of, distance, high, no_kernel, part,
    word,
};
use crate::encoder::device::layout::{NormLayout, ROW_LANES, ReduceLayout, RunningLayout, SoftmaxLayout};
use crate::encoder::device::operations::reduction;
use crate::encoder::graph::Reduction;
use crate::encoder::kernels::movement::Running;
use crate::encoder::plan::Step;

impl Launches<'_> {
    pub(super) fn reduce(&mut self, kind: Reduction, n_kept: usize, values: &Operand, out: &Operand) -> Done {
        let inner_view = part(&values.view, n_kept..values.view.shape.len());
        let is_extreme = matches!(kind, Reduction::Max | Reduction::Min);
        let (kernel, values) = match out.class {
            Class::F32 if !(is_extreme && inner_view.len() == 0) => (EncoderKernel::ReduceReals, values.clone()),
            Class::F64 if kind == Reduction::Sum => (EncoderKernel::SumWide, high(values)),
            class => return Err(no_kernel(class)),
        };
        let inner_view = part(&values.view, n_kept..values.view.shape.len());
        let rows = self.add_views(&[&part(&values.view, 0..n_kept)])?;
        let inner = self.add_views(&[&inner_view])?;
        let n = word(out.view.len())?;
        let layout = ReduceLayout {
            n,
            length: word(inner_view.len())?,
            operation: reduction(kind),
            n_axes: rows.n_axes,
            view: rows.view,
            inner_axes: inner.n_axes,
            inner: inner.view,
            values: word(values.view.offset)?,
        };
        let inputs = [Input::Views, values.input];
        self.launch(kernel, blocks_of_rows(n), &layout.words(), &inputs, out);
        Ok(())
    }

    /// Adds up lines: (outer, length, inner) along the middle axis.
    pub(super) fn running_sum(
        &mut self,
        (length, inner, running): (usize, usize, Running),
        step: &Step,
        operand: &Operand,
        out: &Operand,
    ) -> Done {
        let (kernel, values) = match out.class {
            Class::F32 => (EncoderKernel::RunningReals, operand.clone()),
            Class::F64 => (EncoderKernel::RunningWide, high(operand)),
            Class::Int => (EncoderKernel::RunningInts, operand.clone()),
        };
        let Views { n_axes, view } = self.add_views(&[&values.view])?;
        let n = word(out.view.len() / length)?;
        let layout = RunningLayout {
            n,
            length: word(length)?,
            inner: word(inner)?,
            n_axes,
            view,
            a: word(values.view.offset)?,
            is_exclusive: u32::from(running.is_exclusive),
            is_reversed: u32::from(running.is_reversed),
        };
        self.launch(kernel, blocks_of(n), &layout.words(), &[Input::Views, values.input], out);
        match out.class {
            Class::Int => self.check_running_sum((length, inner, running), step.node, [operand, out]),
            _ => Ok(()),
        }
    }

    pub(super) fn softmax(&mut self, is_logarithm: bool, operands: &[Operand], out: &Operand) -> Done {
        let (a, b) = (&operands[0], operands.last().unwrap_or(&operands[0]));
        let (length, last) = (out.view.shape.last().copied().unwrap_or(1), out.view.shape.len().saturating_sub(1));
        let (a_rows, b_rows) = (part(&a.view, 0..last), part(&b.view, 0..last));
        let Views { n_axes, view } = self.add_views(&[&a_rows, &b_rows])?;
        let n = word(out.view.len() / length)?;
        let right = |operand: &Operand| operand.view.strides.last().map_or(0, |&stride| distance(stride));
        let layout = SoftmaxLayout {
            n,
            length: word(length)?,
            n_axes,
            view,
            a: word(a.view.offset)?,
            a_right: right(a),
            b: word(b.view.offset)?,
            b_right: right(b),
            is_sum: u32::from(operands.len() == 2),
            is_logarithm: u32::from(is_logarithm),
        };
        let inputs = [Input::Views, a.input, b.input];
        self.launch(EncoderKernel::SoftmaxRows, blocks_of_rows(n), &layout.words(), &inputs, out);
        Ok(())
    }

    pub(super) fn norm(
        &mut self,
        (epsilon, is_rms, length): (f32, bool, usize),
        operands: &[Operand],
        out: &Operand,
    ) -> Done {
        let (x, weight, bias) = (&operands[0], &operands[1], operands.get(2));
        let n = word(out.view.len() / length)?;
        let layout = NormLayout {
            n,
            length: word(length)?,
            x: word(x.view.offset)?,
            weight: word(weight.view.offset)?,
            bias: word(bias.map_or(0, |bias| bias.view.offset))?,
            has_bias: u32::from(bias.is_some()),
            is_rms: u32::from(is_rms),
            epsilon,
        };
        let inputs = [x.input, weight.input, bias.unwrap_or(weight).input];
        self.launch(EncoderKernel::NormRows, blocks_of_rows(n), &layout.words(), &inputs, out);
        Ok(())
    }
}

/// Returns the number of blocks for `n` rows of sums.
fn blocks_of_rows(n: u32) -> u32 {
    n.div_ceil(LANES / ROW_LANES)
}
