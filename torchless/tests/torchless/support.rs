//! The reference models beside the repository, and a plain reader of their tensors.

use std::collections::HashMap;
use std::path::PathBuf;

/// Returns the path of reference data: below `TORCHLESS_DATA`, or beside the repository.
///
/// Tests that call it are ignored unless they are asked for, because a clone does not have the
/// data.
///
/// # Panics
///
/// If the data are absent.
pub(crate) fn reference(what: &str) -> PathBuf {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/torchless"));
    let folder = std::env::var_os("TORCHLESS_DATA").map_or(shared, PathBuf::from);
    let path = folder.join(what);
    assert!(path.exists(), "{} is absent: set TORCHLESS_DATA to the folder of the reference models", path.display());
    path
}

/// The command that is tested; a script that runs it with `NEXTSTAT_EMULATOR` where that names what
/// runs programs of its processor.
pub(crate) fn program() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_torchless"));
    let Ok(emulator) = std::env::var("NEXTSTAT_EMULATOR") else { return program };
    static SCRIPT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let script = || {
        let script = crate::random_model::fresh_folder("emulated").join("torchless");
        let lines = format!("#!/bin/sh\nexec {emulator} '{}' \"$@\"\n", program.display());
        std::fs::write(&script, lines).expect("a fresh folder");
        let made = std::process::Command::new("chmod").arg("+x").arg(&script).status();
        assert!(made.is_ok_and(|status| status.success()), "chmod");
        script
    };
    SCRIPT.get_or_init(script).clone()
}

pub(crate) fn json(path: &std::path::Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("a readable file");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn ids(value: &serde_json::Value) -> Vec<u32> {
    value.as_array().expect("an array").iter().map(|id| id.as_u64().expect("an id") as u32).collect()
}

/// A tensor of numbers.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
    pub(crate) bytes: Vec<u8>,
}

/// Every tensor of a safetensors file, read without the library that is tested.
pub(crate) fn tensors(path: &std::path::Path) -> HashMap<String, Tensor> {
    let bytes = std::fs::read(path).expect("a readable file");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let mut tensors = HashMap::new();
    for (name, entry) in header.as_object().expect("an object") {
        if name == "__metadata__" {
            continue;
        }
        let at = |index: usize| 8 + length + entry["data_offsets"][index].as_u64().expect("an offset") as usize;
        let bytes = bytes[at(0)..at(1)].to_vec();
        let values = match entry["dtype"].as_str() {
            Some("F32") => bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect(),
            _ => Vec::new(),
        };
        let shape = ids(&entry["shape"]).into_iter().map(|size| size as usize).collect();
        tensors.insert(name.clone(), Tensor { shape, values, bytes });
    }
    tensors
}

/// The greatest absolute difference.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "lengths");
    a.iter()
        .zip(b)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs())
        .fold(0.0, |most, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
}
