//! Recognises what exporters take apart: activations, angles, products with a bias, and gathers of
//! pairs that can wait.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::{Binary, Graph, Node, Op, Reduction, Unary, Uses, ValueId};
use super::kernels::linear::{Activation, PackedMatrix};
use super::kernels::tables::Table;
use super::plan::EncoderPrecision;
use super::storage::{OutOfStorage, WeightStorage};
use super::tensor::{Data, Tensor};
use crate::error::Error;

/// Who computes each value, and how many use it.
struct Index {
    producers: HashMap<ValueId, usize>,
    users: HashMap<ValueId, Vec<usize>>,
    /// Values that are outputs, or used inside branches.
    pinned: std::collections::HashSet<ValueId>,
}

impl Index {
    fn of(graph: &Graph) -> Index {
        let mut index = Index { producers: HashMap::new(), users: HashMap::new(), pinned: Default::default() };
        for (place, node) in graph.nodes.iter().enumerate() {
            index.producers.extend(node.outputs.iter().map(|&output| (output, place)));
            let inputs = node.inputs.iter().flatten().copied();
            inputs.for_each(|value| index.users.entry(value).or_default().push(place));
            if matches!(node.op, Op::If { .. }) {
                node.each_use(&mut |value| {
                    index.pinned.insert(value);
                });
            }
        }
        index.pinned.extend(graph.outputs.iter().map(|port| port.value));
        index
    }

    fn producer<'g>(&self, graph: &'g Graph, value: ValueId) -> Option<&'g Node> {
        self.producers.get(&value).map(|&place| &graph.nodes[place])
    }

    /// Returns the only node that uses a value, if there is one.
    fn only_user(&self, value: ValueId) -> Option<usize> {
        match self.users.get(&value)?.as_slice() {
            [place] if !self.pinned.contains(&value) => Some(*place),
            _ => None,
        }
    }
}

impl Graph {
    fn number(&self, value: ValueId) -> Option<f64> {
        self.constants.get(&value).and_then(|tensor| tensor.scalar())
    }

    fn is_number(&self, value: ValueId, expected: f64) -> bool {
        self.number(value).is_some_and(|number| (number - expected).abs() <= 1e-6 * expected.abs())
    }
}

/// Returns the two inputs of a binary node.
fn operands(node: &Node, binary: Binary) -> Option<[ValueId; 2]> {
    match (&node.op, node.inputs.as_slice()) {
        (Op::Binary(found), [Some(a), Some(b)]) if *found == binary => Some([*a, *b]),
        _ => None,
    }
}

/// Returns the other operand of a commutative node one of whose operands is `number`.
fn times(graph: &Graph, node: &Node, binary: Binary, number: f64) -> Option<ValueId> {
    let [a, b] = operands(node, binary)?;
    if graph.is_number(b, number) {
        return Some(a);
    }
    graph.is_number(a, number).then_some(b)
}

/// Returns the other operand of a node one of whose operands is `value`.
fn beside(node: &Node, binary: Binary, value: ValueId) -> Option<ValueId> {
    let [a, b] = operands(node, binary)?;
    if a == value { Some(b) } else { (b == value).then_some(a) }
}

/// Replaces x·(1 + erf(x/√2))/2, however its factors are ordered, and x·sigmoid(x).
pub(super) fn activations(graph: &mut Graph) {
    let index = Index::of(graph);
    let mut found: Vec<(usize, Unary, ValueId)> = Vec::new();
    for node in &graph.nodes {
        match &node.op {
            Op::Unary(Unary::Erf) => {
                found.extend(gelu(graph, &index, node).map(|(place, x)| (place, Unary::Gelu, x)));
            }
            Op::Unary(Unary::Sigmoid) => {
                let (Some(Some(x)), Some(&output)) = (node.inputs.first().copied(), node.outputs.first()) else {
                    continue;
                };
                let user = index.only_user(output);
                let user = user.filter(|&place| beside(&graph.nodes[place], Binary::Mul, output) == Some(x));
                found.extend(user.map(|place| (place, Unary::Silu, x)));
            }
            _ => {}
        }
    }
    for (place, unary, x) in found {
        let node = &mut graph.nodes[place];
        (node.op, node.inputs) = (Op::Unary(unary), vec![Some(x)]);
    }
}

