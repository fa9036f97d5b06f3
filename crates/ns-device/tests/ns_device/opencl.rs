//! The OpenCL backend against a stand-in for OpenCL's library: the calls that it makes, the cache,
//! and every failure that a driver can have.
//!
//! Each test runs itself in a process that finds the stand-in (`checks/libopencl.cpp`) in place of
//! the library. `make kernels-opencl` runs the kernels on real drivers.

use crate::stand_in::{self, EMPTY, Named};
use ns_device::{Backend, Device, DeviceError, KernelArgument, KernelModule, LaunchDims, OpenOptions, Precision};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The folder with the stand-in, compiled once; `None` without a compiler.
static STAND_IN: LazyLock<Option<PathBuf>> = LazyLock::new(|| stand_in::compile("libopencl", LIBRARY));
const LIBRARY: &str = "libOpenCL.so.1";

/// Runs the test called `name` again in a process with the stand-in as OpenCL's library. Returns
/// `true` in that process, which then does the work.
fn in_stand_in(name: &str, environment: &[(&str, &str)]) -> bool {
    // It is compiled by the first process alone: the others are using it.
    if stand_in::is_child() {
        return true;
    }
    let library = format!("{}/{LIBRARY}", stand_in::found(&STAND_IN));
    let own = [("NEXTSTAT_OPENCL_CACHE", "off"), ("OPENCL_DYLIB_PATH", &*library)];
    stand_in::in_child(&format!("opencl::{name}"), own.into_iter().chain(environment.iter().copied()))
}

static MODULE: KernelModule = KernelModule {
    name: "self_test",
    source: Some(concat!(include_str!("../../kernels/dialect.h"), include_str!("../../kernels/self_test.h"))),
    ..EMPTY
};
static BAD: KernelModule = KernelModule { name: "bad", source: Some("nonsense"), ..EMPTY };
static ABSENT: KernelModule = KernelModule { name: "absent", ..EMPTY };

const SUM: Named = Named(&MODULE, "self_test_sum");
const GRID: LaunchDims = LaunchDims { blocks: 2, lanes: 64, shared_reals: 2 };

fn untested() -> Device {
    let options = OpenOptions { untested: true, ..OpenOptions::default() };
    Device::open_with(Backend::OpenCl, 0, &options).expect("the stand-in is there")
}

fn lines() -> Vec<String> {
    let found = ns_device::probe().into_iter().filter(|found| found.backend == Backend::OpenCl);
    found.map(|found| found.to_string()).collect()
}

#[test]
fn devices_are_found_and_pass_their_self_tests_in_both_precisions() {
    if !in_stand_in(
        "devices_are_found_and_pass_their_self_tests_in_both_precisions",
        &[("STAND_IN_PLATFORMS", "2"), ("STAND_IN_DEVICES", "1")],
    ) {
        return;
    }
    let words =
        ["opencl 0: device 0 (stand-in), 0.1 GiB, f64 and f32", "opencl 1: device 0 (stand-in), 0.1 GiB, f64 and f32"];
    assert_eq!(lines(), words);
    for index in [0, 1] {
        let device = Device::open(Backend::OpenCl, index).expect("kernels are emulated");
        assert_eq!((device.precision(), device.counters().launches), (Precision::Double, 0));
        device.self_test().expect("kernels are emulated");
        let counters = device.counters();
        assert_eq!((counters.launches, counters.kernel_nanoseconds), (6, 6000), "each takes a microsecond there");
        assert_eq!(device.module_logs()[0].log, "compiled by the stand-in");
        assert_eq!(device.reset_counters().kernel_nanoseconds, 6000);
        assert_eq!(device.counters().kernel_nanoseconds, 0);
    }
    let options = OpenOptions { precision: Some(Precision::Single), ..OpenOptions::default() };
    Device::open_with(Backend::OpenCl, 1, &options).expect("kernels are emulated");
    let error = Device::open(Backend::OpenCl, 2).expect_err("there are two");
    assert_eq!(error.to_string(), "no opencl device has the number 2; there are 0 to 1");
}

