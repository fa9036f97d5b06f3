//! Derivatives of every operator against central differences in double precision, and those of
//! single precision against double precision.

mod edges;

use std::sync::Arc;

use super::tape::differentiate;
use crate::encoder::graph::{Binary, Dimension, Graph, Node, Op, Port, Reduction, Unary, ValueId};
use crate::encoder::tensor::{Data, Kind, Tensor};
use crate::encoder::{Encoder, EncoderInput, EncoderOptions, EncoderPrecision, EncoderScratch, InputValues};
use crate::error::Error;
use crate::simd::InstructionSet;

/// A step of central differences, and how far a gradient may be from them: they are wrong by about
/// the step's square, and by the unit of double precision divided by the step.
const STEP: f64 = 1e-5;
const TOLERANCE: f64 = 2e-8;

/// A graph in the making.
#[derive(Default)]
struct Net {
    graph: Graph,
    /// Whether inputs pass through a product, so that what follows is in single precision.
    is_narrow: bool,
}

impl Net {
    fn value(&mut self) -> ValueId {
        self.graph.n_values += 1;
        self.graph.n_values - 1
    }

    fn port(&mut self, kind: Kind, value: ValueId, n_axes: usize) -> Port {
        let dimensions = (0..n_axes).map(|axis| Dimension::Named(format!("d{axis}"))).collect();
        Port { name: format!("v{value}"), kind, dimensions: Some(dimensions), value }
    }

    fn input(&mut self, kind: Kind, shape: &[usize]) -> ValueId {
        let value = self.value();
        let port = self.port(kind, value, shape.len());
        self.graph.inputs.push(port);
        match shape.last() {
            Some(&size) if self.is_narrow && kind == Kind::Float => {
                let unit = (0..size * size).map(|place| f64::from(u8::from(place / size == place % size))).collect();
                let unit = self.constant(&[size, size], unit);
                self.node(Op::MatMul, &[value, unit])
            }
            _ => value,
        }
    }

    fn tensor(&mut self, tensor: Tensor) -> ValueId {
        let value = self.value();
        self.graph.constants.insert(value, Arc::new(tensor));
        value
    }

    fn constant(&mut self, shape: &[usize], values: Vec<f64>) -> ValueId {
        self.tensor(Tensor { kind: Kind::Float, shape: shape.to_vec(), data: Data::F64(values) })
    }

    fn noise(&mut self, shape: &[usize]) -> ValueId {
        let values = numbers(91, shape.iter().product(), [-1.0, 1.0]);
        self.constant(shape, values)
    }

    fn ints(&mut self, values: &[i64]) -> ValueId {
        self.tensor(Tensor::ints(&[values.len()], values.to_vec()))
    }

    fn matrix_of_ints(&mut self, shape: &[usize], values: &[i64]) -> ValueId {
        self.tensor(Tensor::ints(shape, values.to_vec()))
    }

    fn node(&mut self, op: Op, inputs: &[ValueId]) -> ValueId {
        self.parts(op, inputs, 1)[0]
    }

    fn parts(&mut self, op: Op, inputs: &[ValueId], n_outputs: usize) -> Vec<ValueId> {
        let outputs: Vec<ValueId> = (0..n_outputs).map(|_| self.value()).collect();
        let (name, inputs) = (format!("n{}", self.graph.nodes.len()), inputs.iter().copied().map(Some).collect());
        let node = Node { name: name.into(), operator: "Tested".into(), op, inputs, outputs: outputs.clone() };
        self.graph.nodes.push(node);
        outputs
    }
}

/// Returns numbers between limits that are not close to each other or to whole numbers.
fn numbers(seed: u64, n: usize, [low, high]: [f64; 2]) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * ((state >> 33) as f64 / (1u64 << 31) as f64)
    };
    let is_safe = |value: &f64| (value - value.round()).abs() > 1e-3;
    std::iter::from_fn(|| Some(next())).filter(is_safe).take(n).collect()
}

