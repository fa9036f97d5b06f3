//! Apple GPUs: the system's device, one queue, kernels compiled at run time in safe math mode.
//!
//! Launches are gathered in one command buffer, which is committed when the host waits, when an
//! event is recorded, or when it holds many. Memory is shared with the host: a copy is a wait and a
//! memcpy.

use crate::driver::{Driver, DriverError, Handle, LoadedKernel, OpenedDevice, RawArgument};
use crate::{
    Backend, DeviceError, DeviceLimits, DeviceMemory, DeviceProperties, KernelModule, LaunchDims, OpenOptions,
    Precision, WARP,
};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::{NSObjectProtocol, ProtocolObject};
use objc2_foundation::{NSProcessInfo, NSString};
use objc2_metal::{
    MTLBuffer, MTLCommandBuffer, MTLCommandEncoder, MTLCommandQueue, MTLCompileOptions, MTLComputeCommandEncoder,
    MTLComputePipelineState, MTLCreateSystemDefaultDevice, MTLDevice, MTLLanguageVersion, MTLLibrary,
    MTLMathFloatingPointFunctions, MTLMathMode, MTLResourceOptions, MTLSize,
};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

// `MTLCreateSystemDefaultDevice` needs it linked.
#[link(name = "CoreGraphics", kind = "framework")]
#[expect(unsafe_code, reason = "links a framework; declares nothing")]
unsafe extern "C" {}

type Object<T> = Retained<ProtocolObject<T>>;

/// Launches in one command buffer before it is handed to the GPU.
const BATCH: usize = 64;

pub(crate) fn physical_memory() -> Option<u64> {
    Some(NSProcessInfo::processInfo().physicalMemory())
}

struct Metal {
    device: Object<dyn MTLDevice>,
    queue: Object<dyn MTLCommandQueue>,
    work: Mutex<Work>,
}

/// A command buffer that takes launches.
struct Batch {
    commands: Object<dyn MTLCommandBuffer>,
    encoder: Object<dyn MTLComputeCommandEncoder>,
    launches: usize,
}

/// Submitted work that is not known to be done.
#[derive(Default)]
struct Work {
    open: Option<Batch>,
    /// Handed to the GPU, in order.
    committed: Vec<Object<dyn MTLCommandBuffer>>,
    /// The first error of any of them, which all later waits return.
    failed: Option<DriverError>,
}

// SAFETY: Metal's objects may be used from any thread, encoders by one at a time, which the mutex
// around `Work` sees to.
#[expect(unsafe_code, reason = "Objective-C objects")]
unsafe impl Send for Work {}

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    Ok(MTLCreateSystemDefaultDevice().iter().map(|device| properties(device)).collect())
}

pub(crate) fn open(index: usize, options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    let backend = Backend::Metal;
    if options.precision == Some(Precision::Double) {
        return Err(DeviceError::NoPrecision { backend, precision: Precision::Double });
    }
    let device = MTLCreateSystemDefaultDevice();
    let n_devices = usize::from(device.is_some());
    let Some(device) = device.filter(|_| index == 0) else {
        return Err(DeviceError::NoDevice { backend, index, n_devices });
    };
    let queue = device.newCommandQueue().ok_or_else(|| driver_error("making a queue", "Metal gave none"))?;
    let properties = properties(&device);
    let driver = Box::new(Metal { device, queue, work: Mutex::default() });
    Ok(OpenedDevice { driver, properties, precision: Precision::Single })
}

fn properties(device: &ProtocolObject<dyn MTLDevice>) -> DeviceProperties {
    DeviceProperties {
        name: device.name().to_string(),
        precisions: vec![Precision::Single],
        memory_bytes: device.recommendedMaxWorkingSetSize(),
        compute_capability: None,
        double_flops: None,
        is_processor: false,
        limits: DeviceLimits {
            lanes: device.maxThreadsPerThreadgroup().width as u32,
            shared_bytes: device.maxThreadgroupMemoryLength(),
            constants_bytes: 3840,
        },
    }
}

fn driver_error(operation: &'static str, detail: &str) -> DriverError {
    DriverError { operation, detail: detail.to_owned(), fatal: false }
}

impl Metal {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the encoder that takes the next launch.
    fn encoder(&self, work: &mut Work) -> Result<Object<dyn MTLComputeCommandEncoder>, DriverError> {
        if work.open.as_ref().is_some_and(|batch| batch.launches >= BATCH) {
            commit(work);
        }
        if let Some(batch) = &mut work.open {
            batch.launches += 1;
            return Ok(batch.encoder.clone());
        }
        let commands =
            self.queue.commandBuffer().ok_or_else(|| driver_error("launch", "Metal gave no command buffer"))?;
        // Of the serial kind: a launch sees what the one before it wrote.
        let encoder =
            commands.computeCommandEncoder().ok_or_else(|| driver_error("launch", "Metal gave no encoder"))?;
        work.open = Some(Batch { commands, encoder: encoder.clone(), launches: 1 });
        Ok(encoder)
    }

