//! Launches of every kernel, small enough to be replayed under sanitizers (`make kernels-sanitize`
//! records them).

use std::sync::Arc;

use ns_device::{Backend, Device, EmulationOptions, OpenOptions, Precision};
use torchless::backend::{Heads, KernelBackend};
use torchless::config::{Rope, RopePairs, RopeScaling};
use torchless::device::DeviceBackend;
use torchless::{Engine, LogitRows, Matrix, Model};

use super::device;
use crate::random_model::{RandomModel, fresh_folder};
use crate::support::distance;

#[test]
fn recorded_for_the_sanitizers() {
    // Three layers, windows, biases, several tokens and one: the engine's kernels. Opening the
    // device adds every format.
    let small = RandomModel { windows: vec![None, Some(4), Some(4)], ..RandomModel::new("qwen2") }.drawn();
    let model = Arc::new(Model::open(small.write_folder("device-recorded", true, 1)).expect("a model"));
    let device = device();
    torchless::device::self_test(&device).expect("kernels that compute what the CPU does");
    let mut engine = Engine::on_device(model, &device, 8).expect("it fits");
    let mut cache = engine.cache(8).expect("a cache");
    engine.logits(&mut cache, &[3, 1, 4, 1, 5, 9, 2], LogitRows::Last).expect("logits");
    let found = engine.logits(&mut cache, &[6], LogitRows::Last).expect("logits");
    let all = small.logits(&[3, 1, 4, 1, 5, 9, 2, 6]);
    assert!(distance(&found, &all[7 * 70..]) < 6e-5);
    tiles(&mut DeviceBackend::new(device).expect("a backend").with_tiles(true));
}

/// What the engine does not use: more than one tile, and the kernels of attention one by one.
fn tiles(backend: &mut DeviceBackend) {
    let weights: Vec<f32> = (0..5 * 700).map(|index| (index % 7) as f32).collect();
    let matrix = Matrix::from_values(&weights, 5, 700).expect("a matrix");
    let mut out = [0.0; 10];
    backend.matmul_vec(&matrix, &[1.0; 700], &mut out[..5]).expect("shapes");
    assert_eq!(out[..5], [2100.0; 5]);
    backend.matmul(&matrix, &[1.0; 1400], &mut out).expect("shapes");
    assert_eq!(out, [2100.0; 10]);
    let heads = Heads { n_heads: 2, n_kv_heads: 1, head_dim: 4 };
    let (mut scores, mut sums) = ([0.0; 6], [0.0; 8]);
    backend.attention_scores(heads, &[1.0; 8], &[0.5; 12], 2.0, &mut scores).expect("shapes");
    assert_eq!(scores, [4.0; 6]);
    backend.weighted_sum(heads, &scores, &[0.5; 12], &mut sums).expect("shapes");
    assert_eq!(sums, [6.0; 8]);
    let frequencies = Rope { theta: 1.0, scaling: RopeScaling::None, pairs: RopePairs::Neighbours }.frequencies(4);
    backend.rope(&mut sums, RopePairs::Neighbours, &frequencies, 0).expect("shapes");
    backend.silu(&mut sums).expect("shapes");
    backend.add(&mut sums, &[1.0; 8]).expect("shapes");
    backend.softmax(&mut sums).expect("shapes");
    assert_eq!(sums, [0.125; 8]);
}

#[test]
fn the_self_test_launches_every_kernel() {
    let folder = fresh_folder("self-test-launches");
    let emulation = EmulationOptions { record_to: Some(folder.clone()), ..EmulationOptions::default() };
    let options = OpenOptions { precision: Some(Precision::Single), emulation, ..OpenOptions::default() };
    let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulated device");
    torchless::device::self_test(&device).expect("kernels that compute what the CPU does");
    let files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").file_name());
    let names: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    let kernels = "embedding rmsnorm softmax silu silu_mul add rope matvec matvec_tiled matmul attention attention_tiles attention_sum attention_scores weighted_sum";
    for kernel in kernels.split(' ') {
        let is_there = names.iter().any(|name| name.ends_with(&format!("-{kernel}_f32.replay")));
        assert!(is_there, "{kernel} is not among {names:?}");
    }
    std::fs::remove_dir_all(folder).expect("a folder");
}
