//! The CUDA backend against a stand-in for the driver's library: every call it makes, in an order
//! that a real one accepts.
//!
//! Each test runs itself in a process that finds the stand-in (`checks/libcuda.cpp`) in place of
//! the driver. It is not a GPU, and does not test NVIDIA's compiler or numbers on real hardware:
//! `hardware.rs` does.

use crate::stand_in::{self, EMPTY, Named};
use ns_device::{Backend, Device, DeviceError, KernelArgument, KernelModule, LaunchDims, OpenOptions, Precision};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The folder with `libcuda.so`, compiled once; `None` without a compiler.
static STAND_IN: LazyLock<Option<PathBuf>> = LazyLock::new(|| stand_in::compile("libcuda", "libcuda.so"));

/// Runs the test called `name` again in a process with the stand-in as its driver. Returns `true`
/// in that process, which then does the work.
fn in_stand_in(name: &str, environment: &[(&str, &str)]) -> bool {
    // It is compiled by the first process alone: the others are using it.
    if stand_in::is_child() {
        return true;
    }
    let own = [("LD_LIBRARY_PATH", stand_in::found(&STAND_IN))];
    stand_in::in_child(&format!("cuda::{name}"), own.into_iter().chain(environment.iter().copied()))
}

static MODULE: KernelModule = KernelModule {
    name: "self_test",
    ptx_f64: Some(include_str!("../../kernels/self_test.f64.ptx")),
    ptx_f32: None,
    source: None,
    emulated: &[],
};
static BAD: KernelModule = KernelModule { name: "bad", ptx_f64: Some("nonsense"), ..EMPTY };

const SUM: Named = Named(&MODULE, "self_test_sum");
const GRID: LaunchDims = LaunchDims { blocks: 2, lanes: 64, shared_reals: 2 };

fn open() -> Device {
    Device::open(Backend::Cuda, 0).expect("the stand-in is there")
}

#[test]
fn a_device_is_found_and_passes_its_self_test_in_both_precisions() {
    if !in_stand_in("a_device_is_found_and_passes_its_self_test_in_both_precisions", &[]) {
        return;
    }
    let line = ns_device::probe()[0].to_string();
    assert_eq!(line, "cuda 0: stand-in GPU, 0.1 GiB, f64 and f32, compute capability 9.0");
    let flops = open().properties().double_flops.expect("the kind is known");
    assert_eq!(flops, 2 * 64 * 100 * 1_500_000_000, "64 fused operations a clock on each of 100 multiprocessors");
    let device = open();
    assert_eq!((device.precision(), device.counters().launches), (Precision::Double, 0));
    device.self_test().expect("kernels are emulated");
    assert_eq!(device.counters().launches, 6);
    let log = &device.module_logs()[0];
    assert_eq!((log.module, log.log.as_str()), ("self_test", "compiled by the stand-in"));
    let options = OpenOptions { precision: Some(Precision::Single), ..OpenOptions::default() };
    Device::open_with(Backend::Cuda, 0, &options).expect("kernels are emulated");
    assert!(matches!(Device::open(Backend::Cuda, 1), Err(DeviceError::NoDevice { index: 1, n_devices: 1, .. })));
}

#[test]
fn work_is_done_in_order_and_memory_is_counted() {
    if !in_stand_in("work_is_done_in_order_and_memory_is_counted", &[]) {
        return;
    }
    let device = open();
    let mut values = device.zeroed::<f64>(200).expect("fits");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let start = device.record().expect("sound");
    // What is uploaded may change at once; the first launch must not see the second upload.
    let mut host = vec![1.0; 200];
    let launch = |values: &_, sums: &mut _| {
        let arguments = [KernelArgument::uints(&[100, 0]), KernelArgument::read(values), KernelArgument::write(sums)];
        device.launch(SUM, GRID, &arguments).expect("a right launch");
    };
    values.upload(&host).expect("fits");
    host.fill(3.0);
    launch(&values, &mut sums);
    let mut second = device.zeroed::<f64>(2).expect("fits");
    values.upload(&host).expect("fits");
    launch(&values, &mut second);
    assert_eq!(sums.download().expect("sound"), [100.0, 100.0]);
    assert_eq!(second.download().expect("sound"), [300.0, 300.0]);
    let end = device.record().expect("sound");
    assert!(end.since(&start).expect("both happened").as_nanos() > 0);
    let error = device.zeroed::<u8>(65 << 20).expect_err("there are 64 MiB");
    assert!(matches!(error, DeviceError::OutOfMemory { asked, total, .. } if asked == 65 << 20 && total == 64 << 20));
    drop((values, sums, second));
    device.trim();
    assert_eq!(device.pool().total_bytes, 0);
    let memory = device.memory().expect("sound");
    assert_eq!(memory.free, memory.total);
    std::thread::scope(|scope| {
        scope.spawn(|| device.upload(&[1.0]).expect("a context for every thread").download().expect("sound"));
    });
}

