//! The fast mode: the same bits as a plain loop over the same arithmetic, however it is computed,
//! and how far it is from the exact mode.
//!
//! The plain loop is written from the formats and from the formula, with nothing of the library in
//! it.

use std::sync::Arc;

use proptest::prelude::*;
use torchless::backend::{CpuBackend, KernelBackend};
use torchless::format::Format;
use torchless::score::{ScoreOptions, log_probabilities, log_probability};
use torchless::{Activations, Engine, InstructionSet, IntegerSet, LogitRows, Matrix, Model, Threads};

use crate::command::{answer, text, torchless};
use crate::properties::{numbers, stored};
use crate::random_model::{RandomModel, Stored};
use crate::support::{ids, json, reference};

const QUANTISED: [Format; 7] =
    [Format::Q8_0, Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q4K, Format::Q5K, Format::Q6K];

/// A weight is `scale`·`code` + `minimum`.
struct Weight {
    code: i32,
    scale: f32,
    minimum: f32,
}

/// Half precision of numbers that are neither tiny nor infinite.
fn half(bytes: &[u8]) -> f32 {
    let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
    let exponent = i32::from(bits >> 10 & 31);
    assert!(exponent > 0 && exponent < 31, "a plain number");
    let size = f32::from(1024 + (bits & 1023)) * 2_f32.powi(exponent - 25);
    if bits & 0x8000 == 0 { size } else { -size }
}

/// Six bits of scale and of minimum of a group of eight.
fn six_bits(packed: &[u8], group: usize) -> (u8, u8) {
    match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => (
            packed[group + 4] & 15 | (packed[group - 4] & 0xc0) >> 2,
            packed[group + 4] >> 4 | (packed[group] & 0xc0) >> 2,
        ),
    }
}

/// Weight `index` of a block.
fn weight(format: Format, block: &[u8], index: usize) -> Weight {
    let plain = |code: i32| Weight { code, scale: half(block), minimum: 0.0 };
    let nibble = |from: usize| i32::from(block[from + index % 16] >> (4 * (index / 16)) & 15);
    let group = index / 32;
    let shared = |from: usize| i32::from(block[from + 32 * (index / 64) + index % 32] >> (4 * (group % 2)) & 15);
    let grouped = |code: i32| {
        let (scale, minimum) = six_bits(&block[4..16], group);
        let minimum = -(half(&block[2..]) * f32::from(minimum));
        Weight { code, scale: half(block) * f32::from(scale), minimum }
    };
    match format {
        Format::Q8_0 => plain(i32::from(block[2 + index] as i8)),
        Format::Q4_0 => plain(nibble(2) - 8),
        Format::Q4_1 => Weight { minimum: half(&block[2..]), ..plain(nibble(4)) },
        Format::Q5_0 => plain((nibble(6) | i32::from(block[2 + index / 8] >> (index % 8) & 1) << 4) - 16),
        Format::Q4K => grouped(shared(16)),
        Format::Q5K => grouped(shared(48) | i32::from(block[16 + index % 32] >> group & 1) << 4),
        Format::Q6K => {
            let (part, inside) = (index / 128, index % 128);
            let low = block[64 * part + inside % 64] >> (4 * (inside / 64)) & 15;
            let high = block[128 + 32 * part + inside % 32] >> (2 * (inside / 32)) & 3;
            let scale = half(&block[208..]) * f32::from(block[192 + index / 16] as i8);
            Weight { code: i32::from(low | high << 4) - 32, scale, minimum: 0.0 }
        }
        other => unreachable!("{other} is not quantised"),
    }
}

/// A block of inputs, rounded: the numbers and their size.
fn rounded(x: &[f32]) -> (Vec<i32>, f32) {
    let most = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let inverse = 127.0 / most;
    (x.iter().map(|x| (x * inverse).round_ties_even() as i32).collect(), most / 127.0)
}

