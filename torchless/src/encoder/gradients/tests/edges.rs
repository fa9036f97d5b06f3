//! Where functions have no derivative, what is refused, and what does not count.

use super::{Build, Case, Net, numbers};
use crate::cpu::Threads;
use crate::encoder::gradients::tape::differentiate;
use crate::encoder::graph::{Binary, Op, Port, Reduction, Unary, ValueId};
use crate::encoder::tensor::Kind;
use crate::encoder::{
    Cotangent, EncodeOptions, Encoder, EncoderEvents, EncoderInput, EncoderOptions, EncoderPrecision, EncoderScratch,
    GradientTarget, InputValues, ScratchPool,
};
use crate::simd::InstructionSet;

/// Returns the gradient of a function at single points.
fn derivatives(unary: Unary, points: &[f64]) -> Vec<f64> {
    let build = |net: &mut Net, x: &[ValueId]| net.node(Op::Unary(unary), &[x[0]]);
    gradient_at(&build, points)
}

/// Returns the gradient of the sum of a function of points with respect to each.
fn gradient_at(build: Build<'_>, points: &[f64]) -> Vec<f64> {
    let shape = [1, points.len()];
    let case = Case { name: "points", shapes: &[&shape], limits: [0.0, 1.0], build };
    let model = case.model(EncoderPrecision::Double, false).expect("a model");
    let (ports, mut scratch) = (model.inputs(), EncoderScratch::new());
    let input = [EncoderInput { name: &ports[0].name, shape: &shape, values: InputValues::F64(points) }];
    let plan = model.plan(&mut scratch, [&shape[..]].into_iter()).expect("a plan");
    let ones = |_: (usize, &Port), shape: &[usize]| Ok(Some(vec![1.0; shape.iter().product()]));
    let (_, mut gradients) = differentiate(&model, &plan, &mut scratch, &input, &[true], ones).expect("gradients");
    gradients.remove(0).expect("a gradient")
}

#[test]
fn derivatives_are_chosen_where_there_are_none() {
    assert_eq!(derivatives(Unary::Relu, &[-1.0, 0.0, 1.0]), [0.0, 0.0, 1.0]);
    assert_eq!(derivatives(Unary::Abs, &[-1.0, 0.0, 1.0]), [-1.0, 0.0, 1.0]);
    assert_eq!(derivatives(Unary::Floor, &[-1.0, 0.5]), [0.0, 0.0]);
    let clip = |net: &mut Net, x: &[ValueId]| {
        let limits = [0.0, 1.0].map(|limit| net.constant(&[], vec![limit]));
        net.node(Op::Clip, &[x[0], limits[0], limits[1]])
    };
    assert_eq!(gradient_at(&clip, &[-0.5, 0.0, 0.5, 1.0, 1.5]), [0.0, 1.0, 1.0, 1.0, 0.0]);
    let largest = |net: &mut Net, x: &[ValueId]| {
        let op = Op::Reduce { reduction: Reduction::Max, axes: Some(vec![1]), keeps: true, empty_is_identity: false };
        net.node(op, &[x[0]])
    };
    assert_eq!(gradient_at(&largest, &[2.0, 1.0, 2.0]), [0.5, 0.0, 0.5]);
    let equal = |net: &mut Net, x: &[ValueId]| net.node(Op::Binary(Binary::Max), &[x[0], x[0]]);
    assert_eq!(gradient_at(&equal, &[2.0, -1.0]), [1.0, 1.0]);
    // A product with zeros.
    let product = |net: &mut Net, x: &[ValueId]| {
        let reduction = Reduction::Product;
        net.node(Op::Reduce { reduction, axes: Some(vec![1]), keeps: true, empty_is_identity: false }, &[x[0]])
    };
    assert_eq!(gradient_at(&product, &[2.0, 0.0, 3.0]), [0.0, 6.0, 0.0]);
}

