//! Tests of every real device of this machine. They are ignored unless asked for, and fail where
//! there is no device.
//!
//! `make bench-gpu` runs them. Alone, with the backend's feature: `cargo test -p ns-device
//! --features cuda --test ns_device -- hardware:: --ignored --nocapture`.

use ns_device::{Backend, Device, DeviceError, Kernel, KernelArgument, KernelConstants, KernelModule, LaunchDims};
use std::time::Instant;

static MODULE: KernelModule = KernelModule {
    name: "self_test",
    ptx_f64: Some(include_str!("../../kernels/self_test.f64.ptx")),
    ptx_f32: Some(include_str!("../../kernels/self_test.f32.ptx")),
    source: Some(concat!(include_str!("../../kernels/dialect.h"), include_str!("../../kernels/self_test.h"))),
    emulated: &[],
};

#[derive(Debug, Clone, Copy)]
struct Sum;

impl Kernel for Sum {
    fn module(&self) -> &'static KernelModule {
        &MODULE
    }

    fn name(&self) -> &'static str {
        "self_test_sum"
    }
}

/// Runs a check on every real device, or on those of the backend that `NEXTSTAT_TEST_DEVICE` names.
fn on_each(check: impl Fn(&Device) -> Result<(), DeviceError>) {
    let only = std::env::var("NEXTSTAT_TEST_DEVICE").ok();
    let mut n_devices = 0;
    for found in ns_device::probe() {
        let is_asked = only.as_ref().is_none_or(|name| name == found.backend.name());
        if found.backend == Backend::Emulated || !is_asked {
            continue;
        }
        eprintln!("{found}");
        if found.is_available() {
            let device = Device::open(found.backend, found.index).unwrap_or_else(|error| panic!("{error}"));
            check(&device).unwrap_or_else(|error| panic!("{error}"));
            n_devices += 1;
        }
    }
    assert!(n_devices > 0, "this machine has no device that a backend of this build can use");
}

/// Launches the sum over ones: each block's sum is `n`.
fn launch(device: &Device, blocks: u32, n: u32) -> Result<Vec<f64>, DeviceError> {
    let constants = KernelConstants::new(device.precision()).uint(n).uint(0);
    let grid = LaunchDims { blocks, lanes: 128, shared_reals: 4 };
    let length = blocks as usize;
    if device.precision().bytes() == 8 {
        let values = device.upload(&vec![1.0f64; length * n as usize])?;
        let mut sums = device.zeroed::<f64>(length)?;
        let arguments = [
            KernelArgument::constants(constants.bytes()),
            KernelArgument::read(&values),
            KernelArgument::write(&mut sums),
        ];
        device.launch(Sum, grid, &arguments)?;
        sums.download()
    } else {
        let values = device.upload(&vec![1.0f32; length * n as usize])?;
        let mut sums = device.zeroed::<f32>(length)?;
        let arguments = [
            KernelArgument::constants(constants.bytes()),
            KernelArgument::read(&values),
            KernelArgument::write(&mut sums),
        ];
        device.launch(Sum, grid, &arguments)?;
        Ok(sums.download()?.into_iter().map(f64::from).collect())
    }
}

#[test]
#[ignore = "needs a GPU"]
fn every_device_passes_its_self_test() {
    on_each(Device::self_test);
}

#[test]
#[ignore = "needs a GPU"]
fn many_blocks_are_all_computed() {
    on_each(|device| {
        assert_eq!(launch(device, 20_000, 100)?, vec![100.0; 20_000]);
        Ok(())
    });
}

#[test]
#[ignore = "needs a GPU"]
fn events_and_launches_are_timed() {
    on_each(|device| {
        launch(device, 8, 64)?;
        let (first, clock) = (device.record()?, Instant::now());
        for _ in 0..100 {
            launch(device, 8, 64)?;
        }
        let last = device.record()?;
        let (by_device, by_host) = (last.since(&first)?, clock.elapsed());
        eprintln!("100 launches with their copies: {by_device:?} by events, {by_host:?} by the host's clock");
        assert!(by_device.as_secs_f64() < 1.5 * by_host.as_secs_f64() + 1e-3);
        Ok(())
    });
}

#[test]
#[ignore = "needs a GPU"]
fn memory_comes_back() {
    on_each(|device| {
        let bytes: Vec<u8> = (0..32u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let buffer = device.upload(&bytes)?;
        assert!(buffer.download()? == bytes);
        drop(buffer);
        device.trim();
        assert_eq!(device.pool().total_bytes, 0);
        let memory = device.memory()?;
        let error = device.check_fits(memory.total + 1).expect_err("more than there is");
        assert!(matches!(error, DeviceError::OutOfMemory { .. }));
        Ok(())
    });
}
