//! One open device: memory, launches in order, events, and its state after a crash.

use crate::counters::AtomicCounters;
use crate::driver::{Driver, DriverError, Handle, LoadedKernel, OpenedDevice, RawArgument};
use crate::pool::{Pool, PoolStatistics, class_of};
use crate::{
    Backend, Buffer, BufferItem, DeviceCounters, DeviceError, DeviceMemory, DeviceProperties, Kernel, KernelArgument,
    KernelModule, LaunchDims, LaunchLimit,
};
use crate::{Precision, WARP, cuda, emulated, metal, opencl, self_test};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Options for opening a device.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The precision of kernels; by default the best of the device.
    pub precision: Option<Precision>,
    /// Skips the self-test, to measure the test itself or to examine a device that fails it.
    pub untested: bool,
    /// Options of the emulation; other backends ignore them.
    pub emulation: EmulationOptions,
}

/// The order in which the emulation runs lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LaneSchedule {
    /// Fibers, lane 0 first.
    #[default]
    Ascending,
    /// Fibers, the last lane first.
    Descending,
    /// Fibers, in another order after every barrier.
    Shuffled,
    /// A thread per lane. A broken rule aborts the process.
    Threads,
}

/// Options of the emulation of a device by the host.
#[derive(Debug, Clone)]
pub struct EmulationOptions {
    /// The order of lanes.
    pub schedule: LaneSchedule,
    /// The seed of the shuffled order.
    pub seed: u64,
    /// The number of threads for blocks whose lanes are fibers.
    pub host_threads: u32,
    /// The memory that the emulated device reports.
    pub memory_bytes: u64,
    /// A folder to record every launch in, for replay under sanitizers; by default that of the
    /// environment variable `NEXTSTAT_RECORD_LAUNCHES`.
    pub record_to: Option<PathBuf>,
}

impl Default for EmulationOptions {
    fn default() -> EmulationOptions {
        EmulationOptions {
            schedule: LaneSchedule::default(),
            seed: 1,
            host_threads: 1,
            memory_bytes: 8 << 30,
            record_to: None,
        }
    }
}

/// The log of the compiler of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLog {
    /// The module.
    pub module: &'static str,
    /// The log, often empty.
    pub log: String,
}

/// An open device. Clones are the same device.
#[derive(Debug, Clone)]
pub struct Device {
    shared: Arc<DeviceState>,
}

/// The state that a device shares with its buffers and events.
pub(crate) struct DeviceState {
    driver: Box<dyn Driver>,
    backend: Backend,
    index: usize,
    precision: Precision,
    properties: DeviceProperties,
    pool: Mutex<Pool>,
    counting: AtomicCounters,
    modules: Mutex<Modules>,
    poison: OnceLock<DeviceError>,
}

/// The modules and kernels loaded so far; a module is identified by its address.
#[derive(Default)]
struct Modules {
    loaded: HashMap<usize, Handle>,
    kernels: HashMap<(usize, &'static str), LoadedKernel>,
    logs: Vec<ModuleLog>,
    last_launched: Option<&'static str>,
}

impl Device {
    /// Opens a device in its best precision. It must pass its self-test the first time in a
    /// process.
    pub fn open(backend: Backend, index: usize) -> Result<Device, DeviceError> {
        Device::open_with(backend, index, &OpenOptions::default())
    }

    /// Opens a device with `options`.
    pub fn open_with(backend: Backend, index: usize, options: &OpenOptions) -> Result<Device, DeviceError> {
        let OpenedDevice { driver, properties, precision } = match backend {
            Backend::Cuda => cuda::open(index, options)?,
            Backend::Metal => metal::open(index, options)?,
            Backend::OpenCl => opencl::open(index, options)?,
            Backend::Emulated => emulated::open(index, options)?,
        };
        let shared = DeviceState {
            driver,
            backend,
            index,
            precision,
            properties,
            pool: Mutex::default(),
            counting: AtomicCounters::default(),
            modules: Mutex::default(),
            poison: OnceLock::new(),
        };
        let device = Device { shared: Arc::new(shared) };
        if !options.untested {
            self_test::once(&device, options)?;
            device.trim();
            device.reset_counters();
        }
        Ok(device)
    }

    /// Returns the backend.
    pub fn backend(&self) -> Backend {
        self.shared.backend
    }

    /// Returns its number among the devices of its backend.
    pub fn index(&self) -> usize {
        self.shared.index
    }

