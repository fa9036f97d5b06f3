//! ONNX's own tests of its operators, which its Python package brings (versions up to 1.17):
//! `ONNX_NODE_TESTS` names the folder `onnx/backend/test/data/node`.

use std::path::{Path, PathBuf};

use ns_device::Device;
use torchless::encoder::{
    Encoder, EncoderInput, EncoderOptions, EncoderPort, EncoderPrecision, EncoderScratch, FixedInput, InputValues,
    read_tensor,
};
use torchless::{Error, NodeProblem, Problem};

use crate::devices::device;

/// What came of one test.
enum Outcome {
    Agrees,
    /// Refused, with the reason.
    Refused(String),
    Differs(String),
}

/// A number of a test, and how far ours may be from it: ONNX's own tolerances.
const RELATIVE: f64 = 1e-3;
const ABSOLUTE: f64 = 1e-7;

/// Tests that store bfloat16 as integers of its bits.
const EXCEPTIONS: [&str; 4] = [
    "test_cast_BFLOAT16_to_FLOAT",
    "test_cast_FLOAT_to_BFLOAT16",
    "test_castlike_BFLOAT16_to_FLOAT_expanded",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
];

fn tensors(folder: &Path, prefix: &str) -> Result<Vec<FixedInput>, Error> {
    let path = |index: usize| folder.join(format!("{prefix}_{index}.pb"));
    (0..).map(path).take_while(|path| path.exists()).map(|path| read_tensor(&path)).collect()
}

/// Numbers of an input as its model wants them.
enum Numbers {
    Float(Vec<f64>),
    Int(Vec<i64>),
    Bool(Vec<bool>),
}

impl Numbers {
    fn of(port: &EncoderPort, values: &[f64]) -> Numbers {
        match port.elements {
            "integers" => Numbers::Int(values.iter().map(|&value| value as i64).collect()),
            "truth values" => Numbers::Bool(values.iter().map(|&value| value != 0.0).collect()),
            _ => Numbers::Float(values.to_vec()),
        }
    }

    fn values(&self) -> InputValues<'_> {
        match self {
            Numbers::Float(values) => InputValues::F64(values),
            Numbers::Int(values) => InputValues::I64(values),
            Numbers::Bool(values) => InputValues::Bool(values),
        }
    }
}

/// What computes the tests.
#[derive(Clone, Copy)]
enum Computer<'a> {
    Cpu(EncoderPrecision),
    Device(&'a Device),
}

impl Computer<'_> {
    fn open(self, path: &Path, fixed: Vec<FixedInput>) -> Result<Encoder, Error> {
        let precision = match self {
            Computer::Cpu(precision) => precision,
            Computer::Device(_) => EncoderPrecision::Single,
        };
        let model = Encoder::open_with(path, &EncoderOptions { precision, fixed, ..EncoderOptions::default() })?;
        match self {
            Computer::Cpu(_) => Ok(model),
            Computer::Device(device) => model.on_device(device),
        }
    }
}

/// Runs a test; inputs of the `fixed` kind are constants of the model.
fn run(folder: &Path, computer: Computer<'_>, is_fixed: impl Fn(&EncoderPort) -> bool) -> Result<Outcome, Error> {
    let data = folder.join("test_data_set_0");
    let ports = Encoder::open(folder.join("model.onnx"))?.inputs();
    let (inputs, outputs) = (tensors(&data, "input")?, tensors(&data, "output")?);
    let given = |port: &EncoderPort| {
        let place = ports.iter().position(|other| other == port).expect("a port of the model");
        inputs.iter().find(|input| input.name == port.name).unwrap_or(&inputs[place])
    };
    let fixed = ports.iter().filter(|port| is_fixed(port)).map(|port| {
        let given = given(port);
        FixedInput { name: port.name.clone(), shape: given.shape.clone(), values: given.values.clone() }
    });
    let model = computer.open(&folder.join("model.onnx"), fixed.collect())?;
    let free: Vec<EncoderPort> = model.inputs();
    let numbers: Vec<Numbers> = free.iter().map(|port| Numbers::of(port, &given(port).values)).collect();
    let args: Vec<EncoderInput<'_>> = free
        .iter()
        .zip(&numbers)
        .map(|(port, numbers)| EncoderInput { name: &port.name, shape: &given(port).shape, values: numbers.values() })
        .collect();
    let found = model.run(&mut EncoderScratch::new(), &args)?;
    for (found, FixedInput { name, shape, values: expected }) in found.iter().zip(&outputs) {
        if found.shape != *shape {
            return Ok(Outcome::Differs(format!("{name} has shape {:?}, not {shape:?}", found.shape)));
        }
        for (index, (value, expected)) in found.values.to_f64().iter().zip(expected).enumerate() {
            let is_close = (value - expected).abs() <= ABSOLUTE + RELATIVE * expected.abs();
            if !is_close && value != expected && !(value.is_nan() && expected.is_nan()) {
                return Ok(Outcome::Differs(format!("{name}[{index}] is {value}, not {expected}")));
            }
        }
    }
    Ok(Outcome::Agrees)
}

