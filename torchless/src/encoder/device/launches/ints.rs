//! Launches of arithmetic of integers, each with a check that no result has more than 32 bits.

use super::{Class, Done, EncoderKernel, Input, Launches, Operand, StepFault, Views, word};
use crate::encoder::device::layout::{
    BINARY_ADD, BINARY_MOD, BINARY_NEGATION, BINARY_REMAINDER, ElementsLayout, UNARY_ABS, UNARY_NEG,
};
use crate::encoder::kernels::movement::Running;
use crate::encoder::tensor::View;

impl Launches<'_> {
    pub(super) fn arithmetic_of_ints(
        &mut self,
        operation: u32,
        node: usize,
        operands: &[Operand],
        out: &Operand,
    ) -> Done {
        if ![BINARY_MOD, BINARY_REMAINDER].contains(&operation) {
            self.check_ints(operation, node, [&operands[0], &operands[1]])?;
        }
        self.elements((EncoderKernel::ComputeInts, operation), operands, out)
    }

    pub(super) fn function_of_ints(&mut self, operation: u32, node: usize, operand: &Operand, out: &Operand) -> Done {
        if [UNARY_ABS, UNARY_NEG].contains(&operation) {
            self.check_ints(BINARY_NEGATION, node, [operand, operand])?;
        }
        self.elements((EncoderKernel::MapInts, operation), std::slice::from_ref(operand), out)
    }

    /// Has the sums of a running sum checked, (outer, length, inner): each of them but the first is
    /// that before it and an element.
    pub(super) fn check_running_sum(
        &mut self,
        (length, inner, running): (usize, usize, Running),
        node: usize,
        [operand, out]: [&Operand; 2],
    ) -> Done {
        let is_axis = |axis: &usize| {
            out.view.shape[*axis] == length && out.view.shape[axis + 1..].iter().product::<usize>() == inner
        };
        let Some(axis) = (0..out.view.shape.len()).find(is_axis).filter(|_| length > 1) else { return Ok(()) };
        let before = without_one(out, axis, running.is_reversed);
        let added = without_one(operand, axis, running.is_exclusive == running.is_reversed);
        self.check_ints(BINARY_ADD, node, [&before, &added])
    }

    fn check_ints(&mut self, operation: u32, node: usize, [a, b]: [&Operand; 2]) -> Done {
        let Views { n_axes, view } = self.add_views(&[&a.view, &b.view])?;
        let (n, first_a, first_b) = (word(a.view.len())?, word(a.view.offset)?, word(b.view.offset)?);
        let words =
            |out| ElementsLayout { n, n_axes, view, operation, a: first_a, b: first_b, c: 0, out }.words().to_vec();
        self.check(EncoderKernel::CheckInts, StepFault::Integer { node }, &[Input::Views, a.input, b.input], words)
    }
}

/// Returns what is left of an operand without the first or the last elements along an axis.
fn without_one(operand: &Operand, axis: usize, is_first: bool) -> Operand {
    let View { mut shape, strides, offset } = operand.view.clone();
    shape[axis] -= 1;
    let first = if is_first { strides[axis] } else { 0 };
    let offset = (offset as isize + first) as usize;
    Operand { view: View { shape, strides, offset }, class: Class::Int, ..operand.clone() }
}
