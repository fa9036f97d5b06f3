//! The steps of each operator, and the views that need none.

use std::sync::Arc;

use super::graph::{Binary, Graph, Node, Op, Unary};
use super::kernels::linear::{Activation, PackedMatrix};
use super::kernels::{self, Kernel};
use super::plan::{Builder, EncoderPrecision, Lowered, Refusal, Source, Value};
use super::tensor::{Class, Data, Kind, Tensor, View, broadcast_shape};
use crate::error::NodeProblem;

/// The inputs of a node while it is lowered.
pub(super) struct Inputs {
    values: Vec<Option<Value>>,
}

impl Inputs {
    pub(super) fn get(&self, index: usize) -> Result<&Value, Refusal> {
        self.optional(index).ok_or(Refusal::Here(NodeProblem::Input { index }))
    }

    pub(super) fn optional(&self, index: usize) -> Option<&Value> {
        self.values.get(index).and_then(Option::as_ref)
    }

    /// Returns integers that must be known while the plan is made.
    pub(super) fn ints(&self, index: usize) -> Result<Vec<i64>, Refusal> {
        let value = self.get(index)?;
        value.ints().ok_or_else(|| match value.is_constant() {
            true => NodeProblem::Input { index }.into(),
            false => NodeProblem::NotConstant { index }.into(),
        })
    }

    pub(super) fn optional_ints(&self, index: usize) -> Result<Option<Vec<i64>>, Refusal> {
        self.optional(index).map(|_| self.ints(index)).transpose()
    }

    /// Returns the error of shapes that do not fit together.
    pub(super) fn shapes(&self) -> Refusal {
        let shapes: Vec<String> = self.values.iter().flatten().map(|value| format!("{:?}", value.shape())).collect();
        NodeProblem::Shapes { shapes: shapes.join(" and ") }.into()
    }
}

/// Returns an axis that may count from the end.
pub(super) fn axis(axis: i64, n_axes: usize) -> Result<usize, Refusal> {
    kernels::movement::index(axis, n_axes).ok_or(Refusal::Here(NodeProblem::Index))
}

impl Builder {
    /// Adds the steps of `node`.
    pub(super) fn lower_operator(&mut self, graph: &Graph, node: &Node) -> Result<(), Refusal> {
        if let Op::If { branches } = &node.op {
            return self.branch(graph, node, branches);
        }
        let mut values = Vec::with_capacity(node.inputs.len());
        for (index, input) in node.inputs.iter().enumerate() {
            let value = input.map(|id| self.value(graph, id).ok_or(NodeProblem::Input { index }));
            values.push(value.transpose()?);
        }
        let inputs = Inputs { values };
        if let Op::Split { axis } = node.op {
            for (value, id) in self.split(&inputs, axis, node.outputs.len())?.into_iter().zip(&node.outputs) {
                self.values.insert(*id, value);
            }
            return Ok(());
        }
        let value = self.single(&node.op, &inputs)?;
        if let Some(&output) = node.outputs.first() {
            self.values.insert(output, value);
        }
        Ok(())
    }

    /// Adds the steps of one branch: the condition is known.
    fn branch(&mut self, graph: &Graph, node: &Node, branches: &[super::graph::Branch; 2]) -> Result<(), Refusal> {
        let condition = node.inputs.first().copied().flatten().and_then(|id| self.value(graph, id));
        let condition = condition.ok_or(NodeProblem::Input { index: 0 })?;
        let holds = condition.ints().ok_or(NodeProblem::NotConstant { index: 0 })?;
        let branch = &branches[usize::from(holds.first() == Some(&0))];
        for inner in &branch.nodes {
            self.lower(graph, inner).map_err(|error| Refusal::Inside(Box::new(error)))?;
        }
        for (from, to) in branch.outputs.iter().zip(&node.outputs) {
            let value = self.value(graph, *from).ok_or(NodeProblem::Outputs)?;
            self.values.insert(*to, value);
        }
        Ok(())
    }