/// What makes a graph of its inputs.
type Build<'a> = &'a dyn Fn(&mut Net, &[ValueId]) -> ValueId;

/// What a test differentiates: shapes of inputs, the limits of their numbers, and the operators.
struct Case<'a> {
    name: &'a str,
    shapes: &'a [&'a [usize]],
    limits: [f64; 2],
    build: Build<'a>,
}

impl Case<'_> {
    fn model(&self, precision: EncoderPrecision, is_narrow: bool) -> Result<Encoder, Error> {
        let mut net = Net { is_narrow, ..Net::default() };
        let inputs: Vec<ValueId> = self.shapes.iter().map(|shape| net.input(Kind::Float, shape)).collect();
        let output = (self.build)(&mut net, &inputs);
        let port = net.port(Kind::Float, output, 0);
        net.graph.outputs.push(Port { dimensions: None, ..port });
        let options = EncoderOptions { precision, ..EncoderOptions::default() };
        Encoder::of_graph(net.graph, &options, InstructionSet::best())
    }

    fn inputs(&self) -> Vec<Vec<f64>> {
        let one = |(place, shape): (usize, &&[usize])| numbers(3 + place as u64, shape.iter().product(), self.limits);
        self.shapes.iter().enumerate().map(one).collect()
    }

    /// Returns the sum of outputs times factors, and the gradients with respect to the inputs.
    fn gradient(&self, model: &Encoder, inputs: &[Vec<f64>]) -> Result<(f64, Vec<Vec<f64>>), Error> {
        let (ports, mut scratch) = (model.inputs(), EncoderScratch::new());
        let inputs: Vec<EncoderInput<'_>> = ports
            .iter()
            .zip(self.shapes.iter().zip(inputs))
            .map(|(port, (shape, values))| EncoderInput { name: &port.name, shape, values: InputValues::F64(values) })
            .collect();
        let plan = model.plan(&mut scratch, inputs.iter().map(|input| input.shape))?;
        let wanted = vec![true; inputs.len()];
        let factors = |shape: &[usize]| numbers(55, shape.iter().product(), [-1.0, 1.0]);
        let cotangent = |_: (usize, &Port), shape: &[usize]| Ok(Some(factors(shape)));
        let (outputs, gradients) = differentiate(model, &plan, &mut scratch, &inputs, &wanted, cotangent)?;
        // The outputs are those of a pass without gradients, bit by bit.
        let plain = model.run(&mut EncoderScratch::new(), &inputs)?;
        assert_eq!(format!("{plain:?}"), format!("{outputs:?}"), "{}", self.name);
        let sum = outputs[0].values.to_f64().iter().zip(factors(&outputs[0].shape)).map(|(y, factor)| y * factor).sum();
        Ok((sum, gradients.into_iter().map(|gradient| gradient.expect("a gradient")).collect()))
    }

    fn check(&self) {
        let inputs = self.inputs();
        let model = self.model(EncoderPrecision::Double, false).expect(self.name);
        let (_, gradients) = self.gradient(&model, &inputs).expect(self.name);
        for (index, values) in inputs.iter().enumerate() {
            assert_eq!(values.len(), gradients[index].len());
            for place in 0..values.len() {
                let at = |value: f64| {
                    let mut moved = inputs.clone();
                    moved[index][place] = value;
                    self.gradient(&model, &moved).expect(self.name).0
                };
                let expected = (at(values[place] + STEP) - at(values[place] - STEP)) / (2.0 * STEP);
                let found = gradients[index][place];
                let difference = (found - expected).abs();
                assert!(
                    difference <= TOLERANCE * (1.0 + expected.abs()),
                    "{}: input {index}, number {place}: {found}, and by differences {expected}",
                    self.name
                );
            }
        }
        for is_narrow in [false, true] {
            let model = self.model(EncoderPrecision::Single, is_narrow).expect(self.name);
            let (_, single) = self.gradient(&model, &inputs).expect(self.name);
            for (found, expected) in single.iter().flatten().zip(gradients.iter().flatten()) {
                let difference = (found - expected).abs();
                assert!(difference <= 2e-5 * (1.0 + expected.abs()), "{}: {found}, {expected}", self.name);
            }
        }
    }
}

