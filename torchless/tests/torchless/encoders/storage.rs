//! Weights in two bytes and in one: the bits of widened weights, the same bits however events are
//! divided, what is refused, and how far the approximate mode is from double precision.

use std::path::PathBuf;

use torchless::encoder::{
    EncodeOptions, Encoder, EncoderInput, EncoderOptions, EncoderPrecision, EncoderScratch, InputValues, WeightStorage,
};
use torchless::{Error, InstructionSet};

use super::hostile::{Message, TestFile, cast, model, node};
use super::models::{Case, MODELS, encode, folder, largest_difference, run};

/// A form of two bytes, and numbers of single precision that it has.
struct Narrow {
    storage: WeightStorage,
    dtype: &'static str,
    /// Bits at the end of single precision that it does not have.
    n_bits: u32,
}

const NARROW: [Narrow; 2] = [
    Narrow { storage: WeightStorage::F16, dtype: "F16", n_bits: 13 },
    Narrow { storage: WeightStorage::Bf16, dtype: "BF16", n_bits: 16 },
];

impl Narrow {
    /// Returns the number without the bits that the form does not have, and its bytes.
    fn cut(&self, value: f32) -> (f32, [u8; 2]) {
        let bits = value.to_bits() >> self.n_bits << self.n_bits;
        let kept = f32::from_bits(bits);
        if self.dtype == "BF16" {
            return (kept, ((bits >> 16) as u16).to_le_bytes());
        }
        // Too small for a normal number of half precision.
        let exponent = (bits >> 23 & 255) as i32 - 112;
        if exponent <= 0 {
            return (0.0 * value, (((bits >> 16) & 0x8000) as u16).to_le_bytes());
        }
        let half = bits >> 16 & 0x8000 | (exponent as u32) << 10 | bits >> 13 & 1023;
        (kept, (half as u16).to_le_bytes())
    }
}

fn open(path: impl AsRef<std::path::Path>, weights: WeightStorage) -> Encoder {
    Encoder::open_with(path, &EncoderOptions { weights, ..EncoderOptions::default() }).expect("a model")
}

/// A folder with a changed copy of a model, removed at its end.
struct Changed(PathBuf);

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Changed {
    /// Writes the weights of `model` that `of_tensor` returns: their type and their bytes.
    fn new(model: &str, what: &str, of_tensor: impl Fn(&str, &[f32]) -> (&'static str, Vec<u8>)) -> Changed {
        let from = folder().join(model);
        let file = std::fs::read(from.join("model.safetensors")).expect("weights");
        let length = u64::from_le_bytes(*file.first_chunk().expect("a length")) as usize;
        let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).expect("a header");
        let (mut entries, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, entry) in header.as_object().expect("tensors") {
            let mut entry = entry.clone();
            if name != "__metadata__" {
                let place =
                    |index: usize| entry["data_offsets"][index].as_u64().expect("an offset") as usize + 8 + length;
                let bytes = &file[place(0)..place(1)];
                let is_float = entry["dtype"] == "F32";
                let values: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                let (dtype, bytes) = if is_float { of_tensor(name, &values) } else { ("I64", bytes.to_vec()) };
                entry["dtype"] = dtype.into();
                entry["data_offsets"] = vec![data.len(), data.len() + bytes.len()].into();
                data.extend(bytes);
            }
            entries.insert(name.clone(), entry);
        }
        let header = serde_json::to_vec(&entries).expect("a header");
        let to = std::env::temp_dir().join(format!("torchless-{}-{model}-{what}", std::process::id()));
        std::fs::create_dir_all(&to).expect("a temporary folder");
        let whole = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
        std::fs::write(to.join("model.safetensors"), whole).expect("a file");
        std::fs::copy(from.join("config.json"), to.join("config.json")).expect("a file");
        Changed(to)
    }
}

