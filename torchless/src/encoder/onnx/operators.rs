//! Operators of an ONNX file: names, versions and attributes in, the operators of this crate out.

use std::path::Path;
use std::sync::Arc;

use super::attributes::Attributes;
use super::schema::NodeProto;
use super::tensors;
use crate::encoder::graph::{Binary, Op, Reduction, Unary};
use crate::encoder::kernels::linear::Activation;
use crate::encoder::tensor::{Data, Kind, Tensor};
use crate::error::{Error, NodeProblem};

/// An operator, and the inputs that older versions have as attributes.
pub(super) struct Resolved {
    pub(super) op: Op,
    pub(super) inputs: Vec<(usize, Tensor)>,
}

impl From<Op> for Resolved {
    fn from(op: Op) -> Resolved {
        Resolved { op, inputs: Vec::new() }
    }
}

/// Returns the tensor of a `Constant`, and nothing for another operator.
pub(super) fn constant(path: &Path, name: &str, proto: &NodeProto) -> Result<Option<Tensor>, Error> {
    if proto.op_type != "Constant" {
        return Ok(None);
    }
    let mut attributes = Attributes::of(name, proto);
    let float = |shape: Vec<usize>, values| Tensor { kind: Kind::Float, shape, data: Data::F32(values) };
    let tensor = if let Some(proto) = attributes.tensor("value") {
        tensors::read(path, proto)?
    } else if let Some(attribute) = attributes.attribute("value_float") {
        float(vec![], vec![attribute.f])
    } else if let Some(attribute) = attributes.attribute("value_floats") {
        float(vec![attribute.floats.len()], attribute.floats.clone())
    } else if let Some(attribute) = attributes.attribute("value_int") {
        Tensor::ints(&[], vec![attribute.i])
    } else if let Some(attribute) = attributes.attribute("value_ints") {
        Tensor::ints(&[attribute.ints.len()], attribute.ints.clone())
    } else {
        return Err(attributes.refuse("value", "not a tensor, a number or a list of numbers".into()));
    };
    Ok(Some(tensor))
}

/// Resolves the operator of `proto`, a node of the name `name`.
pub(super) fn resolve(path: &Path, opset: i64, name: &str, proto: &NodeProto) -> Result<Resolved, Error> {
    if let Some(op) = without_attributes(&proto.op_type) {
        Attributes::of(name, proto).end()?;
        return Ok(op.into());
    }
    let mut attributes = Attributes::of(name, proto);
    let resolved =
        with_attributes(path, opset, &proto.op_type, [proto.input.len(), proto.output.len()], &mut attributes)?;
    let resolved = match resolved {
        Some(resolved) => resolved,
        None => reduction(opset, &proto.op_type, &mut attributes)
            .ok_or_else(|| Error::node(name, &proto.op_type, NodeProblem::Unsupported))?,
    };
    attributes.end()?;
    let n_outputs = if matches!(resolved.op, Op::Split { .. }) { usize::MAX } else { 1 };
    if proto.output.iter().skip(n_outputs).any(|output| !output.is_empty()) {
        return Err(Error::node(name, &proto.op_type, NodeProblem::Outputs));
    }
    Ok(resolved)
}

fn without_attributes(operator: &str) -> Option<Op> {
    unary(operator).map(Op::Unary).or_else(|| binary(operator).map(Op::Binary)).or_else(|| {
        Some(match operator {
            "Clip" => Op::Clip,
            "Expand" => Op::Expand,
            "Identity" => Op::Identity,
            "MatMul" => Op::MatMul,
            "NonZero" => Op::NonZero,
            "Range" => Op::Range,
            "Size" => Op::Size,
            "Slice" => Op::Slice,
            "Squeeze" => Op::Squeeze,
            "Tile" => Op::Tile,
            "Unsqueeze" => Op::Unsqueeze,
            "Where" => Op::Where,
            _ => return None,
        })
    })
}

