//! Every kernel against stored vectors, whose results were computed in double precision.

use std::collections::HashMap;

use torchless::Matrix;
use torchless::backend::{BackendPreference, Heads, KernelBackend, init_backend};
use torchless::config::{Rope, RopePairs, RopeScaling};
use torchless::device::DeviceBackend;
use torchless::format::{Format, unpack};

use crate::devices::device;
use crate::support::{Tensor, distance, reference, tensors};

/// The CPU, and the device that is tested, with vectors as they are and through shared memory.
fn backends() -> Vec<Box<dyn KernelBackend>> {
    let on_device = |is_tiled| DeviceBackend::new(device()).expect("a device").with_tiles(is_tiled);
    let cpu = init_backend(BackendPreference::Cpu).expect("a processor");
    vec![cpu, Box::new(on_device(false)), Box::new(on_device(true))]
}

fn near(found: &[f32], expected: &Tensor, relative: f64, what: &str) {
    assert_eq!(found.len(), expected.values.len(), "{what}");
    for (found, expected) in found.iter().zip(&expected.values) {
        let (found, expected) = (f64::from(*found), f64::from(*expected));
        // Single precision's smallest normal number is as small as matters.
        assert!((found - expected).abs() <= relative * expected.abs().max(1e-37), "{what}: {found} is not {expected}");
    }
}

#[test]
#[ignore = "needs the reference models"]
fn norms_activations_and_softmax_are_those_of_the_vectors() {
    let path = reference("kernels.safetensors");
    let vectors = tensors(&path);
    for mut backend in backends() {
        norms_activations_and_softmax(&mut *backend, &vectors);
    }
}

fn norms_activations_and_softmax(backend: &mut dyn KernelBackend, vectors: &HashMap<String, Tensor>) {
    for (name, expected) in vectors {
        let Some(stem) = name.strip_suffix(".out_f64") else { continue };
        let get = |part: &str| vectors.get(&format!("{stem}.{part}")).map(|tensor| tensor.values.clone());
        if stem.starts_with("rmsnorm") {
            let (mut x, weight) = (get("x").expect("x"), get("w").expect("w"));
            let epsilon = stem.rsplit_once("eps").expect("an epsilon").1.parse().expect("a number");
            backend.rmsnorm(&mut x, &weight, epsilon).expect("shapes");
            near(&x, expected, 1e-6, name);
        } else if stem.starts_with("softmax") {
            let mut x = get("x").expect("x");
            backend.softmax(&mut x).expect("shapes");
            assert!(distance(&x, &expected.values) < 1e-6, "{name}");
            near(&x, expected, 1e-5, name);
        } else if stem == "silu" {
            let mut x = get("x").expect("x");
            backend.silu(&mut x).expect("shapes");
            assert!(distance(&x, &expected.values) < 1e-5, "{name}");
        } else if stem == "silu_mul" {
            let mut gate = vectors["silu.x"].values.clone();
            backend.fused_silu_mul(&mut gate, &get("up").expect("up")).expect("shapes");
            assert!(distance(&gate, &expected.values) < 1e-5, "{name}");
        }
    }
}

#[test]
#[ignore = "needs the reference models"]
fn heads_are_turned_as_in_the_vectors_at_any_position() {
    let path = reference("kernels.safetensors");
    let (vectors, mut backends) = (tensors(&path), backends());
    let mut n_cases = 0;
    for (name, expected) in &vectors {
        let Some((stem, kind)) =
            name.strip_prefix("rope.").and_then(|name| name.strip_suffix("_f64")?.rsplit_once('.'))
        else {
            continue;
        };
        let number = |mark: &str| -> f64 {
            let part = stem.split('.').find_map(|part| part.strip_prefix(mark)).expect("a part");
            part.parse().expect("a number")
        };
        let (head_dim, theta, position) = (number("D") as usize, number("theta"), number("pos") as usize);
        let pairs = if kind == "half" { RopePairs::Halves } else { RopePairs::Neighbours };
        let frequencies = Rope { theta, scaling: RopeScaling::None, pairs }.frequencies(head_dim);
        for backend in &mut backends {
            let mut x = vectors[&format!("rope.{stem}.x")].values.clone();
            backend.rope(&mut x, pairs, &frequencies, position).expect("shapes");
            assert!(distance(&x, &expected.values) < 1e-6, "{name}");
        }
        n_cases += 1;
    }
    assert!(n_cases > 20, "{n_cases}");
}

