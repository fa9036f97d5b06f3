//! Tests the launches that only the engine makes: products of joined matrices with biases, side by
//! side or added to the output, positions and gates of joined outputs, and fused attention with a
//! window, in one walk and tile by tile.

use ns_device::Device;

use super::{Failure, Parts, differs, numbers};
use crate::config::{Rope, RopePairs, RopeScaling};
use crate::cpu::backend::{CpuBackend, Heads, KernelBackend};
use crate::device::launch::{Attend, Launcher, Product, TokenPlaces, Turn, Turned};
use crate::device::weights::DeviceMatrix;
use crate::error::Error;
use crate::weights::Matrix;

/// A row is longer than a tile of shared memory.
const COLUMNS: usize = 700;
/// Of two matrices, which are joined.
const ROWS: [usize; 2] = [4, 3];
/// Outputs of a vector before and behind those of the matrices.
const AROUND: [usize; 2] = [2, 1];
const HEADS: Heads = Heads { n_heads: 6, n_kv_heads: 2, head_dim: 40 };
/// Two tokens see three tiles of positions each, the last one of them in part, or two with the
/// window.
const POSITIONS: [usize; 2] = [270, 299];
const WINDOW: usize = 200;
/// Scores reach 5, so that it matters which one weights are taken against.
const SCALE: f32 = 0.8;
/// The sequence starts behind three rows of another one.
const START: usize = 3;

/// Numbers from the device, and as they should be.
type Pair = [Parts; 2];

/// Returns the first difference.
pub(super) fn compare(device: &Device, here: &mut CpuBackend) -> Result<Option<Failure>, Error> {
    let launcher = &Launcher::new(device.clone())?;
    let mut cases = Vec::new();
    for (n_vectors, is_tiled) in [(1, false), (1, true), (3, false)] {
        for adds in [true, false] {
            let asked = Asked { n_vectors, is_tiled, adds };
            cases.push((format!("a product with a bias ({asked:?})"), products(device, launcher, here, asked)?));
        }
    }
    for pairs in [RopePairs::Halves, RopePairs::Neighbours] {
        let what = "positions of queries, keys and values side by side".to_owned();
        cases.push((what, positions(device, launcher, here, pairs)?));
    }
    cases.push(("gates of several tokens".to_owned(), gates(device, launcher, here)?));
    for window in [None, Some(WINDOW)] {
        let what = format!("attention of several tokens, in one walk and by tiles (window: {window:?})");
        cases.push((what, attention(device, launcher, here, window)?));
    }
    Ok(cases.iter().find_map(|(what, [found, expected])| differs(what, found, expected)))
}

/// What is asked of a product.
#[derive(Debug, Clone, Copy)]
struct Asked {
    n_vectors: usize,
    is_tiled: bool,
    adds: bool,
}

/// Computes products of vectors behind another one, with a bias, in columns between others that
/// stay: on the device, and as they should be.
fn products(device: &Device, launcher: &Launcher, here: &mut CpuBackend, asked: Asked) -> Result<Pair, Error> {
    let Asked { n_vectors, is_tiled, adds } = asked;
    let (rows, stride) = (ROWS[0] + ROWS[1], AROUND[0] + ROWS[0] + ROWS[1] + AROUND[1]);
    let weights = numbers(rows * COLUMNS, 11);
    let matrix = |weights: &[f32], rows| Matrix::from_values(weights, rows, COLUMNS).expect("whole rows");
    let (first, second) = weights.split_at(ROWS[0] * COLUMNS);
    let there = DeviceMatrix::upload(device, &[&matrix(first, ROWS[0]), &matrix(second, ROWS[1])])?;
    let (x, bias) = (numbers((1 + n_vectors) * COLUMNS, 12), numbers(rows, 13));
    let mut expected = numbers(n_vectors * stride, 14);
    let (on_device, bias_there) = (device.upload(&x)?, device.upload(&bias)?);
    let mut out = device.upload(&expected)?;
    let product = Product {
        bias: Some(&bias_there),
        x_offset: COLUMNS,
        out_offset: AROUND[0],
        out_stride: stride,
        adds,
        is_tiled,
        ..Product::new(&there, &on_device, n_vectors)
    };
    launcher.product(product, &mut out)?;
    let mut sums = vec![0.0; n_vectors * rows];
    here.matmul(&matrix(&weights, rows), &x[COLUMNS..], &mut sums)?;
    for (out, sums) in expected.chunks_exact_mut(stride).zip(sums.chunks_exact(rows)) {
        for ((out, sum), bias) in out[AROUND[0]..].iter_mut().zip(sums).zip(&bias) {
            *out = if adds { *out + (sum + bias) } else { sum + bias };
        }
    }
    Ok([vec![out.download()?], vec![expected]])
}