    /// Returns the host's view of a block, when nothing on the GPU uses it.
    #[expect(unsafe_code, reason = "handles are objects that the pool owns")]
    fn contents(&self, block: Handle, offset: usize) -> Result<*mut u8, DriverError> {
        self.synchronize()?;
        // SAFETY: `allocate` made the handle of a buffer that `free` has not taken back; the offset
        // is within it.
        Ok(unsafe { borrowed(block).contents().as_ptr().cast::<u8>().add(offset) })
    }
}

/// Hands the open command buffer to the GPU.
fn commit(work: &mut Work) {
    if let Some(Batch { commands, encoder, .. }) = work.open.take() {
        encoder.endEncoding();
        commands.commit();
        work.committed.push(commands);
    }
}

/// Returns the object behind a handle, which the creator of the handle owns.
///
/// # Safety
///
/// The handle is `handle_of` an object of this type which has not been dropped.
#[expect(unsafe_code, reason = "handles are pointers to objects")]
unsafe fn object<'a, T: ?Sized>(handle: Handle) -> &'a ProtocolObject<T> {
    // SAFETY: the caller's promise.
    unsafe { &*(handle as usize as *const ProtocolObject<T>) }
}

/// Borrows what a handle refers to, as `object` does, for blocks of memory.
///
/// # Safety
///
/// The handle is of a buffer that the pool or a `Buffer` holds.
#[expect(unsafe_code, reason = "handles are pointers to objects")]
unsafe fn borrowed<'a>(block: Handle) -> &'a ProtocolObject<dyn MTLBuffer> {
    // SAFETY: the caller's promise.
    unsafe { object(block) }
}

fn handle_of<T: ?Sized>(object: Retained<ProtocolObject<T>>) -> Handle {
    Retained::into_raw(object) as usize as Handle
}

/// Gives up an object that `handle_of` kept.
///
/// # Safety
///
/// The handle is of an object of this type and is not used again.
#[expect(unsafe_code, reason = "handles are pointers to objects")]
unsafe fn release<T: ?Sized>(handle: Handle) {
    // SAFETY: the caller's promise.
    drop(unsafe { Retained::from_raw(handle as usize as *mut ProtocolObject<T>) });
}

fn options() -> Retained<MTLCompileOptions> {
    let options = MTLCompileOptions::new();
    // The mode came with macOS 15; before, there was a switch for all of fast-math.
    if options.respondsToSelector(objc2::sel!(setMathMode:)) {
        options.setMathMode(MTLMathMode::Safe);
        options.setMathFloatingPointFunctions(MTLMathFloatingPointFunctions::Precise);
    } else {
        #[expect(deprecated, reason = "what older systems have")]
        options.setFastMathEnabled(false);
    }
    options.setLanguageVersion(MTLLanguageVersion::Version2_4);
    options
}

#[expect(unsafe_code, reason = "Objective-C, and memory shared with the GPU")]
impl Driver for Metal {
    fn memory(&self) -> Result<DeviceMemory, DriverError> {
        let total = self.device.recommendedMaxWorkingSetSize();
        Ok(DeviceMemory { free: total.saturating_sub(self.device.currentAllocatedSize() as u64), total })
    }

    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, DriverError> {
        let buffer = self.device.newBufferWithLength_options(bytes, MTLResourceOptions::StorageModeShared);
        Ok(buffer.map(handle_of))
    }

    fn free(&self, block: Handle, _bytes: usize) {
        // SAFETY: `allocate` made it; the pool frees it once. Command buffers hold on to what they
        // use.
        unsafe { release::<dyn MTLBuffer>(block) };
    }

