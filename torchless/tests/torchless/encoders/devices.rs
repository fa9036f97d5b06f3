//! Encoders on a device: outputs are compared with the CPU's, and bits with bits.
//!
//! The device is that of the decoders' tests: the emulation, or the one that
//! `NEXTSTAT_TEST_DEVICE` names. Some tests are of the emulation alone.

use std::path::Path;
use std::process::Command;

use ns_device::{Backend, Device, EmulationOptions, LaneSchedule, OpenOptions, Precision};
use torchless::backend::BackendPreference;
use torchless::encoder::{
    EncodeOptions, Encoder, EncoderEvents, EncoderInput, EncoderOptions, EncoderOutput, EncoderPrecision,
    EncoderScratch, GradientTarget, InputValues, OutputValues, ScratchPool, WeightStorage,
};
use torchless::{Error, InputProblem, NodeProblem, Threads};

use super::hostile::{TestFile, declared_model, model_of_node, node};
use super::models::{Case, MODELS, events_of, folder, inputs};
use super::npz::{Array, Numbers};
use crate::devices::device;
use crate::random_model::fresh_folder;
use crate::support::program;

/// Differences are at most this part of the largest number of an output.
const TOLERANCE: f64 = 2e-6;

fn on(device: &Device, case: &Case) -> Encoder {
    case.open(EncoderPrecision::Single).on_device(device).expect("kernels for every step")
}

fn encode(model: &Encoder, arrays: &[(String, Array)], events_at_once: usize) -> Vec<EncoderOutput> {
    let options = EncodeOptions { events_at_once, ..EncodeOptions::default() };
    model.encode(&Threads::new(1), &inputs(arrays), &options).expect("outputs")
}

fn bits(outputs: &[EncoderOutput]) -> Vec<u64> {
    let values = outputs.iter().flat_map(|output| output.values.to_f64());
    values.map(f64::to_bits).collect()
}

/// The largest difference, in parts of the largest number.
fn difference(found: &OutputValues, expected: &OutputValues) -> f64 {
    let (found, expected) = (found.to_f64(), expected.to_f64());
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let one = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
    found.iter().zip(&expected).map(one).fold(0.0, f64::max) / largest
}

/// Sums have the CPU's order, and functions its operations; what is left are roundings of products
/// and sums that are fused or not, and functions of the device.
#[test]
fn outputs_are_those_of_the_cpu() {
    let device = device();
    for name in MODELS {
        let case = Case::of(name);
        let expected = encode(&case.open(EncoderPrecision::Single), &case.inputs, 16);
        let model = on(&device, &case);
        let before = device.counters().launches;
        let found = encode(&model, &case.inputs, 16);
        assert!(device.counters().launches > before, "{name}: nothing was launched");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((&found.name, &found.shape), (&expected.name, &expected.shape));
            let off = difference(&found.values, &expected.values);
            println!("{name}, {}: {off:e}", found.name);
            assert!(off < TOLERANCE, "{name}, {}: {off:e}", found.name);
        }
    }
}

#[test]
fn bits_do_not_depend_on_batch_order_padding_or_threads() {
    let device = device();
    for name in MODELS {
        let case = Case::of(name);
        let model = on(&device, &case);
        let n_events = case.inputs[0].1.shape[0];
        let whole = encode(&model, &case.inputs, 16);
        for batch in [1, 3] {
            assert_eq!(bits(&encode(&model, &case.inputs, batch)), bits(&whole), "{name}: {batch} at once");
        }
        let reversed: Vec<usize> = (0..n_events).rev().collect();
        let arrays: Vec<(String, Array)> =
            case.inputs.iter().map(|(name, array)| (name.clone(), events_of(array, &reversed))).collect();
        for (found, expected) in encode(&model, &arrays, 16).iter().zip(&whole) {
            let (found, expected) = (found.values.to_f64(), expected.values.to_f64());
            let per_event = expected.len() / n_events;
            let back: Vec<f64> = found.chunks(per_event).rev().flatten().copied().collect();
            assert_eq!(back, expected, "{name}: in another order");
        }
        if name.starts_with("part") {
            let cut = EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() };
            let found = model.encode(&Threads::new(2), &inputs(&case.inputs), &cut).expect("outputs");
            assert_eq!(bits(&found), bits(&whole), "{name}: cut to lengths, two threads");
        }
    }
}

