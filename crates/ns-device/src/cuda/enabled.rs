//! NVIDIA GPUs through the driver interface: the device's primary context and one stream of our
//! own.
//!
//! The library of the driver is searched for before any call, as `cudarc` panics without it. The
//! driver compiles the PTX; its log is kept.

use crate::driver::{Driver, DriverError, Handle, LoadedKernel, OpenedDevice, RawArgument};
use crate::{
    Backend, DeviceError, DeviceLimits, DeviceMemory, DeviceProperties, KernelModule, LaunchDims, OpenOptions,
    Precision,
};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute as FunctionAttribute};
use cudarc::driver::{CudaContext, DriverError as CudaError, result};
use std::ffi::{CString, c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

mod pointer;
mod signature;

/// Shared memory that a kernel may have without asking for more.
const DEFAULT_SHARED_BYTES: usize = 48 << 10;
/// Shared memory is asked for in such units. For `sm_90` `ptxas` loads two numbers at once where a
/// kernel reads the last one alone, and so past an end that is not a multiple of this.
const SHARED_UNIT: usize = 16;
/// The size of a compiler log.
const LOG_BYTES: usize = 16 << 10;

struct Cuda {
    index: usize,
    context: Arc<CudaContext>,
    stream: sys::CUstream,
    precision: Precision,
}

// SAFETY: a stream may be used from any thread that has made its context current, which every
// method does.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Send for Cuda {}
// SAFETY: as above; the driver locks.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Sync for Cuda {}

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    let n_devices = count()?;
    (0..n_devices).map(properties).collect()
}

pub(crate) fn open(index: usize, options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    let n_devices = count()?;
    if index >= n_devices {
        return Err(DeviceError::NoDevice { backend: Backend::Cuda, index, n_devices });
    }
    let properties = properties(index)?;
    if let Some(problem) = super::too_old(index, &properties) {
        return Err(problem);
    }
    let context = CudaContext::new(index).map_err(driver_error("opening the device"))?;
    let stream =
        result::stream::create(result::stream::StreamKind::NonBlocking).map_err(driver_error("making a stream"))?;
    let precision = options.precision.unwrap_or(Precision::Double);
    Ok(OpenedDevice { driver: Box::new(Cuda { index, context, stream, precision }), properties, precision })
}

/// Returns the number of devices, or the error of a missing driver.
#[expect(unsafe_code, reason = "looks for a library")]
fn count() -> Result<usize, DeviceError> {
    // SAFETY: opens the driver's library and closes it; its initialisers are as safe as using it
    // is.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::NoDriver { backend: Backend::Cuda, detail: None });
    }
    match result::init().and_then(|()| result::device::get_count()) {
        Ok(n_devices) => Ok(usize::try_from(n_devices).unwrap_or(0)),
        Err(CudaError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(error) => Err(DeviceError::NoDriver { backend: Backend::Cuda, detail: Some(words(error)) }),
    }
}

#[expect(unsafe_code, reason = "asks the driver about a device")]
fn properties(index: usize) -> Result<DeviceProperties, DeviceError> {
    let ask = || {
        let device = result::device::get(index as c_int)?;
        // SAFETY: the driver gave the device just now, here and below.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32;
        let shared_bytes = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize;
        Ok(DeviceProperties {
            name: result::device::get_name(device)?,
            precisions: vec![Precision::Double, Precision::Single],
            // SAFETY: as above.
            memory_bytes: unsafe { result::device::total_mem(device) }? as u64,
            compute_capability: Some((major, minor)),
            double_flops: double_flops(
                (major, minor),
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u64,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).map_or(0, |kilohertz| kilohertz as u64),
            ),
            is_processor: false,
            limits: DeviceLimits {
                lanes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)? as u32,
                shared_bytes: shared_bytes.max(DEFAULT_SHARED_BYTES),
                // A launch has 4 KB of parameters; 32 buffers take 256 bytes of them.
                constants_bytes: 3840,
            },
        })
    };
    ask().map_err(|error| driver_error("asking about a device")(error).into())
}

/// Returns the operations in a second, a fused sum and product counting as two; `None` if the kind
/// of card or its clock is unknown.
fn double_flops(capability: (u32, u32), multiprocessors: u64, kilohertz: u64) -> Option<u64> {
    let flops = 2 * super::double_units(capability)? * multiprocessors * kilohertz * 1000;
    (flops > 0).then_some(flops)
}

/// Returns the driver's words for an error.
fn words(error: CudaError) -> String {
    let text = |text: Result<&std::ffi::CStr, CudaError>| text.map(|text| text.to_string_lossy().into_owned()).ok();
    let name = text(error.error_name()).unwrap_or_else(|| format!("{:?}", error.0));
    text(error.error_string()).map_or(name.clone(), |description| format!("{description} ({name})"))
}

