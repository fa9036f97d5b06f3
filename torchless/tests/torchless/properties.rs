//! Kernels of random shapes against plain loops in double precision, and products against
//! themselves, divided otherwise.

use proptest::prelude::*;
use torchless::backend::{BackendPreference, CpuBackend, Heads, KernelBackend, init_backend};
use torchless::format::{Format, unpack};
use torchless::{InstructionSet, Matrix, Threads};

pub(crate) fn numbers(length: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f32 / (1 << 23) as f32) - 1.0
    };
    (0..length).map(|_| next()).collect()
}

/// Any bytes, but with scales that are small numbers.
pub(crate) fn stored(format: Format, rows: usize, columns: usize, seed: u64) -> Vec<u8> {
    if format == Format::F32 {
        return numbers(rows * columns, seed).iter().flat_map(|number| number.to_le_bytes()).collect();
    }
    let length = rows * format.row_bytes(columns).expect("whole blocks");
    let mut bytes: Vec<u8> = numbers(length, seed).iter().map(|number| (number.to_bits() >> 3) as u8).collect();
    let halves: &[usize] = match format {
        Format::Q8_0 | Format::Q4_0 | Format::Q5_0 => &[0],
        Format::Q4_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::Q6K => &[208],
        _ => &[],
    };
    let block = format.block_bytes();
    for start in (0..length).step_by(block) {
        if halves.is_empty() {
            // The exponent's upper bits: nothing beyond 2.
            bytes[start + 1] &= if format == Format::F16 { 0xbf } else { 0xbe };
            continue;
        }
        for at in halves {
            bytes[start + at + 1] = bytes[start + at + 1] & 0x83 | 0x20;
        }
    }
    bytes
}