    fn single(&mut self, op: &Op, inputs: &Inputs) -> Lowered {
        match op {
            Op::Binary(binary) => self.all_binary(*binary, inputs),
            Op::Unary(unary) => self.unary(*unary, inputs.get(0)?),
            Op::BatchNorm { epsilon } => self.batch_norm(*epsilon, inputs),
            Op::Cast { to } => self.cast(inputs.get(0)?, *to),
            Op::Clip => self.clip(inputs),
            Op::Conv { strides, activation } => self.convolution(strides, *activation, inputs),
            Op::Gemm { alpha, beta, transposes } => self.gemm([*alpha, *beta], *transposes, inputs),
            Op::LayerNorm { axis, epsilon } => self.layer_norm(*axis, *epsilon, false, inputs),
            Op::RmsNorm { axis, epsilon } => self.layer_norm(*axis, *epsilon, true, inputs),
            Op::Linear { weights, activation } => self.linear(weights, *activation, inputs),
            Op::MatMul => self.matmul(inputs.get(0)?, inputs.get(1)?, inputs),
            Op::Reduce { .. } => self.reduce(op, inputs),
            Op::Softmax { axis, is_logarithm } => self.softmax(*axis, *is_logarithm, inputs),
            Op::Where => self.choose(inputs),
            _ => self.movement(op, inputs),
        }
    }

    /// Returns the class of a result of floating-point values: double precision while everything
    /// that it is made of is.
    pub(super) fn common_class(&self, values: &[&Value]) -> Class {
        let narrow = self.precision.class();
        let mut floats = values.iter().filter(|value| value.kind == Kind::Float);
        let is_wide = |value: &&Value| value.class == Class::F64 || value.is_constant();
        let some_is_wide = values.iter().any(|value| value.class == Class::F64);
        if some_is_wide && floats.all(is_wide) { Class::F64 } else { narrow }
    }

    /// Returns the value in another class.
    pub(super) fn in_class(&mut self, value: &Value, class: Class) -> Lowered {
        if value.class == class || value.kind != Kind::Float {
            return Ok(value.clone());
        }
        let shape = value.shape().to_vec();
        let converted =
            self.push(Kernel::Convert { to: Kind::Float }, std::slice::from_ref(value), &shape, Kind::Float, class)?;
        Ok(exact_multiple_of_pi(&converted).unwrap_or(converted))
    }

    /// Returns the value in the class of products.
    pub(super) fn narrow(&mut self, value: &Value) -> Lowered {
        self.in_class(value, self.precision.class())
    }

    /// Returns the value without gaps between its elements.
    pub(super) fn without_gaps(&mut self, value: &Value) -> Lowered {
        if value.view.is_contiguous() { Ok(value.clone()) } else { self.copy(value) }
    }

    pub(super) fn copy(&mut self, value: &Value) -> Lowered {
        let shape = value.shape().to_vec();
        let kernel = Kernel::Place { parts: vec![View::contiguous(&shape)], fill: None };
        self.push(kernel, std::slice::from_ref(value), &shape, value.kind, value.class)
    }

    /// Returns the value in another shape: as a view, or a copy where no view can express it.
    pub(super) fn reshape(&mut self, value: &Value, shape: &[usize]) -> Lowered {
        if let Some(view) = value.view.reshaped(shape) {
            return Ok(value.seen(view));
        }
        let copy = self.copy(value)?;
        Ok(copy.seen(View { offset: copy.view.offset, ..View::contiguous(shape) }))
    }

    fn all_binary(&mut self, binary: Binary, inputs: &Inputs) -> Lowered {
        let mut result = inputs.get(0)?.clone();
        for index in 1..inputs.values.len() {
            result = self.binary(binary, &result, inputs.get(index)?).map_err(|()| inputs.shapes())??;
        }
        Ok(result)
    }

    /// Adds the step of a binary operator; an error are shapes that do not broadcast.
    pub(super) fn binary(&mut self, binary: Binary, a: &Value, b: &Value) -> Result<Lowered, ()> {
        let shape = broadcast_shape(a.shape(), b.shape()).ok_or(())?;
        Ok(self.broadcast_binary(binary, a, b, &shape))
    }

