//! Compares a device with the host before its first use: sums, products, functions, special values,
//! shuffles, barriers.
//!
//! Expected values are computed here in f64 from inputs rounded to the precision of the device.
//! Tolerances are multiples of the epsilon of that precision: the documented errors of functions
//! (CUDA 2 ulp in f64; Metal 16 ulp for `pow`), with a margin.

use crate::{
    Backend, Buffer, Device, DeviceError, Kernel, KernelArgument, KernelModule, LaneSchedule, LaunchDims, OpenOptions,
    Precision,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The kernels of `kernels/self_test.h`.
pub(crate) static MODULE: &KernelModule = &KernelModule {
    name: "self_test",
    ptx_f64: Some(include_str!("../kernels/self_test.f64.ptx")),
    ptx_f32: Some(include_str!("../kernels/self_test.f32.ptx")),
    source: Some(concat!(include_str!("../kernels/dialect.h"), include_str!("../kernels/self_test.h"))),
    emulated: crate::emulated_kernels![
        self_test_sum,
        self_test_product,
        self_test_functions,
        self_test_special,
        self_test_shuffle,
        self_test_visibility,
    ],
};

/// The failed check of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfTestFailure {
    /// The check that failed.
    pub check: &'static str,
    /// The value with the largest error.
    pub value: f64,
    /// The right value.
    pub expected: f64,
    /// The largest allowed error.
    pub tolerance: f64,
}

impl fmt::Display for SelfTestFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SelfTestFailure { check, value, expected, tolerance } = self;
        write!(formatter, "{check}: {value} instead of {expected}, off by {:.1e}", (value - expected).abs())?;
        write!(formatter, " where {tolerance:.1e} is allowed")
    }
}

/// A check, and the kernel that it launches.
#[derive(Debug, Clone, Copy)]
struct Check {
    module: &'static KernelModule,
    kernel: &'static str,
    what: &'static str,
}

impl Kernel for Check {
    fn module(&self) -> &'static KernelModule {
        self.module
    }

    fn name(&self) -> &'static str {
        self.kernel
    }
}

type Verdicts = HashMap<(Backend, usize, Precision, LaneSchedule), Result<(), DeviceError>>;
static VERDICTS: LazyLock<Mutex<Verdicts>> = LazyLock::new(Mutex::default);

/// Returns the result of the self-test of a device, which runs the first time in a process.
pub(crate) fn once(device: &Device, options: &OpenOptions) -> Result<(), DeviceError> {
    let key = (device.backend(), device.index(), device.precision(), options.emulation.schedule);
    let known = VERDICTS.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(verdict) = known {
        return verdict;
    }
    let verdict = run(device, MODULE);
    // Too little memory, or the failure of a driver, is not a result.
    if matches!(verdict, Ok(()) | Err(DeviceError::Refused { .. })) {
        VERDICTS.lock().unwrap_or_else(PoisonError::into_inner).insert(key, verdict.clone());
    }
    verdict
}

/// Returns the failed self-test of a device earlier in this process, or `None`.
pub(crate) fn refusal(backend: Backend, index: usize) -> Option<DeviceError> {
    let verdicts = VERDICTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut of_device = verdicts.iter().filter(|(key, _)| (key.0, key.1) == (backend, index));
    of_device.find_map(|(_, verdict)| verdict.clone().err())
}

/// Runs all checks, with the kernels of `module`.
pub(crate) fn run(device: &Device, module: &'static KernelModule) -> Result<(), DeviceError> {
    match device.precision() {
        Precision::Double => run_in::<f64>(device, module),
        Precision::Single => run_in::<f32>(device, module),
    }
}

fn run_in<T: Real>(device: &Device, module: &'static KernelModule) -> Result<(), DeviceError> {
    let check = |kernel, what| Check { module, kernel, what };
    special::<T>(device, check("self_test_special", "special values"))?;
    shuffle::<T>(device, check("self_test_shuffle", "shuffles within a warp"))?;
    sum::<T>(device, check("self_test_sum", "sum over a block"))?;
    product::<T>(device, check("self_test_product", "matrix-vector product"))?;
    visibility::<T>(device, check("self_test_visibility", "barrier over global memory"))?;
    functions::<T>(device, check("self_test_functions", "functions"))
}