/// One output, term after term.
fn plain(format: Format, row: &[u8], x: &[f32]) -> f32 {
    let length = if format == Format::Q6K { 16 } else { 32 };
    let has_minima = matches!(format, Format::Q4_1 | Format::Q4K | Format::Q5K);
    let mut sum = 0.0_f32;
    for (block, x) in row.chunks(format.block_bytes()).zip(x.chunks(format.block_len())) {
        for first in (0..x.len()).step_by(length) {
            let (numbers, size) = rounded(&x[first / 32 * 32..][..32]);
            let numbers = &numbers[first % 32..][..length];
            let weights: Vec<Weight> = (first..first + length).map(|index| weight(format, block, index)).collect();
            let dot: i32 = weights.iter().zip(numbers).map(|(weight, number)| weight.code * number).sum();
            let mut term = weights[0].scale * dot as f32;
            if has_minima {
                term += weights[0].minimum * numbers.iter().sum::<i32>() as f32;
            }
            sum += term * size;
        }
    }
    sum
}

fn fast(threads: Threads) -> CpuBackend {
    CpuBackend::new(threads).with_activations(Activations::Int8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn products_are_those_of_a_plain_loop_to_the_bit(
        (format, rows, blocks, n_vectors) in (0..QUANTISED.len(), 1..39_usize, 1..6_usize, 1..20_usize),
        (seed, exponent) in (any::<u64>(), -20..20_i32),
    ) {
        let format = QUANTISED[format];
        let columns = format.block_len() * if format.block_len() == 32 { blocks } else { 1 + blocks % 2 };
        let bytes = stored(format, rows, columns, seed);
        let matrix = Matrix::from_bytes(&bytes, format, rows, columns).expect("a matrix");
        let x: Vec<f32> = numbers(n_vectors * columns, seed ^ 0x5555).iter().map(|x| x * 2_f32.powi(exponent)).collect();
        let rows_of_bytes = || bytes.chunks(format.row_bytes(columns).expect("whole blocks"));
        let expected: Vec<u32> =
            x.chunks(columns).flat_map(|x| rows_of_bytes().map(|row| plain(format, row, x).to_bits())).collect();
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        for set in IntegerSet::available() {
            for n_threads in [1, 3] {
                let mut backend = fast(Threads::new(n_threads).with_integer_set(set));
                let mut together = vec![0.0; n_vectors * rows];
                backend.matmul(&matrix, &x, &mut together).expect("shapes");
                prop_assert_eq!(&bits(together), &expected, "{} with {:?}", format, set);
                for (x, expected) in x.chunks(columns).zip(expected.chunks(rows)) {
                    let mut alone = vec![0.0; rows];
                    backend.matmul_vec(&matrix, x, &mut alone).expect("shapes");
                    prop_assert_eq!(&bits(alone)[..], expected, "{} with {:?}", format, set);
                }
            }
        }
    }

    #[test]
    fn products_are_as_far_from_exact_ones_as_rounding_can_bring_them(
        (format, blocks) in (0..QUANTISED.len(), 1..6_usize),
        seed in any::<u64>(),
    ) {
        let format = QUANTISED[format];
        let columns = format.block_len() * if format.block_len() == 32 { blocks } else { 1 };
        let matrix = Matrix::from_bytes(&stored(format, 9, columns, seed), format, 9, columns).expect("a matrix");
        let x = numbers(columns, seed ^ 0x5555);
        let (mut exact, mut found) = (vec![0.0; 9], vec![0.0; 9]);
        CpuBackend::new(Threads::new(1)).matmul_vec(&matrix, &x, &mut exact).expect("shapes");
        fast(Threads::new(1)).matmul_vec(&matrix, &x, &mut found).expect("shapes");
        let halves: Vec<f32> = x.chunks(32).flat_map(|block| [rounded(block).1 / 2.0; 32]).collect();
        for row in 0..9 {
            let mut weights = vec![0.0; columns];
            matrix.row(row, &mut weights);
            let most: f32 = weights.iter().zip(&halves).map(|(weight, half)| weight.abs() * half).sum();
            // Single precision on top: sums of formats with minima cancel.
            let sizes: f32 = weights.iter().zip(&x).map(|(weight, x)| (weight * x).abs()).sum();
            prop_assert!((exact[row] - found[row]).abs() <= 1.001 * most + 1e-4 * sizes, "{format}");
        }
    }
}

#[test]
fn products_that_threads_share_have_the_bits_of_the_plain_loop_with_all_instructions() {
    // Far more multiplications than make it worth it to wake a thread, for one input, too.
    let (rows, columns) = (600, 512);
    for format in QUANTISED {
        let bytes = stored(format, rows, columns, 11);
        let matrix = Matrix::from_bytes(&bytes, format, rows, columns).expect("a matrix");
        let x = numbers(9 * columns, 12);
        let of_row = |x: &[f32], row: &[u8]| plain(format, row, x).to_bits();
        let rows_of_bytes = || bytes.chunks(format.row_bytes(columns).expect("whole blocks"));
        let expected: Vec<u32> =
            x.chunks(columns).flat_map(|x| rows_of_bytes().map(move |row| of_row(x, row))).collect();
        for isa in InstructionSet::available() {
            for (set, n_threads) in IntegerSet::available().into_iter().flat_map(|set| [(set, 1), (set, 3)]) {
                let mut backend = fast(Threads::new(n_threads).with_instruction_set(isa).with_integer_set(set));
                let mut out = vec![0.0; 9 * rows];
                backend.matmul(&matrix, &x, &mut out).expect("shapes");
                let is_same = |out: &[f32]| out.iter().zip(&expected).all(|(found, bits)| found.to_bits() == *bits);
                assert!(is_same(&out), "{format}, {isa:?}, {set:?}, {n_threads} threads, 9 inputs");
                backend.matmul_vec(&matrix, &x[..columns], &mut out[..rows]).expect("shapes");
                assert!(is_same(&out[..rows]), "{format}, {isa:?}, {set:?}, {n_threads} threads, 1 input");
            }
        }
    }
}

#[test]
fn inputs_halfway_between_two_steps_go_to_the_even_one() {
    let bytes = stored(Format::Q8_0, 1, 32, 5);
    let matrix = Matrix::from_bytes(&bytes, Format::Q8_0, 1, 32).expect("a matrix");
    // Of the greatest one a step is 1, and all others are halves: from -14.5 to 15.5.
    let x: Vec<f32> = (0..32_u8).map(|at| if at == 0 { 127.0 } else { f32::from(at) - 15.5 }).collect();
    let expected = plain(Format::Q8_0, &bytes, &x).to_bits();
    for set in IntegerSet::available() {
        let mut out = [0.0];
        fast(Threads::new(1).with_integer_set(set)).matmul_vec(&matrix, &x, &mut out).expect("shapes");
        assert_eq!(out[0].to_bits(), expected, "{set:?}");
    }
}

#[test]
fn greatest_codes_and_inputs_do_not_overflow() {
    // Every byte -128 or 127 in Q8_0, every bit set in the others.
    for (format, byte) in [(Format::Q8_0, 0x80), (Format::Q8_0, 0x7f), (Format::Q4_1, 0xff), (Format::Q5_0, 0xff)] {
        let columns = 64;
        let mut bytes = vec![byte; format.row_bytes(columns).expect("whole blocks")];
        for block in bytes.chunks_mut(format.block_bytes()) {
            block[..2].copy_from_slice(&[0, 0x3c]);
            if format == Format::Q4_1 {
                block[2..4].copy_from_slice(&[0, 0xbc]);
            }
        }
        let matrix = Matrix::from_bytes(&bytes, format, 1, columns).expect("a matrix");
        for value in [1.0, -1.0, 1e30] {
            let x = vec![value; 9 * columns];
            let expected = plain(format, &bytes, &x[..columns]);
            assert!(expected.is_finite());
            for (set, n_vectors) in IntegerSet::available().into_iter().flat_map(|set| [1, 2, 9].map(|n| (set, n))) {
                let mut backend = fast(Threads::new(1).with_integer_set(set));
                let mut out = [0.0; 9];
                let (x, out) = (&x[..n_vectors * columns], &mut out[..n_vectors]);
                match n_vectors {
                    1 => backend.matmul_vec(&matrix, x, out).expect("shapes"),
                    _ => backend.matmul(&matrix, x, out).expect("shapes"),
                }
                let is_same = out.iter().all(|found| found.to_bits() == expected.to_bits());
                assert!(is_same, "{format} {value} {set:?}: {out:?} instead of {expected}");
            }
        }
    }
}

#[test]
fn inputs_that_are_nan_show_in_the_outputs() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for format in QUANTISED {
            let columns = 256;
            let matrix = Matrix::from_bytes(&stored(format, 17, columns, 7), format, 17, columns).expect("a matrix");
            let mut x = numbers(7 * columns, 3);
            x[3 * columns + 200] = odd;
            let mut out = vec![0.0; 7 * 17];
            fast(Threads::new(1)).matmul(&matrix, &x, &mut out).expect("shapes");
            for (vector, out) in out.chunks(17).enumerate() {
                assert!(out.iter().all(|value| value.is_nan() == (vector == 3)), "{format}, {odd}, input {vector}");
            }
            fast(Threads::new(1)).matmul_vec(&matrix, &x[3 * columns..4 * columns], &mut out[..17]).expect("shapes");
            assert!(out[..17].iter().all(|value| value.is_nan()), "{format}, {odd}");
        }
    }
}