/// (T, rows) and the sums of absolute products.
fn plain(matrix: &Matrix, x: &[f32]) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for x in x.chunks(matrix.columns()) {
        for row in 0..matrix.rows() {
            let mut weights = vec![0.0; matrix.columns()];
            matrix.row(row, &mut weights);
            let products = weights.iter().zip(x).map(|(weight, x)| f64::from(*weight) * f64::from(*x));
            out.push((products.clone().sum(), products.map(f64::abs).sum()));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn products_are_sums_for_every_shape(
        (format, rows, blocks, n_vectors) in (0..Format::ALL.len(), 1..23_usize, 1..40_usize, 1..15_usize),
        seed in any::<u64>(),
    ) {
        let format = Format::ALL[format];
        let columns = match format.block_len() {
            1 => blocks,
            32 => 32 * (1 + blocks % 5),
            length => length * (1 + blocks % 2),
        };
        let bytes = stored(format, rows, columns, seed);
        let matrix = Matrix::from_bytes(&bytes, format, rows, columns).expect("a matrix");
        let x = numbers(n_vectors * columns, seed ^ 0x5555);
        let expected = plain(&matrix, &x);
        for isa in InstructionSet::available() {
            let mut backend = CpuBackend::new(Threads::new(1).with_instruction_set(isa));
            let mut together = vec![0.0; n_vectors * rows];
            backend.matmul(&matrix, &x, &mut together).expect("shapes");
            for (found, (sum, magnitude)) in together.iter().zip(&expected) {
                // Products below 1e-38 have fewer digits, down to steps of 1.4e-45.
                prop_assert!((f64::from(*found) - sum).abs() <= 1e-6 * magnitude + 1e-43, "{format} with {isa:?}: {found} is not {sum}");
            }
            for (x, together) in x.chunks(columns).zip(together.chunks(rows)) {
                let mut alone = vec![0.0; rows];
                backend.matmul_vec(&matrix, x, &mut alone).expect("shapes");
                prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{format} with {isa:?}");
            }
        }
    }

    #[test]
    fn attention_is_a_weighted_mean_for_any_heads(
        (n_kv_heads, group, half, n_positions) in (1..4_usize, 1..4_usize, 1..20_usize, 1..40_usize),
        seed in any::<u64>(),
    ) {
        let (n_heads, head_dim) = (n_kv_heads * group, 2 * half);
        let heads = Heads { n_heads, n_kv_heads, head_dim };
        let queries = numbers(n_heads * head_dim, seed);
        let keys = numbers(n_positions * n_kv_heads * head_dim, seed ^ 1);
        let values = numbers(n_positions * n_kv_heads * head_dim, seed ^ 2);
        let mut backend = init_backend(BackendPreference::Auto).expect("a processor");
        let (mut scores, mut out) = (vec![0.0; n_heads * n_positions], vec![0.0; n_heads * head_dim]);
        backend.attention_scores(heads, &queries, &keys, 0.3, &mut scores).expect("shapes");
        for head in 0..n_heads {
            let row = &mut scores[head * n_positions..][..n_positions];
            let at = |position: usize| (position * n_kv_heads + head / group) * head_dim;
            let query = &queries[head * head_dim..][..head_dim];
            for (position, score) in row.iter().enumerate() {
                let products = query.iter().zip(&keys[at(position)..]).map(|(q, k)| f64::from(*q) * f64::from(*k));
                prop_assert!((f64::from(*score) - 0.3 * products.sum::<f64>()).abs() < 1e-5);
            }
            backend.softmax(row).expect("shapes");
            prop_assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        backend.weighted_sum(heads, &scores, &values, &mut out).expect("shapes");
        for (index, found) in out.iter().enumerate() {
            let (head, inside) = (index / head_dim, index % head_dim);
            let value = |position: usize| f64::from(values[(position * n_kv_heads + head / group) * head_dim + inside]);
            let weights = scores[head * n_positions..][..n_positions].iter().enumerate();
            let sum: f64 = weights.map(|(position, weight)| f64::from(*weight) * value(position)).sum();
            prop_assert!((f64::from(*found) - sum).abs() < 1e-5);
        }
    }
}

#[test]
fn norms_keep_epsilon_under_the_root() {
    let mut backend = init_backend(BackendPreference::Cpu).expect("a processor");
    for (scale, epsilon) in [(1e-3_f32, 1e-5), (1.0, 1e-5), (0.0, 1e-6), (3e4, 1e-5)] {
        let from: Vec<f32> = numbers(37, 5).iter().map(|number| number * scale).collect();
        let weight = numbers(37, 6);
        let mean = from.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / 37.0;
        let mut x = from.clone();
        backend.rmsnorm(&mut x, &weight, epsilon).expect("shapes");
        for ((found, from), weight) in x.iter().zip(&from).zip(&weight) {
            let expected = f64::from(*from) / (mean + epsilon).sqrt() * f64::from(*weight);
            assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected.abs(), "{found} is not {expected}");
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let mut backend = init_backend(BackendPreference::Cpu).expect("a processor");
    let matrix = Matrix::from_values(&[1.0; 6], 2, 3).expect("a matrix");
    let message = |result: Result<(), torchless::Error>| result.expect_err("an error").to_string();
    assert_eq!(
        message(backend.matmul_vec(&matrix, &[1.0; 2], &mut [0.0; 2])),
        "matmul_vec: `x` has 2 numbers, and 3 are needed"
    );
    assert_eq!(
        message(backend.matmul(&matrix, &[1.0; 4], &mut [0.0; 2])),
        "matmul: `x` has 4 numbers, and 3 are needed"
    );
    assert_eq!(
        message(backend.fused_silu_mul(&mut [1.0], &[])),
        "fused_silu_mul: `up` has 0 numbers, and 1 are needed"
    );
    message(backend.rmsnorm(&mut [1.0], &[], 1e-5));
    message(backend.embedding(&matrix, &[2], &mut [0.0; 3]));
    let heads = Heads { n_heads: 3, n_kv_heads: 2, head_dim: 2 };
    message(backend.attention_scores(heads, &[0.0; 6], &[0.0; 4], 1.0, &mut [0.0; 3]));
    assert!(Matrix::from_values(&[1.0; 5], 2, 3).is_none());
    let mut out = [0.0; 32];
    unpack(Format::Q8_0, &[0; 34], &mut out);
    assert_eq!(out, [0.0; 32]);
}