/// f64 or f32: the device's `real`.
trait Real: crate::BufferItem {
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn value(self) -> f64 {
        self
    }
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn value(self) -> f64 {
        f64::from(self)
    }
}

/// Returns reproducible numbers in (0, 1) that are exact in every precision.
fn numbers<T: Real>(n: usize, mut seed: u32) -> Vec<T> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::of(f64::from((seed >> 12) | 1) / f64::from(1u32 << 20))
    };
    (0..n).map(|_| next()).collect()
}

fn special<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    let zero = device.upload(&[T::of(0.0)])?;
    let mut special = device.zeroed::<T>(8)?;
    let grid = LaunchDims { blocks: 1, lanes: 32, shared_reals: 0 };
    device.launch(check, grid, &[KernelArgument::read(&zero), KernelArgument::write(&mut special)])?;
    // NaN and infinity are not finite, NaN is not itself, e^-inf, 1/inf, a tiny square, fused, in
    // the order written.
    compare(device, check.what, &special, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 0.0], 0.0)
}

fn shuffle<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    let (blocks, lanes) = (3, 96);
    let mut exchanged = device.zeroed::<T>(blocks * lanes * 5)?;
    let grid = LaunchDims { blocks: blocks as u32, lanes: lanes as u32, shared_reals: 0 };
    device.launch(check, grid, &[KernelArgument::write(&mut exchanged)])?;
    let expected: Vec<f64> = (0..blocks * lanes)
        .flat_map(|me| (0..5).map(move |step| ((me / lanes) * lanes + ((me % lanes) ^ (1 << step))) as f64))
        .collect();
    compare(device, check.what, &exchanged, &expected, 0.0)
}

fn sum<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    let (blocks, n) = (5, 1000);
    let values = numbers::<T>(blocks * n, 1);
    let expected: Vec<f64> = values.chunks(n).map(|block| block.iter().map(|value| value.value()).sum()).collect();
    let values = device.upload(&values)?;
    let mut sums = device.zeroed::<T>(blocks)?;
    let grid = LaunchDims { blocks: blocks as u32, lanes: 128, shared_reals: 4 };
    let layout = [n as u32, 0];
    let arguments = [KernelArgument::uints(&layout), KernelArgument::read(&values), KernelArgument::write(&mut sums)];
    device.launch(check, grid, &arguments)?;
    // 8 values per lane, 5 steps of a shuffle, 4 warps.
    compare(device, check.what, &sums, &expected, 20.0)
}

fn product<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    let (rows, columns) = (300, 37);
    let (matrix, vector) = (numbers::<T>(rows * columns, 2), numbers::<T>(columns, 3));
    let row = |row: &[T]| row.iter().zip(&vector).map(|(entry, factor)| entry.value() * factor.value()).sum();
    let expected: Vec<f64> = matrix.chunks(columns).map(row).collect();
    let (matrix, vector) = (device.upload(&matrix)?, device.upload(&vector)?);
    let mut product = device.zeroed::<T>(rows)?;
    let layout = [rows as u32, columns as u32];
    let arguments = [
        KernelArgument::uints(&layout),
        KernelArgument::read(&matrix),
        KernelArgument::read(&vector),
        KernelArgument::write(&mut product),
    ];
    device.launch(check, LaunchDims { blocks: 3, lanes: 64, shared_reals: columns as u32 }, &arguments)?;
    compare(device, check.what, &product, &expected, 37.0)
}

fn visibility<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    let (blocks, lanes, rounds) = (4, 128, 50);
    let mut trace = device.zeroed::<T>(blocks * lanes)?;
    let layout = [rounds as u32, 0];
    let arguments = [KernelArgument::uints(&layout), KernelArgument::write(&mut trace)];
    device.launch(check, LaunchDims { blocks: blocks as u32, lanes: lanes as u32, shared_reals: 0 }, &arguments)?;
    let expected: Vec<f64> =
        (0..blocks).flat_map(|_| (0..lanes).map(|lane| ((lane + rounds) % lanes + rounds) as f64)).collect();
    compare(device, check.what, &trace, &expected, 0.0)
}