/// Turns queries, keys and values of two tokens to their positions, keys and values behind rows
/// that stay.
fn positions(device: &Device, launcher: &Launcher, here: &mut CpuBackend, pairs: RopePairs) -> Result<Pair, Error> {
    let Heads { n_heads, n_kv_heads, head_dim } = HEADS;
    let (width, kv_width) = (n_heads * head_dim, n_kv_heads * head_dim);
    let joined = numbers(2 * (width + 2 * kv_width), 18);
    let before = numbers((START + 2) * kv_width, 19);
    let frequencies = Rope { theta: 1e4, scaling: RopeScaling::None, pairs }.frequencies(head_dim);
    // Angles of positions 0 to 2; the tokens are at 2 and 1.
    let mut turns = vec![0.0; 3 * head_dim];
    for (position, turns) in turns.chunks_exact_mut(head_dim).enumerate() {
        let (cosines, sines) = turns.split_at_mut(head_dim / 2);
        Rope::turn(&frequencies, position, cosines, sines);
    }
    let (joined_there, turns, places) = (device.upload(&joined)?, device.upload(&turns)?, device.upload(&[0, 2, 1])?);
    let (mut queries, mut keys, mut values) =
        (device.uninitialised(2 * width)?, device.upload(&before)?, device.upload(&before)?);
    let turn = Turn { n_rows: 2, n_heads, n_kv_heads, head_dim, pairs, kv_row: START, n_positions: 3 };
    let to = Turned { queries: &mut queries, keys: &mut keys, values: &mut values };
    launcher.rope(turn, &joined_there, &turns, TokenPlaces { places: &places, offset: 1 }, to)?;
    let rest = before[..START * kv_width].to_vec();
    let [mut turned, mut of_keys, mut of_values] = [Vec::new(), rest.clone(), rest];
    for (row, position) in joined.chunks_exact(width + 2 * kv_width).zip([2, 1]) {
        let (turning, plain) = row.split_at(width + kv_width);
        let mut turning = turning.to_vec();
        here.rope(&mut turning, pairs, &frequencies, position)?;
        turned.extend_from_slice(&turning[..width]);
        of_keys.extend_from_slice(&turning[width..]);
        of_values.extend_from_slice(plain);
    }
    let found = vec![queries.download()?, keys.download()?, values.download()?];
    Ok([found, vec![turned, of_keys, of_values]])
}

/// Computes the gates of three tokens.
fn gates(device: &Device, launcher: &Launcher, here: &mut CpuBackend) -> Result<Pair, Error> {
    let (n_rows, width) = (3, 100);
    let joined = numbers(n_rows * 2 * width, 20);
    let (there, mut out) = (device.upload(&joined)?, device.uninitialised(n_rows * width)?);
    launcher.silu_mul(&there, n_rows, width, &mut out)?;
    let mut expected = Vec::new();
    for row in joined.chunks_exact(2 * width) {
        let mut gate = row[..width].to_vec();
        here.fused_silu_mul(&mut gate, &row[width..])?;
        expected.extend(gate);
    }
    Ok([vec![out.download()?], vec![expected]])
}

/// Computes attention of two tokens over several tiles of positions: on the device in one walk and
/// tile by tile, and as it should be.
fn attention(
    device: &Device,
    launcher: &Launcher,
    here: &mut CpuBackend,
    window: Option<usize>,
) -> Result<Pair, Error> {
    let (width, kv_width) = (HEADS.n_heads * HEADS.head_dim, HEADS.n_kv_heads * HEADS.head_dim);
    let n_kv = (START + POSITIONS[1] + 1) * kv_width;
    let [queries, keys, values] = [(2 * width, 15), (n_kv, 16), (n_kv, 17)].map(|(length, seed)| numbers(length, seed));
    let places = device.upload(&[POSITIONS[0], POSITIONS[1], START, START].map(|place| place as u32))?;
    let (queries_there, keys_there, values_there) =
        (device.upload(&queries)?, device.upload(&keys)?, device.upload(&values)?);
    let attend = Attend {
        heads: HEADS,
        n_rows: 2,
        n_positions: POSITIONS[1] + 1,
        kv_rows: START + POSITIONS[1] + 1,
        window,
        scale: SCALE,
        places: TokenPlaces { places: &places, offset: 0 },
        queries: &queries_there,
        keys: &keys_there,
        values: &values_there,
    };
    let (mut walk, mut by_tiles) = (device.uninitialised(2 * width)?, device.uninitialised(2 * width)?);
    launcher.attention_walk(attend, &mut walk)?;
    let mut tiles = device.uninitialised(2 * HEADS.n_heads * 3 * (2 + HEADS.head_dim))?;
    launcher.attention_of_tiles(attend, 3, &mut tiles, &mut by_tiles)?;
    let expected = attention_here(here, window, [&queries, &keys, &values])?;
    Ok([vec![walk.download()?, by_tiles.download()?], vec![expected.clone(), expected]])
}

/// Computes the same attention on the CPU.
fn attention_here(
    here: &mut CpuBackend,
    window: Option<usize>,
    [queries, keys, values]: [&[f32]; 3],
) -> Result<Vec<f32>, Error> {
    let (width, kv_width) = (HEADS.n_heads * HEADS.head_dim, HEADS.n_kv_heads * HEADS.head_dim);
    let mut out = vec![0.0; 2 * width];
    for ((queries, out), position) in queries.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(POSITIONS) {
        let first = window.map_or(0, |window| position + 1 - window);
        let seen = (START + first) * kv_width..(START + position + 1) * kv_width;
        let mut scores = vec![0.0; HEADS.n_heads * (position + 1 - first)];
        here.attention_scores(HEADS, queries, &keys[seen.clone()], SCALE, &mut scores)?;
        for row in scores.chunks_mut(position + 1 - first) {
            here.softmax(row)?;
        }
        here.weighted_sum(HEADS, &scores, &values[seen], out)?;
    }
    Ok(out)
}
