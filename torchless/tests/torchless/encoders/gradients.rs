//! Gradients of the small models: compared with those of PyTorch's autograd in double precision
//! (`scripts/torchless_gradients.py`), and bits with bits.

use torchless::encoder::{
    Column, Cotangent, EncodeOptions, Encoder, EncoderEvents, EncoderGradients, EncoderOptions, EncoderPrecision,
    GradientTarget, InputValues, Offsets, RaggedInput, ScratchPool, WeightStorage,
};
use torchless::{Error, GradientProblem, InstructionSet, Threads};

use super::models::{Case, MORE, events_of, folder, inputs};
use super::npz::{Array, Numbers, read};
use super::ragged::{Jets, masked};

/// Models, and whether they have a mask of particles.
const MODELS: [(&str, bool); 10] = [
    ("mlp", false),
    ("image", false),
    ("vit_logits", false),
    ("vit_pooled", false),
    ("bert_embeddings", true),
    ("part", true),
    ("part3", true),
    ("part_weights", true),
    ("part2_weights", true),
    ("part3_weights", true),
];

/// Returns the cotangent and the gradients that PyTorch computed.
fn expected(name: &str) -> (Array, Vec<(String, Array)>) {
    let is_folder = folder().join(name).is_dir();
    let path = if is_folder { format!("{name}/gradients.npz") } else { format!("{name}_gradients.npz") };
    let mut arrays = read(&folder().join(path));
    let place = arrays.iter().position(|(name, _)| name == "cotangent").expect("a cotangent");
    (arrays.swap_remove(place).1, arrays)
}

fn doubles(array: &Array) -> &[f64] {
    let Numbers::F64(values) = &array.numbers else { panic!("double precision") };
    values
}

fn options(has_mask: bool) -> EncodeOptions {
    if has_mask { masked() } else { EncodeOptions::default() }
}

fn gradients(
    model: &Encoder,
    threads: usize,
    arrays: &[(String, Array)],
    cotangent: &Array,
    options: &EncodeOptions,
) -> EncoderGradients {
    let output = model.outputs().pop().expect("an output").name;
    let cotangent = [Cotangent { output: &output, shape: &cotangent.shape, values: doubles(cotangent) }];
    let target = GradientTarget::Cotangents(&cotangent);
    let inputs = inputs(arrays);
    let events = EncoderEvents { dense: &inputs, ragged: &[] };
    model.gradients(&Threads::new(threads), &ScratchPool::new(), events, &target, options).expect("gradients")
}

/// Returns the largest difference from expected gradients, relative to the largest of the same
/// event and channel: those of momenta of one pair may be a million times those of others. Momenta,
/// whose pairs have masses that are differences of large numbers, and other inputs.
fn largest_differences(found: &EncoderGradients, expected: &[(String, Array)]) -> [f64; 2] {
    let mut largest = [0.0; 2];
    for (name, array) in expected {
        let gradient = found.inputs.iter().find(|gradient| gradient.name == *name).expect("a gradient");
        assert_eq!(gradient.shape, array.shape, "{name}");
        let row = array.shape[2..].iter().product::<usize>().max(1);
        let largest: &mut f64 = &mut largest[usize::from(name != "v")];
        for (found, expected) in gradient.values.chunks(row).zip(doubles(array).chunks(row)) {
            let scale = expected.iter().fold(1e-6, |scale: f64, value| scale.max(value.abs()));
            let difference = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
            *largest = found.iter().zip(expected).map(difference).fold(*largest, |largest, d| largest.max(d / scale));
        }
    }
    largest
}

/// The file has numbers of half precision. Those of bytes are the gradients of rounded weights.
#[test]
fn weights_of_two_bytes_change_no_bit_of_gradients() {
    let (case, (cotangent, expected)) = (Case::of("vit_pooled"), expected("vit_pooled"));
    let of = |weights| {
        let options = EncoderOptions { weights, ..EncoderOptions::default() };
        let model = Encoder::open_with(&case.path, &options).expect("a model");
        gradients(&model, 1, &case.inputs, &cotangent, &EncodeOptions::default())
    };
    let (wide, narrow) = (of(WeightStorage::F32), of(WeightStorage::F16));
    for (wide, narrow) in wide.inputs.iter().zip(&narrow.inputs) {
        assert_eq!(wide.values, narrow.values, "{}", wide.name);
    }
    for storage in [WeightStorage::Bf16, WeightStorage::Int8] {
        let [_, difference] = largest_differences(&of(storage), &expected);
        assert!(difference > 1e-5 && difference < 0.3, "{}: {difference:e}", storage.name());
    }
}

