//! The host as a device: launches run at once, by `emulation/runtime.cpp`, under rules that real
//! devices don't enforce.

use crate::driver::{Driver, DriverError, Handle, LoadedKernel, OpenedDevice, RawArgument};
use crate::kernel::EmulatedLaunch;
use crate::{
    Backend, DeviceError, DeviceLimits, DeviceMemory, DeviceProperties, EmulationOptions, KernelModule, LaneSchedule,
    LaunchDims, OpenOptions, Precision,
};
use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

mod record;

/// Lanes of a block; real devices have no more.
const MAX_LANES: u32 = 1024;
/// As CUDA's allocations are aligned.
const ALIGNMENT: usize = 256;

/// `emulation::Failure` of `emulation/launch.h`.
#[repr(C)]
struct Failure {
    failed: u32,
    message: [c_char; 508],
}

struct Emulation {
    options: EmulationOptions,
    precision: Precision,
    used_bytes: AtomicU64,
    opened: Instant,
    record_to: Option<PathBuf>,
}

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    Ok(vec![properties(Precision::Double, &EmulationOptions::default())])
}

pub(crate) fn open(index: usize, options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    if index != 0 {
        return Err(DeviceError::NoDevice { backend: Backend::Emulated, index, n_devices: 1 });
    }
    let precision = options.precision.unwrap_or(Precision::Double);
    let from_environment = || std::env::var_os("NEXTSTAT_RECORD_LAUNCHES").map(PathBuf::from);
    let driver = Emulation {
        record_to: options.emulation.record_to.clone().or_else(from_environment),
        options: options.emulation.clone(),
        precision,
        used_bytes: AtomicU64::new(0),
        opened: Instant::now(),
    };
    let properties = properties(precision, &options.emulation);
    Ok(OpenedDevice { driver: Box::new(driver), properties, precision })
}

/// Returns the limits of Metal for single precision, those of a recent NVIDIA GPU for double
/// precision.
fn properties(precision: Precision, options: &EmulationOptions) -> DeviceProperties {
    let lanes = match options.schedule {
        LaneSchedule::Ascending => "fibers, ascending",
        LaneSchedule::Descending => "fibers, descending",
        LaneSchedule::Shuffled => "fibers, shuffled",
        LaneSchedule::Threads => "threads",
    };
    let shared_bytes = match precision {
        Precision::Double => 227 << 10,
        Precision::Single => 32 << 10,
    };
    DeviceProperties {
        name: format!("emulation on the host ({lanes})"),
        precisions: vec![Precision::Double, Precision::Single],
        memory_bytes: options.memory_bytes,
        compute_capability: None,
        double_flops: None,
        is_processor: false,
        limits: DeviceLimits { lanes: MAX_LANES, shared_bytes, constants_bytes: 3840 },
    }
}

fn layout(bytes: usize) -> Result<Layout, DriverError> {
    Layout::from_size_align(bytes, ALIGNMENT).map_err(|error| DriverError {
        operation: "allocation",
        detail: error.to_string(),
        fatal: false,
    })
}

fn address(block: Handle, offset: usize) -> *mut u8 {
    (block as usize + offset) as *mut u8
}

#[expect(unsafe_code, reason = "device memory is the host's, reached by address as on a device")]
impl Driver for Emulation {
    fn memory(&self) -> Result<DeviceMemory, DriverError> {
        let total = self.options.memory_bytes;
        Ok(DeviceMemory { free: total.saturating_sub(self.used_bytes.load(Ordering::Relaxed)), total })
    }

    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, DriverError> {
        let layout = layout(bytes)?;
        // SAFETY: classes of the pool are never empty.
        let block = unsafe { std::alloc::alloc(layout) };
        if block.is_null() {
            return Ok(None);
        }
        // SAFETY: just allocated with this size. All bits set is NaN, which reveals reads of
        // unwritten memory.
        unsafe { block.write_bytes(0xff, bytes) };
        self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(Some(block as usize as Handle))
    }

    fn reused(&self, block: Handle, bytes: usize) {
        // SAFETY: the pool owns the block, which has this size, and no buffer uses it.
        unsafe { address(block, 0).write_bytes(0xff, bytes) };
    }