#[test]
fn what_is_missing_is_named() {
    let name = "what_is_missing_is_named";
    if !stand_in::is_child() {
        in_stand_in(name, &[("STAND_IN_PLATFORMS", "0")]);
        in_stand_in(name, &[("STAND_IN_DEVICES", "0")]);
        in_stand_in(name, &[("STAND_IN_SINGLE", "1")]);
        in_stand_in(name, &[("STAND_IN_OLD", "1")]);
        return;
    }
    let error = |options: &OpenOptions| Device::open_with(Backend::OpenCl, 0, options).err();
    let double = OpenOptions { precision: Some(Precision::Double), ..OpenOptions::default() };
    if std::env::var_os("STAND_IN_PLATFORMS").is_some() {
        assert_eq!(lines(), ["opencl: no OpenCL driver was found (libOpenCL knows no platform)"]);
        let hint = error(&double).and_then(|error| error.hint()).expect("advice");
        assert!(hint.starts_with("`clinfo` should list the device"), "{hint}");
    } else if std::env::var_os("STAND_IN_DEVICES").is_some() {
        assert_eq!(lines(), ["opencl: no opencl device was found"]);
    } else if std::env::var_os("STAND_IN_OLD").is_some() {
        let words =
            "no opencl device can be used: device 0 (stand-in): its version is OpenCL 1.1 stand-in, 1.2 is needed";
        assert_eq!(lines(), [format!("opencl: {words}")]);
        assert_eq!(error(&double).expect("it is too old").to_string(), words);
    } else {
        assert_eq!(lines(), ["opencl 0: device 0 (stand-in), 0.1 GiB, f32"]);
        let refused = error(&double).expect("there is no double precision");
        assert_eq!(refused.to_string(), "opencl device 0 (device 0 (stand-in)) does not compute in f64");
        let device = Device::open(Backend::OpenCl, 0).expect("single precision is the best it has");
        assert_eq!(device.precision(), Precision::Single);
    }
}

#[test]
fn nvidias_gpus_are_listed_only_where_a_test_asks_for_them() {
    let name = "nvidias_gpus_are_listed_only_where_a_test_asks_for_them";
    if !stand_in::is_child() {
        in_stand_in(name, &[("STAND_IN_NVIDIA", "1")]);
        in_stand_in(name, &[("STAND_IN_NVIDIA", "1"), ("NEXTSTAT_OPENCL_NVIDIA", "1")]);
        return;
    }
    let refused = "opencl: no opencl device can be used: device 0 (stand-in): the backend of NVIDIA's GPUs is `cuda`";
    let is_asked_for = std::env::var_os("NEXTSTAT_OPENCL_NVIDIA").is_some();
    let expected = if is_asked_for { "opencl 0: device 0 (stand-in), 0.1 GiB, f64 and f32" } else { refused };
    assert_eq!(lines(), [expected]);
}

