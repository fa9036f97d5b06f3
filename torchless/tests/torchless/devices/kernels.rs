//! Kernels one by one, against the CPU on random shapes.

use proptest::prelude::*;
use torchless::backend::{CpuBackend, Heads, KernelBackend};
use torchless::config::{Rope, RopePairs, RopeScaling};
use torchless::device::DeviceBackend;
use torchless::format::Format;
use torchless::{Matrix, Threads};

use super::device;
use crate::support::distance;

fn backend() -> DeviceBackend {
    DeviceBackend::new(device()).expect("a backend")
}

#[test]
fn every_half_precision_number_is_widened_to_the_bit() {
    // Without infinities and NaN, which are not weights.
    let halves: Vec<u16> = (0..=u16::MAX).filter(|half| half & 0x7c00 != 0x7c00).collect();
    let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    for format in [Format::F16, Format::Bf16] {
        let matrix = Matrix::from_bytes(&bytes, format, 1, halves.len()).expect("a row");
        let (mut found, mut expected) = (vec![0.0; halves.len()], vec![0.0; halves.len()]);
        backend().embedding(&matrix, &[0], &mut found).expect("shapes");
        matrix.row(0, &mut expected);
        assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{format}");
    }
}

fn numbers(length: usize, seed: u64) -> Vec<f32> {
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
fn stored(format: Format, rows: usize, columns: usize, seed: u64) -> Vec<u8> {
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
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        if halves.is_empty() {
            // The exponent's upper bits: nothing beyond 2.
            block[1] &= if format == Format::F16 { 0xbf } else { 0xbe };
        }
        for &at in halves {
            block[at + 1] = block[at + 1] & 0x83 | 0x20;
        }
    }
    bytes
}