fn unary(operator: &str) -> Option<Unary> {
    Some(match operator {
        "Abs" => Unary::Abs,
        "Atan" => Unary::Atan,
        "Ceil" => Unary::Ceil,
        "Cos" => Unary::Cos,
        "Erf" => Unary::Erf,
        "Exp" => Unary::Exp,
        "Floor" => Unary::Floor,
        "IsNaN" => Unary::IsNan,
        "Log" => Unary::Log,
        "Neg" => Unary::Neg,
        "Not" => Unary::Not,
        "Reciprocal" => Unary::Reciprocal,
        "Relu" => Unary::Relu,
        "Sigmoid" => Unary::Sigmoid,
        "Sign" => Unary::Sign,
        "Sin" => Unary::Sin,
        "Softplus" => Unary::Softplus,
        "Sqrt" => Unary::Sqrt,
        "Tanh" => Unary::Tanh,
        _ => return None,
    })
}

fn binary(operator: &str) -> Option<Binary> {
    Some(match operator {
        "Add" | "Sum" => Binary::Add,
        "And" => Binary::And,
        "Div" => Binary::Div,
        "Equal" => Binary::Equal,
        "Greater" => Binary::Greater,
        "GreaterOrEqual" => Binary::GreaterOrEqual,
        "Less" => Binary::Less,
        "LessOrEqual" => Binary::LessOrEqual,
        "Max" => Binary::Max,
        "Min" => Binary::Min,
        "Mul" => Binary::Mul,
        "Or" => Binary::Or,
        "Pow" => Binary::Pow,
        "Sub" => Binary::Sub,
        "Xor" => Binary::Xor,
        _ => return None,
    })
}

fn with_attributes(
    path: &Path,
    opset: i64,
    operator: &str,
    [n_inputs, n_outputs]: [usize; 2],
    attributes: &mut Attributes<'_>,
) -> Result<Option<Resolved>, Error> {
    let axis = |attributes: &mut Attributes<'_>, default| attributes.int("axis").unwrap_or(default);
    Ok(Some(Resolved::from(match operator {
        "BatchNormalization" => {
            attributes.only("training_mode", 0)?;
            attributes.ignore("momentum");
            Op::BatchNorm { epsilon: attributes.float("epsilon", 1e-5) }
        }
        "Cast" => {
            attributes.ignore("saturate");
            let to = attributes.int("to").unwrap_or_default();
            // Narrow integers wrap, which nothing here does.
            let is_known = matches!(to, 1 | 6 | 7 | 9 | 10 | 11 | 16);
            let kind = tensors::kind(to as i32).filter(|_| is_known);
            Op::Cast { to: kind.ok_or_else(|| attributes.refuse("to", to.to_string()))? }
        }
        "Concat" => Op::Concat { axis: axis(attributes, 0) },
        "ConstantOfShape" => {
            let value = attributes.tensor("value").map(|proto| tensors::read(path, proto)).transpose()?;
            let zero = || Tensor { kind: Kind::Float, shape: vec![1], data: Data::F32(vec![0.0]) };
            Op::ConstantOfShape { value: Arc::new(value.unwrap_or_else(zero)) }
        }
        "Conv" => convolution(attributes)?,
        "CumSum" => Op::CumSum {
            is_exclusive: attributes.flag("exclusive", false),
            is_reversed: attributes.flag("reverse", false),
        },
        "Dropout" if n_inputs > 2 => return Err(attributes.refuse("training_mode", "given".into())),
        "Dropout" => {
            attributes.ignore("seed");
            Op::Identity
        }
        "Flatten" => Op::Flatten { axis: axis(attributes, 1) },
        "Gather" => Op::Gather { axis: axis(attributes, 0) },
        "GatherElements" => Op::GatherElements { axis: axis(attributes, 0) },
        "GatherND" => {
            attributes.only("batch_dims", 0)?;
            Op::GatherNd
        }
        "Gelu" => match attributes.text("approximate", "none").as_str() {
            "none" => Op::Unary(Unary::Gelu),
            "tanh" => Op::Unary(Unary::GeluTanh),
            other => return Err(attributes.refuse("approximate", other.into())),
        },
        "Gemm" => Op::Gemm {
            alpha: attributes.float("alpha", 1.0),
            beta: attributes.float("beta", 1.0),
            transposes: [attributes.flag("transA", false), attributes.flag("transB", false)],
        },
        "LayerNormalization" => {
            attributes.ignore("stash_type");
            Op::LayerNorm { axis: axis(attributes, -1), epsilon: attributes.float("epsilon", 1e-5) }
        }
        "LogSoftmax" => Op::Softmax { axis: axis(attributes, -1), is_logarithm: true },
        "Mod" => Op::Binary(Binary::Mod { follows_dividend: attributes.flag("fmod", false) }),
        "Pad" => match attributes.text("mode", "constant").as_str() {
            "constant" => Op::Pad,
            other => return Err(attributes.refuse("mode", other.into())),
        },
        "Reshape" => Op::Reshape { allows_zero: attributes.flag("allowzero", false) },
        "RMSNormalization" => {
            attributes.ignore("stash_type");
            Op::RmsNorm { axis: axis(attributes, -1), epsilon: attributes.float("epsilon", 1e-5) }
        }
        "ScatterND" => match attributes.text("reduction", "none").as_str() {
            "none" => Op::ScatterNd,
            other => return Err(attributes.refuse("reduction", other.into())),
        },
        "Shape" => Op::Shape { start: attributes.int("start").unwrap_or(0), end: attributes.int("end") },
        "Softmax" => Op::Softmax { axis: axis(attributes, -1), is_logarithm: false },
        "Split" => return split(opset, n_outputs, attributes).map(Some),
        "Transpose" => Op::Transpose { order: attributes.ints("perm") },
        "Trilu" => Op::Trilu { is_upper: attributes.flag("upper", true) },
        _ => return Ok(None),
    })))
}