/// Checks a graph whose inputs are between -1.5 and 1.5.
fn check(name: &str, shapes: &[&[usize]], build: impl Fn(&mut Net, &[ValueId]) -> ValueId) {
    Case { name, shapes, limits: [-1.5, 1.5], build: &build }.check();
}

#[test]
fn gradients_of_functions_match_finite_differences() {
    use Unary::*;
    for unary in [
        Abs, Atan, Ceil, Cos, Erf, Exp, Floor, Gelu, GeluTanh, Neg, Reciprocal, Relu, Sigmoid, Sign, Silu, Sin,
        Softplus, Tanh,
    ] {
        let name = format!("{unary:?}");
        for limits in [[-1.5, -0.4], [0.4, 1.7], [2.1, 5.9]] {
            let build = |net: &mut Net, x: &[ValueId]| net.node(Op::Unary(unary), &[x[0]]);
            Case { name: &name, shapes: &[&[2, 9]], limits, build: &build }.check();
        }
    }
    for unary in [Log, Sqrt] {
        let build = |net: &mut Net, x: &[ValueId]| net.node(Op::Unary(unary), &[x[0]]);
        Case { name: &format!("{unary:?}"), shapes: &[&[2, 9]], limits: [0.4, 1.7], build: &build }.check();
    }
}

#[test]
fn gradients_of_arithmetic_match_finite_differences() {
    use Binary::*;
    let both = [Mod { follows_dividend: true }, Mod { follows_dividend: false }];
    for binary in [Add, Sub, Mul, Div, Max, Min, Atan2, Pow].into_iter().chain(both) {
        let name = format!("{binary:?}");
        let build = |net: &mut Net, x: &[ValueId]| net.node(Op::Binary(binary), &[x[0], x[1]]);
        let shapes: [[&[usize]; 2]; 5] = [
            [&[2, 3, 4], &[2, 3, 4]],
            [&[2, 3, 4], &[4]],
            [&[3, 1], &[2, 3, 4]],
            [&[2, 1, 4], &[1, 3, 1]],
            [&[2, 3], &[1, 1]],
        ];
        for shapes in &shapes {
            Case { name: &name, shapes, limits: [0.4, 1.9], build: &build }.check();
            if !matches!(binary, Pow) {
                Case { name: &name, shapes, limits: [-1.9, -0.4], build: &build }.check();
            }
        }
        // Both operands are one value.
        let twice = |net: &mut Net, x: &[ValueId]| {
            let turned = net.node(Op::Transpose { order: None }, &[x[0]]);
            net.node(Op::Binary(binary), &[x[0], turned])
        };
        if !matches!(binary, Max | Min | Mod { .. }) {
            Case { name: &name, shapes: &[&[3, 3]], limits: [0.4, 1.9], build: &twice }.check();
        }
    }
    for exponent in [2.0, 0.5, 3.0, -1.5, 0.0, 1.0] {
        let build = |net: &mut Net, x: &[ValueId]| {
            let exponent = net.constant(&[], vec![exponent]);
            net.node(Op::Binary(Pow), &[x[0], exponent])
        };
        Case { name: "constant exponent", shapes: &[&[2, 3]], limits: [0.4, 1.9], build: &build }.check();
    }
}