/// A model of Q8_0 whose rows are whole blocks.
fn quantised() -> RandomModel {
    let shape =
        RandomModel { hidden: 64, heads: 4, kv_heads: 2, head_dim: 16, intermediate: 96, ..RandomModel::new("llama") };
    RandomModel { stored: Stored::Q8_0, ..shape }.drawn()
}

fn engine(path: &std::path::Path, n_threads: usize, activations: Activations) -> Engine {
    let model = Arc::new(Model::open(path).expect("a model"));
    Engine::new(model, Threads::new(n_threads)).with_activations(activations).expect("a processor")
}

fn logits(engine: &mut Engine, tokens: &[u32], chunk: usize) -> Vec<f32> {
    let mut cache = engine.cache(tokens.len()).expect("a cache");
    let parts = tokens.chunks(chunk).map(|part| engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    parts.collect::<Vec<_>>().concat()
}

/// The greatest and the mean difference.
fn differences(a: &[f32], b: &[f32]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let all: Vec<f64> = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).collect();
    (all.iter().fold(0.0, |most, one| one.max(most)), all.iter().sum::<f64>() / all.len() as f64)
}

#[test]
fn logits_are_near_the_exact_ones_and_the_same_for_any_threads_chunks_and_batches() {
    let small = quantised();
    let path = small.write_gguf("rounded");
    let tokens: Vec<u32> = (0..23).map(|index| index * 37 % 70).collect();
    let exact = logits(&mut engine(&path, 1, Activations::Exact), &tokens, 23);
    assert!(differences(&exact, &small.logits(&tokens)).0 < 1e-4);
    let fast = logits(&mut engine(&path, 1, Activations::Int8), &tokens, 23);
    let (most, mean) = differences(&exact, &fast);
    println!("at most {most:.4}, {mean:.5} on average");
    assert!(most > 1e-4, "nothing was rounded: {most}");
    assert!(mean < 0.03 && most < 0.3, "{most} and {mean}");
    for (n_threads, chunk) in [(1, 1), (3, 7), (2, 23)] {
        let again = logits(&mut engine(&path, n_threads, Activations::Int8), &tokens, chunk);
        assert!(again.iter().zip(&fast).all(|(a, b)| a.to_bits() == b.to_bits()), "{n_threads} threads, {chunk}");
    }
    let sequences: Vec<Vec<u32>> = (1..9).map(|length| tokens[..length].to_vec()).collect();
    let scores = [1, 1024].map(|batch| {
        let options = ScoreOptions { prefix: vec![5], batch, ..ScoreOptions::default() };
        log_probabilities(&mut engine(&path, 2, Activations::Int8), &sequences, &options).expect("scores")
    });
    assert_eq!(scores[0], scores[1]);
}