/// An emulated device of single precision.
fn emulated(emulation: EmulationOptions) -> Device {
    let options = OpenOptions { precision: Some(Precision::Single), emulation, ..OpenOptions::default() };
    Device::open_with(Backend::Emulated, 0, &options).expect("the emulated device")
}

#[test]
fn lanes_in_any_order_give_the_same_bits() {
    for name in ["text17", "part_weights"] {
        let case = Case::of(name);
        let [first, others @ ..] =
            [LaneSchedule::Ascending, LaneSchedule::Descending, LaneSchedule::Shuffled].map(|schedule| {
                let device = emulated(EmulationOptions { schedule, ..EmulationOptions::default() });
                bits(&encode(&on(&device, &case), &case.inputs, 16))
            });
        assert!(others.iter().all(|other| *other == first), "{name}");
    }
}

#[test]
fn weights_stay_on_the_device_and_only_inputs_and_outputs_cross() {
    let (device, case) = (device(), Case::of("mlp"));
    let (model, mut scratch) = (on(&device, &case), EncoderScratch::new());
    let mut run = || model.run(&mut scratch, &inputs(&case.inputs)).expect("outputs");
    run();
    let before = device.counters();
    run();
    let after = device.counters();
    assert_eq!((after.uploads - before.uploads, after.downloads - before.downloads), (1, 1));
    // A conversion and the layers.
    assert_eq!(after.launches - before.launches, 3);
}

#[test]
fn one_scratch_serves_the_cpu_and_devices() {
    let (case, mut scratch) = (Case::of("vit_pooled"), EncoderScratch::new());
    let models =
        [case.open(EncoderPrecision::Single), on(&device(), &case), on(&emulated(EmulationOptions::default()), &case)];
    for _ in 0..2 {
        for model in &models {
            let found = model.run(&mut scratch, &inputs(&case.inputs)).expect("outputs");
            assert_eq!(bits(&found), bits(&encode(model, &case.inputs, 16)));
        }
    }
}

#[test]
fn a_scratch_serves_a_model_that_moves_to_another_device() {
    let (case, mut scratch) = (Case::of("mlp"), EncoderScratch::new());
    let mut model = case.open(EncoderPrecision::Single);
    for device in [device(), emulated(EmulationOptions::default()), device()] {
        model = model.on_device(&device).expect("kernels for every step");
        model.run(&mut scratch, &inputs(&case.inputs)).expect("outputs of plans of this device");
    }
}

#[test]
fn numbers_that_a_device_lacks_are_placed_in_the_whole_input() {
    let case = Case::of("text17");
    let mut arrays = case.inputs.clone();
    let mut place = 0;
    for (_, array) in &mut arrays {
        if let Numbers::I64(ids) = &mut array.numbers {
            place = ids.len() - 1;
            ids[place] = 1 << 40;
        }
    }
    assert!(place > 0);
    let options = EncodeOptions { events_at_once: 1, ..EncodeOptions::default() };
    let found = on(&device(), &case).encode(&Threads::new(1), &inputs(&arrays), &options);
    let error = found.expect_err("41 bits");
    let is_there = |error: &Error| match error {
        Error::EncoderInput { problem: InputProblem::Value { place: found, .. }, .. } => *found == place,
        _ => false,
    };
    assert!(is_there(&error), "{error}");
}

#[test]
fn an_operator_without_a_kernel_is_refused_with_the_name_of_its_node() {
    let file = TestFile::new("no-kernel", &declared_model("Atan"));
    let error = Encoder::open(&file.0).expect("a model").on_device(&device()).expect_err("no kernel");
    assert_eq!(
        error.to_string(),
        "node `the node` (Atan): devices have no kernel for it with numbers before the first product"
    );
    assert_eq!(error.hint(), Some("`--device cpu` computes it"));
    assert!(matches!(error, Error::Node { problem: NodeProblem::NoKernel { .. }, .. }));
    let file = TestFile::new("kernel", &declared_model("Abs"));
    let model = Encoder::open(&file.0).expect("a model").on_device(&device()).expect("a kernel");
    let values = [1.5, -2.0, 1.0 + 1e-12, 0.1];
    let x = EncoderInput { name: "x", shape: &[1, 4], values: InputValues::F64(&values) };
    let found = model.run(&mut EncoderScratch::new(), &[x]).expect("outputs")[0].values.to_f64();
    // What precedes products has about 46 bits.
    assert!(found.iter().zip(values).all(|(found, value)| (found - value.abs()).abs() < 1e-14), "{found:?}");
}