#[test]
#[ignore = "needs the reference models"]
fn attention_is_that_of_the_vectors() {
    let path = reference("kernels.safetensors");
    let vectors = tensors(&path);
    for mut backend in backends() {
        attention(&mut *backend, &vectors);
    }
}

fn attention(backend: &mut dyn KernelBackend, vectors: &HashMap<String, Tensor>) {
    let values = |name: &str| &vectors[name].values[..];
    let heads = Heads { n_heads: 6, n_kv_heads: 2, head_dim: 24 };
    let mut scores = vec![0.0; 6 * 37];
    let scale = (1.0 / 24_f64.sqrt()) as f32;
    backend.attention_scores(heads, values("attn.q"), values("attn.k"), scale, &mut scores).expect("shapes");
    assert!(distance(&scores, values("attn.scores_f64")) < 1e-5);
    for row in scores.chunks_mut(37) {
        backend.softmax(row).expect("shapes");
    }
    assert!(distance(&scores, values("attn.probs_f64")) < 1e-6);
    let mut out = vec![0.0; 6 * 24];
    backend.weighted_sum(heads, &scores, values("attn.v"), &mut out).expect("shapes");
    assert!(distance(&out, values("attn.ctx_f64")) < 1e-6);
}

#[test]
#[ignore = "needs the reference models"]
fn products_are_those_of_the_vectors() {
    let path = reference("kernels.safetensors");
    let vectors = tensors(&path);
    for mut backend in backends() {
        products(&mut *backend, &vectors);
    }
}

fn products(backend: &mut dyn KernelBackend, vectors: &HashMap<String, Tensor>) {
    for shape in ["16x1023", "173x257", "1x1", "5x3"] {
        let get = |part: &str| &vectors[&format!("matvec.{shape}.{part}")];
        let (rows, columns) = (get("w").shape[0], get("w").shape[1]);
        let matrix = Matrix::from_values(&get("w").values, rows, columns).expect("a matrix");
        let mut out = vec![0.0; rows];
        backend.matmul_vec(&matrix, &get("x").values, &mut out).expect("shapes");
        for row in 0..rows {
            let bound = 1e-6 * f64::from(get("abs_f64").values[row]);
            assert!((f64::from(out[row]) - f64::from(get("out_f64").values[row])).abs() <= bound, "{shape} row {row}");
        }
    }
    // b is (65, 17): its columns are the rows of the matrix.
    let (a, b) = (&vectors["matmul.a"], &vectors["matmul.b"]);
    let transposed: Vec<f32> = (0..17).flat_map(|column| (0..65).map(move |row| b.values[row * 17 + column])).collect();
    let matrix = Matrix::from_values(&transposed, 17, 65).expect("a matrix");
    let mut out = vec![0.0; 33 * 17];
    backend.matmul(&matrix, &a.values, &mut out).expect("shapes");
    assert!(distance(&out, &vectors["matmul.out_f64"].values) < 1e-5);
}

#[test]
#[ignore = "needs the reference models"]
fn quantised_blocks_are_unpacked_to_the_bit() {
    let path = reference("quant_blocks.safetensors");
    let vectors = tensors(&path);
    for format in Format::ALL {
        let Some(raw) = vectors.get(&format!("{format}.raw")) else { continue };
        let expected = &vectors[&format!("{format}.deq")];
        let row_bytes = format.row_bytes(256).expect("whole blocks");
        for (row, expected) in raw.bytes.chunks(row_bytes).zip(expected.values.chunks(256)) {
            let mut out = [0.0; 256];
            unpack(format, row, &mut out);
            assert_eq!(out, expected, "{format}");
        }
        let rows = expected.values.len() / 256;
        let matrix = Matrix::from_bytes(&raw.bytes, format, rows, 256).expect("whole rows");
        let tokens: Vec<u32> = (0..rows as u32).collect();
        for mut backend in backends() {
            let mut out = vec![0.0; expected.values.len()];
            backend.embedding(&matrix, &tokens, &mut out).expect("shapes");
            assert_eq!(out, expected.values, "{format} of {}", backend.name());
        }
    }
}