#[test]
fn weights_that_are_not_quantised_are_computed_exactly() {
    let path = RandomModel { stored: Stored::F16, ..RandomModel::new("llama") }.drawn().write_gguf("rounded-f16");
    let tokens = [3, 1, 4, 1, 5];
    let [exact, fast] = [Activations::Exact, Activations::Int8]
        .map(|activations| logits(&mut engine(&path, 1, activations), &tokens, 5));
    assert_eq!(exact, fast);
}

#[test]
fn the_command_reports_what_is_rounded_and_refuses_devices() {
    let (plain, quantised) =
        (RandomModel::new("llama").drawn().write_gguf("rounded-plain"), quantised().write_gguf("rounded-command"));
    let ask = |verb: &str, path: &std::path::Path, more: &[&str]| {
        torchless(&[&[verb, "--model", text(path), "--activations", "int8"], more].concat())
    };
    let output = ask("logits", &plain, &["--tokens", "1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "warning: no matrix of this model is quantised: `--activations int8` changes nothing\n");
    assert!(output.status.success());
    let output = ask("logits", &quantised, &["--tokens", "1"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let output = ask("logits", &quantised, &["--tokens", "1", "--device", "cuda"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "error: int8 activations are computed on the CPU only, and not on cuda\nhint: leave out --activations, or pass --device cpu\n";
    assert_eq!((&*said, output.status.code()), (expected, Some(2)));
    let device =
        |more: &[&str]| answer(&[&["info", "--model", text(&quantised), "--json"], more].concat())["device"].clone();
    assert_eq!(device(&[])["activations"], "exact");
    let rounded = device(&["--activations", "int8"]);
    assert_eq!((&rounded["activations"], &rounded["quantised_matrices"]), (&"int8".into(), &22.into()));
    let words =
        ["bench", "--model", text(&quantised), "--prefill", "4", "--decode", "2", "--activations", "int8", "--json"];
    assert_eq!(answer(&words)["activations"], "int8");
}

#[test]
#[ignore = "needs the reference models"]
fn the_reference_models_differ_as_much_as_documented() {
    let folder = reference("gguf");
    let plain = reference("tiny-llama-f32/reference.json");
    let plain = json(&plain);
    let sets = InstructionSet::available();
    // The docs' last digits and a little more: instruction sets round sums differently, and rounded
    // inputs go up or down with them.
    for ((kind, most_allowed, mean_nlls), isa) in
        [("q8_0", 0.28, [0.70793, 0.70746]), ("q4_0", 0.34, [0.70052, 0.70016])]
            .into_iter()
            .flat_map(|kind| sets.iter().map(move |isa| (kind, *isa)))
    {
        let path = folder.join(format!("tiny-{kind}.gguf"));
        let model = Arc::new(Model::open(&path).expect("a model"));
        let [mut exact, mut fast] = [Activations::Exact, Activations::Int8].map(|activations| {
            let threads = Threads::new(1).with_instruction_set(isa);
            Engine::new(Arc::clone(&model), threads).with_activations(activations).expect("a processor")
        });
        let (mut most, mut sum, mut count) = (0.0_f64, 0.0, 0);
        for case in plain["prompts"].as_array().expect("prompts") {
            let tokens = ids(&case["ids"]);
            let [a, b] = [&mut exact, &mut fast].map(|engine| logits(engine, &tokens, tokens.len()));
            let (here, mean) = differences(&a, &b);
            (most, sum, count) = (most.max(here), sum + mean * a.len() as f64, count + a.len());
        }
        let tokens = ids(&plain["ppl"]["ids"]);
        let [a, b] = [&mut exact, &mut fast].map(|engine| mean_nll(&logits(engine, &tokens, tokens.len()), &tokens));
        let mean = sum / count as f64;
        println!("{kind}, {isa:?}: {most:.4} at most, {mean:.5} on average; mean NLL {a:.6} and {b:.6}");
        assert!(most > most_allowed - 0.02 && most < most_allowed, "{kind}: {most}");
        assert!((mean - 0.013).abs() < 6e-4, "{kind}: {mean}");
        assert!((a - mean_nlls[0]).abs() < 6e-6 && (b - mean_nlls[1]).abs() < 6e-6, "{kind}: {a} and {b}");
    }
}

fn mean_nll(logits: &[f32], tokens: &[u32]) -> f64 {
    let rows = logits.chunks(logits.len() / tokens.len()).zip(&tokens[1..]);
    -rows.map(|(row, &next)| log_probability(row, next)).sum::<f64>() / (tokens.len() - 1) as f64
}