    /// Returns the precision of its kernels.
    pub fn precision(&self) -> Precision {
        self.shared.precision
    }

    /// Returns its properties.
    pub fn properties(&self) -> &DeviceProperties {
        &self.shared.properties
    }

    pub(crate) fn shared(&self) -> Arc<DeviceState> {
        Arc::clone(&self.shared)
    }

    /// Returns `true` if no kernel has crashed on it, so that it can be used.
    pub fn is_sound(&self) -> bool {
        self.shared.is_sound().is_ok()
    }

    /// Returns its memory now. Memory that this object keeps for reuse counts as free.
    pub fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.shared.memory()
    }

    /// Runs the self-test, which compares the device with the host by its own kernels.
    pub fn self_test(&self) -> Result<(), DeviceError> {
        self_test::run(self, self_test::MODULE)
    }

    /// Returns a buffer of zeros.
    pub fn zeroed<T: BufferItem>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        let mut buffer = self.uninitialised(length)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Returns a buffer with unspecified contents, for data that a kernel writes before it is read.
    pub fn uninitialised<T: BufferItem>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        let bytes = length.checked_mul(size_of::<T>()).unwrap_or(usize::MAX / 2);
        let (block, class) = self.shared.allocate(bytes)?;
        Ok(Buffer::new(Arc::clone(&self.shared), block, class, length))
    }

    /// Returns a buffer with a copy of `items`.
    pub fn upload<T: BufferItem>(&self, items: &[T]) -> Result<Buffer<T>, DeviceError> {
        let mut buffer = self.uninitialised(items.len())?;
        buffer.upload(items)?;
        Ok(buffer)
    }

    /// Checks that `bytes` fit into the free memory, before any work is done.
    pub fn check_fits(&self, bytes: u64) -> Result<(), DeviceError> {
        let DeviceMemory { free, total } = self.memory()?;
        if bytes <= free { Ok(()) } else { Err(DeviceError::OutOfMemory { asked: bytes, free, total }) }
    }

    /// Starts a kernel and returns; the device works in the order of the calls.
    ///
    /// # Errors
    ///
    /// Dimensions beyond the limits of device or kernel, a module that does not compile (the launch
    /// of its first kernel compiles it), a buffer of another device. Errors inside the kernel
    /// appear at the next wait: a download or [`synchronize`](Device::synchronize).
    pub fn launch(
        &self,
        kernel: impl Kernel,
        grid: LaunchDims,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        let shared = &*self.shared;
        shared.is_sound()?;
        let loaded = shared.loaded(kernel.module(), kernel.name())?;
        let shared_bytes = shared.check(&loaded, grid, arguments)?;
        let raw: Vec<RawArgument<'_>> = arguments.iter().map(|argument| argument.raw).collect();
        shared.counting.launch(grid.blocks);
        shared.sound(shared.driver.launch(&loaded, grid, shared_bytes, &raw))
    }

    /// Compiles a kernel's module and finds the kernel, as the first launch would.
    pub fn prepare(&self, kernel: impl Kernel) -> Result<(), DeviceError> {
        self.shared.is_sound()?;
        self.shared.loaded(kernel.module(), kernel.name()).map(|_| ())
    }

    /// Returns the largest number of lanes, in whole warps, of a block of this kernel; compiles its
    /// module as the first launch would.
    pub fn max_lanes(&self, kernel: impl Kernel) -> Result<u32, DeviceError> {
        self.shared.is_sound()?;
        let loaded = self.shared.loaded(kernel.module(), kernel.name())?;
        Ok(loaded.max_lanes.min(self.shared.properties.limits.lanes) / WARP * WARP)
    }

    /// Waits for all work submitted so far.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.shared.is_sound()?;
        self.shared.counting.synchronization();
        self.shared.sound(self.shared.driver.synchronize())
    }

    /// Returns an event after all work submitted so far.
    pub fn record(&self) -> Result<DeviceEvent, DeviceError> {
        self.shared.is_sound()?;
        let handle = self.shared.sound(self.shared.driver.record())?;
        Ok(DeviceEvent { shared: Arc::clone(&self.shared), handle })
    }

    /// Returns the counters of its work.
    pub fn counters(&self) -> DeviceCounters {
        self.shared.counting.kernel_time(self.shared.driver.take_kernel_time());
        self.shared.counting.read()
    }

    /// Sets the counters to zero and returns their values before.
    pub fn reset_counters(&self) -> DeviceCounters {
        self.shared.counting.kernel_time(self.shared.driver.take_kernel_time());
        self.shared.counting.reset()
    }

    /// Returns the statistics of the memory that this object allocated.
    pub fn pool(&self) -> PoolStatistics {
        lock(&self.shared.pool).statistics()
    }

    /// Returns memory that is kept for reuse to the driver.
    pub fn trim(&self) {
        self.shared.trim();
    }

    /// Returns the compiler logs of the modules loaded so far.
    pub fn module_logs(&self) -> Vec<ModuleLog> {
        lock(&self.shared.modules).logs.clone()
    }
}