    fn broadcast_binary(&mut self, binary: Binary, a: &Value, b: &Value, shape: &[usize]) -> Lowered {
        let is_float = a.kind == Kind::Float || b.kind == Kind::Float;
        let class = if is_float { self.common_class(&[a, b]) } else { Class::Int };
        let kind = match binary {
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Max | Binary::Min => a.kind,
            Binary::Pow | Binary::Mod { .. } | Binary::Atan2 => a.kind,
            _ => Kind::Bool,
        };
        let is_logical = matches!(binary, Binary::And | Binary::Or | Binary::Xor);
        if is_logical && is_float || a.kind != b.kind && binary != Binary::Pow {
            return Err(NodeProblem::Input { index: 1 }.into());
        }
        let mut args = Vec::new();
        for value in [a, b] {
            // A power of an integer may be a number, and the other way round.
            let value = if is_float { self.cast_into(value, class)? } else { value.clone() };
            let view = value.view.broadcast(shape).ok_or(NodeProblem::Input { index: 1 })?;
            args.push(value.seen(view));
        }
        let out = kernels::class(if is_float && kind != Kind::Bool { Kind::Float } else { Kind::Int }, class);
        let result = self.push(Kernel::Binary(binary), &args, shape, kind, out)?;
        if is_float && kind == Kind::Int {
            self.cast(&Value { kind: Kind::Float, ..result }, Kind::Int)
        } else {
            Ok(result)
        }
    }

    fn cast_into(&mut self, value: &Value, class: Class) -> Lowered {
        if value.kind == Kind::Float {
            return self.in_class(value, class);
        }
        let shape = value.shape().to_vec();
        self.push(Kernel::Convert { to: Kind::Float }, std::slice::from_ref(value), &shape, Kind::Float, class)
    }

    fn cast(&mut self, value: &Value, to: Kind) -> Lowered {
        if value.kind == to {
            return Ok(value.clone());
        }
        // Truth values are integers already.
        if value.kind == Kind::Bool && to == Kind::Int {
            return Ok(Value { kind: to, ..value.clone() });
        }
        let (shape, class) = (value.shape().to_vec(), kernels::class(to, self.precision.class()));
        self.push(Kernel::Convert { to }, std::slice::from_ref(value), &shape, to, class)
    }

    pub(super) fn unary(&mut self, unary: Unary, value: &Value) -> Lowered {
        let is_int = matches!(unary, Unary::Abs | Unary::Neg | Unary::Relu | Unary::Sign | Unary::Not | Unary::IsNan);
        if unary == Unary::Not && value.kind != Kind::Bool || value.kind != Kind::Float && !is_int {
            return Err(NodeProblem::Input { index: 0 }.into());
        }
        let shape = value.shape().to_vec();
        let (kind, class) = match unary {
            Unary::IsNan => (Kind::Bool, Class::Int),
            _ => (value.kind, value.class),
        };
        // A copy is in the order of the view, and so are results.
        self.push(Kernel::Unary(unary), std::slice::from_ref(value), &shape, kind, class)
    }

    fn clip(&mut self, inputs: &Inputs) -> Lowered {
        let value = inputs.get(0)?.clone();
        let (lower, upper) = (inputs.optional(1).cloned(), inputs.optional(2).cloned());
        let kernel = Kernel::Clip { has_lower: lower.is_some(), has_upper: upper.is_some() };
        let shape = value.shape().to_vec();
        let mut args = vec![value.clone()];
        for limit in lower.into_iter().chain(upper) {
            let limit = self.in_class(&limit, value.class)?;
            let view = limit.view.broadcast(&shape).ok_or_else(|| inputs.shapes())?;
            args.push(limit.seen(view));
        }
        if args.iter().any(|value| value.kind != args[0].kind) {
            return Err(NodeProblem::Input { index: 1 }.into());
        }
        self.push(kernel, &args, &shape, value.kind, value.class)
    }

    fn choose(&mut self, inputs: &Inputs) -> Lowered {
        let [condition, a, b] = [inputs.get(0)?.clone(), inputs.get(1)?.clone(), inputs.get(2)?.clone()];
        if condition.kind == Kind::Float || a.kind != b.kind {
            return Err(NodeProblem::Input { index: 2 }.into());
        }
        let shape = broadcast_shape(a.shape(), b.shape());
        let shape = shape.and_then(|shape| broadcast_shape(&shape, condition.shape()));
        let shape = shape.ok_or_else(|| inputs.shapes())?;
        let class = if a.kind == Kind::Float { self.common_class(&[&a, &b]) } else { Class::Int };
        let mut args = Vec::new();
        for value in [condition, self.in_class(&a, class)?, self.in_class(&b, class)?] {
            let view = value.view.broadcast(&shape).ok_or_else(|| inputs.shapes())?;
            args.push(value.seen(view));
        }
        self.push(Kernel::Where, &args, &shape, a.kind, class)
    }