/// Turns the driver's errors of one operation into ours. After those of a crashed kernel the
/// context is of no more use.
fn driver_error(operation: &'static str) -> impl Fn(CudaError) -> DriverError {
    move |error| {
        let code = error.0 as u32;
        // ECC, NVLink; illegal address, time-out, destroyed context, assertion; stack, instruction,
        // alignment, address space, program counter, launch failure; unknown.
        let fatal = matches!(code, 214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 999);
        DriverError { operation, detail: words(error), fatal }
    }
}

impl Cuda {
    fn ptx(&self, module: &KernelModule) -> Option<&'static str> {
        match self.precision {
            Precision::Double => module.ptx_f64,
            Precision::Single => module.ptx_f32,
        }
    }

    fn current(&self) -> Result<(), DriverError> {
        self.context.bind_to_thread().map_err(driver_error("making the context current"))
    }
}

#[expect(unsafe_code, reason = "the driver interface is C")]
impl Driver for Cuda {
    fn memory(&self) -> Result<DeviceMemory, DriverError> {
        self.current()?;
        let (free, total) = result::mem_get_info().map_err(driver_error("asking for free memory"))?;
        Ok(DeviceMemory { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, DriverError> {
        self.current()?;
        // SAFETY: the context is current; the pool frees what it was given, once.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(block) => Ok(Some(block)),
            Err(CudaError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            Err(error) => Err(driver_error("allocation")(error)),
        }
    }

    fn free(&self, block: Handle, _bytes: usize) {
        if self.current().is_ok() {
            // SAFETY: allocated by `allocate`, in no buffer any more; the driver waits for kernels
            // that still use it. After a crash it refuses, and the memory goes with the context.
            let _ = unsafe { result::free_sync(block) };
        }
    }

    fn zero(&self, block: Handle, bytes: usize) -> Result<(), DriverError> {
        self.current()?;
        // SAFETY: a buffer asks for no more bytes than its block has.
        unsafe { result::memset_d8_async(block, 0, bytes, self.stream) }.map_err(driver_error("clearing memory"))
    }

    fn check_external(&self, address: Handle, bytes: usize) -> Result<Option<&'static str>, DriverError> {
        self.current()?;
        let own = self.context.cu_ctx() as usize as u64;
        pointer::problem(address, bytes as u64, self.index, own).map_err(driver_error("asking about an address"))
    }

    fn wait_for_stream(&self, stream: Handle) -> Result<(), DriverError> {
        self.current()?;
        let follow = || {
            let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
            // SAFETY: the caller guarantees the stream; the event was created just now, and waits
            // for it stay valid after its destruction.
            unsafe {
                let recorded = result::event::record(event, stream as usize as sys::CUstream);
                let waits = recorded.and_then(|()| {
                    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                    result::stream::wait_event(self.stream, event, flags)
                });
                result::event::destroy(event).and(waits)
            }
        };
        follow().map_err(driver_error("waiting for another stream"))
    }

    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DriverError> {
        self.current()?;
        // SAFETY: the buffer has checked the range; `from` outlives the copy, for the stream is
        // waited for before returning. PERF: the driver stages memory that is not pinned, and need
        // not be waited for; this code cannot know.
        unsafe {
            result::memcpy_htod_async(block + offset as u64, from, self.stream)
                .and_then(|()| result::stream::synchronize(self.stream))
        }
        .map_err(driver_error("upload"))
    }

    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DriverError> {
        self.current()?;
        // SAFETY: the buffer has checked the range; `to` outlives the copy, as above.
        unsafe {
            result::memcpy_dtoh_async(to, block + offset as u64, self.stream)
                .and_then(|()| result::stream::synchronize(self.stream))
        }
        .map_err(driver_error("download"))
    }

    fn load(&self, module: &'static KernelModule) -> Result<(Handle, String), DeviceError> {
        let absent =
            || DeviceError::NoKernels { module: module.name, backend: Backend::Cuda, precision: self.precision };
        let ptx = self.ptx(module).and_then(|ptx| CString::new(ptx).ok()).ok_or_else(absent)?;
        self.current()?;
        let (mut log, mut errors) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
        use sys::CUjit_option as Option_;
        let mut options = [
            Option_::CU_JIT_INFO_LOG_BUFFER,
            Option_::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            Option_::CU_JIT_ERROR_LOG_BUFFER,
            Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            Option_::CU_JIT_LOG_VERBOSE,
        ];
        // Numbers are passed where the interface has pointers.
        let mut values: [*mut c_void; 5] = [
            log.as_mut_ptr().cast(),
            LOG_BYTES as *mut c_void,
            errors.as_mut_ptr().cast(),
            LOG_BYTES as *mut c_void,
            std::ptr::without_provenance_mut(1),
        ];
        let mut loaded = std::ptr::null_mut();
        // SAFETY: the text ends with a zero, options and values are as many as said, and the logs'
        // sizes are theirs.
        let outcome = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut loaded,
                ptx.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        match outcome.result() {
            Ok(()) => Ok((loaded as usize as Handle, text(&log))),
            Err(error) => Err(DeviceError::Compile { module: module.name, detail: words(error), log: text(&errors) }),
        }
    }

    fn kernel(
        &self,
        module: &'static KernelModule,
        loaded: Handle,
        name: &'static str,
    ) -> Result<LoadedKernel, DeviceError> {
        self.current()?;
        let absent = DeviceError::NoKernel { module: module.name, kernel: name };
        let Ok(c_name) = CString::new(name) else { return Err(absent) };
        // SAFETY: the module was loaded by `load` and is never unloaded while its context lives.
        let function = match unsafe { result::module::get_function(loaded as usize as sys::CUmodule, c_name) } {
            Ok(function) => function,
            Err(CudaError(sys::CUresult::CUDA_ERROR_NOT_FOUND)) => return Err(absent),
            Err(error) => return Err(driver_error("finding a kernel")(error).into()),
        };
        // SAFETY: the driver gave the function just now.
        let attribute = |attribute| unsafe { result::function::get_function_attribute(function, attribute) };
        let asking = driver_error("asking about a kernel");
        let max_lanes = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).map_err(&asking)?;
        let most = self.context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        let fixed = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).map_err(&asking)?;
        let most = most.map_err(&asking)?.max(DEFAULT_SHARED_BYTES as c_int) - fixed;
        // SAFETY: as above. The limit allows what a launch may then ask for; it reserves nothing.
        unsafe {
            result::function::set_function_attribute(
                function,
                FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                most,
            )
        }
        .map_err(driver_error("allowing shared memory"))?;
        let parameters = self.ptx(module).and_then(|ptx| signature::of(ptx, name)).ok_or_else(|| DriverError {
            operation: "reading a kernel's parameters",
            detail: format!("the PTX writes those of `{name}` in a way that is not understood"),
            fatal: false,
        })?;
        let parameters = Some(parameters.into());
        Ok(LoadedKernel { handle: function as usize as Handle, name, max_lanes: max_lanes as u32, parameters })
    }

