//! Small random models of `scripts/torchless_encoders.py`: outputs are compared with PyTorch's in
//! double precision, and bits with bits.

use std::path::PathBuf;

use torchless::encoder::{
    EncodeOptions, Encoder, EncoderInput, EncoderOptions, EncoderPrecision, EncoderScratch, InputValues, OutputValues,
};
use torchless::{InstructionSet, Threads};

use super::npz::{Array, Numbers, read};

/// Particles of padding that a test adds.
pub(super) const MORE: usize = 5;

pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/encoders")
}

/// A model, its inputs, and the outputs that PyTorch computed in double precision.
pub(super) struct Case {
    pub(super) path: PathBuf,
    pub(super) inputs: Vec<(String, Array)>,
    pub(super) expected: Vec<f64>,
}

impl Case {
    pub(super) fn of(name: &str) -> Case {
        let is_folder = folder().join(name).is_dir();
        let arrays = if is_folder { format!("{name}/reference.npz") } else { format!("{name}.npz") };
        let mut inputs = read(&folder().join(arrays));
        let place = inputs.iter().position(|(name, _)| name == "logits").expect("logits");
        let (_, logits) = inputs.swap_remove(place);
        let Numbers::F64(expected) = logits.numbers else { panic!("logits in double precision") };
        let path = folder().join(if is_folder { name.to_owned() } else { format!("{name}.onnx") });
        Case { path, inputs, expected }
    }

    pub(super) fn open(&self, precision: EncoderPrecision) -> Encoder {
        Encoder::open_with(&self.path, &EncoderOptions { precision, ..EncoderOptions::default() }).expect("a model")
    }
}

pub(super) fn inputs(arrays: &[(String, Array)]) -> Vec<EncoderInput<'_>> {
    fn one((name, array): &(String, Array)) -> EncoderInput<'_> {
        let values = match &array.numbers {
            Numbers::F32(values) => InputValues::F32(values),
            Numbers::F64(values) => InputValues::F64(values),
            Numbers::I64(values) => InputValues::I64(values),
            Numbers::Bool(values) => InputValues::Bool(values),
        };
        EncoderInput { name, shape: &array.shape, values }
    }
    arrays.iter().map(one).collect()
}

pub(super) fn run(model: &Encoder, arrays: &[(String, Array)]) -> Vec<f64> {
    let outputs = model.run(&mut EncoderScratch::new(), &inputs(arrays)).expect("outputs");
    // The answer of a model without a head comes after its hidden states.
    outputs.last().expect("an output").values.to_f64()
}

pub(super) fn encode(model: &Encoder, threads: usize, arrays: &[(String, Array)], options: &EncodeOptions) -> Vec<u32> {
    let outputs = model.encode(&Threads::new(threads), &inputs(arrays), options).expect("outputs");
    let OutputValues::F32(values) = &outputs[0].values else { panic!("single precision") };
    values.iter().map(|value| value.to_bits()).collect()
}

pub(super) fn largest_difference(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let difference = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
    found.iter().zip(expected).map(difference).fold(0.0, f64::max)
}

pub(super) const MODELS: [&str; 17] = [
    "mlp",
    "text13",
    "text17",
    "text20",
    "image",
    "part",
    "part3",
    "bert_embeddings",
    "bert_logits",
    "bert_pooled",
    "distilbert_logits",
    "roberta_logits",
    "vit_logits",
    "vit_pooled",
    "part_weights",
    "part2_weights",
    "part3_weights",
];

#[test]
fn outputs_agree_with_double_precision_of_pytorch() {
    for name in MODELS {
        let case = Case::of(name);
        let single = largest_difference(&run(&case.open(EncoderPrecision::Single), &case.inputs), &case.expected);
        assert!(single < 5e-6, "{name}: {single:e}");
        // Files have weights and constants of single precision; the reference is rounded nowhere
        // else.
        let double = largest_difference(&run(&case.open(EncoderPrecision::Double), &case.inputs), &case.expected);
        assert!(double < 1e-7, "{name} in double precision: {double:e}");
    }
}