    /// Normalises with stored statistics: x·a + b with a and b computed once.
    fn batch_norm(&mut self, epsilon: f32, inputs: &Inputs) -> Lowered {
        let x = inputs.get(0)?.clone();
        let mut parts = Vec::new();
        for index in 1..5 {
            let part = inputs.get(index)?;
            parts.push(part.numbers().ok_or(NodeProblem::NotConstant { index })?);
        }
        let n_channels = *x.shape().get(1).ok_or_else(|| inputs.shapes())?;
        if parts.iter().any(|part| part.len() != n_channels) {
            return Err(inputs.shapes());
        }
        let factor = |channel: usize| parts[0][channel] / (parts[3][channel] + f64::from(epsilon)).sqrt();
        let factors: Vec<f64> = (0..n_channels).map(factor).collect();
        let offsets = (0..n_channels).map(|channel| parts[1][channel] - parts[2][channel] * factors[channel]).collect();
        let mut shape = vec![1; x.shape().len()];
        shape[1] = n_channels;
        let constant = |values: Vec<f64>| {
            Value::constant(Arc::new(Tensor { kind: Kind::Float, shape: shape.clone(), data: Data::F64(values) }))
        };
        let scaled = self.binary(Binary::Mul, &x, &constant(factors)).map_err(|()| inputs.shapes())??;
        self.binary(Binary::Add, &scaled, &constant(offsets)).map_err(|()| inputs.shapes())?
    }

    fn layer_norm(&mut self, at: i64, epsilon: f32, is_rms: bool, inputs: &Inputs) -> Lowered {
        let x = self.narrow(inputs.get(0)?)?;
        let x = self.without_gaps(&x)?;
        let shape = x.shape().to_vec();
        let length: usize = shape[axis(at, shape.len())?..].iter().product();
        let mut args = vec![x];
        for index in 1..3 {
            let Some(factor) = inputs.optional(index) else { continue };
            let factor = self.narrow(factor)?;
            let whole = factor.view.broadcast(&shape[shape.len() - factor.shape().len().min(shape.len())..]);
            let factor = self.without_gaps(&factor.seen(whole.ok_or_else(|| inputs.shapes())?))?;
            if factor.view.len() != length {
                return Err(inputs.shapes());
            }
            args.push(factor);
        }
        if args.len() < 2 {
            return Err(NodeProblem::Input { index: 1 }.into());
        }
        let class = self.precision.class();
        self.push(Kernel::LayerNorm { epsilon, is_rms, length }, &args, &shape, Kind::Float, class)
    }

    fn softmax(&mut self, at: i64, is_logarithm: bool, inputs: &Inputs) -> Lowered {
        let mut args = vec![self.narrow(inputs.get(0)?)?];
        if let Some(second) = inputs.optional(1) {
            args.push(self.narrow(second)?);
        }
        let mut shape = args[0].shape().to_vec();
        if let Some(second) = args.get(1) {
            shape = broadcast_shape(&shape, second.shape()).ok_or_else(|| inputs.shapes())?;
        }
        let (n_axes, at) = (shape.len(), axis(at, shape.len())?);
        // The axis goes to the end, and back afterwards.
        let mut order: Vec<usize> = (0..n_axes).filter(|&other| other != at).collect();
        order.push(at);
        for arg in &mut args {
            let view = arg.view.broadcast(&shape).ok_or_else(|| inputs.shapes())?;
            *arg = arg.seen(view.transposed(&order));
        }
        let moved: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let kernel = Kernel::Softmax { length: shape[at], is_logarithm, is_sum: args.len() == 2 };
        let result = self.push(kernel, &args, &moved, Kind::Float, self.precision.class())?;
        let back: Vec<usize> =
            (0..n_axes).map(|axis| order.iter().position(|&other| other == axis).unwrap_or(axis)).collect();
        Ok(result.seen(result.view.transposed(&back)))
    }