/// Returns where the last factor of a GELU is, and its argument.
fn gelu(graph: &Graph, index: &Index, erf: &Node) -> Option<(usize, ValueId)> {
    let scaled = index.producer(graph, erf.inputs.first().copied().flatten()?)?;
    let x = match operands(scaled, Binary::Div) {
        Some([x, by]) => graph.is_number(by, std::f64::consts::SQRT_2).then_some(x)?,
        None => times(graph, scaled, Binary::Mul, std::f64::consts::FRAC_1_SQRT_2)?,
    };
    let plus_one = index.only_user(*erf.outputs.first()?)?;
    times(graph, &graph.nodes[plus_one], Binary::Add, 1.0)?;
    let sum = *graph.nodes[plus_one].outputs.first()?;
    let first = index.only_user(sum)?;
    let factor = beside(&graph.nodes[first], Binary::Mul, sum)?;
    // x/2 may be a factor of its own.
    let halved = index.producer(graph, factor).and_then(|node| times(graph, node, Binary::Mul, 0.5));
    if halved == Some(x) {
        return Some((first, x));
    }
    let product = *graph.nodes[first].outputs.first()?;
    let second = index.only_user(product)?;
    let other = beside(&graph.nodes[second], Binary::Mul, product)?;
    let is_gelu = factor == x && graph.is_number(other, 0.5) || graph.is_number(factor, 0.5) && other == x;
    is_gelu.then_some((second, x))
}

/// Replaces the arctangent of a quotient with its quadrants sorted out by the angle itself: the
/// quotient of two zeros is no number, and the angle is 0.
pub(super) fn angles(graph: &mut Graph) {
    let index = Index::of(graph);
    let mut found = Vec::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        if let Some([y, x]) = angle(graph, &index, node) {
            found.push((place, y, x));
        }
    }
    for (place, y, x) in found {
        let node = &mut graph.nodes[place];
        (node.op, node.inputs) = (Op::Binary(Binary::Atan2), vec![Some(y), Some(x)]);
    }
}

/// Matches where(x < 0, where(y > 0, a + π, a - π), a) with a = atan(y/x).
fn angle(graph: &Graph, index: &Index, node: &Node) -> Option<[ValueId; 2]> {
    let choice = |node: &Node| match (&node.op, node.inputs.as_slice()) {
        (Op::Where, [Some(condition), Some(a), Some(b)]) => Some([*condition, *a, *b]),
        _ => None,
    };
    let [is_left, turned, a] = choice(node)?;
    let atan = index.producer(graph, a).filter(|node| matches!(node.op, Op::Unary(Unary::Atan)))?;
    let [y, x] = operands(index.producer(graph, atan.inputs.first().copied().flatten()?)?, Binary::Div)?;
    let [is_up, up, down] = choice(index.producer(graph, turned)?)?;
    let is_zero = |value: ValueId| graph.number(value) == Some(0.0);
    let [left, zero] = operands(index.producer(graph, is_left)?, Binary::Less)?;
    let [above, other_zero] = operands(index.producer(graph, is_up)?, Binary::Greater)?;
    let pi = std::f64::consts::PI;
    let up = times(graph, index.producer(graph, up)?, Binary::Add, pi)?;
    let [down, turn] = operands(index.producer(graph, down)?, Binary::Sub)?;
    let fits = left == x && above == y && is_zero(zero) && is_zero(other_zero);
    (fits && up == a && down == a && graph.is_number(turn, pi)).then_some([y, x])
}

/// Adds the summand of a softmax while it is computed.
pub(super) fn softmax_sums(graph: &mut Graph) {
    let index = Index::of(graph);
    for place in 0..graph.nodes.len() {
        let (Op::Softmax { .. }, [Some(input)]) = (&graph.nodes[place].op, graph.nodes[place].inputs.as_slice()) else {
            continue;
        };
        let Some(sum) = index.producer(graph, *input) else { continue };
        if let (Some([a, b]), Some(_)) = (operands(sum, Binary::Add), index.only_user(*input)) {
            graph.nodes[place].inputs = vec![Some(a), Some(b)];
        }
    }
}

/// Packs constant factors as `storage` says, and lets products add their bias and apply their
/// activation.
///
/// # Errors
///
/// A weight that `storage` does not have.
pub(super) fn products(graph: &mut Graph, precision: EncoderPrecision, storage: WeightStorage) -> Result<(), Error> {
    if precision.packs() {
        let (mut packed, mut uses) = (HashMap::new(), Uses::of(graph));
        for place in 0..graph.nodes.len() {
            if let Some(weights) = pack(graph, place, storage, &mut packed)? {
                uses.end(graph, weights);
            }
        }
        biases(graph);
        tables(graph, storage, uses)?;
    }
    let index = Index::of(graph);
    for place in 0..graph.nodes.len() {
        let node = &graph.nodes[place];
        if !matches!(node.op, Op::Linear { .. } | Op::Conv { .. }) {
            continue;
        }
        let Some(user) = node.outputs.first().and_then(|&output| index.only_user(output)) else { continue };
        let wanted = match graph.nodes[user].op {
            Op::Unary(Unary::Gelu) => Activation::Gelu,
            Op::Unary(Unary::GeluTanh) => Activation::GeluTanh,
            Op::Unary(Unary::Relu) => Activation::Relu,
            Op::Unary(Unary::Silu) => Activation::Silu,
            _ => continue,
        };
        if !precision.packs() {
            continue;
        }
        let outputs = std::mem::take(&mut graph.nodes[user].outputs);
        let node = &mut graph.nodes[place];
        node.outputs = outputs;
        match &mut node.op {
            Op::Linear { activation, .. } | Op::Conv { activation, .. } => *activation = wanted,
            _ => {}
        }
    }
    Ok(())
}