#[test]
fn gradients_of_choices_match_finite_differences() {
    for limits in [[Some(-0.5), Some(0.7)], [Some(0.1), None], [None, Some(0.3)]] {
        check("Clip", &[&[2, 7]], |net, x| {
            let mut inputs = vec![Some(x[0])];
            for limit in limits {
                let constant = limit.map(|limit| net.constant(&[], vec![limit]));
                inputs.push(constant);
            }
            let output = net.node(Op::Clip, &[]);
            net.graph.nodes.last_mut().expect("a node").inputs = inputs;
            output
        });
    }
    check("Where", &[&[2, 3, 4], &[4], &[2, 1, 4]], |net, x| {
        let condition = net.node(Op::Binary(Binary::Greater), &[x[0], x[2]]);
        net.node(Op::Where, &[condition, x[0], x[1]])
    });
    check("Cast to truth values", &[&[2, 3], &[2, 3]], |net, x| {
        let positive = net.node(Op::Unary(Unary::Relu), &[x[0]]);
        let truth = net.node(Op::Cast { to: Kind::Bool }, &[positive]);
        let number = net.node(Op::Cast { to: Kind::Float }, &[truth]);
        net.node(Op::Binary(Binary::Mul), &[number, x[1]])
    });
}

#[test]
fn gradients_of_moved_elements_match_finite_differences() {
    let turn = |net: &mut Net, x: ValueId, order: &[i64]| net.node(Op::Transpose { order: Some(order.to_vec()) }, &[x]);
    check("Transpose and Reshape", &[&[2, 3, 4]], |net, x| {
        let turned = turn(net, x[0], &[2, 0, 1]);
        let shape = net.ints(&[2, -1]);
        net.node(Op::Reshape { allows_zero: false }, &[turned, shape])
    });
    check("Concat", &[&[2, 3], &[2, 2]], |net, x| net.node(Op::Concat { axis: 1 }, &[x[0], x[1], x[0]]));
    check("Slice", &[&[2, 7]], |net, x| {
        let [start, end, axes, steps] = [5, -8, 1, -2].map(|value| net.ints(&[value]));
        net.node(Op::Slice, &[x[0], start, end, axes, steps])
    });
    check("Split", &[&[2, 6]], |net, x| {
        let sizes = net.ints(&[1, 3, 2]);
        let parts = net.parts(Op::Split { axis: 1 }, &[x[0], sizes], 3);
        net.node(Op::Concat { axis: 1 }, &[parts[2], parts[0], parts[2]])
    });
    check("Pad", &[&[2, 3]], |net, x| {
        let (pads, fill) = (net.ints(&[0, 2, 1, 1]), net.constant(&[], vec![0.3]));
        net.node(Op::Pad, &[x[0], pads, fill])
    });
    check("Tile", &[&[2, 3]], |net, x| {
        let repeats = net.ints(&[2, 3]);
        net.node(Op::Tile, &[x[0], repeats])
    });
    check("Expand", &[&[2, 1, 3]], |net, x| {
        let shape = net.ints(&[2, 5, 3]);
        net.node(Op::Expand, &[x[0], shape])
    });
    check("Flatten, Unsqueeze, Squeeze", &[&[2, 3, 2]], |net, x| {
        let axis = net.ints(&[1]);
        let turned = turn(net, x[0], &[0, 2, 1]);
        let flat = net.node(Op::Flatten { axis: 1 }, &[turned]);
        let more = net.node(Op::Unsqueeze, &[flat, axis]);
        net.node(Op::Squeeze, &[more, axis])
    });
    for (is_upper, diagonal) in [(true, 1), (false, 0), (false, -1)] {
        check("Trilu", &[&[2, 3, 4]], |net, x| {
            let diagonal = net.matrix_of_ints(&[], &[diagonal]);
            let turned = turn(net, x[0], &[0, 2, 1]);
            net.node(Op::Trilu { is_upper }, &[turned, diagonal])
        });
    }
    for (is_exclusive, is_reversed) in [(false, false), (true, false), (false, true), (true, true)] {
        check("CumSum", &[&[2, 4, 3]], |net, x| {
            let axis = net.matrix_of_ints(&[], &[1]);
            net.node(Op::CumSum { is_exclusive, is_reversed }, &[x[0], axis])
        });
    }
}