    fn free(&self, block: Handle, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: the pool frees each block of `allocate` once, with the size of its
            // allocation.
            unsafe { std::alloc::dealloc(address(block, 0), layout) };
            self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    fn zero(&self, block: Handle, bytes: usize) -> Result<(), DriverError> {
        // SAFETY: a buffer owns its block and stays within its bytes.
        unsafe { address(block, 0).write_bytes(0, bytes) };
        Ok(())
    }

    fn check_external(&self, _address: Handle, _bytes: usize) -> Result<Option<&'static str>, DriverError> {
        Ok(None)
    }

    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DriverError> {
        // SAFETY: the buffer has checked the range, and no slice of the host overlaps a block.
        unsafe { address(block, offset).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DriverError> {
        // SAFETY: as for `upload`; blocks are filled when they are allocated.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(address(block, offset), to.len()) };
        Ok(())
    }

    fn load(&self, module: &'static KernelModule) -> Result<(Handle, String), DeviceError> {
        if module.emulated.is_empty() {
            return Err(DeviceError::NoKernels {
                module: module.name,
                backend: Backend::Emulated,
                precision: self.precision,
            });
        }
        Ok((0, String::new()))
    }

    fn kernel(
        &self,
        module: &'static KernelModule,
        _loaded: Handle,
        name: &'static str,
    ) -> Result<LoadedKernel, DeviceError> {
        let index = module.emulated.iter().position(|kernel| kernel.name == name);
        let index = index.ok_or(DeviceError::NoKernel { module: module.name, kernel: name })?;
        let kernel: &'static crate::EmulatedKernel = &module.emulated[index];
        Ok(LoadedKernel {
            handle: std::ptr::from_ref(kernel) as usize as Handle,
            name,
            max_lanes: MAX_LANES,
            parameters: None,
        })
    }

    fn launch(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        _shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), DriverError> {
        // KernelConstants as words, which are aligned as any struct of uints and reals must be.
        let constants: Vec<Vec<u64>> = arguments.iter().map(constant_words).collect();
        let addresses: Vec<*mut c_void> = arguments
            .iter()
            .zip(&constants)
            .map(|(argument, words)| match argument {
                RawArgument::KernelConstants(_) => words.as_ptr() as *mut c_void,
                RawArgument::Buffer { handle, .. } => address(*handle, 0).cast(),
            })
            .collect();
        let bytes: Vec<u64> = arguments.iter().map(|argument| argument.constants_bytes() as u64).collect();
        let mut failure = Failure { failed: 0, message: [0; 508] };
        let launch = EmulatedLaunch {
            blocks: grid.blocks,
            lanes: grid.lanes,
            shared_reals: grid.shared_reals,
            schedule: self.options.schedule as u32,
            seed: self.options.seed,
            host_threads: self.options.host_threads,
            n_arguments: arguments.len() as u32,
            failure: (&raw mut failure).cast(),
            argument_bytes: bytes.as_ptr(),
        };
        let recording = self
            .record_to
            .as_ref()
            .map(|folder| record::Recording::begin(folder, kernel.name, self.precision, grid, arguments));
        // SAFETY: the handle is the address of a `static`'s item, made by `kernel`.
        let function = unsafe { &*(kernel.handle as usize as *const crate::EmulatedKernel) }.function(self.precision);
        // SAFETY: `launch` and the arguments live until the call returns, which is when the kernel
        // has ended; the runtime checks their number and the sizes of constants;
        // `EmulatedKernel::new` requires a sound kernel.
        unsafe { function(&raw const launch, addresses.as_ptr()) };
        if failure.failed != 0 {
            // SAFETY: the runtime ends its message with a zero.
            let message = unsafe { CStr::from_ptr(failure.message.as_ptr()) };
            return Err(DriverError {
                operation: "launch",
                detail: message.to_string_lossy().into_owned(),
                fatal: true,
            });
        }
        recording.map_or(Ok(()), |recording| recording.end(arguments)).map_err(|error| DriverError {
            operation: "recording a launch",
            detail: error.to_string(),
            fatal: false,
        })
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        Ok(())
    }

    fn record(&self) -> Result<Handle, DriverError> {
        Ok(self.opened.elapsed().as_nanos() as Handle)
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, DriverError> {
        Ok(Duration::from_nanos(to.saturating_sub(from)))
    }

    fn forget(&self, _event: Handle) {}
}

fn constant_words(argument: &RawArgument<'_>) -> Vec<u64> {
    let RawArgument::KernelConstants(bytes) = argument else { return Vec::new() };
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}