fn matrix(graph: &Graph, value: ValueId) -> Option<&Tensor> {
    let tensor = graph.constants.get(&value)?;
    (tensor.shape.len() == 2 && matches!(tensor.data, Data::F32(_))).then_some(tensor)
}

/// Returns how a constant is stored: what was computed of several numbers of the file is not
/// rounded.
fn storage_of(graph: &Graph, value: ValueId, storage: WeightStorage) -> WeightStorage {
    if graph.tensor_names.contains_key(&value) { storage } else { WeightStorage::F32 }
}

/// Returns the error of a constant with a number that `storage` does not have.
fn refused(graph: &Graph, value: ValueId, storage: WeightStorage, found: OutOfStorage) -> Error {
    let tensor = graph.tensor_names.get(&value).map_or("", |name| name);
    Error::weight_storage(tensor, found.value, storage.name(), storage.largest())
}

/// Stores the constant tables whose rows are gathered in fewer bytes.
fn tables(graph: &mut Graph, storage: WeightStorage, mut uses: Uses) -> Result<(), Error> {
    let mut tables: HashMap<ValueId, Arc<Table>> = HashMap::new();
    for place in 0..graph.nodes.len() {
        let (Op::Gather { axis: 0 | -2 }, [Some(value), Some(indices)]) =
            (&graph.nodes[place].op, graph.nodes[place].inputs.as_slice())
        else {
            continue;
        };
        let (value, indices) = (*value, *indices);
        let table = match (tables.get(&value), matrix(graph, value)) {
            (Some(table), _) => Arc::clone(table),
            (None, Some(Tensor { shape, data: Data::F32(values), .. })) => {
                let storage = storage_of(graph, value, storage);
                let table = Table::of(values, shape[1], storage);
                match table.map_err(|found| refused(graph, value, storage, found))? {
                    Some(table) => Arc::new(table),
                    None => continue,
                }
            }
            _ => continue,
        };
        tables.insert(value, Arc::clone(&table));
        let node = &mut graph.nodes[place];
        (node.op, node.inputs) = (Op::TableRows { table }, vec![Some(indices)]);
        uses.end(graph, value);
    }
    Ok(())
}

/// Packs the second factor of a product if it is constant, and returns which constant it was.
fn pack(
    graph: &mut Graph,
    place: usize,
    storage: WeightStorage,
    packed: &mut HashMap<(ValueId, bool), Arc<PackedMatrix>>,
) -> Result<Option<ValueId>, Error> {
    let node = &graph.nodes[place];
    let (transposes, bias) = match (&node.op, node.inputs.get(2)) {
        (Op::MatMul, _) => (false, None),
        (Op::Gemm { alpha, beta, transposes: [false, transposes] }, bias) if *alpha == 1.0 => {
            let bias = bias.copied().flatten();
            if bias.is_some() && *beta != 1.0 {
                return Ok(None);
            }
            (*transposes, bias)
        }
        _ => return Ok(None),
    };
    let Some(Some(weights)) = node.inputs.get(1).copied() else { return Ok(None) };
    let Some(tensor) = matrix(graph, weights) else { return Ok(None) };
    let view = if transposes { tensor.view().transposed(&[1, 0]) } else { tensor.view() };
    let is_vector = |value: &ValueId| {
        graph
            .constants
            .get(value)
            .is_some_and(|bias| bias.shape == [view.shape[1]] && matches!(bias.data, Data::F32(_)))
    };
    if !bias.iter().all(is_vector) {
        return Ok(None);
    }
    let Data::F32(values) = &tensor.data else { return Ok(None) };
    let matrix = match packed.get(&(weights, transposes)) {
        Some(matrix) => Arc::clone(matrix),
        None => {
            let storage = storage_of(graph, weights, storage);
            let matrix = PackedMatrix::of(values, &view, storage);
            Arc::new(matrix.map_err(|found| refused(graph, weights, storage, found))?)
        }
    };
    packed.insert((weights, transposes), Arc::clone(&matrix));
    let node = &mut graph.nodes[place];
    node.op = Op::Linear { weights: matrix, activation: Activation::None };
    node.inputs = vec![node.inputs[0], bias].into_iter().take(1 + usize::from(bias.is_some())).collect();
    Ok(Some(weights))
}

