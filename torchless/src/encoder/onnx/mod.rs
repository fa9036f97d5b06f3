//! ONNX files: decoded, checked, and resolved into a graph of operators that are computed here.
//!
//! Every name that a node uses is defined before it, every attribute is known, and what is not
//! supported is an error that names the node. Nothing after this module can say "not found".

mod attributes;
mod operators;
mod schema;
mod tensors;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

use super::FixedInput;
use super::graph::{Branch, Dimension, Graph, Node, Port, ValueId};
use super::tensor::Tensor;
use crate::error::{Error, NodeProblem, Problem};
use crate::files::MappedFile;
use schema::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

/// The versions of ONNX's operators that are read.
const OPSETS: std::ops::RangeInclusive<i64> = 13..=21;

/// Branches of an `If` inside branches; real models have one.
const DEEPEST: usize = 8;

/// Reads the model at `path`.
pub(super) fn read(path: &Path) -> Result<Graph, Error> {
    let file = MappedFile::open(path)?;
    let bytes = Bytes::from_owner(MappedBytes(Arc::clone(&file.bytes)));
    let model = ModelProto::decode(bytes)
        .map_err(|error| file.malformed("the model", Problem::Protobuf { message: error.to_string() }))?;
    let opset = opset(&file, &model)?;
    if let Some(function) = model.functions.first() {
        let problem = Problem::Unsupported { what: "the function", found: function.name.clone() };
        return Err(file.malformed("the model", problem));
    }
    let missing = || file.malformed("the graph", Problem::Missing);
    let graph = model.graph.as_ref().ok_or_else(missing)?;
    Reader { path, opset, graph: Graph::default(), names: HashMap::new(), defined: Vec::new() }.read(graph)
}

/// Reads a tensor that is a file of its own, as in the tests of ONNX's operators: its name, its
/// shape and its numbers.
///
/// # Errors
///
/// A file that is no tensor, and elements that are not numbers.
pub fn read_tensor(path: &Path) -> Result<FixedInput, Error> {
    let file = MappedFile::open(path)?;
    let proto = schema::TensorProto::decode(&file.bytes[..])
        .map_err(|error| file.malformed("the tensor", Problem::Protobuf { message: error.to_string() }))?;
    let tensor = tensors::read(path, &proto)?;
    let values = tensor.to_f64();
    Ok(FixedInput { name: proto.name, shape: tensor.shape, values })
}

/// The bytes of a mapped file, for a decoder that shares them.
struct MappedBytes(Arc<memmap2::Mmap>);

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Returns the version of ONNX's own operators, if it is one that is read.
fn opset(file: &MappedFile, model: &ModelProto) -> Result<i64, Error> {
    let own = model.opset_import.iter().find(|import| matches!(import.domain.as_str(), "" | "ai.onnx"));
    let Some(own) = own else {
        return Err(file.malformed("`opset_import`", Problem::Missing));
    };
    if OPSETS.contains(&own.version) {
        return Ok(own.version);
    }
    let problem = Problem::OutOfRange { value: own.version.to_string(), expected: "opsets 13 to 21 are read" };
    Err(file.malformed("`opset_import`", problem))
}

/// A graph in the making, and the names of its values.
struct Reader<'a> {
    path: &'a Path,
    opset: i64,
    graph: Graph,
    names: HashMap<String, ValueId>,
    /// Names in the order in which they were defined.
    defined: Vec<String>,
}

