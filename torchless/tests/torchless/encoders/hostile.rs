//! Damaged and lying ONNX files: an error each, and neither a panic nor memory without bounds.

use std::path::PathBuf;

use torchless::encoder::{Encoder, EncoderInput, EncoderOptions, EncoderScratch, FixedInput, InputValues};
use torchless::{Error, InputProblem, InstructionSet, NodeProblem};

use super::models::folder;

/// A file of a test, which is removed at its end.
pub(super) struct TestFile(pub(super) PathBuf);

impl TestFile {
    pub(super) fn new(name: &str, bytes: &[u8]) -> TestFile {
        let path = std::env::temp_dir().join(format!("torchless-{}-{name}.onnx", std::process::id()));
        std::fs::write(&path, bytes).expect("a temporary file");
        TestFile(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // What is left behind is in a temporary folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A message of protocol buffers in the making.
#[derive(Default, Clone)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn int(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }
}

pub(super) fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
    node.text(2, output).text(3, "the node").text(4, operator)
}

/// Returns a node that makes integers of numbers.
pub(super) fn cast(input: &str, output: &str) -> Message {
    node("Cast", &[input], output).message(5, &Message::default().text(1, "to").int(3, 7).int(20, 2))
}

pub(super) fn floats(name: &str, values: &[f32]) -> Message {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Message::default().int(1, values.len() as i64).int(2, 1).text(8, name).bytes(9, &bytes)
}

pub(super) fn ints(name: &str, values: &[i64]) -> Message {
    let tensor = Message::default().int(1, values.len() as i64).int(2, 7).text(8, name);
    values.iter().fold(tensor, |tensor, &value| tensor.int(7, value))
}

fn port(name: &str) -> Message {
    let tensor = Message::default().message(1, &Message::default().int(1, 1));
    Message::default().text(1, name).message(2, &tensor)
}

/// A model of some nodes, with the input `x` and the output `y`.
pub(super) fn model(nodes: &[Message], initializers: &[Message]) -> Vec<u8> {
    let graph = nodes.iter().fold(Message::default(), |graph, node| graph.message(1, node));
    let graph = initializers.iter().fold(graph, |graph, tensor| graph.message(5, tensor));
    let graph = graph.message(11, &port("x")).message(12, &port("y"));
    let opset = Message::default().int(2, 17);
    Message::default().message(7, &graph).message(8, &opset).0
}

/// A model of one node from `x` to `y`, of shape (batch, 4) and of numbers.
pub(super) fn declared_model(operator: &str) -> Vec<u8> {
    model_of_node(&node(operator, &["x"], "y"), 1)
}

/// A model of one node from `x` to `y`, of shape (batch, 4) and of elements of a type of ONNX.
pub(super) fn model_of_node(node: &Message, elements: i64) -> Vec<u8> {
    let sizes = [Message::default().text(2, "batch"), Message::default().int(1, 4)];
    let shape = sizes.iter().fold(Message::default(), |shape, size| shape.message(1, size));
    let tensor = Message::default().message(1, &Message::default().int(1, elements).message(2, &shape));
    let port = |name: &str| Message::default().text(1, name).message(2, &tensor);
    let graph = Message::default().message(1, node);
    let graph = graph.message(11, &port("x")).message(12, &port("y"));
    Message::default().message(7, &graph).message(8, &Message::default().int(2, 17)).0
}

/// Opens and runs a model with one input of four numbers.
fn answer(name: &str, bytes: &[u8]) -> Result<usize, Error> {
    let file = TestFile::new(name, bytes);
    let model = Encoder::open(&file.0)?;
    let x = EncoderInput { name: "x", shape: &[2, 2], values: InputValues::F32(&[1.0, 2.0, 3.0, 4.0]) };
    Ok(model.run(&mut EncoderScratch::new(), &[x])?.len())
}

#[test]
fn a_model_that_is_written_by_hand_runs() {
    assert_eq!(answer("good", &model(&[node("Relu", &["x"], "y")], &[])).expect("an answer"), 1);
}

#[test]
fn softmax_of_large_sums_is_that_of_double_precision() {
    // Scores with a bias of pairs, which need not be symmetric as those of momenta are.
    let zeros = Message::default().int(1, 2).int(1, 2).int(2, 1).text(8, "zeros").bytes(9, &[0; 16]);
    let nodes = [node("Add", &["zeros", "x"], "scores"), node("Softmax", &["scores"], "y")];
    let file = TestFile::new("softmax", &model(&nodes, &[zeros]));
    let scores = [200.0, 199.0, 190.0, 200.0];
    let expected: Vec<f64> = scores
        .chunks(2)
        .flat_map(|row| row.iter().map(move |score| 1.0 / row.iter().map(|x: &f64| (x - score).exp()).sum::<f64>()))
        .collect();
    let x = EncoderInput { name: "x", shape: &[2, 2], values: InputValues::F64(&scores) };
    for isa in InstructionSet::available() {
        let model = Encoder::open(&file.0).expect("a model").with_instruction_set(isa);
        let found = model.run(&mut EncoderScratch::new(), &[x]).expect("an answer")[0].values.to_f64();
        // No number, which is not near any, is wrong, too.
        let is_near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(is_near, "{}: {found:?} instead of {expected:?}", isa.name());
    }
}

#[test]
fn rms_normalization_subtracts_nothing() {
    let ones = [1.0_f32, 1.0].map(f32::to_le_bytes).concat();
    let weight = Message::default().int(1, 2).int(2, 1).text(8, "weight").bytes(9, &ones);
    let file = TestFile::new("rms", &model(&[node("RMSNormalization", &["x", "weight"], "y")], &[weight]));
    let x = [1.0, 3.0, -2.0, 0.5];
    let scale = |row: &[f64]| 1.0 / (row.iter().map(|x| x * x).sum::<f64>() / 2.0 + 1e-5).sqrt();
    let expected: Vec<f64> = x.chunks(2).flat_map(|row| row.iter().map(move |x| x * scale(row))).collect();
    let input = EncoderInput { name: "x", shape: &[2, 2], values: InputValues::F64(&x) };
    let model = Encoder::open(&file.0).expect("a model");
    let found = model.run(&mut EncoderScratch::new(), &[input]).expect("an answer")[0].values.to_f64();
    // No number, which is not near any, is wrong, too.
    let is_near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(is_near, "{found:?} instead of {expected:?}");
}

#[test]
fn an_unknown_operator_is_refused_with_the_name_of_its_node() {
    let error = answer("unknown", &model(&[node("Einsum", &["x"], "y")], &[])).expect_err("not supported");
    assert_eq!(error.to_string(), "node `the node` (Einsum): the operator is not supported");
    assert!(error.hint().is_some_and(|hint| hint.contains("encoders.md")));
}

#[test]
fn a_name_that_nothing_defines_is_refused() {
    let error = answer("undefined", &model(&[node("Relu", &["z"], "y")], &[])).expect_err("an undefined name");
    assert!(error.to_string().contains("`z`"), "{error}");
}

#[test]
fn sizes_without_bounds_are_refused() {
    let huge = [node("ConstantOfShape", &["shape"], "zeros"), node("Add", &["zeros", "x"], "y")];
    for shape in [vec![1 << 40], vec![1 << 31, 1 << 31], vec![i64::MAX, i64::MAX, 4], vec![-5]] {
        let error = answer("huge", &model(&huge, &[ints("shape", &shape)])).expect_err("too large");
        assert!(matches!(error, Error::Node { .. }), "{error}");
    }
    // Each of these is eight times as large as the one before.
    let mut nodes = vec![node("Tile", &["x", "shape"], "t0")];
    nodes.extend((0..40).map(|index| node("Tile", &[&format!("t{index}"), "shape"], &format!("t{}", index + 1))));
    nodes.push(node("Relu", &["t40"], "y"));
    let error = answer("doubling", &model(&nodes, &[ints("shape", &[4, 2])])).expect_err("too large");
    assert!(matches!(error, Error::Node { problem: NodeProblem::TooLarge { .. }, .. }), "{error}");
}

#[test]
fn a_tensor_that_claims_more_than_it_has_is_refused() {
    let lying = Message::default().int(1, 1 << 40).int(2, 1).text(8, "w").bytes(9, &[0; 16]);
    let error = answer("lying", &model(&[node("Add", &["x", "w"], "y")], &[lying])).expect_err("a lie");
    assert!(error.to_string().contains("tensor `w`"), "{error}");
}

#[test]
fn an_external_file_outside_the_folder_is_refused() {
    for name in ["../../etc/passwd", "/etc/passwd", "..", ""] {
        let entry = Message::default().text(1, "location").text(2, name);
        let tensor = Message::default().int(1, 4).int(2, 1).text(8, "w").message(13, &entry).int(14, 1);
        let error = answer("outside", &model(&[node("Add", &["x", "w"], "y")], &[tensor])).expect_err("refused");
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}

#[test]
fn truncated_and_changed_files_never_panic() {
    for name in ["mlp", "text13", "image"] {
        let bytes = std::fs::read(folder().join(format!("{name}.onnx"))).expect("a fixture");
        let step = bytes.len() / 60 + 1;
        for place in (0..bytes.len()).step_by(step) {
            // Errors and answers are both fine.
            let _ = answer(&format!("cut-{name}"), &bytes[..place]);
            let mut changed = bytes.clone();
            changed[place] ^= 1 << (place % 8);
            let _ = answer(&format!("changed-{name}"), &changed);
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let model = Encoder::open(folder().join("mlp.onnx")).expect("a model");
    let problem = |input: EncoderInput<'_>| match model.run(&mut EncoderScratch::new(), &[input]) {
        Err(Error::EncoderInput { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let values = InputValues::F32(&[0.0; 6]);
    assert_eq!(problem(EncoderInput { name: "z", shape: &[2, 3], values }), InputProblem::Unknown);
    let length = InputProblem::Length { found: 6, expected: 9 };
    assert_eq!(problem(EncoderInput { name: "x", shape: &[3, 3], values }), length);
    let shape = problem(EncoderInput { name: "x", shape: &[3, 2], values });
    assert_eq!(shape.to_string(), "its shape is [3, 2], and the model declares [batch, 3]");
    let kind = problem(EncoderInput { name: "x", shape: &[2, 3], values: InputValues::I64(&[0; 6]) });
    assert_eq!(kind.to_string(), "it must be made of numbers");
    assert!(matches!(
        model.run(&mut EncoderScratch::new(), &[]),
        Err(Error::EncoderInput { problem: InputProblem::Missing, .. })
    ));
}

#[test]
fn fixed_inputs_that_do_not_fit_are_refused() {
    let open = |model: &str, name: &str, shape: &[usize], values: &[f64]| {
        let fixed = FixedInput { name: name.into(), shape: shape.into(), values: values.into() };
        let options = EncoderOptions { fixed: vec![fixed], ..EncoderOptions::default() };
        Encoder::open_with(folder().join(model), &options).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(open("text17.onnx", "ids", &[1, 2], &[3.0, 4.0]), Ok(()));
    assert_eq!(open("text17.onnx", "mask", &[1, 2], &[0.0, 1.0]), Ok(()));
    let refused = [
        (open("mlp.onnx", "x", &[3], &[1.0; 3]), "input `x`: its shape is [3], and the model declares [batch, 3]"),
        (open("mlp.onnx", "x", &[2, 3], &[1.0; 3]), "input `x`: it has 3 numbers, and 6 are needed"),
        (open("text17.onnx", "ids", &[1, 1], &[1.5]), "input `ids`: number 0 is 1.5, and it must be made of integers"),
        (
            open("text17.onnx", "ids", &[1, 1], &[f64::NAN]),
            "input `ids`: number 0 is NaN, and it must be made of integers",
        ),
        (
            open("text17.onnx", "ids", &[1, 1], &[9.3e18]),
            "input `ids`: number 0 is 9300000000000000000, and it must be made of integers",
        ),
        (
            open("text17.onnx", "mask", &[1, 2], &[1.0, 7.0]),
            "input `mask`: number 1 is 7, and it must be made of truth values",
        ),
    ];
    for (found, message) in refused {
        assert_eq!(found.expect_err("an error"), message);
    }
}
