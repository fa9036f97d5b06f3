//! A graph in the making: layers of transformers with weights by name, in the operators that ONNX
//! files have, too.

use std::collections::HashSet;
use std::sync::Arc;

use crate::encoder::graph::{Binary, Dimension, Graph, Node, Op, Port, Unary, ValueId};
use crate::encoder::tensor::{Data, Kind, Tensor};
use crate::error::{Error, Problem};
use crate::files::Tensors;

/// A graph, the tensors that it is made of, and those that were not used yet.
pub(super) struct Network {
    tensors: Tensors,
    used: HashSet<String>,
    graph: Graph,
    /// What the nodes that follow are called in messages.
    pub(super) scope: String,
}

/// How a norm is computed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Norm {
    /// With mean and bias.
    Layer {
        /// What is added to the variance.
        epsilon: f32,
    },
    /// Of the root of the mean of squares, without a bias.
    RootMeanSquare {
        /// What is added to the mean of squares.
        epsilon: f32,
    },
}

/// Queries, keys and values of H heads: (batch, places, width) each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) queries: ValueId,
    pub(super) keys: ValueId,
    pub(super) values: ValueId,
    /// What is added to the scores, broadcast to (batch, heads, queries, keys).
    pub(super) bias: Option<ValueId>,
    pub(super) n_heads: usize,
    pub(super) width: usize,
}

impl Network {
    pub(super) fn new(tensors: Tensors) -> Network {
        Network { tensors, used: HashSet::new(), graph: Graph::default(), scope: String::new() }
    }

    /// Returns the graph.
    ///
    /// # Errors
    ///
    /// A tensor that no part of it is made of.
    pub(super) fn finish(self) -> Result<Graph, Error> {
        let is_unused = |name: &&String| !self.used.contains(*name);
        match self.tensors.by_name.keys().filter(is_unused).min() {
            Some(name) => Err(self.tensors.by_name[name].malformed(name, Problem::Superfluous)),
            None => Ok(self.graph),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.has(name)
    }

    /// Counts a tensor as used if the file has it: it changes no output.
    pub(super) fn ignore(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }

    fn value(&mut self) -> ValueId {
        self.graph.n_values += 1;
        self.graph.n_values - 1
    }

    pub(super) fn input(&mut self, name: &str, kind: Kind, dimensions: Vec<Dimension>) -> ValueId {
        let value = self.value();
        self.graph.inputs.push(Port { name: name.to_owned(), kind, dimensions: Some(dimensions), value });
        value
    }

    pub(super) fn output(&mut self, name: &str, dimensions: Vec<Dimension>, value: ValueId) {
        let port = Port { name: name.to_owned(), kind: Kind::Float, dimensions: Some(dimensions), value };
        self.graph.outputs.push(port);
    }

    /// Adds a node with one output.
    pub(super) fn node(&mut self, operator: &str, op: Op, inputs: &[ValueId]) -> ValueId {
        let output = self.value();
        self.graph.nodes.push(Node {
            name: self.scope.as_str().into(),
            operator: operator.into(),
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![output],
        });
        output
    }

    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let value = self.value();
        self.graph.constants.insert(value, Arc::new(tensor));
        value
    }

    pub(super) fn ints(&mut self, values: &[i64]) -> ValueId {
        self.constant(Tensor::ints(&[values.len()], values.to_vec()))
    }

    pub(super) fn int(&mut self, value: i64) -> ValueId {
        self.constant(Tensor::ints(&[], vec![value]))
    }

    pub(super) fn number(&mut self, value: f64) -> ValueId {
        self.numbers(&[], vec![value])
    }

    pub(super) fn numbers(&mut self, shape: &[usize], values: Vec<f64>) -> ValueId {
        self.constant(Tensor { kind: Kind::Float, shape: shape.to_vec(), data: Data::F64(values) })
    }

    /// Reads the numbers of a tensor, 16-bit ones widened.
    ///
    /// # Errors
    ///
    /// A tensor that is missing, or of another shape or type, and a number that is not finite.
    pub(super) fn read(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let values = self.tensors.numbers(name, shape)?;
        self.used.insert(name.to_owned());
        match values.iter().position(|value| !value.is_finite()) {
            Some(place) => {
                let problem = Problem::NotFinite { place, value: values[place] };
                Err(self.tensors.by_name[name].malformed(name, problem))
            }
            None => Ok(values),
        }
    }

    pub(super) fn weight(&mut self, name: &str, shape: &[usize]) -> Result<ValueId, Error> {
        let data = Data::F32(self.read(name, shape)?);
        let value = self.value();
        self.graph.insert_tensor(value, name, Tensor { kind: Kind::Float, shape: shape.to_vec(), data });
        Ok(value)
    }

    pub(super) fn binary(&mut self, binary: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.node(&format!("{binary:?}"), Op::Binary(binary), &[a, b])
    }