impl Reader<'_> {
    fn read(mut self, proto: &GraphProto) -> Result<Graph, Error> {
        self.initializers(proto)?;
        for input in &proto.input {
            if !self.names.contains_key(&input.name) {
                let value = self.define(&input.name)?;
                let port = self.port(input, value)?;
                self.graph.inputs.push(port);
            }
        }
        self.graph.nodes = self.nodes(proto, 0)?;
        for output in &proto.output {
            let value = self.names.get(&output.name).copied().ok_or_else(|| self.undefined(&output.name))?;
            let port = self.port(output, value)?;
            self.graph.outputs.push(port);
        }
        Ok(self.graph)
    }

    fn undefined(&self, name: &str) -> Error {
        Error::malformed(self.path, format!("value `{name}`"), Problem::Missing)
    }

    fn define(&mut self, name: &str) -> Result<ValueId, Error> {
        let value = self.graph.n_values;
        self.graph.n_values += 1;
        match self.names.insert(name.to_owned(), value) {
            Some(_) if !name.is_empty() => {
                Err(Error::malformed(self.path, format!("value `{name}`"), Problem::Duplicate))
            }
            _ => {
                self.defined.push(name.to_owned());
                Ok(value)
            }
        }
    }

    fn initializers(&mut self, proto: &GraphProto) -> Result<(), Error> {
        for initializer in &proto.initializer {
            let tensor = tensors::read(self.path, initializer)?;
            let value = self.define(&initializer.name)?;
            self.graph.insert_tensor(value, &initializer.name, tensor);
        }
        Ok(())
    }

    fn port(&self, info: &ValueInfoProto, value: ValueId) -> Result<Port, Error> {
        let tensor = info.r#type.as_ref().and_then(|r#type| r#type.tensor_type.as_ref());
        let field = || format!("value `{}`", info.name);
        let unsupported = |found: String| {
            Error::malformed(self.path, field(), Problem::Unsupported { what: "the type of elements", found })
        };
        let tensor = tensor.ok_or_else(|| unsupported("not a tensor".into()))?;
        let kind = tensors::kind(tensor.elem_type).ok_or_else(|| unsupported(tensor.elem_type.to_string()))?;
        let dimension = |dimension: &schema::DimensionProto| match dimension.dim_value {
            Some(size) => usize::try_from(size).map(Dimension::Fixed).ok(),
            None => Some(Dimension::Named(dimension.dim_param.clone().unwrap_or_default())),
        };
        let dimensions = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(dimension).collect::<Option<Vec<_>>>());
        let dimensions = match dimensions {
            Some(None) => {
                let problem = Problem::OutOfRange { value: "a size".into(), expected: "sizes are not negative" };
                return Err(Error::malformed(self.path, field(), problem));
            }
            Some(dimensions) => dimensions,
            None => None,
        };
        Ok(Port { name: info.name.clone(), kind, dimensions, value })
    }

    fn nodes(&mut self, proto: &GraphProto, depth: usize) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::with_capacity(proto.node.len());
        for (index, node) in proto.node.iter().enumerate() {
            if let Some(node) = self.node(index, node, depth)? {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// Resolves a node; nothing is left of a constant.
    fn node(&mut self, index: usize, proto: &NodeProto, depth: usize) -> Result<Option<Node>, Error> {
        let name = if proto.name.is_empty() { format!("#{index}") } else { proto.name.clone() };
        let refuse = |problem| Error::node(&name, &proto.op_type, problem);
        if !matches!(proto.domain.as_str(), "" | "ai.onnx") {
            return Err(refuse(NodeProblem::Domain { domain: proto.domain.clone() }));
        }
        if let Some(tensor) = operators::constant(self.path, &name, proto)? {
            let [output] = &proto.output[..] else { return Err(refuse(NodeProblem::Outputs)) };
            let value = self.define(output)?;
            self.graph.insert_tensor(value, output, tensor);
            return Ok(None);
        }
        let mut inputs = Vec::with_capacity(proto.input.len());
        for input in &proto.input {
            let value = self.names.get(input).copied();
            inputs.push(if input.is_empty() { None } else { Some(value.ok_or_else(|| self.undefined(input))?) });
        }
        let op = match proto.op_type.as_str() {
            "If" => self.branches(&name, proto, depth)?,
            _ => {
                let op = operators::resolve(self.path, self.opset, &name, proto)?;
                self.attribute_inputs(&op.inputs, &mut inputs);
                op.op
            }
        };
        let mut outputs = Vec::with_capacity(proto.output.len());
        for output in &proto.output {
            outputs.push(self.define(output)?);
        }
        let (name, operator) = (name.into(), proto.op_type.as_str().into());
        Ok(Some(Node { name, operator, op, inputs, outputs }))
    }

    /// Makes constants of attributes that newer operators take as inputs.
    fn attribute_inputs(&mut self, tensors: &[(usize, Tensor)], inputs: &mut Vec<Option<ValueId>>) {
        for (index, tensor) in tensors {
            if inputs.len() <= *index {
                inputs.resize(index + 1, None);
            }
            let value = self.graph.n_values;
            self.graph.n_values += 1;
            self.graph.constants.insert(value, Arc::new(tensor.clone()));
            inputs[*index] = Some(value);
        }
    }

    fn branches(&mut self, name: &str, proto: &NodeProto, depth: usize) -> Result<super::graph::Op, Error> {
        if depth == DEEPEST {
            return Err(Error::node(name, &proto.op_type, NodeProblem::Depth { limit: DEEPEST }));
        }
        let branch = |wanted: &str| {
            let attribute = proto.attribute.iter().find(|attribute| attribute.name == wanted);
            attribute.and_then(|attribute| attribute.g.as_ref()).ok_or_else(|| {
                Error::node(
                    name,
                    &proto.op_type,
                    NodeProblem::Attribute { attribute: wanted.into(), value: "missing".into() },
                )
            })
        };
        let [then, other] = [branch("then_branch")?, branch("else_branch")?];
        let branches = Box::new([self.branch(then, depth)?, self.branch(other, depth)?]);
        Ok(super::graph::Op::If { branches })
    }

    /// Reads a branch; its names are forgotten at its end.
    fn branch(&mut self, proto: &GraphProto, depth: usize) -> Result<Branch, Error> {
        let outside = self.defined.len();
        self.initializers(proto)?;
        let nodes = self.nodes(proto, depth + 1)?;
        let output =
            |output: &ValueInfoProto| self.names.get(&output.name).copied().ok_or_else(|| self.undefined(&output.name));
        let outputs = proto.output.iter().map(output).collect::<Result<Vec<_>, _>>()?;
        for name in self.defined.drain(outside..) {
            self.names.remove(&name);
        }
        Ok(Branch { nodes, outputs })
    }
}
