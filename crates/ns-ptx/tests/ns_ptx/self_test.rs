//! Executes the PTX of the device self-test with what the emulation recorded of it.

use ns_device::{Backend, Device, EmulationOptions, OpenOptions, Precision};
use ns_ptx::recording::reals;
use ns_ptx::{Argument, Coverage, LaneOrder, Module, Recording, fuse_at_random, run};

/// Returns the launches of the self-test in `precision`.
fn recordings(precision: Precision) -> Vec<Recording> {
    let folder = tempfile::tempdir().expect("a folder");
    let emulation = EmulationOptions { record_to: Some(folder.path().to_owned()), ..EmulationOptions::default() };
    let options = OpenOptions { precision: Some(precision), emulation, untested: true };
    let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in");
    device.self_test().expect("it passes");
    let files = folder.path().read_dir().expect("made").flatten();
    files.map(|file| Recording::read(&std::fs::read(file.path()).expect("written")).expect("a recording")).collect()
}

/// Asserts that `module` writes what was recorded, within `tolerance`.
fn assert_agrees(module: &Module, recording: &Recording, tolerance: f64) {
    for order in [LaneOrder::Ascending, LaneOrder::Descending] {
        let outcome = run(module, recording, order, &mut Coverage::new(module)).expect("no fault");
        for (argument, bytes) in recording.arguments.iter().zip(&outcome.buffers) {
            let Argument::Written { after, .. } = argument else { continue };
            let [is, should_be] = [bytes, after].map(|bytes| reals(bytes, recording.real_bytes));
            for (is, should_be) in is.into_iter().zip(should_be) {
                let agrees = is == should_be
                    || (is.is_nan() && should_be.is_nan())
                    || (is - should_be).abs() <= tolerance * should_be.abs();
                assert!(agrees, "{}: {is:e}, recorded {should_be:e}", recording.kernel);
            }
        }
    }
}

#[test]
fn the_self_test_passes_in_its_ptx() {
    let texts = [
        (Precision::Double, include_str!("../../../ns-device/kernels/self_test.f64.ptx"), 4e-16),
        (Precision::Single, include_str!("../../../ns-device/kernels/self_test.f32.ptx"), 3e-7),
    ];
    for (precision, text, tolerance) in texts {
        let module = Module::parse(text).expect("PTX");
        let recordings = recordings(precision);
        assert!(recordings.len() >= 6, "{} launches", recordings.len());
        for recording in &recordings {
            assert_agrees(&module, recording, tolerance);
        }
    }
}

#[test]
fn products_without_a_rounding_mode_may_be_fused() {
    let module = Module::parse(include_str!("../../../ns-compute/kernels/likelihood.f64.ptx")).expect("PTX");
    let counts = [0, 1].map(|seed| fuse_at_random(&module, seed).n_fused);
    assert!(counts[0] > 10 && counts[0] != counts[1], "{counts:?}");
}

#[test]
fn all_modules_are_understood() {
    let modules = [
        (include_str!("../../../../torchless/kernels/transformer.f32.ptx"), "matmul"),
        (include_str!("../../../../torchless/kernels/encoder/encoder.f32.ptx"), "multiply_matrices"),
    ];
    for (text, kernel) in modules {
        let module = Module::parse(text).expect("PTX");
        assert!(module.kernel(kernel).is_some());
        assert!(module.functions.iter().all(|function| !function.leaders.is_empty()));
    }
}