/// Sums of absolute products: (T, rows).
fn magnitudes(matrix: &Matrix, x: &[f32]) -> Vec<f64> {
    let mut out = Vec::new();
    for x in x.chunks(matrix.columns()) {
        for row in 0..matrix.rows() {
            let mut weights = vec![0.0; matrix.columns()];
            matrix.row(row, &mut weights);
            let products = weights.iter().zip(x).map(|(weight, x)| f64::from(*weight) * f64::from(*x));
            out.push(products.map(f64::abs).sum());
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn products_match_the_cpu_for_every_shape_with_the_same_bits_in_any_batch(
        (format, rows, blocks, n_vectors) in (0..Format::ALL.len(), 1..40_usize, 1..60_usize, 1..12_usize),
        seed in any::<u64>(),
    ) {
        let format = Format::ALL[format];
        // Beyond a tile of 512 columns now and then.
        let columns = match format.block_len() {
            1 => blocks * 17,
            32 => 32 * (1 + blocks % 35),
            length => length * (1 + blocks % 3),
        };
        let matrix = Matrix::from_bytes(&stored(format, rows, columns, seed), format, rows, columns).expect("a matrix");
        let x = numbers(n_vectors * columns, seed ^ 0x5555);
        let (mut together, mut expected) = (vec![0.0; n_vectors * rows], vec![0.0; n_vectors * rows]);
        backend().matmul(&matrix, &x, &mut together).expect("shapes");
        CpuBackend::new(Threads::new(1)).matmul(&matrix, &x, &mut expected).expect("shapes");
        for ((found, expected), magnitude) in together.iter().zip(&expected).zip(magnitudes(&matrix, &x)) {
            let off = (f64::from(*found) - f64::from(*expected)).abs();
            prop_assert!(off <= 2e-6 * magnitude, "{format}: {found} is not {expected}");
        }
        for is_tiled in [false, true] {
            let mut backend = backend().with_tiles(is_tiled);
            for (x, together) in x.chunks(columns).zip(together.chunks(rows)) {
                let mut alone = vec![0.0; rows];
                backend.matmul_vec(&matrix, x, &mut alone).expect("shapes");
                prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{format}");
            }
        }
    }

    #[test]
    fn other_kernels_match_the_cpu_for_every_shape(
        (n_kv_heads, group, half, n_positions) in (1..4_usize, 1..4_usize, 1..100_usize, 1..60_usize),
        seed in any::<u64>(),
    ) {
        let (n_heads, head_dim) = (n_kv_heads * group, 2 * half);
        let heads = Heads { n_heads, n_kv_heads, head_dim };
        let queries = numbers(n_heads * head_dim, seed);
        let keys = numbers(n_positions * n_kv_heads * head_dim, seed ^ 1);
        let values = numbers(n_positions * n_kv_heads * head_dim, seed ^ 2);
        let run = |backend: &mut dyn KernelBackend| {
            let (mut scores, mut out) = (vec![0.0; n_heads * n_positions], vec![0.0; n_heads * head_dim]);
            backend.attention_scores(heads, &queries, &keys, 0.3, &mut scores).expect("shapes");
            for row in scores.chunks_mut(n_positions) {
                backend.softmax(row).expect("shapes");
            }
            backend.weighted_sum(heads, &scores, &values, &mut out).expect("shapes");
            let mut rest = queries.clone();
            backend.rmsnorm(&mut rest, &keys[..head_dim], 1e-5).expect("shapes");
            let frequencies = Rope { theta: 5e5, scaling: RopeScaling::None, pairs: RopePairs::Halves }.frequencies(head_dim);
            for pairs in [RopePairs::Halves, RopePairs::Neighbours] {
                backend.rope(&mut rest, pairs, &frequencies, n_positions).expect("shapes");
            }
            backend.silu(&mut rest).expect("shapes");
            backend.fused_silu_mul(&mut rest, &queries).expect("shapes");
            backend.add(&mut rest, &queries).expect("shapes");
            [scores, out, rest].concat()
        };
        let (found, expected) = (run(&mut backend()), run(&mut CpuBackend::new(Threads::new(1))));
        prop_assert!(distance(&found, &expected) < 2e-5, "{}", distance(&found, &expected));
    }
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let mut backend = backend();
    let matrix = Matrix::from_values(&[1.0; 6], 2, 3).expect("a matrix");
    let message = |result: Result<(), torchless::Error>| result.expect_err("an error").to_string();
    assert_eq!(
        message(backend.matmul_vec(&matrix, &[1.0; 2], &mut [0.0; 2])),
        "matmul_vec: `x` has 2 numbers, and 3 are needed"
    );
    message(backend.matmul(&matrix, &[1.0; 4], &mut [0.0; 2]));
    message(backend.fused_silu_mul(&mut [1.0], &[]));
    message(backend.rmsnorm(&mut [1.0], &[], 1e-5));
    message(backend.embedding(&matrix, &[2], &mut [0.0; 3]));
    let heads = Heads { n_heads: 1, n_kv_heads: 1, head_dim: 300 };
    assert_eq!(
        message(backend.attention_scores(heads, &[0.0; 300], &[0.0; 300], 1.0, &mut [0.0; 1])),
        "heads are 300 wide, and devices compute at most 256"
    );
}

#[test]
fn empty_shapes_are_errors_in_every_kernel() {
    for (rows, columns) in [(0, 3), (3, 0), (0, 0)] {
        assert!(Matrix::from_values(&[], rows, columns).is_none());
        assert!(Matrix::from_bytes(&[], Format::Q8_0, rows, columns * 32).is_none());
    }
    let backends: [Box<dyn KernelBackend>; 2] = [Box::new(CpuBackend::new(Threads::new(1))), Box::new(backend())];
    for mut backend in backends {
        let message = |result: Result<(), torchless::Error>| result.expect_err("an error").to_string();
        let nothing = "rmsnorm: the rows of `x` are empty";
        assert_eq!(message(backend.rmsnorm(&mut [], &[], 1e-5)), nothing);
        assert_eq!(message(backend.rmsnorm(&mut [1.0], &[], 1e-5)), nothing);
        let nothing = "rope: the rows of `x` are empty";
        assert_eq!(message(backend.rope(&mut [], RopePairs::Halves, &[], 3)), nothing);
        backend.softmax(&mut []).expect("nothing to do");
        for [n_heads, n_kv_heads, head_dim] in [[3, 2, 4], [0, 1, 4], [1, 0, 4], [1, 1, 0]] {
            let heads = Heads { n_heads, n_kv_heads, head_dim };
            let expected = format!("{n_heads} heads, {n_kv_heads} of keys and values, {head_dim} wide: none may be 0");
            let said = message(backend.attention_scores(heads, &[], &[], 1.0, &mut []));
            assert!(said.contains(&expected), "{said}");
            message(backend.weighted_sum(heads, &[], &[], &mut []));
        }
        let heads = Heads { n_heads: usize::MAX - 1, n_kv_heads: 2, head_dim: 4 };
        message(backend.attention_scores(heads, &[], &[], 1.0, &mut []));
    }
}

#[test]
fn matrices_stay_where_they_are() {
    let mut backend = backend();
    let matrix = Matrix::from_values(&numbers(64 * 64, 1), 64, 64).expect("a matrix");
    let mut out = [0.0; 64];
    backend.matmul_vec(&matrix, &[1.0; 64], &mut out).expect("shapes");
    let before = backend.pool().counters();
    backend.matmul_vec(&matrix, &[1.0; 64], &mut out).expect("shapes");
    assert_eq!(backend.pool().counters().upload_bytes - before.upload_bytes, 64 * 4);
}