#[test]
fn integers_of_more_than_32_bits_are_refused_by_the_node_that_makes_them() {
    let int64 = 7;
    let file = TestFile::new("large-integers", &model_of_node(&node("Add", &["x", "x"], "y"), int64));
    let here = Encoder::open(&file.0).expect("a model");
    let there = Encoder::open(&file.0).expect("a model").on_device(&device()).expect("a kernel");
    let run = |model: &Encoder, values: &[i64]| {
        let x = EncoderInput { name: "x", shape: &[1, 4], values: InputValues::I64(values) };
        model.run(&mut EncoderScratch::new(), &[x]).map(|found| found[0].values.to_f64())
    };
    let fits = [3, (1 << 30) - 1, -(1 << 30), 0];
    assert_eq!(run(&there, &fits).expect("sums"), run(&here, &fits).expect("sums"));
    for large in [1 << 30, -(1 << 30) - 1] {
        let error = run(&there, &[3, large, 0, 0]).expect_err("33 bits");
        let said = "node `the node` (Add): one of its results has more than 32 bits, and devices have no such integers";
        assert_eq!((&*error.to_string(), error.hint()), (said, Some("`--device cpu` computes it")));
        assert_eq!(run(&here, &[3, large, 0, 0]).expect("sums")[1], 2.0 * large as f64);
        // The next events are computed.
        assert_eq!(run(&there, &fits).expect("sums"), run(&here, &fits).expect("sums"));
    }
}

#[test]
fn what_devices_do_not_compute_is_refused() {
    let (device, case) = (device(), Case::of("mlp"));
    let name = device.backend().name();
    let refused = |result: Result<Encoder, Error>| result.expect_err("refused").to_string();
    let double = case.open(EncoderPrecision::Double).on_device(&device);
    let said = format!("double precision: encoders compute this on the CPU only, and not on {name}");
    assert_eq!(refused(double), said);
    let options = EncoderOptions { weights: WeightStorage::F16, ..EncoderOptions::default() };
    let halves = Encoder::open_with(&case.path, &options).expect("a model").on_device(&device);
    assert!(refused(halves).starts_with("weights that are not stored in single precision: "));
    let model = on(&device, &case);
    let (arrays, threads, pool) = (inputs(&case.inputs), Threads::new(1), ScratchPool::new());
    let events = EncoderEvents { dense: &arrays, ragged: &[] };
    let target = GradientTarget::Column { output: None, column: 0 };
    let error = model.gradients(&threads, &pool, events, &target, &EncodeOptions::default()).expect_err("refused");
    assert!(matches!(error, Error::EncoderOnCpuOnly { what: "gradients", .. }), "{error}");
    let double = OpenOptions { precision: Some(Precision::Double), ..OpenOptions::default() };
    let double = Device::open_with(Backend::Emulated, 0, &double).expect("the emulated device");
    let error = case.open(EncoderPrecision::Single).on_device(&double).expect_err("refused");
    assert!(matches!(error, Error::NotSinglePrecision { .. }), "{error}");
    let metal = EncoderOptions { device: BackendPreference::Device(Backend::Metal), ..EncoderOptions::default() };
    if cfg!(not(target_os = "macos")) {
        let said = refused(Encoder::open_with(&case.path, &metal));
        assert!(said.starts_with("metal cannot be used: "), "{said}");
    }
}