#[test]
fn gradients_of_gathers_match_finite_differences() {
    for axis in 0..3 {
        check("Gather", &[&[3, 3, 4]], |net, x| {
            let indices = net.matrix_of_ints(&[2, 3], &[2, 0, -1, 1, 2, 2]);
            let turned = net.node(Op::Transpose { order: Some(vec![1, 0, 2]) }, &[x[0]]);
            net.node(Op::Gather { axis }, &[turned, indices])
        });
    }
    check("GatherElements", &[&[2, 4]], |net, x| {
        let indices = net.matrix_of_ints(&[2, 3], &[3, 0, 3, 1, -1, 2]);
        net.node(Op::GatherElements { axis: 1 }, &[x[0], indices])
    });
    check("GatherND", &[&[2, 3, 4]], |net, x| {
        let indices = net.matrix_of_ints(&[3, 2], &[1, 2, 0, 0, 1, 2]);
        net.node(Op::GatherNd, &[x[0], indices])
    });
    // Two updates have one place: the last one counts.
    check("ScatterND", &[&[3, 4], &[3, 4]], |net, x| {
        let indices = net.matrix_of_ints(&[3, 1], &[2, 0, 2]);
        net.node(Op::ScatterNd, &[x[0], indices, x[1]])
    });
    // Indices that are known only when it is computed.
    check("computed indices", &[&[3, 4], &[2, 4], &[2, 1]], |net, x| {
        let zero = net.constant(&[], vec![0.0]);
        let one = net.constant(&[], vec![1.0]);
        let nothing = net.node(Op::Binary(Binary::Mul), &[x[2], zero]);
        let place = net.node(Op::Binary(Binary::Add), &[nothing, one]);
        let place = net.node(Op::Cast { to: Kind::Int }, &[place]);
        let scattered = net.node(Op::ScatterNd, &[x[0], place, x[1]]);
        net.node(Op::GatherNd, &[scattered, place])
    });
}

#[test]
fn gradients_of_reductions_match_finite_differences() {
    use Reduction::*;
    for reduction in [Max, Mean, Min, Product, Sum, SumOfSquares, Norm] {
        for axes in [vec![0], vec![1], vec![-1], vec![0, 2], vec![0, 1, 2]] {
            check(&format!("{reduction:?} {axes:?}"), &[&[2, 3, 4]], |net, x| {
                let op = Op::Reduce { reduction, axes: Some(axes.clone()), keeps: true, empty_is_identity: false };
                net.node(op, &[x[0]])
            });
        }
    }
}

#[test]
fn gradients_of_rows_match_finite_differences() {
    for is_logarithm in [false, true] {
        for axis in [0, 1, -1] {
            check("Softmax", &[&[2, 3, 5]], |net, x| net.node(Op::Softmax { axis, is_logarithm }, &[x[0]]));
            check("Softmax of a sum", &[&[2, 3, 5], &[2, 1, 5]], |net, x| {
                let sum = net.node(Op::Binary(Binary::Add), &[x[0], x[1]]);
                net.node(Op::Softmax { axis, is_logarithm }, &[sum])
            });
        }
    }
    for axis in [-1, -2] {
        let shape: &[usize] = if axis == -1 { &[4] } else { &[3, 4] };
        let epsilon = 1e-2;
        check("LayerNorm", &[&[2, 3, 4]], |net, x| {
            let (weight, bias) = (net.noise(shape), net.noise(shape));
            net.node(Op::LayerNorm { axis, epsilon }, &[x[0], weight, bias])
        });
        check("LayerNorm without bias", &[&[2, 3, 4]], |net, x| {
            let weight = net.noise(shape);
            net.node(Op::LayerNorm { axis, epsilon }, &[x[0], weight])
        });
        check("RmsNorm", &[&[2, 3, 4]], |net, x| {
            let weight = net.noise(shape);
            net.node(Op::RmsNorm { axis, epsilon }, &[x[0], weight])
        });
    }
    check("BatchNorm", &[&[2, 3, 4]], |net, x| {
        let [scale, bias, mean] = [(); 3].map(|()| net.noise(&[3]));
        let variance = net.constant(&[3], vec![0.5, 1.5, 2.5]);
        net.node(Op::BatchNorm { epsilon: 1e-5 }, &[x[0], scale, bias, mean, variance])
    });
}