#[test]
fn gradients_agree_with_those_of_pytorch_in_double_precision() {
    for (name, has_mask) in MODELS {
        let (case, (cotangent, expected)) = (Case::of(name), expected(name));
        let check = |model: &Encoder, most: [f64; 2], how: &str| {
            let found = gradients(model, 1, &case.inputs, &cotangent, &options(has_mask));
            assert_eq!(found.inputs.len(), expected.len(), "{name}");
            let found = largest_differences(&found, &expected);
            println!("{name}, {how}: {found:?}");
            assert!(found[0] < most[0] && found[1] < most[1], "{name}, {how}: {found:?}");
        };
        check(&case.open(EncoderPrecision::Double), [1e-5, 1e-6], "double precision");
        for isa in InstructionSet::available() {
            let model = case.open(EncoderPrecision::Single).with_instruction_set(isa);
            check(&model, [1e-3, 2e-5], isa.name());
        }
    }
}

#[test]
fn outputs_beside_gradients_are_those_without() {
    for (name, has_mask) in MODELS {
        let (case, (cotangent, _)) = (Case::of(name), expected(name));
        let (model, options) = (case.open(EncoderPrecision::Single), options(has_mask));
        let found = gradients(&model, 1, &case.inputs, &cotangent, &options);
        let plain = model.encode(&Threads::new(1), &inputs(&case.inputs), &options).expect("outputs");
        assert_eq!(found.outputs, plain, "{name}");
    }
}

fn bits(found: &EncoderGradients) -> Vec<Vec<u64>> {
    found.inputs.iter().map(|gradient| gradient.values.iter().map(|value| value.to_bits()).collect()).collect()
}

#[test]
fn bits_of_gradients_do_not_depend_on_batch_order_padding_or_threads() {
    for (name, has_mask) in MODELS {
        let (case, (cotangent, _)) = (Case::of(name), expected(name));
        let model = case.open(EncoderPrecision::Single);
        let together = gradients(&model, 1, &case.inputs, &cotangent, &options(has_mask));
        for (events_at_once, threads) in [(1, 1), (3, 2), (5, 3), (100, 2)] {
            let options = EncodeOptions { events_at_once, ..options(has_mask) };
            let found = gradients(&model, threads, &case.inputs, &cotangent, &options);
            assert_eq!(bits(&found), bits(&together), "{name}: {events_at_once} at once, {threads} threads");
        }
        let n_events = cotangent.shape[0];
        let reversed: Vec<usize> = (0..n_events).rev().collect();
        let turned: Vec<(String, Array)> =
            case.inputs.iter().map(|(name, array)| (name.clone(), events_of(array, &reversed))).collect();
        let found = gradients(&model, 1, &turned, &events_of(&cotangent, &reversed), &options(has_mask));
        for (found, expected) in found.inputs.iter().zip(&together.inputs) {
            let per_event = found.values.len() / n_events;
            let back: Vec<f64> = found.values.chunks(per_event).rev().flatten().copied().collect();
            assert_eq!(back, expected.values, "{name}: in another order");
        }
        if name.starts_with("part") {
            let whole = gradients(&model, 1, &case.inputs, &cotangent, &EncodeOptions::default());
            assert_eq!(bits(&whole), bits(&together), "{name}: with padding");
            let padded = |(name, array): &(String, Array)| (name.clone(), array.padded(MORE));
            let longer: Vec<(String, Array)> = case.inputs.iter().map(padded).collect();
            let found = gradients(&model, 1, &longer, &cotangent, &EncodeOptions::default());
            for (found, expected) in found.inputs.iter().zip(&together.inputs) {
                let size = *expected.shape.last().expect("an axis");
                let cut: Vec<f64> = found.values.chunks(size + MORE).flat_map(|row| row[..size].to_vec()).collect();
                assert_eq!(cut, expected.values, "{name}: with more padding");
            }
        }
    }
}

