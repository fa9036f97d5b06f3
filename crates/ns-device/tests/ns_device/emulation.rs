//! The device interface on the host: the self-test passes under every schedule, and broken kernels
//! are caught.

use ns_device::{
    Backend, Device, DeviceCounters, DeviceError, EmulationOptions, Kernel, KernelArgument, KernelConstants,
    KernelModule, LaneSchedule, LaunchDims, LaunchLimit, OpenOptions, Precision,
};
use std::process::Command;

static BROKEN: KernelModule = KernelModule {
    name: "broken",
    ptx_f64: None,
    ptx_f32: None,
    source: None,
    emulated: ns_device::emulated_kernels![
        broken_barrier,
        broken_end,
        broken_shuffle,
        broken_shared,
        broken_unwritten,
        broken_sum,
        broken_bounds,
        self_test_sum,
    ],
};

#[derive(Debug, Clone, Copy)]
enum Broken {
    Barrier,
    End,
    Shuffle,
    Shared,
    Unwritten,
    Sum,
    Bounds,
    RightSum,
    Missing,
}

impl Kernel for Broken {
    fn module(&self) -> &'static KernelModule {
        &BROKEN
    }

    fn name(&self) -> &'static str {
        match self {
            Broken::Barrier => "broken_barrier",
            Broken::End => "broken_end",
            Broken::Shuffle => "broken_shuffle",
            Broken::Shared => "broken_shared",
            Broken::Unwritten => "broken_unwritten",
            Broken::Sum => "broken_sum",
            Broken::Bounds => "broken_bounds",
            Broken::RightSum => "self_test_sum",
            Broken::Missing => "broken_missing",
        }
    }
}

const FIBERS: [LaneSchedule; 3] = [LaneSchedule::Ascending, LaneSchedule::Descending, LaneSchedule::Shuffled];
const PRECISIONS: [Precision; 2] = [Precision::Double, Precision::Single];

fn open(precision: Precision, schedule: LaneSchedule) -> Device {
    let emulation = EmulationOptions { schedule, ..EmulationOptions::default() };
    let options = OpenOptions { precision: Some(precision), untested: true, emulation };
    Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in")
}

/// Launches a kernel on 64 lanes and gives what it wrote.
fn outcome(device: &Device, kernel: Broken) -> Result<Vec<f64>, DeviceError> {
    let mut out = device.zeroed::<f64>(64)?;
    let grid = LaunchDims { blocks: 1, lanes: 64, shared_reals: 64 };
    device.launch(kernel, grid, &[KernelArgument::write(&mut out)])?;
    out.download()
}

#[test]
fn self_test_passes_in_both_precisions_under_every_schedule() {
    for precision in PRECISIONS {
        for schedule in FIBERS.into_iter().chain([LaneSchedule::Threads]) {
            let device = open(precision, schedule);
            device.self_test().unwrap_or_else(|error| panic!("{precision} {schedule:?}: {error}"));
            assert_eq!(device.counters().launches, 6);
        }
    }
}

#[test]
fn self_test_passes_with_blocks_on_several_threads() {
    let emulation = EmulationOptions { host_threads: 3, ..EmulationOptions::default() };
    let options = OpenOptions { emulation, untested: true, ..OpenOptions::default() };
    let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in");
    device.self_test().expect("blocks are independent");
}

#[test]
fn a_launch_gives_the_same_bits_under_every_schedule() {
    let sums: Vec<Vec<f64>> = FIBERS.map(|schedule| sum(&open(Precision::Double, schedule), Broken::RightSum)).into();
    assert_eq!(sums[0], sums[1]);
    assert_eq!(sums[0], sums[2]);
}