impl DeviceState {
    /// Checks that memory of another library belongs to this device.
    pub(crate) fn check_external(&self, address: Handle, bytes: usize) -> Result<(), DeviceError> {
        self.is_sound()?;
        match self.sound(self.driver.check_external(address, bytes))? {
            None => Ok(()),
            Some(problem) => Err(DeviceError::ExternalBuffer { address, problem }),
        }
    }

    pub(crate) fn wait_for_stream(&self, stream: Handle) -> Result<(), DeviceError> {
        self.is_sound()?;
        self.sound(self.driver.wait_for_stream(stream))
    }

    /// Converts the error of a driver; a fatal one poisons the device.
    fn sound<T>(&self, answer: Result<T, DriverError>) -> Result<T, DeviceError> {
        answer.map_err(|driver_error| {
            if !driver_error.fatal {
                return driver_error.into();
            }
            let kernel = lock(&self.modules).last_launched.unwrap_or("none").to_owned();
            self.poison.get_or_init(|| DeviceError::Poisoned { kernel, detail: driver_error.detail }).clone()
        })
    }

    fn is_sound(&self) -> Result<(), DeviceError> {
        self.poison.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.is_sound()?;
        let DeviceMemory { free, total } = self.sound(self.driver.memory())?;
        Ok(DeviceMemory { free: free + lock(&self.pool).statistics().pooled_bytes, total })
    }

    /// Returns a block of memory and its class: from the pool, from the driver, or from the driver
    /// after the pool was emptied.
    fn allocate(&self, bytes: usize) -> Result<(Handle, usize), DeviceError> {
        self.is_sound()?;
        let class = class_of(bytes);
        let pooled = lock(&self.pool).take(class);
        if let Some(block) = pooled {
            self.driver.reused(block, class);
            return Ok((block, class));
        }
        let mut block = self.ask_driver(class)?;
        if block.is_none() && lock(&self.pool).statistics().pooled_bytes > 0 {
            self.trim();
            block = self.ask_driver(class)?;
        }
        let Some(block) = block else {
            let DeviceMemory { free, total } = self.memory()?;
            return Err(DeviceError::OutOfMemory { asked: bytes as u64, free, total });
        };
        lock(&self.pool).add(class);
        Ok((block, class))
    }

    /// Allocates from the driver, unless it reports too little free memory: some drivers would page
    /// to the host instead.
    fn ask_driver(&self, class: usize) -> Result<Option<Handle>, DeviceError> {
        let DeviceMemory { free, .. } = self.sound(self.driver.memory())?;
        if class as u64 > free { Ok(None) } else { self.sound(self.driver.allocate(class)) }
    }

    fn trim(&self) {
        let blocks = lock(&self.pool).drain();
        for (class, block) in blocks {
            self.driver.free(block, class);
        }
    }

    pub(crate) fn release(&self, block: Handle, class: usize) {
        lock(&self.pool).give(class, block);
    }

    pub(crate) fn zero(&self, block: Handle, bytes: usize) -> Result<(), DeviceError> {
        self.is_sound()?;
        if bytes == 0 { Ok(()) } else { self.sound(self.driver.zero(block, bytes)) }
    }

    pub(crate) fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DeviceError> {
        self.is_sound()?;
        if from.is_empty() {
            return Ok(());
        }
        self.counting.upload(from.len());
        self.sound(self.driver.upload(from, block, offset))
    }