    fn linear(&mut self, weights: &Arc<PackedMatrix>, activation: Activation, inputs: &Inputs) -> Lowered {
        let x = self.narrow(inputs.get(0)?)?;
        let (&k, outer) = x.shape().split_last().ok_or_else(|| inputs.shapes())?;
        if k != weights.rows {
            return Err(inputs.shapes());
        }
        let mut shape = outer.to_vec();
        let n_rows = shape.iter().product();
        shape.push(weights.columns);
        let mut args = vec![self.reshape(&x, &[n_rows, k])?];
        if let Some(bias) = inputs.optional(1) {
            let bias = self.narrow(bias)?;
            let bias = self.without_gaps(&bias)?;
            if bias.view.len() != weights.columns {
                return Err(inputs.shapes());
            }
            args.push(bias);
        }
        let kernel = Kernel::Linear { weights: Arc::clone(weights), activation };
        self.push(kernel, &args, &shape, Kind::Float, Class::F32)
    }

    pub(super) fn matmul(&mut self, a: &Value, b: &Value, inputs: &Inputs) -> Lowered {
        let (a, b) = match (a.kind, b.kind) {
            (Kind::Float, Kind::Float) => (self.narrow(a)?, self.narrow(b)?),
            _ => (a.clone(), b.clone()),
        };
        if a.kind != b.kind || a.shape().is_empty() || b.shape().is_empty() {
            return Err(inputs.shapes());
        }
        let with_axis = |value: &Value, shape: Vec<usize>| value.view.reshaped(&shape).map(|view| value.seen(view));
        let (is_row, is_column) = (a.shape().len() == 1, b.shape().len() == 1);
        let a = if is_row { with_axis(&a, vec![1, a.shape()[0]]) } else { Some(a) }.ok_or_else(|| inputs.shapes())?;
        let b =
            if is_column { with_axis(&b, vec![b.shape()[0], 1]) } else { Some(b) }.ok_or_else(|| inputs.shapes())?;
        let (a_stack, a_matrix) = a.shape().split_at(a.shape().len() - 2);
        let (b_stack, b_matrix) = b.shape().split_at(b.shape().len() - 2);
        let [rows, k, columns] = [a_matrix[0], a_matrix[1], b_matrix[1]];
        let stack = broadcast_shape(a_stack, b_stack).filter(|_| k == b_matrix[0]).ok_or_else(|| inputs.shapes())?;
        let mut shape = stack.clone();
        shape.extend([rows, columns]);
        let mut args = Vec::new();
        for (value, matrix) in [(&a, [rows, k]), (&b, [k, columns])] {
            let wanted: Vec<usize> = stack.iter().copied().chain(matrix).collect();
            let view = value.view.broadcast(&wanted).ok_or_else(|| inputs.shapes())?;
            args.push(value.seen(view));
        }
        let (kind, class) = (a.kind, a.class);
        let result = self.push(Kernel::MatMul, &args, &shape, kind, class)?;
        let last = shape.len() - 1;
        match (is_row, is_column) {
            (true, true) => self.reshape(&result, &shape[..last - 1]),
            (true, false) => {
                let kept: Vec<usize> = stack.iter().copied().chain([columns]).collect();
                self.reshape(&result, &kept)
            }
            (false, true) => self.reshape(&result, &shape[..last]),
            (false, false) => Ok(result),
        }
    }