#[test]
fn a_machine_without_the_library_says_so() {
    if !stand_in::is_child() {
        // The system may have the library: an empty file before it cannot be loaded.
        let folder = std::env::temp_dir().join(format!("ns-device-no-opencl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["libOpenCL.so", "libOpenCL.so.1", "libOpenCL.dylib"] {
            std::fs::write(folder.join(name), "").expect("a file");
        }
        let first = folder.to_str().expect("a folder with an ordinary name");
        let missing = [("OPENCL_DYLIB_PATH", "/dev/null"), ("LD_LIBRARY_PATH", first), ("DYLD_LIBRARY_PATH", first)];
        in_stand_in("a_machine_without_the_library_says_so", &missing);
        std::fs::remove_dir_all(folder).expect("a folder");
        return;
    }
    let line = lines().concat();
    assert!(line.starts_with("opencl: no OpenCL driver was found (libOpenCL cannot be loaded: "), "{line}");
}

#[test]
fn a_wrong_device_is_refused() {
    if in_stand_in("a_wrong_device_is_refused", &[("STAND_IN_WRONG", "self_test_product")]) {
        let error = Device::open(Backend::OpenCl, 0).expect_err("its product is wrong");
        let words = "opencl device 0 failed its self-test: matrix-vector product: 0 instead of ";
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(lines()[0].contains("failed its self-test"), "{:?}", lines());
    }
}

#[test]
fn a_crash_stops_the_device_object() {
    if !in_stand_in("a_crash_stops_the_device_object", &[("STAND_IN_CRASH", "self_test_sum")]) {
        return;
    }
    let device = untested();
    let values = device.zeroed::<f64>(200).expect("fits");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let arguments = [KernelArgument::uints(&[100, 0]), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    device.launch(SUM, GRID, &arguments).expect("crashes later");
    let error = sums.download().expect_err("crashed");
    let words = "the device stopped: CL_OUT_OF_RESOURCES (-5) (in or before kernel `self_test_sum`)";
    assert_eq!(error.to_string(), words);
    assert_eq!(device.upload(&[1.0]).expect_err("stopped"), error);
    assert!(error.hint().is_some());
}

#[test]
fn kernels_that_do_not_compile_come_with_the_log() {
    if !in_stand_in("kernels_that_do_not_compile_come_with_the_log", &[]) {
        return;
    }
    let device = untested();
    let error = device.prepare(Named(&BAD, "any")).expect_err("no kernel");
    let words = "the kernels `bad` did not compile: the OpenCL driver refused them\nline 1: not a kernel";
    assert_eq!(error.to_string(), words);
    let error = device.prepare(Named(&ABSENT, "any")).expect_err("no text");
    assert_eq!(error.to_string(), "the kernels `absent` are not compiled for opencl in f64");
    let error = device.prepare(Named(&MODULE, "missing")).expect_err("not there");
    assert_eq!(error, DeviceError::NoKernel { module: "self_test", kernel: "missing" });
}

#[test]
fn wrong_launches_too_much_memory_and_foreign_memory_are_errors() {
    let name = "wrong_launches_too_much_memory_and_foreign_memory_are_errors";
    if !in_stand_in(name, &[("STAND_IN_LANES", "96")]) {
        return;
    }
    let device = untested();
    let values = device.zeroed::<f64>(200).expect("fits");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let error = device.launch(SUM, GRID, &[KernelArgument::read(&values)]).expect_err("too few");
    assert_eq!(error.to_string(), "launch failed: kernel `self_test_sum` takes 3 arguments, 1 were passed");
    assert_eq!(device.max_lanes(SUM), Ok(96));
    let arguments = [KernelArgument::uints(&[100, 0]), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    let error = device.launch(SUM, LaunchDims { lanes: 128, ..GRID }, &arguments).expect_err("too wide");
    assert!(matches!(error, DeviceError::LaunchDims { asked: 128, allowed: 96, .. }), "{error}");
    device.launch(SUM, GRID, &arguments).expect("a right launch");
    assert_eq!(sums.download().expect("sound"), [0.0, 0.0]);
    // The largest block has 48 MiB, all have 64.
    assert!(matches!(device.zeroed::<u8>(49 << 20), Err(DeviceError::OutOfMemory { .. })));
    let _kept = device.zeroed::<u8>(40 << 20).expect("fits");
    assert!(matches!(device.zeroed::<u8>(40 << 20), Err(DeviceError::OutOfMemory { .. })));
    let host = [0.0f64; 2];
    #[expect(unsafe_code, reason = "memory that is refused")]
    // SAFETY: nothing is launched with it.
    let foreign = unsafe { device.external_buffer::<f64>(host.as_ptr() as u64, 2) };
    let words = "memory of this kind of device is not reached by address";
    assert!(foreign.expect_err("no address").to_string().ends_with(words));
}

#[test]
fn programs_are_kept_and_what_the_driver_does_not_take_is_compiled_again() {
    let name = "programs_are_kept_and_what_the_driver_does_not_take_is_compiled_again";
    if !stand_in::is_child() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl-cache");
        let _ = std::fs::remove_dir_all(&folder);
        let cache = ("NEXTSTAT_OPENCL_CACHE", folder.to_str().expect("a name"));
        in_stand_in(name, &[cache, ("EXPECTED_LOG", "compiled by the stand-in")]);
        assert_eq!(std::fs::read_dir(&folder).expect("kept").count(), 1);
        in_stand_in(name, &[cache, ("EXPECTED_LOG", "")]);
        in_stand_in(name, &[cache, ("STAND_IN_OLD_BINARIES", "1"), ("EXPECTED_LOG", "compiled by the stand-in")]);
        let kept = std::fs::read_dir(&folder).expect("kept").next().expect("a program").expect("a file").path();
        std::fs::write(&kept, "damaged").expect("a file");
        in_stand_in(name, &[cache, ("EXPECTED_LOG", "compiled by the stand-in")]);
        in_stand_in(name, &[cache, ("EXPECTED_LOG", "")]);
        return;
    }
    let device = untested();
    device.self_test().expect("kernels are emulated");
    assert_eq!(Ok(device.module_logs()[0].log.as_str()), std::env::var("EXPECTED_LOG").as_deref());
}
