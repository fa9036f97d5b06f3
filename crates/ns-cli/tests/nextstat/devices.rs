//! `--device`: what is not there is an error and never a silent fallback to the CPU; what is there
//! finds the CPU's minima.
//!
//! The device of these tests is the emulation, which runs the GPUs' kernels on the host.

use ns_device::{Backend, DeviceError};
use serde_json::Value;

use crate::support::{Run, Scratch, folder, nextstat};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

fn document(arguments: &[&str]) -> Value {
    let run = examples(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    serde_json::from_str(&run.stdout).expect("a document")
}

/// The documents of the CPU and of the emulated device, the latter without what it says of the
/// device.
fn both(arguments: &[&str]) -> (Value, Value, Value) {
    let on = |device: &str| document(&[arguments, &["--device", device]].concat());
    let (cpu, mut emulated) = (on("cpu"), on("emulated"));
    let device = emulated.as_object_mut().and_then(|entries| entries.remove("device")).expect("what the device did");
    assert_eq!(device["backend"], "emulated");
    assert!(device["n_launches"].as_u64() > Some(0), "{device}");
    (cpu, emulated, device)
}

/// Numbers by their place in a document.
fn numbers(document: &Value, place: String, out: &mut Vec<(String, f64)>) {
    match document {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| numbers(value, format!("{place}/{key}"), out)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(i, value)| numbers(value, format!("{place}/{i}"), out));
        }
        Value::Number(number) => out.extend(number.as_f64().map(|number| (place, number))),
        _ => {}
    }
}

/// What belongs to the way to a minimum and not to the minimum.
const OF_THE_WAY: [&str; 4] = ["/edm", "/n_iterations", "/n_evaluations", "/projected_gradient"];