#[test]
fn a_file_of_two_bytes_a_number_loses_no_bit() {
    for name in ["bert_logits", "vit_logits", "part_weights", "part2_weights", "part3_weights"] {
        let case = Case::of(name);
        for form in &NARROW {
            let changed = Changed::new(name, form.dtype, |_, values| {
                (form.dtype, values.iter().flat_map(|value| form.cut(*value).1).collect())
            });
            let wide = Changed::new(name, &format!("wide-{}", form.dtype), |_, values| {
                ("F32", values.iter().flat_map(|value| form.cut(*value).0.to_le_bytes()).collect())
            });
            let expected = run(&open(&changed.0, WeightStorage::F32), &case.inputs);
            for isa in InstructionSet::available() {
                let of_isa = run(&open(&changed.0, WeightStorage::F32).with_instruction_set(isa), &case.inputs);
                for path in [&changed.0, &wide.0] {
                    let model = open(path, form.storage).with_instruction_set(isa);
                    assert!(run(&model, &case.inputs) == of_isa, "{name} in {} with {}", form.dtype, isa.name());
                }
            }
            // The numbers were cut: it is another model than that of the file.
            assert_ne!(expected, run(&open(&case.path, WeightStorage::F32), &case.inputs));
        }
    }
}

#[test]
fn published_files_of_two_bytes_a_number_lose_no_bit() {
    for (name, storage) in [("bert_pooled", WeightStorage::Bf16), ("vit_pooled", WeightStorage::F16)] {
        let case = Case::of(name);
        let (narrow, wide) = (open(&case.path, storage), open(&case.path, WeightStorage::F32));
        assert_eq!(run(&narrow, &case.inputs), run(&wide, &case.inputs), "{name}");
        assert!(narrow.weight_bytes() < wide.weight_bytes() * 2 / 3, "{name}: {} bytes", narrow.weight_bytes());
    }
}

/// The product of two numbers of half precision is none: a matrix that the model computes of its
/// weights stays as it is.
#[test]
fn half_precision_of_onnx_files_loses_no_bit() {
    let matrix = |name: &str, shape: [i64; 2], first: u16| {
        let numbers: Vec<u8> = (0..6).flat_map(|index| (first + 77 * index).to_le_bytes()).collect();
        Message::default().int(1, shape[0]).int(1, shape[1]).int(2, 10).text(8, name).bytes(9, &numbers)
    };
    let weights = [matrix("a", [2, 3], 0x3801), matrix("b", [2, 3], 0x3c03), matrix("c", [3, 2], 0x3701)];
    let nodes = [node("Mul", &["a", "b"], "ab"), node("MatMul", &["x", "ab"], "h"), node("MatMul", &["h", "c"], "y")];
    let file = TestFile::new("half", &model(&nodes, &weights));
    let x = EncoderInput { name: "x", shape: &[2, 2], values: InputValues::F32(&[0.3, -1.7, 2.1, 0.9]) };
    for isa in InstructionSet::available() {
        let answer = |storage| {
            let model = open(&file.0, storage).with_instruction_set(isa);
            model.run(&mut EncoderScratch::new(), &[x]).expect("an answer")
        };
        assert_eq!(answer(WeightStorage::F16), answer(WeightStorage::F32), "{}", isa.name());
        assert_ne!(answer(WeightStorage::Bf16), answer(WeightStorage::F32), "{}", isa.name());
    }
}

/// Rows and columns of a matrix: two blocks of bytes and two panels of products along each.
const SIZES: [usize; 2] = [45, 40];

/// Returns the number of a pattern of half precision or bfloat16, by the definition of its form.
fn number(storage: WeightStorage, bits: u16) -> f64 {
    if storage == WeightStorage::Bf16 {
        return f64::from(f32::from_bits(u32::from(bits) << 16));
    }
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}

/// Returns the nearest number that a form of two bytes has, and of two the one with an even last
/// bit, by a search.
fn nearest(storage: WeightStorage, value: f32) -> f64 {
    let (exact, mut least, mut most) = (f64::from(value).abs(), 0_u16, 0x7c00);
    while most - least > 1 {
        let middle = least.midpoint(most);
        if number(storage, middle) <= exact { least = middle } else { most = middle }
    }
    let [below, above] = [least, most].map(|bits| (number(storage, bits) - exact).abs());
    let is_above = above < below || (above == below && most % 2 == 0);
    number(storage, if is_above { most } else { least }).copysign(f64::from(value))
}