/// Lets products add the vectors that only their outputs are added to.
fn biases(graph: &mut Graph) {
    let index = Index::of(graph);
    for place in 0..graph.nodes.len() {
        let node = &graph.nodes[place];
        let (Op::Linear { weights, .. }, [_], Some(&output)) = (&node.op, node.inputs.as_slice(), node.outputs.first())
        else {
            continue;
        };
        let Some(user) = index.only_user(output) else { continue };
        let Some(bias) = beside(&graph.nodes[user], Binary::Add, output) else { continue };
        let is_vector = graph.constants.get(&bias).is_some_and(|bias| bias.shape == [weights.columns]);
        if is_vector {
            let outputs = std::mem::take(&mut graph.nodes[user].outputs);
            graph.nodes[place].outputs = outputs;
            graph.nodes[place].inputs.push(Some(bias));
        }
    }
}

/// Moves gathers behind the functions of what they gather: a function of each particle is computed
/// once per particle, and not once per pair.
pub(super) fn delay_gathers(graph: &mut Graph) {
    let mut gathered: HashMap<ValueId, Gathered> = HashMap::new();
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        if let (Op::Gather { axis }, [Some(from), Some(indices)], Some(&output)) =
            (&node.op, node.inputs.as_slice(), node.outputs.first())
            && *axis > 0
        {
            gathered.insert(output, Gathered { from: *from, indices: *indices, axis: *axis });
            nodes.push(node);
            continue;
        }
        let Some(Gathered { indices, axis, .. }) = shared_gather(&node, &gathered, graph) else {
            nodes.push(node);
            continue;
        };
        for input in node.inputs.iter_mut().flatten() {
            *input = gathered.get(input).map_or(*input, |gather| gather.from);
        }
        let mut gathers = Vec::new();
        for output in &mut node.outputs {
            let early = graph.n_values;
            graph.n_values += 1;
            let gather = Node {
                name: Arc::clone(&node.name),
                operator: "Gather".into(),
                op: Op::Gather { axis },
                inputs: vec![Some(early), Some(indices)],
                outputs: vec![*output],
            };
            gathered.insert(*output, Gathered { from: early, indices, axis });
            gathers.push(gather);
            *output = early;
        }
        nodes.push(node);
        nodes.append(&mut gathers);
    }
    graph.nodes = nodes;
}

/// A value that is a gather of another.
#[derive(Clone, Copy)]
struct Gathered {
    from: ValueId,
    indices: ValueId,
    axis: i64,
}

/// Returns the gather that all inputs of a node have in common, if the node works on each gathered
/// element by itself.
fn shared_gather(node: &Node, gathered: &HashMap<ValueId, Gathered>, graph: &Graph) -> Option<Gathered> {
    let first = node.inputs.first().copied().flatten();
    let shared = first.and_then(|value| gathered.get(&value)).or_else(|| {
        let second = node.inputs.get(1).copied().flatten()?;
        matches!(node.op, Op::Binary(_)).then(|| gathered.get(&second)).flatten()
    })?;
    let before = |axis: &i64| (0..shared.axis).contains(axis);
    let axes = |input: usize| {
        let axes = node.inputs.get(input).copied().flatten().and_then(|value| graph.constants.get(&value));
        axes.is_some_and(|axes| matches!(&axes.data, Data::Int(axes) if axes.iter().all(before)))
    };
    let n_data = match &node.op {
        Op::Unary(_) | Op::Clip => 1,
        Op::Binary(_) => node.inputs.len(),
        Op::Slice if axes(3) => 1,
        Op::Split { axis } if before(axis) => 1,
        Op::Concat { axis } if before(axis) => node.inputs.len(),
        Op::Reduce { axes: None, keeps: true, reduction: Reduction::Sum, .. } if axes(1) => 1,
        _ => return None,
    };
    let is_same = |value: &ValueId| {
        gathered.get(value).is_some_and(|other| (other.indices, other.axis) == (shared.indices, shared.axis))
    };
    let is_single = |value: &ValueId| graph.constants.get(value).is_some_and(|tensor| tensor.shape.is_empty());
    let takes_singles = matches!(node.op, Op::Binary(_));
    let data = node.inputs[..n_data].iter().map(Option::as_ref);
    let fits = |value: Option<&ValueId>| value.is_some_and(|value| is_same(value) || takes_singles && is_single(value));
    let rest_is_constant = node.inputs[n_data..].iter().flatten().all(|value| graph.constants.contains_key(value));
    (data.into_iter().all(fits) && rest_is_constant).then_some(*shared)
}