#[test]
fn gradients_of_products_match_finite_differences() {
    let shapes: [[&[usize]; 2]; 7] = [
        [&[2, 3], &[3, 4]],
        [&[2, 3, 5], &[2, 5, 4]],
        [&[2, 2, 3, 5], &[2, 1, 5, 2]],
        [&[3, 5], &[2, 5, 4]],
        [&[2, 3, 5], &[5]],
        [&[5], &[2, 5, 3]],
        [&[5], &[5]],
    ];
    for shapes in &shapes {
        check("MatMul", shapes, |net, x| net.node(Op::MatMul, &[x[0], x[1]]));
    }
    check("a product of views", &[&[2, 3, 4], &[2, 3, 5]], |net, x| {
        let turned = net.node(Op::Transpose { order: Some(vec![0, 2, 1]) }, &[x[0]]);
        net.node(Op::MatMul, &[turned, x[1]])
    });
    for transposes in [[false, false], [true, false], [false, true]] {
        check("Gemm", &[&[3, 3], &[3, 3], &[3]], |net, x| {
            net.node(Op::Gemm { alpha: 0.7, beta: 1.3, transposes }, &[x[0], x[1], x[2]])
        });
    }
    // More columns than a panel has, and all activations that products have.
    for unary in [None, Some(Unary::Gelu), Some(Unary::GeluTanh), Some(Unary::Relu), Some(Unary::Silu)] {
        check(&format!("Linear with {unary:?}"), &[&[2, 3, 5]], |net, x| {
            let (weights, bias) = (net.noise(&[5, 37]), net.noise(&[37]));
            let product = net.node(Op::MatMul, &[x[0], weights]);
            let sum = net.node(Op::Binary(Binary::Add), &[product, bias]);
            unary.map_or(sum, |unary| net.node(Op::Unary(unary), &[sum]))
        });
        check(&format!("Conv with {unary:?}"), &[&[2, 3, 4, 6]], |net, x| {
            let (weights, bias) = (net.noise(&[5, 3, 2, 3]), net.noise(&[5]));
            let op = Op::Conv { strides: vec![2, 3], activation: crate::encoder::kernels::linear::Activation::None };
            let product = net.node(op, &[x[0], weights, bias]);
            unary.map_or(product, |unary| net.node(Op::Unary(unary), &[product]))
        });
    }
}

#[test]
fn gradients_of_attention_match_finite_differences() {
    check("attention", &[&[2, 3, 4], &[2, 1, 3, 3]], |net, x| {
        let [query, key, value] = [(); 3].map(|()| net.noise(&[4, 4]));
        let scale = net.constant(&[], vec![0.5]);
        let [q, k, v] = [query, key, value].map(|weights| net.node(Op::MatMul, &[x[0], weights]));
        let k = net.node(Op::Transpose { order: Some(vec![0, 2, 1]) }, &[k]);
        let scores = net.node(Op::MatMul, &[q, k]);
        let scores = net.node(Op::Binary(Binary::Mul), &[scores, scale]);
        let axis = net.ints(&[1]);
        let bias = net.node(Op::Squeeze, &[x[1], axis]);
        let hidden = net.constant(&[1, 1, 3], vec![0.0, f64::NEG_INFINITY, 0.0]);
        let bias = net.node(Op::Binary(Binary::Add), &[bias, hidden]);
        let sum = net.node(Op::Binary(Binary::Add), &[scores, bias]);
        let weights = net.node(Op::Softmax { axis: -1, is_logarithm: false }, &[sum]);
        let mixed = net.node(Op::MatMul, &[weights, v]);
        net.node(Op::Binary(Binary::Add), &[mixed, x[0]])
    });
}