    pub(crate) fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        self.is_sound()?;
        if to.is_empty() {
            return Ok(());
        }
        self.counting.download(to.len());
        self.sound(self.driver.download(block, offset, to))
    }

    /// Returns a kernel that is ready for launch, after compiling it on first use.
    fn loaded(&self, module: &'static KernelModule, kernel: &'static str) -> Result<LoadedKernel, DeviceError> {
        let address = std::ptr::from_ref(module) as usize;
        let mut modules = lock(&self.modules);
        modules.last_launched = Some(kernel);
        if let Some(loaded) = modules.kernels.get(&(address, kernel)) {
            return Ok(loaded.clone());
        }
        let handle = match modules.loaded.get(&address) {
            Some(&handle) => handle,
            None => {
                let (handle, log) = self.driver.load(module)?;
                modules.logs.push(ModuleLog { module: module.name, log });
                modules.loaded.insert(address, handle);
                handle
            }
        };
        let loaded = self.driver.kernel(module, handle, kernel)?;
        modules.kernels.insert((address, kernel), loaded.clone());
        Ok(loaded)
    }

    /// Checks a launch against the limits. Returns the bytes of shared memory that it needs.
    fn check(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        arguments: &[KernelArgument<'_>],
    ) -> Result<usize, DeviceError> {
        let limits = self.properties.limits;
        let shared_bytes = grid.shared_reals as usize * self.precision.bytes();
        let constants: usize = arguments.iter().map(|argument| argument.raw.constants_bytes()).sum();
        let at_most = |limit, asked: u64, allowed: u64| {
            if asked <= allowed {
                Ok(())
            } else {
                Err(DeviceError::LaunchDims { kernel: kernel.name, limit, asked, allowed })
            }
        };
        // CUDA's and Metal's grids are 2^31 - 1 blocks at most.
        at_most(LaunchLimit::Blocks, u64::from(grid.blocks), i32::MAX as u64)?;
        at_most(LaunchLimit::Lanes, u64::from(grid.lanes), u64::from(limits.lanes.min(kernel.max_lanes)))?;
        at_most(LaunchLimit::SharedBytes, shared_bytes as u64, limits.shared_bytes as u64)?;
        at_most(LaunchLimit::ConstantsBytes, constants as u64, limits.constants_bytes as u64)?;
        if grid.blocks == 0 {
            return Err(DeviceError::LaunchDims {
                kernel: kernel.name,
                limit: LaunchLimit::Blocks,
                asked: 0,
                allowed: i32::MAX as u64,
            });
        }
        if grid.lanes == 0 || !grid.lanes.is_multiple_of(WARP) {
            let (limit, asked) = (LaunchLimit::LanesOfWholeWarps, u64::from(grid.lanes));
            let allowed = u64::from(limits.lanes.min(kernel.max_lanes));
            return Err(DeviceError::LaunchDims { kernel: kernel.name, limit, asked, allowed });
        }
        check_arguments(kernel, arguments)?;
        let own = std::ptr::from_ref(self) as usize;
        if arguments.iter().any(|argument| argument.device.is_some_and(|device| device != own)) {
            return Err(DeviceError::OtherDevice);
        }
        Ok(shared_bytes)
    }
}

/// Checks arguments against the kernel's parameters, if these are known: a driver would read past
/// their end.
fn check_arguments(kernel: &LoadedKernel, arguments: &[KernelArgument<'_>]) -> Result<(), DeviceError> {
    let Some(parameters) = &kernel.parameters else { return Ok(()) };
    let (kernel, passed) = (kernel.name, arguments.len());
    if parameters.len() != passed {
        return Err(DeviceError::ArgumentCount { kernel, taken: parameters.len(), passed });
    }
    let sizes = parameters.iter().zip(arguments.iter().map(|argument| argument.raw.constants_bytes())).enumerate();
    for (index, (&taken, passed)) in sizes {
        if taken != passed {
            return Err(DeviceError::ArgumentSize { kernel, index, taken, passed });
        }
    }
    Ok(())
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        self.trim();
    }
}

impl fmt::Debug for DeviceState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} ({}, {})", self.backend, self.index, self.properties.name, self.precision)
    }
}

/// A point in the work of a device.
#[derive(Debug)]
pub struct DeviceEvent {
    shared: Arc<DeviceState>,
    handle: Handle,
}

impl DeviceEvent {
    /// Returns the time that the device spent between an earlier event and this one. Waits for
    /// both.
    pub fn since(&self, earlier: &DeviceEvent) -> Result<Duration, DeviceError> {
        if !Arc::ptr_eq(&self.shared, &earlier.shared) {
            return Err(DeviceError::OtherDevice);
        }
        self.shared.is_sound()?;
        self.shared.sound(self.shared.driver.elapsed(earlier.handle, self.handle))
    }
}

impl Drop for DeviceEvent {
    fn drop(&mut self) {
        self.shared.driver.forget(self.handle);
    }
}

/// Locks a mutex, after a panic elsewhere too: no update here is left incomplete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