#[test]
fn infinite_derivatives_do_not_pass_a_gradient_of_zero() {
    assert_eq!(derivatives(Unary::Sqrt, &[0.0]), [f64::INFINITY]);
    // ln max(√x, ε), the distance of a particle from itself.
    let distance = |net: &mut Net, x: &[ValueId]| {
        let epsilon = net.constant(&[], vec![1e-8]);
        let root = net.node(Op::Unary(Unary::Sqrt), &[x[0]]);
        let clipped = net.node(Op::Clip, &[root, epsilon]);
        net.node(Op::Unary(Unary::Log), &[clipped])
    };
    assert_eq!(gradient_at(&distance, &[0.0, 4.0]), [0.0, 0.125]);
    // Activations far from 0.
    let far = [-1e30, -100.0, 0.5, 100.0, 1e30];
    for unary in [Unary::Gelu, Unary::GeluTanh, Unary::Silu, Unary::Sigmoid, Unary::Tanh] {
        let build = |net: &mut Net, x: &[ValueId]| net.node(Op::Unary(unary), &[x[0]]);
        let case = Case { name: "far", shapes: &[&[1, 5]], limits: [0.0, 1.0], build: &build };
        let model = case.model(EncoderPrecision::Single, true).expect("a model");
        let (_, gradients) = case.gradient(&model, &[far.to_vec()]).expect("gradients");
        assert!(gradients[0].iter().all(|derivative| derivative.is_finite()), "{unary:?}: {gradients:?}");
    }
}

#[test]
fn operators_without_a_derivative_are_refused_by_node() {
    let norm = |net: &mut Net, x: &[ValueId]| net.node(Op::LayerNorm { axis: -1, epsilon: 1e-5 }, &[x[0], x[1]]);
    let clip = |net: &mut Net, x: &[ValueId]| {
        let axis = net.ints(&[0]);
        let op = Op::Reduce { reduction: Reduction::Max, axes: None, keeps: false, empty_is_identity: false };
        let limit = net.node(op, &[x[1], axis]);
        net.node(Op::Clip, &[x[0], limit])
    };
    let builds: [Build<'_>; 2] = [&norm, &clip];
    for build in builds {
        let case = Case { name: "refused", shapes: &[&[2, 3], &[3]], limits: [-1.0, 1.0], build };
        let model = case.model(EncoderPrecision::Double, false).expect("a model");
        let error = case.gradient(&model, &case.inputs()).expect_err("no derivative");
        assert!(error.to_string().ends_with("(Tested): its derivative is not computed"), "{error}");
        assert!(error.to_string().starts_with("node `n"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("normalisations")));
    }
}

#[test]
fn cotangents_behind_the_end_of_an_event_do_not_count() {
    // Every particle by itself: y = W·gelu(x), with a mask that only says how long events are.
    let mut net = Net::default();
    let (x, mask) = (net.input(Kind::Float, &[2, 4, 3]), net.input(Kind::Bool, &[2, 4]));
    let weights = net.noise(&[3, 2]);
    let bent = net.node(Op::Unary(Unary::Gelu), &[x]);
    let output = net.node(Op::MatMul, &[bent, weights]);
    let port = net.port(Kind::Float, output, 3);
    net.graph.outputs.push(port);
    let _ = mask;
    let options = EncoderOptions::default();
    let model = Encoder::of_graph(net.graph, &options, InstructionSet::best()).expect("a model");
    let values = numbers(5, 24, [-1.0, 1.0]);
    let is_set = [true, true, true, true, true, true, false, false];
    let inputs = [
        EncoderInput { name: "v0", shape: &[2, 4, 3], values: InputValues::F64(&values) },
        EncoderInput { name: "v1", shape: &[2, 4], values: InputValues::Bool(&is_set) },
    ];
    let output = model.outputs()[0].name.clone();
    let cotangent = [Cotangent { output: &output, shape: &[2, 4, 2], values: &[1.0; 16] }];
    let target = GradientTarget::Cotangents(&cotangent);
    let events = EncoderEvents { dense: &inputs, ragged: &[] };
    let options = EncodeOptions { mask: Some("v1".into()), ..EncodeOptions::default() };
    let (threads, pool) = (Threads::new(1), ScratchPool::new());
    let found = model.gradients(&threads, &pool, events, &target, &options).expect("gradients");
    assert_eq!(found.inputs.len(), 1);
    let is_zero: Vec<bool> = found.inputs[0].values.chunks(3).map(|x| x.iter().all(|x| *x == 0.0)).collect();
    assert_eq!(is_zero, is_set.map(|is_set| !is_set));
    // Of all outputs, cotangents have the size of the longest event.
    let short = [Cotangent { output: &output, shape: &[2, 2, 2], values: &[1.0; 8] }];
    let error = model.gradients(&threads, &pool, events, &GradientTarget::Cotangents(&short), &options);
    assert!(error.expect_err("too short").to_string().contains("has 8 numbers and the shape [2, 2, 2]"));
}