#[test]
fn wrong_launches_are_refused_before_the_driver_sees_them() {
    if !in_stand_in("wrong_launches_are_refused_before_the_driver_sees_them", &[]) {
        return;
    }
    let device = open();
    let values = device.zeroed::<f64>(200).expect("fits");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let layout = [100, 0];
    let error = device
        .launch(SUM, GRID, &[KernelArgument::uints(&layout), KernelArgument::read(&values)])
        .expect_err("too few");
    assert_eq!(error, DeviceError::ArgumentCount { kernel: "self_test_sum", taken: 3, passed: 2 });
    let arguments =
        [KernelArgument::uints(&layout[..1]), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    let error = device.launch(SUM, GRID, &arguments).expect_err("too small");
    assert_eq!(error, DeviceError::ArgumentSize { kernel: "self_test_sum", index: 0, taken: 8, passed: 4 });
    let arguments = [KernelArgument::uints(&layout), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    let error = device.launch(SUM, LaunchDims { lanes: 256, ..GRID }, &arguments).expect_err("compiled for 128");
    assert!(matches!(error, DeviceError::LaunchDims { asked: 256, allowed: 128, .. }), "{error}");
    let error = device.launch(Named(&MODULE, "missing"), GRID, &[]).expect_err("not there");
    assert_eq!(error, DeviceError::NoKernel { module: "self_test", kernel: "missing" });
    let error = device.prepare(Named(&BAD, "any")).expect_err("no PTX");
    let words = "the kernels `bad` did not compile: an error (CUDA_ERROR_INVALID_PTX)\nline 1: not PTX";
    assert_eq!(error.to_string(), words);
    let options = OpenOptions { precision: Some(Precision::Single), untested: true, ..OpenOptions::default() };
    let single = Device::open_with(Backend::Cuda, 0, &options).expect("the stand-in is there");
    assert!(matches!(single.prepare(SUM), Err(DeviceError::NoKernels { precision: Precision::Single, .. })));
    // More than 48 KB of shared memory is allowed, for the kernel was told so.
    device.launch(SUM, LaunchDims { shared_reals: 10_000, ..GRID }, &arguments).expect("80 KB of 100");
    device.synchronize().expect("sound");
}

#[test]
fn a_crash_stops_the_device_object() {
    if !in_stand_in("a_crash_stops_the_device_object", &[("STAND_IN_CRASH", "self_test_sum")]) {
        return;
    }
    let options = OpenOptions { untested: true, ..OpenOptions::default() };
    let device = Device::open_with(Backend::Cuda, 0, &options).expect("the stand-in is there");
    let values = device.zeroed::<f64>(200).expect("fits");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let arguments = [KernelArgument::uints(&[100, 0]), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    device.launch(SUM, GRID, &arguments).expect("crashes later");
    let error = sums.download().expect_err("crashed");
    let words = "the device stopped: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS) (in or before kernel \
                 `self_test_sum`)";
    assert_eq!(error.to_string(), words);
    assert_eq!(device.upload(&[1.0]).expect_err("stopped"), error);
    assert_eq!(device.memory().expect_err("stopped"), error);
}

#[test]
fn no_device_no_driver_and_an_old_device_are_told_apart() {
    let name = "no_device_no_driver_and_an_old_device_are_told_apart";
    if !stand_in::is_child() {
        in_stand_in(name, &[("STAND_IN_DEVICES", "0")]);
        in_stand_in(name, &[("STAND_IN_FAIL", "1")]);
        in_stand_in(name, &[("STAND_IN_OLD", "1")]);
        return;
    }
    let line = ns_device::probe()[0].to_string();
    if std::env::var_os("STAND_IN_FAIL").is_some() {
        assert_eq!(line, "cuda: no NVIDIA driver was found (an error (CUDA_ERROR_OF_THE_STAND_IN))");
    } else if std::env::var_os("STAND_IN_OLD").is_some() {
        let problem = "cuda device 0 has compute capability 6.0, the kernels need 7.0";
        assert!(line.ends_with(problem), "{line}");
        assert_eq!(Device::open(Backend::Cuda, 0).expect_err("too old").to_string(), problem);
    } else {
        assert_eq!(line, "cuda: no cuda device was found");
    }
}

/// Memory that this test allocates as another library would, in the device's primary context.
struct Other {
    address: u64,
    stream: cudarc::driver::sys::CUstream,
}

#[expect(unsafe_code, reason = "another library's side of the driver interface")]
impl Other {
    fn new(bytes: usize) -> Other {
        use cudarc::driver::result;
        // SAFETY: an open device has made its context current in this thread.
        let address = unsafe { result::malloc_sync(bytes) }.expect("it fits");
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).expect("a context is current");
        Other { address, stream }
    }

    /// Asks for a copy, which the stand-in makes at the next wait for the stream.
    fn upload(&self, numbers: &[f64]) {
        // SAFETY: the memory has this size, and the test keeps `numbers` until the stream has been
        // waited for.
        unsafe { cudarc::driver::result::memcpy_htod_async(self.address, numbers, self.stream) }.expect("a right copy");
    }

    fn problem(&self, device: &Device, offset: u64, length: usize) -> Option<&'static str> {
        // SAFETY: nothing is launched with what this finds.
        match unsafe { device.external_buffer::<f64>(self.address.wrapping_add(offset), length) } {
            Ok(_) => None,
            Err(DeviceError::ExternalBuffer { problem, .. }) => Some(problem),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
#[expect(unsafe_code, reason = "another library's memory is handed over")]
fn memory_of_another_library_is_read_when_its_stream_is_done() {
    if !in_stand_in("memory_of_another_library_is_read_when_its_stream_is_done", &[]) {
        return;
    }
    let device = open();
    let (numbers, other) = (vec![2.0; 200], Other::new(1600));
    other.upload(&numbers);
    // SAFETY: the memory and the stream are of this device's context and live until the end of the
    // test.
    let memory = unsafe {
        device.wait_for_stream(other.stream as u64).and_then(|()| device.external_buffer(other.address, 200))
    };
    let memory = memory.expect("memory of the device");
    let mut sums = device.zeroed::<f64>(2).expect("fits");
    let arguments = [
        KernelArgument::uints(&[100, 0]),
        KernelArgument::read_external::<f64>(&memory),
        KernelArgument::write(&mut sums),
    ];
    device.launch(SUM, GRID, &arguments).expect("a right launch");
    assert_eq!(sums.download().expect("sound"), [200.0, 200.0]);
    // SAFETY: CUDA's default stream.
    unsafe { device.wait_for_stream(0) }.expect("there is one");
}

#[test]
fn wrong_addresses_are_errors() {
    if !in_stand_in("wrong_addresses_are_errors", &[]) {
        return;
    }
    let device = open();
    let other = Other::new(1600);
    assert_eq!(other.problem(&device, 0, 200), None);
    assert_eq!(other.problem(&device, 800, 100), None);
    assert_eq!(other.problem(&device, 0, 0), None);
    assert_eq!(other.problem(&device, 800, 101), Some("it reaches past the end of its allocation"));
    assert_eq!(other.problem(&device, 4, 1), Some("it is not aligned"));
    assert_eq!(other.problem(&device, 0, usize::MAX), Some("it reaches past the end of all memory"));
    assert_eq!(other.problem(&device, other.address.wrapping_neg(), 1), Some("it is null"));
    let on_host = std::ptr::from_ref(&other.address) as u64;
    assert_eq!(other.problem(&device, on_host.wrapping_sub(other.address), 1), Some("the driver does not know it"));
}

#[test]
fn memory_of_another_device_is_refused() {
    if in_stand_in("memory_of_another_device_is_refused", &[("STAND_IN_ELSEWHERE", "1")]) {
        let device = open();
        assert_eq!(Other::new(80).problem(&device, 0, 1), Some("it is another device's"));
    }
}

/// PyTorch's expandable segments are of no context, and an allocation there says nothing of its
/// neighbours.
#[test]
fn memory_of_no_context_is_held_to_its_device_only() {
    if in_stand_in("memory_of_no_context_is_held_to_its_device_only", &[("STAND_IN_POOLED", "1")]) {
        let device = open();
        assert_eq!(Other::new(80).problem(&device, 0, 1000), None);
    }
}