/// Resolves a split into as many parts as there are outputs: their number is known only here.
fn split(opset: i64, n_outputs: usize, attributes: &mut Attributes<'_>) -> Result<Resolved, Error> {
    if opset >= 18
        && let Some(n_parts) = attributes.int("num_outputs")
        && n_parts != n_outputs as i64
    {
        return Err(attributes.refuse("num_outputs", n_parts.to_string()));
    }
    Ok(Op::Split { axis: attributes.int("axis").unwrap_or(0) }.into())
}

fn convolution(attributes: &mut Attributes<'_>) -> Result<Op, Error> {
    attributes.only("group", 1)?;
    for (name, only) in [("pads", 0), ("dilations", 1)] {
        if let Some(values) = attributes.ints(name)
            && values.iter().any(|&value| value != only)
        {
            return Err(attributes.refuse(name, format!("{values:?}")));
        }
    }
    match attributes.text("auto_pad", "NOTSET").as_str() {
        "NOTSET" | "VALID" => {}
        other => return Err(attributes.refuse("auto_pad", other.into())),
    }
    attributes.ignore("kernel_shape");
    let strides = attributes.ints("strides").unwrap_or_default();
    Ok(Op::Conv { strides, activation: Activation::None })
}

fn reduction(opset: i64, operator: &str, attributes: &mut Attributes<'_>) -> Option<Resolved> {
    let reduction = match operator {
        "ReduceL2" => Reduction::Norm,
        "ReduceMax" => Reduction::Max,
        "ReduceMean" => Reduction::Mean,
        "ReduceMin" => Reduction::Min,
        "ReduceProd" => Reduction::Product,
        "ReduceSum" => Reduction::Sum,
        "ReduceSumSquare" => Reduction::SumOfSquares,
        _ => return None,
    };
    let axes = if opset < 18 || reduction == Reduction::Sum { attributes.ints("axes") } else { None };
    let keeps = attributes.flag("keepdims", true);
    let empty_is_identity = attributes.flag("noop_with_empty_axes", false);
    Some(Op::Reduce { reduction, axes, keeps, empty_is_identity }.into())
}
