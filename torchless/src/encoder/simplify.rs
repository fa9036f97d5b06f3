//! Makes a graph smaller without changing what it computes: nodes of constants are replaced by what
//! they compute, what is computed twice is computed once, and what nothing uses goes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::graph::{Graph, Node, Op, Uses, ValueId};
use super::plan::{Builder, EncoderPrecision, Source, Value};
use super::tensor::{Data, Kind, Tensor};
use crate::error::Error;
use crate::simd::InstructionSet;

/// Constants of at most this many elements are compared with each other.
const SMALL: usize = 64;

/// Replaces nodes of constants by what they compute.
pub(super) fn evaluate_constants(
    graph: &mut Graph,
    precision: EncoderPrecision,
    isa: InstructionSet,
) -> Result<(), Error> {
    let mut builder = Builder::new(precision, isa);
    let mut uses = Uses::of(graph);
    let mut left = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        let is_constant = |value: &ValueId| graph.constants.contains_key(value);
        if matches!(node.op, Op::If { .. }) || !node.inputs.iter().flatten().all(is_constant) {
            left.push(node);
            continue;
        }
        builder.lower(graph, &node)?;
        if let Some(name) = moved(graph, &node) {
            graph.tensor_names.extend(node.outputs.iter().map(|&output| (output, Arc::clone(&name))));
        }
        for &output in &node.outputs {
            if let Some(value) = builder.values.remove(&output) {
                graph.constants.insert(output, materialise(&value));
            }
        }
        node.inputs.iter().flatten().for_each(|&input| uses.end(graph, input));
    }
    graph.nodes = left;
    Ok(())
}

/// Returns the name of the tensor whose numbers a node moves and does not change, the first of
/// several.
fn moved(graph: &Graph, node: &Node) -> Option<Arc<str>> {
    let name = |input: &Option<ValueId>| input.and_then(|value| graph.tensor_names.get(&value));
    let n_data = match &node.op {
        Op::Transpose { .. } | Op::Reshape { .. } | Op::Flatten { .. } | Op::Squeeze | Op::Unsqueeze => 1,
        Op::Slice | Op::Split { .. } | Op::Gather { .. } | Op::Expand | Op::Cast { to: Kind::Float } => 1,
        Op::Concat { .. } => node.inputs.len(),
        _ => return None,
    };
    let data = node.inputs.get(..n_data)?;
    if data.iter().all(|input| name(input).is_some()) { name(data.first()?).cloned() } else { None }
}

/// Returns the elements of a constant's view as a tensor of their own.
fn materialise(value: &Value) -> Arc<Tensor> {
    let Source::Constant(tensor) = &value.source else {
        return Arc::new(Tensor::ints(&[0], Vec::new()));
    };
    if value.view == tensor.view() && value.kind == tensor.kind {
        return Arc::clone(tensor);
    }
    let places = value.view.places();
    let data = match &tensor.data {
        Data::F32(values) => Data::F32(places.map(|place| values[place]).collect()),
        Data::F64(values) => Data::F64(places.map(|place| values[place]).collect()),
        Data::Int(values) => Data::Int(places.map(|place| values[place]).collect()),
    };
    Arc::new(Tensor { kind: value.kind, shape: value.view.shape.clone(), data })
}

/// Computes once what several nodes compute, and forgets nodes that change nothing.
pub(super) fn share(graph: &mut Graph) {
    let mut same = equal_constants(graph);
    let mut known: HashMap<String, Vec<ValueId>> = HashMap::new();
    let mut left = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        rename(&mut node, &same);
        if let (Op::Identity, Some(Some(input)), Some(output)) = (&node.op, node.inputs.first(), node.outputs.first()) {
            same.insert(*output, *input);
            continue;
        }
        // The text of an operator has all of its attributes; branches and packed weights have names
        // of values inside, and are left alone.
        if !matches!(node.op, Op::If { .. } | Op::Linear { .. } | Op::TableRows { .. }) {
            let key = format!("{:?} {:?} {}", node.op, node.inputs, node.outputs.len());
            if let Some(outputs) = known.get(&key) {
                same.extend(node.outputs.iter().copied().zip(outputs.iter().copied()));
                continue;
            }
            known.insert(key, node.outputs.clone());
        }
        left.push(node);
    }
    graph.nodes = left;
    for port in &mut graph.outputs {
        port.value = same.get(&port.value).copied().unwrap_or(port.value);
    }
}

fn rename(node: &mut Node, same: &HashMap<ValueId, ValueId>) {
    node.each_use_mut(&mut |value| *value = same.get(value).copied().unwrap_or(*value));
}

/// Returns which small constants are equal to one before.
fn equal_constants(graph: &Graph) -> HashMap<ValueId, ValueId> {
    let mut first: HashMap<(Kind, Vec<usize>, Vec<u64>), ValueId> = HashMap::new();
    let mut same = HashMap::new();
    let mut ids: Vec<&ValueId> = graph.constants.keys().collect();
    ids.sort_unstable();
    for &id in ids {
        let tensor = &graph.constants[&id];
        if tensor.data.len() > SMALL {
            continue;
        }
        let bits = match &tensor.data {
            Data::F32(values) => values.iter().map(|value| u64::from(value.to_bits())).collect(),
            Data::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
            Data::Int(values) => values.iter().map(|value| *value as u64).collect(),
        };
        let key = (tensor.kind, tensor.shape.clone(), bits);
        if let Some(&other) = first.get(&key) {
            same.insert(id, other);
        } else {
            first.insert(key, id);
        }
    }
    same
}

/// Removes nodes and constants that no output needs.
pub(super) fn prune(graph: &mut Graph) {
    let mut needed: HashSet<ValueId> = graph.outputs.iter().map(|port| port.value).collect();
    let mut left = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if node.outputs.iter().any(|output| needed.contains(output)) {
            node.each_use(&mut |value| {
                needed.insert(value);
            });
            left.push(node);
        }
    }
    left.reverse();
    graph.nodes = left;
    graph.constants.retain(|value, _| needed.contains(value));
}

/// Brings the numbers of all constants into the class that the model is computed in.
pub(super) fn convert_constants(graph: &mut Graph, precision: EncoderPrecision) {
    for tensor in graph.constants.values_mut().filter(|tensor| tensor.kind == Kind::Float) {
        if tensor.data.class() == precision.class() {
            continue;
        }
        let values = tensor.to_f64();
        let data = match precision {
            EncoderPrecision::Single => Data::F32(values.into_iter().map(|value| value as f32).collect()),
            EncoderPrecision::Double => Data::F64(values),
        };
        *tensor = Arc::new(Tensor { kind: tensor.kind, shape: tensor.shape.clone(), data });
    }
}