    fn gemm(&mut self, [alpha, beta]: [f32; 2], transposes: [bool; 2], inputs: &Inputs) -> Lowered {
        let mut factors = Vec::new();
        for (index, is_transposed) in transposes.into_iter().enumerate() {
            let factor = inputs.get(index)?;
            if factor.shape().len() != 2 {
                return Err(inputs.shapes());
            }
            factors.push(if is_transposed { factor.seen(factor.view.transposed(&[1, 0])) } else { factor.clone() });
        }
        let mut result = self.matmul(&factors[0], &factors[1], inputs)?;
        let scalar = |value: f32| {
            let tensor = Tensor { kind: Kind::Float, shape: vec![], data: Data::F32(vec![value]) };
            Value::constant(Arc::new(tensor))
        };
        if alpha != 1.0 {
            result = self.binary(Binary::Mul, &result, &scalar(alpha)).map_err(|()| inputs.shapes())??;
        }
        let Some(addend) = inputs.optional(2) else { return Ok(result) };
        let mut addend = self.narrow(addend)?;
        if beta != 1.0 {
            addend = self.binary(Binary::Mul, &addend, &scalar(beta)).map_err(|()| inputs.shapes())??;
        }
        self.binary(Binary::Add, &result, &addend).map_err(|()| inputs.shapes())?
    }

    /// Convolves single points, or patches that touch and do not overlap.
    fn convolution(&mut self, strides: &[i64], activation: Activation, inputs: &Inputs) -> Lowered {
        let (x, weights) = (self.narrow(inputs.get(0)?)?, self.narrow(inputs.get(1)?)?);
        let (n_axes, kernel) = (x.shape().len(), weights.shape().get(2..).unwrap_or_default().to_vec());
        if n_axes < 3 || weights.shape().len() != n_axes || weights.shape()[1] != x.shape()[1] {
            return Err(inputs.shapes());
        }
        let fits = |(index, &size): (usize, &usize)| strides.get(index).copied().unwrap_or(1) == size as i64;
        if kernel.contains(&0) || !kernel.iter().enumerate().all(fits) {
            let value = format!("{strides:?}, and the kernel is {kernel:?}");
            return Err(NodeProblem::Attribute { attribute: "strides".into(), value }.into());
        }
        let (mut view, mut order) = (x.view.clone(), vec![0, 1]);
        let n_patches: Vec<usize> = x.shape()[2..].iter().zip(&kernel).map(|(size, kernel)| size / kernel).collect();
        view.shape.truncate(2);
        view.strides.truncate(2);
        for (index, (&patches, &size)) in n_patches.iter().zip(&kernel).enumerate() {
            let stride = x.view.strides[index + 2];
            view.shape.extend([patches, size]);
            view.strides.extend([stride * size as isize, stride]);
        }
        order.extend((0..kernel.len()).map(|index| 2 * index + 3));
        order.extend((0..kernel.len()).map(|index| 2 * index + 2));
        let n_inputs = weights.shape()[1..].iter().product();
        let matrix = [x.shape()[0], n_inputs, n_patches.iter().product()];
        let patches = self.reshape(&x.seen(view.transposed(&order)), &matrix)?;
        let n_outputs = weights.shape()[0];
        let mut args = vec![patches, self.reshape(&weights, &[n_outputs, n_inputs])?];
        if let Some(bias) = inputs.optional(2) {
            let bias = self.narrow(bias)?;
            args.push(self.without_gaps(&bias)?);
        }
        let kernel = Kernel::Pointwise { activation };
        let result =
            self.push(kernel, &args, &[matrix[0], n_outputs, matrix[2]], Kind::Float, self.precision.class())?;
        let shape: Vec<usize> = [matrix[0], n_outputs].into_iter().chain(n_patches).collect();
        self.reshape(&result, &shape)
    }
}

/// Returns π or a simple multiple of it in double precision, where a constant is its nearest number
/// of single precision: files have no better one.
fn exact_multiple_of_pi(value: &Value) -> Option<Value> {
    let Source::Constant(tensor) = &value.source else { return None };
    let number = tensor.scalar().filter(|_| tensor.data.class() == Class::F64)?;
    let multiples = [0.5, 1.0, 2.0, -0.5, -1.0, -2.0].map(|factor| factor * std::f64::consts::PI);
    let exact = multiples.into_iter().find(|multiple| f64::from(*multiple as f32) == number)?;
    let tensor = Tensor { kind: value.kind, shape: tensor.shape.clone(), data: Data::F64(vec![exact]) };
    Some(value.seen(value.view.clone())).map(|value| Value { source: Source::Constant(Arc::new(tensor)), ..value })
}

impl EncoderPrecision {
    /// Returns whether weights are packed for fast products.
    pub(super) fn packs(self) -> bool {
        self == EncoderPrecision::Single
    }
}