/// Returns a matrix whose numbers lie at, below and above the middle of two neighbours of a form,
/// subnormal ones among them; the largest of a block differs between blocks.
fn between_neighbours(storage: WeightStorage) -> Vec<f32> {
    let one = |place: usize| {
        let (row, column) = (place / SIZES[1], place % SIZES[1]);
        let size = if row < 32 { 1.0 } else { 0.03 } * if column < 32 { 1.0 } else { 0.2 };
        let bits = (place * 7919 % 0x3c00) as u16;
        let sign = if place % 5 < 2 { -1.0 } else { 1.0 };
        let value = match storage {
            WeightStorage::Int8 => size * (place * 131 % 997) as f32 / 997.0,
            _ => ((number(storage, bits) + number(storage, bits + 1)) / 2.0) as f32,
        };
        sign * match place % 3 {
            0 => value,
            1 => value.next_down().max(0.0),
            _ => value.next_up(),
        }
    };
    (0..SIZES[0] * SIZES[1]).map(one).collect()
}

/// Returns scale · integer for the blocks of 32 numbers: scale = max |x| / 127 in half precision.
fn of_bytes(values: &[f32]) -> Vec<f64> {
    let block = |block: &[f32]| {
        let most = block.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = nearest(WeightStorage::F16, most / 127.0);
        let whole = |value: &f32| (value / scale as f32).round_ties_even().clamp(-127.0, 127.0);
        block.iter().map(|value| scale * f64::from(whole(value))).collect::<Vec<_>>()
    };
    values.chunks(32).flat_map(block).collect()
}