fn assert_alike(a: &Value, b: &Value, tolerance: f64) {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    numbers(a, String::new(), &mut of_a);
    numbers(b, String::new(), &mut of_b);
    assert_eq!(of_a.len(), of_b.len());
    for ((place, a), (_, b)) in of_a.into_iter().zip(of_b) {
        let counts = !OF_THE_WAY.iter().any(|end| place.ends_with(end));
        assert!(!counts || (a - b).abs() <= tolerance * b.abs().max(1.0), "{place}: {a} and {b}");
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let is_there = |backend| ns_device::probe().iter().any(|found| found.backend == backend && found.is_available());
    if !is_there(Backend::Cuda) {
        for option in [&["--device", "cuda"], &["--gpu", "cuda"]] {
            let run = examples(&[&["fit", "simple.json"], &option[..]].concat());
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
            assert!(run.stderr.contains("NVIDIA") || run.stderr.contains("cuda"), "{}", run.stderr);
        }
    }
    if !is_there(Backend::Metal) {
        let run = examples(&["hypotest-toys", "simple.json", "--gpu", "metal", "--n-toys", "10"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains("metal"), "{}", run.stderr);
    }
}

#[test]
fn a_verb_without_devices_says_which_have_them() {
    for option in [&["--gpu", "cuda"][..], &["--device=cuda"]] {
        let run = examples(&[&["hypotest", "simple.json"], option].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains(" is an option of `fit`, "), "{}", run.stderr);
        assert!(run.stderr.contains("`gof`"), "{}", run.stderr);
    }
    for verb in ["fit", "gof"] {
        let run = examples(&[verb, "simple.json", "--device", "cpu", "--bogus"]);
        assert!(run.code == Some(2) && !run.stderr.contains("hint"), "{}", run.stderr);
    }
}

#[test]
fn files_of_toys_name_the_devices_that_made_them() {
    let scratch = Scratch::new("made-on");
    let shard = |name: &str, shard: &str, device: &str| {
        let path = scratch.path(name);
        let toys = ["toys", "simple.json", "--n-toys", "40", "--shard", shard, "--device", device];
        assert_eq!(examples(&[&toys[..], &["--output-file", &path]].concat()).code, Some(0));
        path
    };
    let (cpu, emulated) = (shard("cpu.npy", "1/2", "cpu"), shard("emulated.npy", "2/2", "emulated"));
    let merged = scratch.path("merged.npy");
    assert_eq!(examples(&["toys", "merge", &emulated, &cpu, "--output-file", &merged]).code, Some(0));
    let devices = |name: &str| {
        let document: Value = serde_json::from_slice(&scratch.read(name)).expect("a document");
        document["devices"].to_string()
    };
    assert_eq!(devices("cpu.npy.json"), "[\"cpu\"]");
    assert_eq!(devices("merged.npy.json"), "[\"cpu\",\"emulated\"]");
}

#[test]
fn a_device_is_named_once() {
    let run = examples(&["fit", "simple.json", "--gpu", "cuda", "--device", "cpu"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--gpu"), "{}", run.stderr);
}

#[test]
fn a_number_names_another_device_of_a_backend() {
    let run = examples(&["fit", "simple.json", "--device", "emulated:0"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let run = examples(&["fit", "simple.json", "--device", "emulated:1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("no emulated device has the number 1; the only one has 0"), "{}", run.stderr);
    let run = examples(&["fit", "simple.json", "--gpu", "opencl:99"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("OpenCL driver") || run.stderr.contains("opencl device"), "{}", run.stderr);
}

#[test]
fn a_wrong_number_of_a_device_is_named_with_advice() {
    for (option, wrong, number) in [
        ("--device", "cuda:first", "first"),
        ("--device", "opencl:", ""),
        ("--gpu", "opencl:x", "x"),
        ("--gpu", "opencl:99999999999999999999", "99999999999999999999"),
    ] {
        let run = examples(&["fit", "simple.json", option, wrong]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        let reason = format!("'{wrong}' for '{option} <");
        assert!(run.stderr.contains(&reason), "{}", run.stderr);
        let reason = match number {
            "" => format!("`{wrong}` lacks the number of a device; `"),
            _ => format!("`{number}` is not the number of a device in `{wrong}`; `"),
        };
        assert!(run.stderr.contains(&reason) && run.stderr.contains("`nextstat devices` lists them"), "{}", run.stderr);
    }
    // The emulation is no GPU, with a number either.
    for (option, wrong) in [("--gpu", "emulated"), ("--gpu", "emulated:1"), ("--device", "cpu:1")] {
        let run = examples(&["fit", "simple.json", option, wrong]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains("possible values"), "{}", run.stderr);
    }
}

#[test]
fn devices_says_of_each_backend_what_there_is() {
    let run = examples(&["devices"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("a document");
    let state = |backend: &str| {
        let devices = document["devices"].as_array().expect("a list");
        let device = devices.iter().find(|device| device["backend"] == backend).expect("every backend is listed");
        device["state"].as_str().expect("a word").to_owned()
    };
    assert_eq!(state("emulated"), "available");
    for found in ns_device::probe() {
        match found.problem {
            Some(DeviceError::NoDriver { backend, .. }) => assert_eq!(state(backend.name()), "no driver"),
            Some(DeviceError::NotHere { .. }) => assert_eq!(state("metal"), "not on this platform"),
            _ => {}
        }
    }
}

#[test]
fn fits_scans_and_rankings_on_a_device_are_the_cpus() {
    for example in ["simple.json", "shapes.json"] {
        let (cpu, emulated, device) = both(&["fit", example]);
        assert_alike(&emulated, &cpu, 1e-6);
        assert_eq!(device["n_fits"], 1);
        let (cpu, emulated, device) = both(&["scan", example, "--start", "0", "--stop", "2", "--points", "7"]);
        assert_alike(&emulated, &cpu, 1e-6);
        assert_eq!(device["n_fits"], 7);
        let (cpu, emulated, device) = both(&["ranking", example]);
        assert_alike(&emulated, &cpu, 1e-6);
        assert!(device["n_fits"].as_u64() >= Some(4), "{device}");
    }
}

#[test]
fn toys_on_a_device_are_the_cpus() {
    let toys = ["toys", "shapes.json", "--n-toys", "40", "--seed", "3", "--poi-uncertainty"];
    let (cpu, emulated, device) = both(&toys);
    assert_alike(&emulated, &cpu, 1e-5);
    assert_eq!((device["n_fits"].as_u64(), device["n_launches"].as_u64()), (Some(40), Some(1)));
    let (cpu, emulated, device) = both(&["gof", "shapes.json", "--toys", "40"]);
    assert_alike(&emulated, &cpu, 1e-6);
    assert_eq!(device["n_fits"].as_u64(), Some(40));
    let (cpu, emulated, device) =
        both(&["hypotest-toys", "shapes.json", "--n-toys", "40", "--seed", "3", "--mu", "1.2"]);
    assert_alike(&emulated, &cpu, 1e-6);
    assert_eq!((device["n_fits"].as_u64(), device["n_launches"].as_u64()), (Some(160), Some(2)));
    let (cpu, emulated, device) = both(&["interval", "shapes.json", "--cl", "0.68", "--tolerance", "0.3"]);
    assert_alike(&emulated, &cpu, 1e-5);
    assert!(device["n_fits"].as_u64() >= Some(1500), "{device}");
    let arguments = ["coverage", "shapes.json", "--true", "1", "--n-toys", "40", "--method", "minos,fc"];
    let (cpu, emulated, device) = both(&[&arguments[..], &["--max-inner-toys", "20", "--tolerance", "0.5"]].concat());
    assert_alike(&emulated, &cpu, 1e-5);
    assert!(device["n_fits"].as_u64() >= Some(1000), "{device}");
}