#[test]
fn gradients_of_ragged_events_have_the_bits_of_padded_ones() {
    for name in ["part", "part3"] {
        let jets = Jets::of(name);
        let (cotangent, _) = expected(name);
        let padded = gradients(&jets.model, 1, &jets.padded, &cotangent, &masked());
        // Offsets that do not begin at 0: the rows before the first event have no gradient.
        let offsets = jets.offsets(2);
        let rows = [("x", 5), ("v", 4)].map(|(input, width)| {
            let mut rows = vec![99.0; 2 * width];
            rows.extend(jets.rows(input, width));
            rows
        });
        let columns = [Column::of_rows(InputValues::F32(&rows[0]), 5), Column::of_rows(InputValues::F32(&rows[1]), 4)];
        let ragged = ["x", "v"].into_iter().zip(&columns).map(|(name, columns)| RaggedInput {
            name,
            offsets: Offsets::I64(&offsets),
            columns,
        });
        let ragged: Vec<RaggedInput<'_>> = ragged.collect();
        let values = [Cotangent { output: "logits", shape: &cotangent.shape, values: doubles(&cotangent) }];
        for threads in [1, 3] {
            let events = EncoderEvents { dense: &[], ragged: &ragged };
            let target = GradientTarget::Cotangents(&values);
            let pool = ScratchPool::new();
            let found =
                jets.model.gradients(&Threads::new(threads), &pool, events, &target, &masked()).expect("gradients");
            for (found, padded) in found.inputs.iter().zip(&padded.inputs) {
                let (n_columns, size) = (padded.shape[1], padded.shape[2]);
                let at =
                    |event: usize, place: usize| (0..n_columns).map(move |c| (event * n_columns + c) * size + place);
                let particles = jets.lengths.iter().enumerate().flat_map(|(event, &n)| (0..n).map(move |p| (event, p)));
                let expected: Vec<f64> =
                    particles.flat_map(|(event, place)| at(event, place)).map(|place| padded.values[place]).collect();
                assert_eq!(found.shape, [jets.lengths.iter().sum::<usize>(), n_columns], "{name}");
                assert_eq!(found.values, expected, "{name}: {}", found.name);
            }
        }
    }
}

#[test]
fn a_column_is_a_cotangent_of_ones_and_zeros() {
    let case = Case::of("part");
    let (model, pool, threads) = (case.open(EncoderPrecision::Single), ScratchPool::new(), Threads::new(1));
    let arrays = inputs(&case.inputs);
    let events = EncoderEvents { dense: &arrays, ragged: &[] };
    for column in 0..3 {
        let target = GradientTarget::Column { output: Some("logits"), column };
        let found = model.gradients(&threads, &pool, events, &target, &masked()).expect("gradients");
        let ones = (0..36).map(|place| f64::from(u8::from(place % 3 == column))).collect();
        let cotangent = Array { shape: vec![12, 3], numbers: Numbers::F64(ones) };
        assert_eq!(found, gradients(&model, 1, &case.inputs, &cotangent, &masked()));
    }
    // Memory for gradients is there once they were asked for.
    assert!(pool.n_bytes() > 0);
}

#[test]
fn integers_have_no_gradient() {
    for name in ["text17", "bert_logits"] {
        let case = Case::of(name);
        let (model, arrays) = (case.open(EncoderPrecision::Single), inputs(&case.inputs));
        let events = EncoderEvents { dense: &arrays, ragged: &[] };
        let target = GradientTarget::Column { output: None, column: 0 };
        let (threads, pool) = (Threads::new(1), ScratchPool::new());
        let found = model.gradients(&threads, &pool, events, &target, &EncodeOptions::default()).expect("gradients");
        assert_eq!((found.inputs.len(), found.outputs.len()), (0, 1), "{name}");
    }
}

