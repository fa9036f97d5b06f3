//! The launches that only the engine makes: products with biases that are added to what is there, by tiles too, and fused attention with a window.

use ns_device::Device;

use super::{Failure, differs, numbers};
use crate::backend::{CpuBackend, Heads, KernelBackend};
use crate::device::launch::{Attend, Launcher, Product};
use crate::device::weights::DeviceMatrix;
use crate::error::Error;
use crate::linear::Matrix;

/// A row is longer than a tile of shared memory.
const COLUMNS: usize = 700;
const ROWS: usize = 7;

/// What differs first.
pub(super) fn compare(device: &Device, here: &mut CpuBackend) -> Result<Option<Failure>, Error> {
    let launcher = Launcher::new(device.clone())?;
    for (n_vectors, is_tiled) in [(1, false), (1, true), (3, false)] {
        let what = format!("a product of {n_vectors} vectors with a bias{}", if is_tiled { ", by tiles" } else { "" });
        let [found, expected] = products(device, &launcher, here, (n_vectors, is_tiled))?;
        if let Some(failure) = differs(&what, &[found], &[expected]) {
            return Ok(Some(failure));
        }
    }
    for window in [None, Some(200)] {
        let what = if window.is_some() { "attention with a window" } else { "attention of several tokens" };
        let [found, expected] = attention(device, &launcher, here, window)?;
        if let Some(failure) = differs(what, &[found], &[expected]) {
            return Ok(Some(failure));
        }
    }
    Ok(None)
}

/// Products of vectors behind another one, with a bias, added behind numbers that stay: from the device, and as they should be.
fn products(
    device: &Device,
    launcher: &Launcher,
    here: &mut CpuBackend,
    (n_vectors, is_tiled): (usize, bool),
) -> Result<[Vec<f32>; 2], Error> {
    let matrix = Matrix::from_values(&numbers(ROWS * COLUMNS, 11), ROWS, COLUMNS).expect("whole rows");
    let (x, bias) = (numbers((1 + n_vectors) * COLUMNS, 12), numbers(ROWS, 13));
    let before = numbers((1 + n_vectors) * ROWS, 14);
    let (there, on_device, bias_there) =
        (DeviceMatrix::upload(device, &matrix)?, device.upload(&x)?, device.upload(&bias)?);
    let mut out = device.upload(&before)?;
    let product = Product {
        bias: Some(&bias_there),
        x_offset: COLUMNS,
        out_offset: ROWS,
        adds: true,
        is_tiled,
        ..Product::new(&there, &on_device, n_vectors)
    };
    launcher.product(product, &mut out)?;
    let mut expected = vec![0.0; n_vectors * ROWS];
    here.matmul(&matrix, &x[COLUMNS..], &mut expected)?;
    for (sum, bias) in expected.chunks_exact_mut(ROWS).flat_map(|row| row.iter_mut().zip(&bias)) {
        *sum += bias;
    }
    here.add(&mut expected, &before[ROWS..])?;
    Ok([out.download()?, [&before[..ROWS], &expected].concat()])
}

/// Attention of two tokens over more positions than one tile has: from the device, and as it should be.
fn attention(
    device: &Device,
    launcher: &Launcher,
    here: &mut CpuBackend,
    window: Option<usize>,
) -> Result<[Vec<f32>; 2], Error> {
    let heads = Heads { n_heads: 6, n_kv_heads: 2, head_dim: 40 };
    let (width, kv_width, scale) = (6 * 40, 2 * 40, 0.8);
    // The sequence starts behind three rows of another one.
    let (positions, start) = ([270_usize, 299], 3_usize);
    let (queries, keys) = (numbers(2 * width, 15), numbers((start + 300) * kv_width, 16));
    let values = numbers((start + 300) * kv_width, 17);
    let places = device.upload(&[positions[0] as u32, positions[1] as u32, start as u32, start as u32])?;
    let (queries_there, keys_there, values_there) =
        (device.upload(&queries)?, device.upload(&keys)?, device.upload(&values)?);
    let mut out = device.uninitialised(2 * width)?;
    let (queries_there, keys_there, values_there) = (&queries_there, &keys_there, &values_there);
    let attend =
        Attend { heads, n_rows: 2, window, scale, queries: queries_there, keys: keys_there, values: values_there };
    launcher.attention(attend, (&places, 0), &mut out)?;
    let mut expected = vec![0.0; 2 * width];
    let rows = queries.chunks_exact(width).zip(expected.chunks_exact_mut(width)).zip(positions);
    for ((queries, out), position) in rows {
        let first = window.map_or(0, |window| position + 1 - window);
        let seen = (start + first) * kv_width..(start + position + 1) * kv_width;
        let mut scores = vec![0.0; heads.n_heads * (position + 1 - first)];
        here.attention_scores(heads, queries, &keys[seen.clone()], scale, &mut scores)?;
        for row in scores.chunks_mut(position + 1 - first) {
            here.softmax(row)?;
        }
        here.weighted_sum(heads, &scores, &values[seen], out)?;
    }
    Ok([out.download()?, expected])
}
