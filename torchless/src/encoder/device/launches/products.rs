//! Launches of products of matrices: with constant weights, of patches, and of two stacks.

use super::{
    Class, Done, EncoderKernel, Input, LANES, Launch, Launches, Operand, Output, Views, distance, no_kernel, part, word,
};
use crate::encoder::device::layout::{
    ACTIVATION_GELU, ACTIVATION_GELU_TANH, ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_SILU, BIAS_OF_COLUMNS,
    BIAS_OF_NOTHING, BIAS_OF_ROWS, MatricesLayout, ROWS_OF_LANE, TILE_COLUMNS, TILE_DEPTH, TILE_ROWS,
};
use crate::encoder::kernels::Kernel;
use crate::encoder::kernels::linear::Activation;
use crate::encoder::plan::Step;
use crate::encoder::tensor::View;

const _: () = assert!(LANES / TILE_COLUMNS * ROWS_OF_LANE == TILE_ROWS, "the lanes of a block have a tile");

impl Launches<'_> {
    pub(super) fn linear(&mut self, step: &Step, activation: Activation, operands: &[Operand], out: &Operand) -> Done {
        let Kernel::Linear { weights, .. } = &step.kernel else { return Err(no_kernel(out.class)) };
        let memory = self.device.matrix(weights)?.ok_or_else(|| no_kernel(out.class))?;
        let view = View::contiguous(&[weights.rows, weights.columns]);
        let b = Operand { input: self.constant(memory), view, class: Class::F32 };
        let bias = operands.get(1).map(|bias| (bias, BIAS_OF_COLUMNS));
        self.multiply(&operands[0], &b, bias, activation, out)
    }

    pub(super) fn pointwise(&mut self, activation: Activation, operands: &[Operand], out: &Operand) -> Done {
        let (x, weights) = (&operands[0], &operands[1]);
        let shape: Vec<usize> = [x.view.shape[0]].into_iter().chain(weights.view.shape.iter().copied()).collect();
        let view = weights.view.broadcast(&shape).ok_or_else(|| no_kernel(out.class))?;
        let bias = operands.get(2).map(|bias| (bias, BIAS_OF_ROWS));
        self.multiply(&Operand { view, ..weights.clone() }, x, bias, activation, out)
    }

    pub(super) fn matmul(&mut self, operands: &[Operand], out: &Operand) -> Done {
        self.multiply(&operands[0], &operands[1], None, Activation::None, out)
    }

    /// Multiplies the matrices of two stacks.
    fn multiply(
        &mut self,
        a: &Operand,
        b: &Operand,
        bias: Option<(&Operand, u32)>,
        activation: Activation,
        out: &Operand,
    ) -> Done {
        if out.class != Class::F32 {
            return Err(no_kernel(out.class));
        }
        let stack = a.view.shape.len() - 2;
        let (a_stack, b_stack) = (part(&a.view, 0..stack), part(&b.view, 0..stack));
        let Views { n_axes, view } = self.add_views(&[&a_stack, &b_stack])?;
        let [rows, inner, columns] = [a.view.shape[stack], a.view.shape[stack + 1], b.view.shape[stack + 1]];
        let [a_down, a_right] = [a.view.strides[stack], a.view.strides[stack + 1]].map(distance);
        let [b_down, b_right] = [b.view.strides[stack], b.view.strides[stack + 1]].map(distance);
        let layout = MatricesLayout {
            rows: word(rows)?,
            inner: word(inner)?,
            columns: word(columns)?,
            n_axes,
            view,
            a: word(a.view.offset)?,
            a_down,
            a_right,
            b: word(b.view.offset)?,
            b_down,
            b_right,
            bias: word(bias.map_or(0, |(bias, _)| bias.view.offset))?,
            bias_of: bias.map_or(BIAS_OF_NOTHING, |(_, of)| of),
            activation: match activation {
                Activation::None => ACTIVATION_NONE,
                Activation::Gelu => ACTIVATION_GELU,
                Activation::GeluTanh => ACTIVATION_GELU_TANH,
                Activation::Relu => ACTIVATION_RELU,
                Activation::Silu => ACTIVATION_SILU,
            },
        };
        let Input::Buffer(buffer) = out.input else { return Ok(()) };
        let tiles = rows.div_ceil(TILE_ROWS as usize) * columns.div_ceil(TILE_COLUMNS as usize);
        self.launches.push(Launch {
            kernel: EncoderKernel::MultiplyMatrices,
            blocks: word(a_stack.len().saturating_mul(tiles))?,
            shared_reals: (TILE_ROWS + TILE_COLUMNS) * TILE_DEPTH,
            words: layout.words().to_vec(),
            inputs: vec![Input::Views, a.input, b.input, bias.map_or(a, |(bias, _)| bias).input],
            output: Output::Buffer(buffer),
        });
        Ok(())
    }
}