/// A function with its name and its tolerance in epsilons.
type Function = (&'static str, fn(f64) -> f64, f64);

const FUNCTIONS: [Function; 8] = [
    ("logarithm", f64::ln, 8.0),
    ("exponential", |x| (-x).exp(), 8.0),
    ("square root", f64::sqrt, 1.0),
    ("power", |x| x.powf(1.5), 32.0),
    ("sine", f64::sin, 8.0),
    ("cosine", f64::cos, 8.0),
    ("division", f64::recip, 1.0),
    ("floor and sign", |x| -x.min(1000.0).floor(), 0.0),
];

fn functions<T: Real>(device: &Device, check: Check) -> Result<(), DeviceError> {
    // From 1/64 to 79, where e^-x is still a normal number in single precision; 1 and its
    // neighbourhood included.
    let below = (1..256).map(|i| f64::from(i) / 256.0 + 1.0 / 64.0).filter(|&x| x < 1.0);
    let above = (0..256).map(|i| 1.0 + f64::from(i * i) / 837.0);
    let x: Vec<T> = below.chain(above).map(T::of).collect();
    let n = x.len();
    let inputs = device.upload(&x)?;
    let mut values = device.zeroed::<T>(8 * n)?;
    let layout = [n as u32, 0];
    let arguments = [KernelArgument::uints(&layout), KernelArgument::read(&inputs), KernelArgument::write(&mut values)];
    device.launch(check, LaunchDims { blocks: 2, lanes: 128, shared_reals: 0 }, &arguments)?;
    let mut of_function = vec![T::default(); n];
    for (index, (what, function, epsilons)) in FUNCTIONS.into_iter().enumerate() {
        values.download_at(index * n, &mut of_function)?;
        let expected: Vec<f64> = x.iter().map(|x| function(x.value())).collect();
        require_close(device, what, &of_function, &expected, epsilons)?;
    }
    Ok(())
}

fn compare<T: Real>(
    device: &Device,
    check: &'static str,
    values: &Buffer<T>,
    expected: &[f64],
    epsilons: f64,
) -> Result<(), DeviceError> {
    require_close(device, check, &values.download()?, expected, epsilons)
}

/// Returns an error if a value is off by more than `epsilons` epsilons, relative to itself or to 1
/// (sines near their zeros).
fn require_close<T: Real>(
    device: &Device,
    check: &'static str,
    values: &[T],
    expected: &[f64],
    epsilons: f64,
) -> Result<(), DeviceError> {
    let off = |value: f64, expected: f64, tolerance: f64| {
        let excess = (value - expected).abs() - tolerance;
        if excess.is_nan() { f64::INFINITY } else { excess }
    };
    let tolerance = |expected: f64| epsilons * device.precision().epsilon() * expected.abs().max(1e-2);
    let pairs = values.iter().map(|value| value.value()).zip(expected.iter().copied());
    let worst = pairs.max_by(|a, b| off(a.0, a.1, tolerance(a.1)).total_cmp(&off(b.0, b.1, tolerance(b.1))));
    match worst {
        Some((value, expected)) if off(value, expected, tolerance(expected)) > 0.0 => {
            let failure = SelfTestFailure { check, value, expected, tolerance: tolerance(expected) };
            Err(DeviceError::Refused { backend: device.backend(), index: device.index(), failure })
        }
        _ => Ok(()),
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use super::*;

    /// The module with the sum that lacks a barrier under the sum's name.
    static UNSOUND: KernelModule = KernelModule {
        name: "unsound",
        ptx_f64: None,
        ptx_f32: None,
        source: None,
        emulated: &[MODULE.emulated[3], MODULE.emulated[4], renamed(BROKEN[0])],
    };
    const BROKEN: &[crate::EmulatedKernel] = crate::emulated_kernels![broken_sum];

    const fn renamed(kernel: crate::EmulatedKernel) -> crate::EmulatedKernel {
        crate::EmulatedKernel { name: "self_test_sum", ..kernel }
    }

    #[test]
    fn a_wrong_device_is_refused_with_the_check_and_the_size_of_the_error() {
        let options = OpenOptions { untested: true, ..OpenOptions::default() };
        let device = Device::open_with(Backend::Emulated, 0, &options).expect("the emulation is built in");
        let error = run(&device, &UNSOUND).expect_err("a sum without a barrier is wrong");
        let message = error.to_string();
        assert!(message.starts_with("emulated device 0 failed its self-test: sum over a block: "));
        assert!(message.ends_with("is allowed"), "{message}");
    }
}