#[test]
fn instruction_sets_agree() {
    for name in MODELS {
        let case = Case::of(name);
        for isa in InstructionSet::available() {
            let model = case.open(EncoderPrecision::Single).with_instruction_set(isa);
            let difference = largest_difference(&run(&model, &case.inputs), &case.expected);
            assert!(difference < 5e-6, "{name} with {}: {difference:e}", isa.name());
        }
    }
}

/// Returns every axis-0 part of an array, in the order of `events`.
pub(super) fn events_of(array: &Array, events: &[usize]) -> Array {
    let per_event: usize = array.shape[1..].iter().product();
    let mut shape = array.shape.clone();
    shape[0] = events.len();
    Array { shape, numbers: array.numbers.parts(events, per_event) }
}

#[test]
fn bits_do_not_depend_on_batch_order_padding_or_threads() {
    for name in ["part", "part3", "part_weights", "part2_weights", "part3_weights"] {
        let case = Case::of(name);
        let model = case.open(EncoderPrecision::Single);
        let cut = EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() };
        let expected = encode(&model, 1, &case.inputs, &cut);
        let n_events = case.inputs[0].1.shape[0];
        let n_classes = expected.len() / n_events;
        for batch in [1, 2, 5] {
            let options = EncodeOptions { events_at_once: batch, ..cut.clone() };
            assert_eq!(encode(&model, 1, &case.inputs, &options), expected, "{name}: {batch} at once");
            assert_eq!(encode(&model, 2, &case.inputs, &options), expected, "{name}: {batch} at once, two threads");
        }
        let whole = EncodeOptions::default();
        assert_eq!(encode(&model, 1, &case.inputs, &whole), expected, "{name}: with padding");
        let longer: Vec<(String, Array)> =
            case.inputs.iter().map(|(name, array)| (name.clone(), array.padded(MORE))).collect();
        assert_eq!(encode(&model, 1, &longer, &whole), expected, "{name}: with more padding");
        let reversed: Vec<usize> = (0..n_events).rev().collect();
        let inputs: Vec<(String, Array)> =
            case.inputs.iter().map(|(name, array)| (name.clone(), events_of(array, &reversed))).collect();
        let found = encode(&model, 1, &inputs, &whole);
        let back: Vec<u32> = found.chunks(n_classes).rev().flatten().copied().collect();
        assert_eq!(back, expected, "{name}: in another order");
    }
}

#[test]
fn one_scratch_serves_several_models_and_shapes() {
    let mut scratch = EncoderScratch::new();
    let cases = MODELS.map(Case::of);
    let models: Vec<Encoder> = cases.iter().map(|case| case.open(EncoderPrecision::Single)).collect();
    for _ in 0..2 {
        for (case, model) in cases.iter().zip(&models) {
            let found = model.run(&mut scratch, &inputs(&case.inputs)).expect("outputs");
            let found = found.last().expect("an output").values.to_f64();
            assert_eq!(found, run(model, &case.inputs));
        }
    }
    assert!(scratch.n_bytes() < 20 << 20, "{} bytes", scratch.n_bytes());
}

#[test]
fn what_a_mask_hides_changes_no_bit() {
    let case = Case::of("part");
    let model = case.open(EncoderPrecision::Single);
    let mask = case.inputs.iter().find(|(name, _)| name == "mask").expect("a mask").1.clone();
    let Numbers::Bool(mask) = mask.numbers else { panic!("truth values") };
    let mut noisy = case.inputs.clone();
    for (name, array) in &mut noisy {
        let Numbers::F32(values) = &mut array.numbers else { continue };
        let (channels, places) = (array.shape[1], array.shape[2]);
        for (index, value) in values.iter_mut().enumerate() {
            let (event, place) = (index / (channels * places), index % places);
            if !mask[event * places + place] {
                *value = if name == "v" && index / places % channels == 3 { 90.0 } else { 7.0 + place as f32 };
            }
        }
    }
    let whole = EncodeOptions::default();
    assert_eq!(encode(&model, 1, &noisy, &whole), encode(&model, 1, &case.inputs, &whole));
}