/// Indices that a vocabulary does not have are errors, as they are on the CPU.
#[test]
fn indices_out_of_range_are_errors() {
    let case = Case::of("text17");
    let here = case.open(EncoderPrecision::Single);
    let there = on(&device(), &case);
    let with_first_id = |id: i64| {
        let mut arrays = case.inputs.clone();
        for (_, array) in &mut arrays {
            if let Numbers::I64(ids) = &mut array.numbers {
                ids[0] = id;
            }
        }
        let run =
            |model: &Encoder| model.run(&mut EncoderScratch::new(), &inputs(&arrays)).map(|found| bits(&found).len());
        (run(&here), run(&there))
    };
    let (expected, found) = with_first_id(1_000_000);
    assert_eq!(found.expect_err("an index").to_string(), expected.expect_err("an index").to_string());
    let (expected, found) = with_first_id(-1);
    assert_eq!(found.expect("counted from the end"), expected.expect("counted from the end"));
    let (_, found) = with_first_id(1 << 40);
    let error = found.expect_err("41 bits");
    assert!(matches!(error, Error::EncoderInput { problem: InputProblem::Value { place: 0, .. }, .. }), "{error}");
}

#[test]
fn the_command_computes_on_the_device_that_is_named() {
    let folder_of_outputs = fresh_folder("encode-on-devices");
    let output = folder_of_outputs.join("logits.npy");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.arg("encode").arg(folder().join("mlp.onnx")).arg("--inputs").arg(folder().join("mlp.npz"));
        let done = command.arg("--output").arg(&output).args(arguments).output().expect("the command runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned(), said)
    };
    let (code, answer, _) = run(&["--device", "emulated", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!((code, &answer["device"]), (Some(0), &"emulated".into()));
    assert!(output.exists());
    std::fs::remove_file(&output).expect("the output");
    for (arguments, what) in [
        (&["--double"][..], "double precision"),
        (&["--weights", "f16"], "weights that are not stored in single precision"),
        (&["--gradients", "gradients.npz"], "gradients"),
    ] {
        let (code, _, said) = run(&[&["--device", "emulated"], arguments].concat());
        let expected = format!("error: {what}: encoders compute this on the CPU only, and not on emulated\n");
        assert_eq!((code, &said[..]), (Some(2), &*(expected + "hint: `--device cpu` computes here\n")));
        assert!(!output.exists());
    }
    std::fs::remove_dir_all(folder_of_outputs).expect("a folder");
}

#[test]
fn the_command_describes_the_device_that_is_named() {
    let info = |model: &Path, arguments: &[&str]| {
        let done = Command::new(program()).args(["info", "--json", "--model"]).arg(model).args(arguments).output();
        let done = done.expect("the command runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        (done.status.code(), answer, said)
    };
    let (code, answer, _) = info(&folder().join("mlp.onnx"), &["--device", "emulated"]);
    let device = &answer["device"];
    assert_eq!((code, &device["name"], &device["fits"]), (Some(0), &"emulated".into(), &true.into()));
    assert_eq!(device["memory"]["weights"], answer["weight_bytes"]);
    assert!(device["memory"]["available"].as_u64() > device["memory"]["weights"].as_u64());
    let (code, answer, _) = info(&folder().join("mlp.onnx"), &[]);
    assert_eq!((code, &answer["device"]["name"]), (Some(0), &"cpu".into()));
    let file = TestFile::new("no-kernel-of-info", &declared_model("Atan"));
    let (code, answer, said) = info(&file.0, &["--device", "emulated"]);
    assert_eq!((code, answer.is_null()), (Some(2), true));
    assert!(said.starts_with("error: node `the node` (Atan): devices have no kernel for it"), "{said}");
    assert!(said.ends_with("\nhint: `--device cpu` computes it\n"), "{said}");
    if cfg!(not(target_os = "macos")) {
        let (code, _, said) = info(&folder().join("mlp.onnx"), &["--device", "metal"]);
        assert_eq!((code, said.starts_with("error: metal cannot be used: ")), (Some(2), true), "{said}");
    }
}

/// Launches of every kernel, small enough to be replayed under sanitizers (`make kernels-sanitize`
/// records them): those of the self-test, which comes first, and of a model.
#[test]
fn recorded_for_the_sanitizers() {
    let (device, case) = (device(), Case::of("text17"));
    let one: Vec<(String, Array)> =
        case.inputs.iter().map(|(name, array)| (name.clone(), events_of(array, &[0]))).collect();
    let expected = encode(&case.open(EncoderPrecision::Single), &one, 1);
    let found = encode(&on(&device, &case), &one, 1);
    assert!(difference(&found[0].values, &expected[0].values) < TOLERANCE);
}