    fn launch(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), DriverError> {
        self.current()?;
        let mut parameters: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| match argument {
                RawArgument::KernelConstants(bytes) => bytes.as_ptr() as *mut c_void,
                RawArgument::Buffer { handle, .. } => std::ptr::from_ref(handle) as *mut c_void,
            })
            .collect();
        // SAFETY: the function is of a loaded module; the driver copies the parameters before it
        // returns, as many bytes as the kernel takes, which the launch was checked against; blocks
        // of buffers live until the pool frees them, and freeing waits for the kernel.
        unsafe {
            result::launch_kernel(
                kernel.handle as usize as sys::CUfunction,
                (grid.blocks, 1, 1),
                (grid.lanes, 1, 1),
                shared_bytes.next_multiple_of(SHARED_UNIT) as c_uint,
                self.stream,
                &mut parameters,
            )
        }
        .map_err(driver_error("launch"))
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        self.current()?;
        // SAFETY: our stream, which lives as long as we do.
        unsafe { result::stream::synchronize(self.stream) }.map_err(driver_error("waiting for the device"))
    }

    fn record(&self) -> Result<Handle, DriverError> {
        self.current()?;
        let event =
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(driver_error("making an event"))?;
        // SAFETY: both were made in this context.
        unsafe { result::event::record(event, self.stream) }.map_err(driver_error("recording an event"))?;
        Ok(event as usize as Handle)
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, DriverError> {
        self.current()?;
        let (from, to) = (from as usize as sys::CUevent, to as usize as sys::CUevent);
        // SAFETY: `record` made both, and they have not been forgotten.
        let milliseconds = unsafe {
            result::event::synchronize(from)
                .and_then(|()| result::event::synchronize(to))
                .and_then(|()| result::event::elapsed(from, to))
        };
        let milliseconds = milliseconds.map_err(driver_error("waiting for an event"))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
    }

    fn forget(&self, event: Handle) {
        if self.current().is_ok() {
            // SAFETY: `record` made it, and it is forgotten once.
            let _ = unsafe { result::event::destroy(event as usize as sys::CUevent) };
        }
    }
}

#[expect(unsafe_code, reason = "the driver interface is C")]
impl Drop for Cuda {
    fn drop(&mut self) {
        if self.current().is_ok() {
            // SAFETY: the stream of this object, which is not used afterwards. Modules are freed
            // with the context.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}