fn outcome(folder: &Path, computer: Computer<'_>) -> Outcome {
    let is_shape = |port: &EncoderPort| port.elements == "integers";
    let mut answer = run(folder, computer, |_| false);
    // Shapes that are inputs: the tests give them so, models do not.
    if let Err(Error::Node { problem: NodeProblem::NotConstant { .. }, .. }) = answer {
        answer = run(folder, computer, is_shape);
    }
    if let Err(Error::Node { problem: NodeProblem::NotConstant { .. }, .. }) = answer {
        answer = run(folder, computer, |_| true);
    }
    match answer {
        Ok(outcome) => outcome,
        Err(Error::Node { operator, problem, .. }) => match problem {
            NodeProblem::Unsupported
            | NodeProblem::Domain { .. }
            | NodeProblem::Attribute { .. }
            | NodeProblem::Outputs
            | NodeProblem::NoKernel { .. } => Outcome::Refused(format!("{operator}: {problem}")),
            problem => Outcome::Differs(format!("{operator}: {problem}")),
        },
        Err(Error::Malformed { field, problem, .. }) => match problem {
            Problem::Unsupported { .. } | Problem::OutOfRange { .. } | Problem::Missing => {
                Outcome::Refused(format!("{field}: {problem}"))
            }
            problem => Outcome::Differs(format!("{field}: {problem}")),
        },
        Err(error) => Outcome::Differs(error.to_string()),
    }
}

fn folders() -> Vec<PathBuf> {
    let root = std::env::var("ONNX_NODE_TESTS").expect("ONNX_NODE_TESTS names the folder of the tests");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

/// Runs all tests; at least `n_needed` have to agree.
fn all_tests(computer: Computer<'_>, n_needed: usize) {
    let (mut n_agree, mut n_refused, mut different) = (0, 0, Vec::new());
    for folder in folders() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        match outcome(&folder, computer) {
            Outcome::Agrees => n_agree += 1,
            Outcome::Refused(why) => {
                n_refused += 1;
                if std::env::var("ONNX_NODE_TESTS_VERBOSE").is_ok() {
                    println!("refused {name}: {why}");
                }
            }
            Outcome::Differs(_) if EXCEPTIONS.contains(&name.as_str()) => {}
            Outcome::Differs(how) => different.push(format!("{name}: {how}")),
        }
    }
    println!("{n_agree} agree, {n_refused} are refused");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert!(n_agree >= n_needed, "{n_agree} agree");
}

#[test]
#[ignore = "needs ONNX's tests of its operators"]
fn operators_agree_with_the_tests_of_onnx() {
    all_tests(Computer::Cpu(EncoderPrecision::Single), 482);
}

#[test]
#[ignore = "needs ONNX's tests of its operators"]
fn operators_in_double_precision_agree_with_the_tests_of_onnx() {
    all_tests(Computer::Cpu(EncoderPrecision::Double), 482);
}

/// Of operators that devices have, numbers are those of ONNX, too.
#[test]
#[ignore = "needs ONNX's tests of its operators"]
fn operators_on_a_device_agree_with_the_tests_of_onnx() {
    all_tests(Computer::Device(&device()), 300);
}
