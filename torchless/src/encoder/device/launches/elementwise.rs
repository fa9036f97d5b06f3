//! Launches of operators of one element of each input: arithmetic, functions, conversions, choices.

use super::{
    Class, Done, EncoderKernel, Input, Launches, Operand, Views, blocks_of, both, high, no_kernel, with_axis, word,
};
use crate::encoder::device::layout::{
    BINARY_MAX, BINARY_MIN, CLIP_ABOVE, CLIP_BELOW, CLIP_BOTH, ElementsLayout, TRUTH_IS_NAN, TRUTH_IS_NOT_ZERO,
    TRUTH_IS_ZERO,
};
use crate::encoder::device::operations::{
    Operation, arithmetic_of_ints, binary_of_ints, binary_of_pairs, binary_of_reals, comparison, unary_of_ints,
    unary_of_pairs, unary_of_reals,
};
use crate::encoder::graph::{Binary, Unary};
use crate::encoder::plan::{Source, Step};
use crate::encoder::tensor::{Kind, View};

impl Launches<'_> {
    /// Treats elements one by one: a result of one element of each operand.
    pub(super) fn elements(&mut self, (kernel, operation): Operation, operands: &[Operand], out: &Operand) -> Done {
        let views: Vec<&View> = operands.iter().map(|operand| &operand.view).collect();
        let Views { n_axes, view } = self.add_views(&views)?;
        let n = word(out.view.len())?;
        let offset = |index: usize| operands.get(index).map_or(Ok(0), |operand| word(operand.view.offset));
        let (a, b, c) = (offset(0)?, offset(1)?, offset(2)?);
        let words = ElementsLayout { n, n_axes, view, operation, a, b, c, out: 0 }.words();
        let inputs: Vec<Input> =
            [Input::Views].into_iter().chain(operands.iter().map(|operand| operand.input)).collect();
        self.launch(kernel, blocks_of(n), &words, &inputs, out);
        Ok(())
    }

    pub(super) fn binary(&mut self, binary: Binary, step: &Step, operands: &[Operand], out: &Operand) -> Done {
        let class = operands[0].class;
        if let (Class::Int, Class::Int, Some(operation)) = (out.class, class, arithmetic_of_ints(binary)) {
            return self.arithmetic_of_ints(operation, step.node, operands, out);
        }
        let operation = match (out.class, class) {
            (Class::F32, _) => binary_of_reals(binary),
            (Class::F64, _) => binary_of_pairs(binary, step.args.get(1).and_then(exponent)),
            (Class::Int, Class::F32) => comparison(binary),
            (Class::Int, Class::Int) => binary_of_ints(binary),
            (Class::Int, Class::F64) => None,
        };
        let operation = operation.ok_or_else(|| no_kernel(class))?;
        match out.class {
            Class::F64 => self.elements(operation, &operands.iter().map(high).collect::<Vec<_>>(), out),
            _ => self.elements(operation, operands, out),
        }
    }

    pub(super) fn unary(&mut self, unary: Unary, step: &Step, operands: &[Operand], out: &Operand) -> Done {
        let of_nan = (EncoderKernel::TruthOfReals, TRUTH_IS_NAN);
        match (unary, operands[0].class) {
            (Unary::IsNan, Class::F32) => self.elements(of_nan, operands, out),
            (Unary::IsNan, Class::F64) => self.elements(of_nan, &[high(&operands[0])], out),
            (Unary::Not, Class::Int) => self.elements((EncoderKernel::TruthOfInts, TRUTH_IS_ZERO), operands, out),
            (_, Class::F32) => {
                self.elements(unary_of_reals(unary).ok_or_else(|| no_kernel(Class::F32))?, operands, out)
            }
            (_, Class::F64) => {
                self.elements(unary_of_pairs(unary).ok_or_else(|| no_kernel(Class::F64))?, &[high(&operands[0])], out)
            }
            (_, Class::Int) => {
                let operation = unary_of_ints(unary).ok_or_else(|| no_kernel(Class::Int))?;
                self.function_of_ints(operation, step.node, &operands[0], out)
            }
        }
    }

    pub(super) fn convert(&mut self, to: Kind, from: &Operand, out: &Operand) -> Done {
        let of_reals = (EncoderKernel::TruthOfReals, TRUTH_IS_NOT_ZERO);
        let one = |operand: &Operand| [operand.clone()];
        match (from.class, out.class, to) {
            (Class::Int, Class::Int, Kind::Bool) => {
                self.elements((EncoderKernel::TruthOfInts, TRUTH_IS_NOT_ZERO), &one(from), out)
            }
            (Class::F32, Class::Int, Kind::Bool) => self.elements(of_reals, &one(from), out),
            (Class::F64, Class::Int, Kind::Bool) => self.elements(of_reals, &[high(from)], out),
            (Class::Int, Class::F32, _) => self.elements((EncoderKernel::RealsOfInts, 0), &one(from), out),
            (Class::Int, Class::F64, _) => self.elements((EncoderKernel::WideOfInts, 0), &one(from), out),
            // The nearest number of single precision is the first of a pair.
            (Class::F64, Class::F32, _) => self.copy(&high(from), out, &out.view),
            (Class::F32, Class::F32, _) | (Class::Int, Class::Int, _) => self.copy(from, out, &out.view),
            (Class::F64, Class::F64, _) => self.copy(&both(from), out, &both(out).view),
            (Class::F32, Class::F64, _) => {
                self.fill(0.0, 2 * out.view.len(), out)?;
                self.copy(from, out, &high(out).view)
            }
            (class, ..) => Err(no_kernel(class)),
        }
    }

    pub(super) fn choose(&mut self, operands: &[Operand], out: &Operand) -> Done {
        let [condition, a, b] = operands else { return Err(no_kernel(out.class)) };
        match out.class {
            Class::F32 => {
                self.elements((EncoderKernel::ChooseReals, 0), &[a.clone(), b.clone(), condition.clone()], out)
            }
            Class::Int => {
                self.elements((EncoderKernel::ChooseInts, 0), &[a.clone(), b.clone(), condition.clone()], out)
            }
            Class::F64 => {
                let condition = Operand { view: with_axis(&condition.view, 1, 0), ..condition.clone() };
                self.elements((EncoderKernel::ChooseReals, 0), &[both(a), both(b), condition], &both(out))
            }
        }
    }

    pub(super) fn clip(&mut self, [has_lower, has_upper]: [bool; 2], operands: &[Operand], out: &Operand) -> Done {
        let x = &operands[0];
        match (out.class, has_lower, has_upper) {
            (Class::F32, true, true) => self.elements((EncoderKernel::ClipReals, CLIP_BOTH), operands, out),
            (Class::F32, true, false) => {
                let operands = [x.clone(), operands[1].clone(), x.clone()];
                self.elements((EncoderKernel::ClipReals, CLIP_BELOW), &operands, out)
            }
            (Class::F32, false, true) => {
                let operands = [x.clone(), x.clone(), operands[1].clone()];
                self.elements((EncoderKernel::ClipReals, CLIP_ABOVE), &operands, out)
            }
            (Class::F64, true, false) | (Class::F64, false, true) => {
                let operation = if has_lower { BINARY_MAX } else { BINARY_MIN };
                self.elements((EncoderKernel::CombineWide, operation), &[high(x), high(&operands[1])], out)
            }
            (Class::Int, true, false) | (Class::Int, false, true) => {
                let operation = if has_lower { BINARY_MAX } else { BINARY_MIN };
                self.elements((EncoderKernel::CombineInts, operation), operands, out)
            }
            (class, ..) => Err(no_kernel(class)),
        }
    }
}

/// Returns the one number of a constant.
fn exponent((source, view): &(Source, View)) -> Option<f64> {
    let Source::Constant(tensor) = source else { return None };
    let values = tensor.to_f64();
    let first = *values.get(view.offset)?;
    view.places().all(|place| values[place] == first).then_some(first)
}