fn sum(device: &Device, kernel: Broken) -> Vec<f64> {
    let values = device.upload(&(0..3000).map(|i| 1.0 / f64::from(i + 1)).collect::<Vec<f64>>()).expect("fits");
    let mut sums = device.zeroed::<f64>(3).expect("fits");
    let constants = KernelConstants::new(Precision::Double).uint(1000).uint(0);
    let arguments =
        [KernelArgument::constants(constants.bytes()), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    device.launch(kernel, LaunchDims { blocks: 3, lanes: 128, shared_reals: 4 }, &arguments).expect("a right launch");
    sums.download().expect("a sound device")
}

#[test]
fn a_missing_barrier_shows_in_some_order_of_lanes() {
    let wrong = FIBERS.map(|schedule| {
        let device = open(Precision::Double, schedule);
        sum(&device, Broken::Sum).iter().zip(sum(&device, Broken::RightSum)).any(|(sum, right)| *sum != right)
    });
    assert!(wrong.contains(&true), "{wrong:?}");
}

#[test]
fn broken_rules_are_named_with_their_lines_and_stop_the_device() {
    let expected = [
        (Broken::Barrier, "lanes part in block 0: lane 0 is at BARRIER at"),
        (Broken::End, "at the end of the kernel"),
        (Broken::Shuffle, "lane 0 is at SHUFFLE_XOR at"),
        (Broken::Shared, "a write past the end of shared memory (64 reals) in block 0"),
    ];
    for schedule in FIBERS {
        for (kernel, message) in expected {
            let device = open(Precision::Double, schedule);
            let buffer = device.upload(&[1.0]).expect("fits");
            let error = outcome(&device, kernel).expect_err("the kernel is broken");
            assert!(matches!(&error, DeviceError::Poisoned { kernel: name, .. } if name == kernel.name()), "{error}");
            assert!(error.to_string().contains(message), "{error}");
            // And so is everything after it.
            assert_eq!(buffer.download().expect_err("the device stopped"), error);
            assert_eq!(device.synchronize().expect_err("the device stopped"), error);
        }
    }
}

#[test]
fn unwritten_shared_memory_is_nan() {
    let out = outcome(&open(Precision::Double, LaneSchedule::Ascending), Broken::Unwritten).expect("no rule is broken");
    assert!(out[0].is_nan());
    assert_eq!(out[1..], [1.0; 63]);
}

#[test]
fn threads_that_part_abort_with_the_lines() {
    if let Ok(kernel) = std::env::var("NS_DEVICE_BREAK") {
        let kernel = if kernel == "barrier" { Broken::Barrier } else { Broken::Shuffle };
        let _ = outcome(&open(Precision::Double, LaneSchedule::Threads), kernel);
        return;
    }
    for kernel in ["barrier", "shuffle"] {
        let mut child = Command::new(std::env::current_exe().expect("a test has a file"));
        child
            .args(["--exact", "emulation::threads_that_part_abort_with_the_lines", "--nocapture"])
            .env("NS_DEVICE_BREAK", kernel);
        let output = child.output().expect("a test can run itself");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(stderr.contains("emulation: lanes part in block 0: lane"), "{stderr}");
    }
}

/// `make kernels-sanitize` replays these launches, and fails if the sanitizers find nothing wrong
/// with them.
#[test]
fn broken_kernels_are_recorded_for_the_sanitizers() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    sum(&device, Broken::Sum);
    let mut out = device.zeroed::<f64>(33).expect("fits");
    let grid = LaunchDims { blocks: 1, lanes: 32, shared_reals: 0 };
    device.launch(Broken::Bounds, grid, &[KernelArgument::write(&mut out)]).expect("what is rounded up hides it");
}

#[test]
fn a_launch_is_recorded_with_what_it_read_and_wrote() {
    let folder = std::env::temp_dir().join(format!("ns-device-{}", std::process::id()));
    let emulation = EmulationOptions { record_to: Some(folder.clone()), ..EmulationOptions::default() };
    let options = OpenOptions { emulation, untested: true, ..OpenOptions::default() };
    let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in");
    let sums = sum(&device, Broken::RightSum);
    let files: Vec<_> = folder.read_dir().expect("made").flatten().map(|entry| entry.path()).collect();
    assert_eq!(files.len(), 1);
    let bytes = std::fs::read(&files[0]).expect("written");
    std::fs::remove_dir_all(&folder).expect("ours");
    assert_eq!(&bytes[..8], b"NSREPLAY");
    // Header, name, three arguments with their contents before, and the sums after.
    assert_eq!(bytes.len(), 8 + 24 + "self_test_sum_f64".len() + 3 * 12 + 8 + 24_000 + 24 + 24);
    assert_eq!(bytes[bytes.len() - 24..bytes.len() - 16], sums[0].to_ne_bytes());
}

