//! A model as it is meant: operators with their attributes resolved, values by number, constants.

use std::collections::HashMap;
use std::sync::Arc;

use super::kernels::linear::{Activation, PackedMatrix};
use super::kernels::tables::Table;
use super::tensor::{Kind, Tensor};

/// The number of a value: what a node computes, an input, or a constant.
pub(super) type ValueId = usize;

/// A size of an input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// Always the same.
    Fixed(usize),
    /// Chosen by the caller; equal names are meant to be equal sizes.
    Named(String),
}

/// An input or an output as the model declares it.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) dimensions: Option<Vec<Dimension>>,
    pub(super) value: ValueId,
}

/// One operator of the model.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    /// As the file calls it.
    pub(super) operator: Arc<str>,
    pub(super) op: Op,
    /// None where an optional input is left out.
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<ValueId>,
}

/// One side of an `If`.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    pub(super) nodes: Vec<Node>,
    pub(super) outputs: Vec<ValueId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Abs,
    Atan,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Gelu,
    GeluTanh,
    IsNan,
    Log,
    Neg,
    Not,
    Reciprocal,
    Relu,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Softplus,
    Sqrt,
    Tanh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    And,
    Atan2,
    Div,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Max,
    Min,
    /// The sign of the result is the divisor's, or the dividend's.
    Mod {
        follows_dividend: bool,
    },
    Mul,
    Or,
    Pow,
    Sub,
    Xor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    Max,
    Mean,
    Min,
    Product,
    Sum,
    SumOfSquares,
    Norm,
}

/// What a node does. Axes are as written: they may count from the end.
#[derive(Debug, Clone)]
pub(super) enum Op {
    BatchNorm {
        epsilon: f32,
    },
    Binary(Binary),
    Cast {
        to: Kind,
    },
    Clip,
    Concat {
        axis: i64,
    },
    ConstantOfShape {
        value: Arc<Tensor>,
    },
    /// Patches that do not overlap, or single points.
    Conv {
        strides: Vec<i64>,
        activation: Activation,
    },
    CumSum {
        is_exclusive: bool,
        is_reversed: bool,
    },
    Expand,
    Flatten {
        axis: i64,
    },
    Gather {
        axis: i64,
    },
    GatherElements {
        axis: i64,
    },
    GatherNd,
    Gemm {
        alpha: f32,
        beta: f32,
        transposes: [bool; 2],
    },
    Identity,
    If {
        branches: Box<[Branch; 2]>,
    },
    LayerNorm {
        axis: i64,
        epsilon: f32,
    },
    /// A product with constant weights, packed: x·W, plus a bias.
    Linear {
        weights: Arc<PackedMatrix>,
        activation: Activation,
    },
    MatMul,
    NonZero,
    Pad,
    Range,
    Reduce {
        reduction: Reduction,
        axes: Option<Vec<i64>>,
        keeps: bool,
        empty_is_identity: bool,
    },
    Reshape {
        allows_zero: bool,
    },
    RmsNorm {
        axis: i64,
        epsilon: f32,
    },
    ScatterNd,
    Shape {
        start: i64,
        end: Option<i64>,
    },
    Size,
    Slice,
    /// With a second input, which is added first.
    Softmax {
        axis: i64,
        is_logarithm: bool,
    },
    Split {
        axis: i64,
    },
    Squeeze,
    /// Rows of a constant table that is stored in fewer bytes.
    TableRows {
        table: Arc<Table>,
    },
    Tile,
    Transpose {
        order: Option<Vec<i64>>,
    },
    Trilu {
        is_upper: bool,
    },
    Unary(Unary),
    Unsqueeze,
    Where,
}

/// A model without its names: nodes in the order in which they are computed.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) nodes: Vec<Node>,
    pub(super) constants: HashMap<ValueId, Arc<Tensor>>,
    /// The tensors of the file that constants are, perhaps in another order of axes or in part;
    /// what is computed of several numbers is not here.
    pub(super) tensor_names: HashMap<ValueId, Arc<str>>,
    pub(super) n_values: usize,
}

impl Graph {
    /// Adds a constant that is a tensor of the file.
    pub(super) fn insert_tensor(&mut self, value: ValueId, name: &str, tensor: Tensor) {
        if tensor.kind == Kind::Float {
            self.tensor_names.insert(value, name.into());
        }
        self.constants.insert(value, Arc::new(tensor));
    }
}

/// How many uses of each value are left: a constant goes with its last one, so that opening a model
/// takes little more memory than the model.
pub(super) struct Uses(HashMap<ValueId, usize>);

impl Uses {
    pub(super) fn of(graph: &Graph) -> Uses {
        let mut uses = HashMap::new();
        let mut count = |value| *uses.entry(value).or_default() += 1;
        graph.nodes.iter().for_each(|node| node.each_use(&mut count));
        graph.outputs.iter().for_each(|port| count(port.value));
        Uses(uses)
    }

    /// Takes one use away.
    pub(super) fn end(&mut self, graph: &mut Graph, value: ValueId) {
        let left = self.0.get(&value).map_or(0, |uses| uses.saturating_sub(1));
        self.0.insert(value, left);
        if left == 0 {
            graph.constants.remove(&value);
        }
    }
}

impl Node {
    /// Calls `f` with every value that the node uses, those inside branches included.
    pub(super) fn each_use(&self, f: &mut dyn FnMut(ValueId)) {
        self.inputs.iter().flatten().for_each(|&value| f(value));
        if let Op::If { branches } = &self.op {
            for branch in branches.iter() {
                branch.nodes.iter().for_each(|node| node.each_use(f));
                branch.outputs.iter().for_each(|&value| f(value));
            }
        }
    }

    /// Calls `f` with every value that the node uses, to replace it.
    pub(super) fn each_use_mut(&mut self, f: &mut dyn FnMut(&mut ValueId)) {
        self.inputs.iter_mut().flatten().for_each(&mut *f);
        if let Op::If { branches } = &mut self.op {
            for branch in branches.iter_mut() {
                branch.nodes.iter_mut().for_each(|node| node.each_use_mut(f));
                branch.outputs.iter_mut().for_each(&mut *f);
            }
        }
    }
}