    fn zero(&self, block: Handle, bytes: usize) -> Result<(), DriverError> {
        let contents = self.contents(block, 0)?;
        // SAFETY: a buffer asks for no more bytes than its block has.
        // PERF: a blit's fill would not wait for the GPU.
        unsafe { contents.write_bytes(0, bytes) };
        Ok(())
    }

    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DriverError> {
        let contents = self.contents(block, offset)?;
        // SAFETY: the buffer has checked the range.
        unsafe { contents.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DriverError> {
        let contents = self.contents(block, offset)?;
        // SAFETY: the buffer has checked the range; Metal zeroes new memory.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(contents, to.len()) };
        Ok(())
    }

    fn load(&self, module: &'static KernelModule) -> Result<(Handle, String), DeviceError> {
        let absent =
            DeviceError::NoKernels { module: module.name, backend: Backend::Metal, precision: Precision::Single };
        let text = module.source.ok_or(absent)?;
        autoreleasepool(|_| {
            let text = NSString::from_str(text);
            match self.device.newLibraryWithSource_options_error(&text, Some(&options())) {
                Ok(library) => Ok((handle_of(library), String::new())),
                Err(error) => Err(DeviceError::Compile {
                    module: module.name,
                    detail: "Metal's compiler refused it".to_owned(),
                    log: error.localizedDescription().to_string(),
                }),
            }
        })
    }

    fn kernel(
        &self,
        module: &'static KernelModule,
        loaded: Handle,
        name: &'static str,
    ) -> Result<LoadedKernel, DeviceError> {
        // SAFETY: `load` made it, and it is never released.
        let library: &ProtocolObject<dyn MTLLibrary> = unsafe { object(loaded) };
        autoreleasepool(|_| {
            let function = library.newFunctionWithName(&NSString::from_str(name));
            let function = function.ok_or(DeviceError::NoKernel { module: module.name, kernel: name })?;
            let pipeline = self.device.newComputePipelineStateWithFunction_error(&function);
            let pipeline = pipeline.map_err(|error| DeviceError::Compile {
                module: module.name,
                detail: format!("no pipeline for `{name}`"),
                log: error.localizedDescription().to_string(),
            })?;
            let width = pipeline.threadExecutionWidth();
            if width != WARP as usize {
                let detail = format!("lanes run {width} at a time, kernels are written for {WARP}");
                return Err(driver_error("making a pipeline", &detail).into());
            }
            let max_lanes = pipeline.maxTotalThreadsPerThreadgroup() as u32;
            Ok(LoadedKernel { handle: handle_of(pipeline), name, max_lanes, parameters: None })
        })
    }

    fn launch(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), DriverError> {
        // SAFETY: `kernel` made it, and it is never released.
        let pipeline: &ProtocolObject<dyn MTLComputePipelineState> = unsafe { object(kernel.handle) };
        autoreleasepool(|_| {
            let mut work = self.work();
            let encoder = self.encoder(&mut work)?;
            encoder.setComputePipelineState(pipeline);
            for (index, argument) in arguments.iter().enumerate() {
                match argument {
                    // SAFETY: the bytes are copied before this returns.
                    RawArgument::KernelConstants(bytes) => unsafe {
                        encoder.setBytes_length_atIndex(NonNull::from(*bytes).cast(), bytes.len(), index);
                    },
                    // SAFETY: the launch borrows the buffer; the command buffer retains it until it
                    // is done.
                    RawArgument::Buffer { handle, .. } => unsafe {
                        encoder.setBuffer_offset_atIndex(Some(borrowed(*handle)), 0, index);
                    },
                }
            }
            // SAFETY: within the device's limit, which the launch was checked against. Multiples of
            // 16, as Metal wants them, and never nothing: every kernel declares the array.
            unsafe { encoder.setThreadgroupMemoryLength_atIndex(shared_bytes.next_multiple_of(16).max(16), 0) };
            encoder.dispatchThreadgroups_threadsPerThreadgroup(
                MTLSize { width: grid.blocks as usize, height: 1, depth: 1 },
                MTLSize { width: grid.lanes as usize, height: 1, depth: 1 },
            );
            Ok(())
        })
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        autoreleasepool(|_| {
            let mut work = self.work();
            commit(&mut work);
            for commands in std::mem::take(&mut work.committed) {
                commands.waitUntilCompleted();
                if let Some(error) = commands.error().filter(|_| work.failed.is_none()) {
                    let detail = error.localizedDescription().to_string();
                    work.failed = Some(DriverError { operation: "a batch of launches", detail, fatal: true });
                }
            }
            work.failed.clone().map_or(Ok(()), Err)
        })
    }

    /// Returns an event: a command buffer, the last one committed or an empty one.
    fn record(&self) -> Result<Handle, DriverError> {
        autoreleasepool(|_| {
            let mut work = self.work();
            commit(&mut work);
            if let Some(last) = work.committed.last() {
                return Ok(handle_of(last.clone()));
            }
            let empty =
                self.queue.commandBuffer().ok_or_else(|| driver_error("event", "Metal gave no command buffer"))?;
            empty.commit();
            work.committed.push(empty.clone());
            Ok(handle_of(empty))
        })
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, DriverError> {
        let end = |event: Handle| {
            // SAFETY: `record` made it and it has not been forgotten.
            let commands: &ProtocolObject<dyn MTLCommandBuffer> = unsafe { object(event) };
            commands.waitUntilCompleted();
            commands.GPUEndTime()
        };
        let (from, to) = (end(from), end(to));
        Ok(Duration::from_secs_f64((to - from).max(0.0)))
    }

    fn forget(&self, event: Handle) {
        // SAFETY: `record` made it, and it is forgotten once.
        unsafe { release::<dyn MTLCommandBuffer>(event) };
    }
}

impl Drop for Metal {
    fn drop(&mut self) {
        // An encoder must be ended before it is dropped. Libraries and pipelines stay until the
        // process ends.
        let _ = self.synchronize();
    }
}