#[test]
fn dropped_buffers_are_used_again() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    drop(device.zeroed::<f64>(1000).expect("fits"));
    let allocated = device.zeroed::<u8>(8000).expect("fits");
    let pool = device.pool();
    assert_eq!((pool.hits, pool.misses), (1, 1));
    assert_eq!((pool.in_use_bytes, pool.pooled_bytes, pool.high_water_bytes), (8192, 0, 8192));
    drop(allocated);
    assert_eq!((device.pool().in_use_bytes, device.pool().pooled_bytes), (0, 8192));
    device.trim();
    let pool = device.pool();
    assert_eq!((pool.total_bytes, pool.pooled_bytes, pool.high_water_bytes), (0, 0, 8192));
}

#[test]
fn memory_that_nobody_wrote_is_nan_new_or_used() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    for _ in 0..2 {
        let mut buffer = device.uninitialised::<f64>(10).expect("fits");
        assert!(buffer.download().expect("sound").iter().all(|value| value.is_nan()));
        buffer.clear().expect("sound");
        assert_eq!(buffer.download().expect("sound"), [0.0; 10]);
    }
    assert_eq!(device.pool().hits, 1);
}

#[test]
fn what_does_not_fit_is_refused_with_figures() {
    let emulation = EmulationOptions { memory_bytes: 10_000, ..EmulationOptions::default() };
    let options = OpenOptions { emulation, untested: true, ..OpenOptions::default() };
    let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in");
    let allocated = device.zeroed::<u8>(4096).expect("fits");
    let error = device.zeroed::<f64>(1000).expect_err("too much");
    assert_eq!(error, DeviceError::OutOfMemory { asked: 8000, free: 10_000 - 4096, total: 10_000 });
    assert_eq!(device.check_fits(8000), Err(error));
    // Pooled memory is given back when something else needs it.
    drop(allocated);
    device.check_fits(8000).expect("fits");
    device.zeroed::<f64>(1000).expect("fits");
    assert!(matches!(device.zeroed::<f64>(usize::MAX / 4), Err(DeviceError::OutOfMemory { .. })));
}

#[test]
fn counters_count_what_was_done() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    sum(&device, Broken::RightSum);
    device.synchronize().expect("sound");
    let expected = DeviceCounters {
        kernel_nanoseconds: 0,
        launches: 1,
        blocks: 3,
        uploads: 1,
        upload_bytes: 24_000,
        downloads: 1,
        download_bytes: 24,
        synchronizations: 1,
    };
    assert_eq!(device.reset_counters(), expected);
    assert_eq!(device.counters(), DeviceCounters::default());
}

#[test]
fn events_measure_the_work_between_them() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    let before = device.record().expect("sound");
    sum(&device, Broken::RightSum);
    let after = device.record().expect("sound");
    assert!(after.since(&before).expect("both happened").as_nanos() > 0);
    let other = open(Precision::Double, LaneSchedule::Ascending).record().expect("sound");
    assert_eq!(after.since(&other).expect_err("another device's"), DeviceError::OtherDevice);
}

#[test]
fn buffers_hold_every_type_and_check_ranges() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    let mut words = device.upload(&[1u32, 2, 3, 4]).expect("fits");
    words.upload_at(1, &[7, 8]).expect("in range");
    let mut two = [0; 2];
    words.download_at(2, &mut two).expect("in range");
    assert_eq!(two, [8, 4]);
    let error = words.upload_at(3, &[1, 2]).expect_err("out of range");
    assert_eq!(error, DeviceError::Range { start: 3, end: 5, length: 4 });
    assert_eq!(device.upload(&[-1i8, 5]).expect("fits").download().expect("sound"), [-1, 5]);
    assert_eq!(device.upload(&[1u16, 65535]).expect("fits").download().expect("sound"), [1, 65535]);
    assert!(device.upload::<f32>(&[]).expect("nothing fits").download().expect("sound").is_empty());
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let device = open(Precision::Single, LaneSchedule::Ascending);
    let mut out = device.zeroed::<f32>(64).expect("fits");
    let mut launch = |blocks, lanes, shared_reals, kernel| {
        let grid = LaunchDims { blocks, lanes, shared_reals };
        device.launch(kernel, grid, &[KernelArgument::write(&mut out)]).expect_err("refused")
    };
    let limit_of = |error| match error {
        DeviceError::LaunchDims { limit, .. } => limit,
        other => panic!("{other}"),
    };
    assert_eq!(limit_of(launch(1, 48, 0, Broken::Unwritten)), LaunchLimit::LanesOfWholeWarps);
    assert_eq!(limit_of(launch(1, 2048, 0, Broken::Unwritten)), LaunchLimit::Lanes);
    assert_eq!(limit_of(launch(0, 32, 0, Broken::Unwritten)), LaunchLimit::Blocks);
    let error = launch(1, 64, 10_000, Broken::Unwritten);
    let message = "kernel `broken_unwritten` was launched with 40000 bytes of shared memory, 32768 are allowed";
    assert_eq!(error.to_string(), message);
    let error = launch(1, 64, 64, Broken::Missing);
    assert_eq!(error, DeviceError::NoKernel { module: "broken", kernel: "broken_missing" });
    // None of them stopped the device.
    device.synchronize().expect("sound");
}