    pub(super) fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Add, a, b)
    }

    pub(super) fn unary(&mut self, unary: Unary, x: ValueId) -> ValueId {
        self.node(&format!("{unary:?}"), Op::Unary(unary), &[x])
    }

    pub(super) fn transpose(&mut self, x: ValueId, order: &[i64]) -> ValueId {
        self.node("Transpose", Op::Transpose { order: Some(order.to_vec()) }, &[x])
    }

    /// Gives another shape: 0 keeps a size, and -1 is what is left.
    pub(super) fn reshape(&mut self, x: ValueId, shape: &[i64]) -> ValueId {
        let shape = self.ints(shape);
        self.node("Reshape", Op::Reshape { allows_zero: false }, &[x, shape])
    }

    /// Returns the places `first` to `last` - 1 of an axis.
    pub(super) fn slice(&mut self, x: ValueId, axis: i64, first: usize, last: usize) -> ValueId {
        let [first, last, axis] = [first as i64, last as i64, axis].map(|value| self.ints(&[value]));
        self.node("Slice", Op::Slice, &[x, first, last, axis])
    }

    pub(super) fn gather(&mut self, x: ValueId, axis: i64, indices: ValueId) -> ValueId {
        self.node("Gather", Op::Gather { axis }, &[x, indices])
    }

    /// Returns the rows `ids` of a table of `n_rows`; a negative id is out of range, too.
    pub(super) fn rows(&mut self, table: ValueId, n_rows: usize, ids: ValueId) -> ValueId {
        let (zero, behind) = (self.int(0), self.int(n_rows as i64));
        let is_negative = self.binary(Binary::Less, ids, zero);
        let ids = self.node("Where", Op::Where, &[is_negative, behind, ids]);
        self.gather(table, 0, ids)
    }

    pub(super) fn concat(&mut self, values: &[ValueId], axis: i64) -> ValueId {
        self.node("Concat", Op::Concat { axis }, values)
    }

    /// Returns a size of a value as an integer.
    pub(super) fn size(&mut self, x: ValueId, axis: i64) -> ValueId {
        let size = self.node("Shape", Op::Shape { start: axis, end: Some(axis + 1) }, &[x]);
        self.node("Squeeze", Op::Squeeze, &[size])
    }

    /// Returns the integers from 0 to `count` - 1.
    pub(super) fn range(&mut self, count: ValueId) -> ValueId {
        let (zero, one) = (self.int(0), self.int(1));
        self.node("Range", Op::Range, &[zero, count, one])
    }

    /// Repeats a constant of the shape (1, ...) for each event of `like`.
    pub(super) fn for_each_event(&mut self, x: ValueId, shape: &[usize], like: ValueId) -> ValueId {
        let batch = self.node("Shape", Op::Shape { start: 0, end: Some(1) }, &[like]);
        let rest: Vec<i64> = shape[1..].iter().map(|&size| size as i64).collect();
        let rest = self.ints(&rest);
        let whole = self.concat(&[batch, rest], 0);
        self.node("Expand", Op::Expand, &[x, whole])
    }

    /// Multiplies by weights that are stored as (outputs, inputs): x·Wᵀ.
    pub(super) fn product(&mut self, x: ValueId, weights: ValueId) -> ValueId {
        let weights = self.transpose(weights, &[1, 0]);
        self.node("MatMul", Op::MatMul, &[x, weights])
    }

    /// Adds the layer `NAME.weight` (outputs, inputs), and `NAME.bias` (outputs) if it has one.
    pub(super) fn linear(
        &mut self,
        x: ValueId,
        name: &str,
        [inputs, outputs]: [usize; 2],
        has_bias: bool,
    ) -> Result<ValueId, Error> {
        name.clone_into(&mut self.scope);
        let weights = self.weight(&format!("{name}.weight"), &[outputs, inputs])?;
        let product = self.product(x, weights);
        if !has_bias {
            return Ok(product);
        }
        let bias = self.weight(&format!("{name}.bias"), &[outputs])?;
        Ok(self.add(product, bias))
    }

    /// Adds a norm of the last axis with `NAME.weight` and, of layers, `NAME.bias`.
    pub(super) fn norm(&mut self, x: ValueId, name: &str, width: usize, norm: Norm) -> Result<ValueId, Error> {
        name.clone_into(&mut self.scope);
        let weights = self.weight(&format!("{name}.weight"), &[width])?;
        Ok(match norm {
            Norm::Layer { epsilon } => {
                let bias = self.weight(&format!("{name}.bias"), &[width])?;
                self.node("LayerNormalization", Op::LayerNorm { axis: -1, epsilon }, &[x, weights, bias])
            }
            Norm::RootMeanSquare { epsilon } => {
                self.node("RMSNormalization", Op::RmsNorm { axis: -1, epsilon }, &[x, weights])
            }
        })
    }

    /// Returns softmax(Q·Kᵀ/√d + bias)·V, heads side by side: (batch, queries, width).
    pub(super) fn attention(&mut self, attention: Attention) -> ValueId {
        let Attention { queries, keys, values, bias, n_heads, width } = attention;
        let head = width / n_heads;
        let shape = [0, 0, n_heads as i64, head as i64];
        let scale = self.number(1.0 / (head as f64).sqrt());
        let queries = self.binary(Binary::Mul, queries, scale);
        let [queries, keys, values] = [queries, keys, values].map(|x| self.reshape(x, &shape));
        let queries = self.transpose(queries, &[0, 2, 1, 3]);
        let keys = self.transpose(keys, &[0, 2, 3, 1]);
        let values = self.transpose(values, &[0, 2, 1, 3]);
        let mut scores = self.node("MatMul", Op::MatMul, &[queries, keys]);
        if let Some(bias) = bias {
            scores = self.add(scores, bias);
        }
        let weights = self.node("Softmax", Op::Softmax { axis: -1, is_logarithm: false }, &[scores]);
        let mixed = self.node("MatMul", Op::MatMul, &[weights, values]);
        let mixed = self.transpose(mixed, &[0, 2, 1, 3]);
        self.reshape(mixed, &[0, 0, width as i64])
    }

    /// Returns 0 where a mask is set and -∞ where it is not.
    pub(super) fn key_bias(&mut self, mask: ValueId) -> ValueId {
        let is_set = self.node("Cast", Op::Cast { to: Kind::Bool }, &[mask]);
        let [zero, lowest] = [0.0, f64::NEG_INFINITY].map(|value| self.number(value));
        self.node("Where", Op::Where, &[is_set, zero, lowest])
    }
}