/// What is stored is seen by rows of a table, and by products with the identity.
#[test]
fn stored_numbers_are_the_nearest_of_their_form() {
    let [rows, columns] = SIZES;
    for storage in [WeightStorage::F16, WeightStorage::Bf16, WeightStorage::Int8] {
        let values = between_neighbours(storage);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let weights = Message::default().int(1, rows as i64).int(1, columns as i64).int(2, 1);
        let weights = weights.text(8, "weights").bytes(9, &bytes);
        let answer = |name: &str, nodes: &[Message], x: &[f32], shape: &[usize], isa| {
            let file = TestFile::new(name, &model(nodes, std::slice::from_ref(&weights)));
            let x = EncoderInput { name: "x", shape, values: InputValues::F32(x) };
            let model = open(&file.0, storage).with_instruction_set(isa);
            model.run(&mut EncoderScratch::new(), &[x]).expect("an answer")[0].values.to_f64()
        };
        let expected: Vec<f64> = match storage {
            WeightStorage::Int8 => values.chunks(columns).flat_map(of_bytes).collect(),
            _ => values.iter().map(|value| nearest(storage, *value)).collect(),
        };
        let every: Vec<f32> = (0..rows).map(|row| row as f32).collect();
        let nodes = [cast("x", "rows"), node("Gather", &["weights", "rows"], "y")];
        for isa in InstructionSet::available() {
            let found = answer("table", &nodes, &every, &[rows], isa);
            assert_eq!(found, expected, "rows in {} with {}", storage.name(), isa.name());
        }
        // The blocks of bytes of a product are columns.
        let transposed: Vec<f32> =
            (0..columns).flat_map(|column| values[column..].iter().step_by(columns)).copied().collect();
        let of_columns: Vec<f64> = transposed.chunks(rows).flat_map(of_bytes).collect();
        let identity: Vec<f32> = (0..rows * rows).map(|place| f32::from(u8::from(place % (rows + 1) == 0))).collect();
        for (isa, one_row) in InstructionSet::available().into_iter().flat_map(|isa| [(isa, false), (isa, true)]) {
            let multiply = [node("MatMul", &["x", "weights"], "y")];
            let n_rows = if one_row { 1 } else { rows };
            let found = answer("product", &multiply, &identity[..n_rows * rows], &[n_rows, rows], isa);
            for (place, found) in found.iter().enumerate() {
                let expected = match storage {
                    WeightStorage::Int8 => of_columns[place % columns * rows + place / columns],
                    _ => expected[place],
                };
                // Of bytes there is the scale of the inputs, too, which is rounded.
                let most = if storage == WeightStorage::Int8 { 3e-7 * expected.abs() } else { 0.0 };
                let (form, isa) = (storage.name(), isa.name());
                assert!((found - expected).abs() <= most, "{form}, {isa}: {found} and {expected} at {place}");
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_batch_order_or_threads_in_any_form() {
    for name in ["part", "part_weights", "part3_weights", "text17", "bert_logits", "vit_logits"] {
        let case = Case::of(name);
        for storage in WeightStorage::ALL {
            let model = open(&case.path, storage);
            let whole = EncodeOptions { events_at_once: 64, mask: None };
            let expected = encode(&model, 1, &case.inputs, &whole);
            for (batch, threads) in [(1, 1), (2, 2), (3, 1)] {
                let options = EncodeOptions { events_at_once: batch, mask: None };
                let found = encode(&model, threads, &case.inputs, &options);
                assert!(found == expected, "{name} in {}: {batch} at once", storage.name());
            }
            if name.starts_with("part") {
                let cut = EncodeOptions { mask: Some("mask".into()), ..whole };
                assert!(encode(&model, 1, &case.inputs, &cut) == expected, "{name} in {}: cut", storage.name());
            }
        }
    }
}

/// Rounding to 11 bits, to 8 bits, and of weights and inputs to bytes; outputs are about 1.
#[test]
fn rounded_weights_are_as_near_as_their_bits_allow() {
    let limits = [
        (WeightStorage::F32, 0.0, 5e-6),
        (WeightStorage::F16, 1e-7, 6e-3),
        (WeightStorage::Bf16, 1e-5, 5e-2),
        (WeightStorage::Int8, 1e-4, 2e-1),
    ];
    for name in MODELS.into_iter().filter(|name| !name.ends_with("_pooled")) {
        let case = Case::of(name);
        for (storage, least, most) in limits {
            let difference = largest_difference(&run(&open(&case.path, storage), &case.inputs), &case.expected);
            assert!(difference < most, "{name} in {}: {difference:e}", storage.name());
            assert!(difference >= least, "{name} in {} is not rounded: {difference:e}", storage.name());
        }
    }
}

#[test]
fn a_weight_that_half_precision_does_not_have_is_refused_by_its_tensor() {
    const NAME: &str = "bert.encoder.layer.1.output.dense.weight";
    let changed = Changed::new("bert_logits", "large", |name, values| {
        let large = |(place, value): (usize, &f32)| if name == NAME && place == 5 { 7e4 } else { *value };
        ("F32", values.iter().enumerate().map(large).flat_map(f32::to_le_bytes).collect())
    });
    let opened = |weights| Encoder::open_with(&changed.0, &EncoderOptions { weights, ..EncoderOptions::default() });
    let error = opened(WeightStorage::F16).expect_err("an overflow");
    assert_eq!(
        error.to_string(),
        format!("tensor `{NAME}`: 70000 cannot be stored as f16, whose largest number is 65504")
    );
    assert!(error.hint().is_some_and(|hint| hint.contains("bf16")));
    for storage in [WeightStorage::F32, WeightStorage::Bf16, WeightStorage::Int8] {
        assert!(opened(storage).is_ok(), "{}", storage.name());
    }
}

#[test]
fn the_approximate_mode_says_so_and_is_never_chosen() {
    let path = folder().join("part.onnx");
    assert!(!Encoder::open(&path).expect("a model").is_approximate());
    for storage in WeightStorage::ALL {
        assert_eq!(open(&path, storage).weights(), storage);
        assert_eq!(open(&path, storage).is_approximate(), storage == WeightStorage::Int8);
        assert_eq!(WeightStorage::named(storage.name()), Some(storage));
    }
    assert_eq!(WeightStorage::named("int4"), None);
}

#[test]
fn double_precision_has_the_numbers_of_the_file_only() {
    let options = EncoderOptions {
        precision: EncoderPrecision::Double,
        weights: WeightStorage::F16,
        ..EncoderOptions::default()
    };
    let error = Encoder::open_with(folder().join("mlp.onnx"), &options).expect_err("a contradiction");
    assert!(matches!(error, Error::StorageOfDouble { storage: "f16" }), "{error}");
}