#[test]
fn wrong_arguments_are_named() {
    let wrong = |constants: &[u32], with_buffer: bool| {
        let device = open(Precision::Double, LaneSchedule::Ascending);
        let values = device.zeroed::<f64>(100).expect("fits");
        let mut sums = device.zeroed::<f64>(1).expect("fits");
        let mut arguments = vec![KernelArgument::uints(constants), KernelArgument::read(&values)];
        if with_buffer {
            arguments.push(KernelArgument::write(&mut sums));
        }
        let grid = LaunchDims { blocks: 1, lanes: 32, shared_reals: 1 };
        device.launch(Broken::RightSum, grid, &arguments).expect_err("refused").to_string()
    };
    assert!(wrong(&[100, 0], false).contains("the kernel takes 3 arguments, 2 were passed"));
    assert!(wrong(&[100], true).contains("argument 0 has 4 bytes of constants, the kernel takes 8"));
}

#[test]
fn a_buffer_of_another_device_is_refused() {
    let (one, other) =
        (open(Precision::Double, LaneSchedule::Ascending), open(Precision::Double, LaneSchedule::Ascending));
    let mut out = other.zeroed::<f64>(64).expect("fits");
    let grid = LaunchDims { blocks: 1, lanes: 64, shared_reals: 64 };
    let error = one.launch(Broken::Unwritten, grid, &[KernelArgument::write(&mut out)]).expect_err("refused");
    assert_eq!(error, DeviceError::OtherDevice);
}

#[test]
fn modules_are_loaded_when_needed_and_their_logs_kept() {
    let device = open(Precision::Double, LaneSchedule::Ascending);
    assert!(device.module_logs().is_empty());
    device.prepare(Broken::Sum).expect("exists");
    assert_eq!(device.module_logs().len(), 1);
    assert_eq!(device.module_logs()[0].module, "broken");
}

#[test]
fn probing_never_fails_and_says_what_is_missing() {
    let found = ns_device::probe();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.starts_with("emulated 0: emulation on the host")), "{lines:?}");
    for backend in Backend::ALL {
        assert!(found.iter().any(|device| device.backend == backend), "{lines:?}");
    }
    if !cfg!(feature = "cuda") {
        assert!(lines.contains(&"cuda: this build has no cuda backend".to_owned()), "{lines:?}");
        let error = Device::open(Backend::Cuda, 0).expect_err("not built in");
        assert_eq!(error.hint().as_deref(), Some("rebuild with `--features cuda`"));
    }
    assert!(matches!(Device::open(Backend::Emulated, 1), Err(DeviceError::NoDevice { n_devices: 1, .. })));
}

#[test]
fn constants_are_laid_out_as_cpp_does() {
    let constants = KernelConstants::new(Precision::Double).uint(1).real(0.5).uint(2);
    assert_eq!(constants.bytes().len(), 24);
    assert_eq!(constants.bytes()[8..16], 0.5f64.to_ne_bytes());
    let constants = KernelConstants::new(Precision::Single).uint(1).real(0.5).uints(&[2, 3]);
    assert_eq!(constants.bytes().len(), 16);
}

#[test]
fn devices_go_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Device>();
    is_send_and_sync::<ns_device::Buffer<f64>>();
    let device = open(Precision::Double, LaneSchedule::Shuffled);
    let right = sum(&device, Broken::RightSum);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(sum(&device, Broken::RightSum), right));
        }
    });
}