#[test]
fn targets_that_do_not_fit_are_errors() {
    let case = Case::of("mlp");
    let (model, arrays) = (case.open(EncoderPrecision::Single), inputs(&case.inputs));
    let error = |target: &GradientTarget<'_>| {
        let events = EncoderEvents { dense: &arrays, ragged: &[] };
        let (threads, pool) = (Threads::new(1), ScratchPool::new());
        match model.gradients(&threads, &pool, events, target, &EncodeOptions::default()) {
            Err(Error::Gradient(problem)) => problem,
            other => panic!("{other:?}"),
        }
    };
    let column = error(&GradientTarget::Column { output: None, column: 2 });
    assert_eq!(column, GradientProblem::Column { output: "logits".into(), column: 2, n_columns: 2 });
    let unknown = error(&GradientTarget::Column { output: Some("score"), column: 0 });
    assert_eq!(unknown.to_string(), "gradients: the model has no output `score`; it has `logits`");
    let values = [1.0; 10];
    let cotangent = |shape, n| Cotangent { output: "logits", shape, values: &values[..n] };
    for (shape, n) in [(&[5, 2][..], 9), (&[4, 2], 8), (&[], 1)] {
        let found = error(&GradientTarget::Cotangents(&[cotangent(shape, n)]));
        assert!(matches!(found, GradientProblem::CotangentEvents { n_events: 5, .. }), "{found}");
        assert!(found.hint().is_some());
    }
    let found = error(&GradientTarget::Cotangents(&[cotangent(&[5, 1], 5)]));
    assert_eq!(
        found,
        GradientProblem::CotangentShape { output: "logits".into(), found: vec![5, 1], expected: vec![5, 2] }
    );
    let found = error(&GradientTarget::Cotangents(&[cotangent(&[5, 2], 10), cotangent(&[5, 2], 10)]));
    assert_eq!(found, GradientProblem::Twice { output: "logits".into() });
    // A model that answers with hidden states, too: one output must be named, and has no columns of
    // each event.
    let case = Case::of("bert_pooled");
    let (model, arrays) = (case.open(EncoderPrecision::Single), inputs(&case.inputs));
    let events = EncoderEvents { dense: &arrays, ragged: &[] };
    let options = EncodeOptions { mask: Some("attention_mask".into()), ..EncodeOptions::default() };
    for (output, expected) in [(None, "several outputs"), (Some("last_hidden_state"), "has an axis of particles")] {
        let target = GradientTarget::Column { output, column: 0 };
        let found = model.gradients(&Threads::new(1), &ScratchPool::new(), events, &target, &options);
        let message = found.expect_err("no target").to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn no_events_have_no_gradients() {
    let model = Case::of("mlp").open(EncoderPrecision::Single);
    let x = [torchless::encoder::EncoderInput { name: "x", shape: &[0, 3], values: InputValues::F32(&[]) }];
    let events = EncoderEvents { dense: &x, ragged: &[] };
    let target = GradientTarget::Column { output: None, column: 0 };
    let (threads, pool) = (Threads::new(1), ScratchPool::new());
    let found = model.gradients(&threads, &pool, events, &target, &EncodeOptions::default()).expect("gradients");
    assert_eq!((&found.outputs[0].shape[..], &found.inputs[0].shape[..]), (&[0, 2][..], &[0, 3][..]));
}

#[test]
fn the_command_writes_gradients_by_input() {
    let place = crate::random_model::fresh_folder("gradients");
    let encode = |more: &[&str]| {
        let mut command = std::process::Command::new(crate::support::program());
        command.arg("encode").arg(folder().join("part.onnx")).arg("--inputs").arg(folder().join("part.npz"));
        command.args(["--mask", "mask", "--output"]).arg(place.join("logits.npy")).args(more);
        command.current_dir(&place).output().expect("the command")
    };
    let done = encode(&["--gradients", "found.npz", "--column", "2"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let case = Case::of("part");
    let (model, arrays) = (case.open(EncoderPrecision::Single), inputs(&case.inputs));
    let events = EncoderEvents { dense: &arrays, ragged: &[] };
    let target = GradientTarget::Column { output: None, column: 2 };
    let expected =
        model.gradients(&Threads::new(1), &ScratchPool::new(), events, &target, &masked()).expect("gradients");
    let found = read(&place.join("found.npz"));
    assert_eq!(found.len(), 2);
    for gradient in &expected.inputs {
        let (_, array) = found.iter().find(|(name, _)| *name == gradient.name).expect("an array");
        assert_eq!((&array.shape, doubles(array)), (&gradient.shape, &gradient.values[..]));
    }
    let refused = encode(&["--column", "2"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--gradients"));
    let refused = encode(&["--gradients", "found.npz", "--column", "3"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no column 3"));
}
