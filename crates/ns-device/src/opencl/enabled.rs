//! Devices with an OpenCL driver: one context and one queue in order for each open device, programs
//! compiled at run time.
//!
//! The loader of the drivers, `libOpenCL`, is searched for when devices are. A kernel's arguments
//! are its state, so launches take turns. Constants go through a small buffer of each launch, which
//! the driver keeps until the launch is done.

use crate::driver::{Driver, DriverError, Handle, LoadedKernel, OpenedDevice, RawArgument};
use crate::{Backend, DeviceError, DeviceMemory, DeviceProperties, KernelModule, LaunchDims, OpenOptions, Precision};
use cl3::command_queue::{self, CL_QUEUE_PROFILING_ENABLE};
use cl3::event::{self, CL_PROFILING_COMMAND_END};
use cl3::kernel::{self, CL_KERNEL_NUM_ARGS, CL_KERNEL_WORK_GROUP_SIZE};
use cl3::memory::{self, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE};
use cl3::types::{CL_BLOCKING, cl_command_queue, cl_context, cl_event, cl_int, cl_kernel, cl_mem, cl_program, cl_uint};
use cl3::{context, error_codes};
use errors::{failed, failed_work};
use launches::Launches;
use listing::ListedDevice;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

mod cache;
mod errors;
mod launches;
mod listing;
mod program;

/// The arguments that every kernel has after its own: shared memory, and the numbers that lanes
/// exchange.
const OWN_ARGUMENTS: usize = 2;

struct OpenCl {
    device: ListedDevice,
    precision: Precision,
    context: cl_context,
    queue: cl_command_queue,
    used_bytes: AtomicU64,
    /// Locked while a kernel's arguments are set and it is launched.
    work: Mutex<Work>,
}

/// What was made for this device, and the launches that are not known to be done.
#[derive(Default)]
struct Work {
    launches: Launches,
    programs: Vec<cl_program>,
    kernels: Vec<cl_kernel>,
}

// SAFETY: OpenCL's objects may be used from any thread, but for a kernel's arguments, which the
// mutex protects.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Send for OpenCl {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Sync for OpenCl {}

pub(crate) fn found() -> Result<Vec<DeviceProperties>, DeviceError> {
    Ok(listing::devices()?.into_iter().map(|device| device.properties).collect())
}

#[expect(unsafe_code, reason = "the interface is C")]
pub(crate) fn open(index: usize, options: &OpenOptions) -> Result<OpenedDevice, DeviceError> {
    let backend = Backend::OpenCl;
    let devices = listing::devices()?;
    let n_devices = devices.len();
    let Some(device) = devices.into_iter().nth(index) else {
        return Err(DeviceError::NoDevice { backend, index, n_devices });
    };
    let properties = device.properties.clone();
    let precision = options.precision.unwrap_or(properties.precisions[0]);
    if !properties.precisions.contains(&precision) {
        return Err(DeviceError::DeviceLacksPrecision { backend, index, name: properties.name, precision });
    }
    let context = context::create_context(&[device.id], ptr::null(), None, ptr::null_mut())
        .map_err(failed("opening the device"))?;
    // SAFETY: the device is the context's.
    let queue = unsafe { command_queue::create_command_queue(context, device.id, CL_QUEUE_PROFILING_ENABLE) };
    let queue = queue.map_err(|status| {
        // SAFETY: made just now, and not used again.
        let _ = unsafe { context::release_context(context) };
        failed("making a queue")(status)
    })?;
    let (used_bytes, work) = (AtomicU64::new(0), Mutex::default());
    let driver = Box::new(OpenCl { device, precision, context, queue, used_bytes, work });
    Ok(OpenedDevice { driver, properties, precision })
}

impl OpenCl {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of launches that are done. Returns the error of the first that failed.
    fn settle(&self) -> Result<(), DriverError> {
        self.work().launches.settle().map_err(failed_work("a kernel"))
    }

    /// Sets a kernel's arguments: its own, shared memory, and what lanes exchange.
    #[expect(unsafe_code, reason = "the interface is C")]
    fn set_arguments(
        &self,
        kernel: cl_kernel,
        grid: LaunchDims,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<Constants, DriverError> {
        let mut constants = Constants::default();
        let set = |index: usize, bytes: usize, value: *const std::ffi::c_void| {
            // SAFETY: `value` points to as many bytes, which the driver copies, or is null for
            // local memory; the driver refuses an argument that the kernel does not have.
            unsafe { kernel::set_kernel_arg(kernel, index as cl_uint, bytes, value) }
                .map_err(failed("passing an argument"))
        };
        for (index, argument) in arguments.iter().enumerate() {
            let memory: cl_mem = match argument {
                RawArgument::KernelConstants(bytes) => constants.add(self.context, bytes)?,
                RawArgument::Buffer { handle, .. } => memory_of(*handle),
            };
            set(index, size_of::<cl_mem>(), (&raw const memory).cast())?;
        }
        // Never nothing: every kernel declares both.
        set(arguments.len(), shared_bytes.max(16), ptr::null())?;
        set(arguments.len() + 1, grid.lanes as usize * self.precision.bytes(), ptr::null())?;
        Ok(constants)
    }
}

/// The constants of one launch in buffers, which the driver keeps as long as the launch needs them.
#[derive(Default)]
struct Constants(Vec<cl_mem>);

impl Constants {
    #[expect(unsafe_code, reason = "the interface is C")]
    fn add(&mut self, context: cl_context, bytes: &[u8]) -> Result<cl_mem, DriverError> {
        let flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
        // SAFETY: the driver copies the bytes before it returns.
        let made = unsafe { memory::create_buffer(context, flags, bytes.len(), bytes.as_ptr() as *mut _) };
        let made = made.map_err(failed("passing constants"))?;
        self.0.push(made);
        Ok(made)
    }
}

impl Drop for Constants {
    #[expect(unsafe_code, reason = "the interface is C")]
    fn drop(&mut self) {
        for memory in self.0.drain(..) {
            // SAFETY: made by `add`; a launch that uses it keeps it.
            let _ = unsafe { memory::release_mem_object(memory) };
        }
    }
}

fn memory_of(block: Handle) -> cl_mem {
    block as usize as cl_mem
}

/// Returns a number that the driver has of a kernel, of the size of a pointer or of 4 bytes.
fn number(bytes: Result<Vec<u8>, cl_int>) -> Result<usize, DriverError> {
    let bytes = bytes.map_err(failed("asking about a kernel"))?;
    let mut word = [0; 8];
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    Ok(u64::from_le_bytes(word) as usize)
}

#[expect(unsafe_code, reason = "the interface is C")]
impl Driver for OpenCl {
    fn memory(&self) -> Result<DeviceMemory, DriverError> {
        // OpenCL does not know what other processes use.
        let total = self.device.properties.memory_bytes;
        Ok(DeviceMemory { free: total.saturating_sub(self.used_bytes.load(Ordering::Relaxed)), total })
    }

    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, DriverError> {
        if bytes as u64 > self.device.largest_block {
            return Ok(None);
        }
        // SAFETY: no memory of the host is handed over.
        match unsafe { memory::create_buffer(self.context, CL_MEM_READ_WRITE, bytes, ptr::null_mut()) } {
            Ok(block) => {
                self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(Some(block as usize as Handle))
            }
            Err(status) if errors::is_of_memory(status) => Ok(None),
            Err(status) => Err(failed("allocation")(status)),
        }
    }

    fn free(&self, block: Handle, bytes: usize) {
        self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: `allocate` made it, and the pool frees it once; launches keep what they use.
        let _ = unsafe { memory::release_mem_object(memory_of(block)) };
    }

    fn zero(&self, block: Handle, bytes: usize) -> Result<(), DriverError> {
        let zero = 0u8;
        // SAFETY: a buffer asks for no more bytes than its block has; the pattern is copied.
        let event = unsafe {
            let pattern = (&raw const zero).cast();
            command_queue::enqueue_fill_buffer(self.queue, memory_of(block), pattern, 1, 0, bytes, 0, ptr::null())
        };
        launches::release(event.map_err(failed("clearing memory"))?);
        Ok(())
    }

    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DriverError> {
        let (memory, data) = (memory_of(block), from.as_ptr().cast());
        // SAFETY: the buffer has checked the range; the call returns when the bytes are copied.
        let event = unsafe {
            let (queue, none) = (self.queue, ptr::null());
            command_queue::enqueue_write_buffer(queue, memory, CL_BLOCKING, offset, from.len(), data, 0, none)
        };
        launches::release(event.map_err(failed_work("upload"))?);
        self.settle()
    }

    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DriverError> {
        let (memory, data) = (memory_of(block), to.as_mut_ptr().cast());
        // SAFETY: as for `upload`.
        let event = unsafe {
            let (queue, none) = (self.queue, ptr::null());
            command_queue::enqueue_read_buffer(queue, memory, CL_BLOCKING, offset, to.len(), data, 0, none)
        };
        let copied = event.map(launches::release).map_err(failed_work("download"));
        // The launch that failed says more than the copy after it.
        self.settle()?;
        copied
    }

    fn load(&self, module: &'static KernelModule) -> Result<(Handle, String), DeviceError> {
        let (program, log) = program::load(self.context, &self.device, self.precision, module)?;
        self.work().programs.push(program);
        Ok((program as usize as Handle, log))
    }

    fn kernel(
        &self,
        module: &'static KernelModule,
        loaded: Handle,
        name: &'static str,
    ) -> Result<LoadedKernel, DeviceError> {
        let absent = DeviceError::NoKernel { module: module.name, kernel: name };
        let Ok(c_name) = CString::new(name) else { return Err(absent) };
        let kernel = match kernel::create_kernel(loaded as usize as cl_program, &c_name) {
            Ok(kernel) => kernel,
            Err(error_codes::CL_INVALID_KERNEL_NAME) => return Err(absent),
            Err(status) => return Err(failed("finding a kernel")(status).into()),
        };
        self.work().kernels.push(kernel);
        let group = kernel::get_kernel_work_group_data(kernel, self.device.id, CL_KERNEL_WORK_GROUP_SIZE);
        let max_lanes = u32::try_from(number(group)?).unwrap_or(u32::MAX);
        Ok(LoadedKernel { handle: kernel as usize as Handle, name, max_lanes, parameters: None })
    }

    fn launch(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), DriverError> {
        let of_kernel = kernel.handle as usize as cl_kernel;
        let mut work = self.work();
        let taken = number(kernel::get_kernel_data(of_kernel, CL_KERNEL_NUM_ARGS))?.saturating_sub(OWN_ARGUMENTS);
        if taken != arguments.len() {
            let detail = format!("kernel `{}` takes {taken} arguments, {} were passed", kernel.name, arguments.len());
            return Err(DriverError { operation: "launch", detail, fatal: false });
        }
        let constants = self.set_arguments(of_kernel, grid, shared_bytes, arguments)?;
        let (lanes, items) = ([grid.lanes as usize], [grid.blocks as usize * grid.lanes as usize]);
        // SAFETY: all arguments are set; blocks of buffers live until the pool frees them, and the
        // driver keeps them and the constants until the launch is done.
        let event = unsafe {
            let (items, lanes) = (items.as_ptr(), lanes.as_ptr());
            command_queue::enqueue_nd_range_kernel(self.queue, of_kernel, 1, ptr::null(), items, lanes, 0, ptr::null())
        };
        work.launches.add(event.map_err(failed("launch"))?);
        drop(constants);
        command_queue::flush(self.queue).map_err(failed("launch"))
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        let finished = command_queue::finish(self.queue);
        self.settle()?;
        finished.map_err(failed_work("waiting for the device"))
    }

    fn record(&self) -> Result<Handle, DriverError> {
        // SAFETY: waits for what is in the queue already.
        let marker = unsafe { command_queue::enqueue_marker_with_wait_list(self.queue, 0, ptr::null()) };
        Ok(marker.map_err(failed("recording an event"))? as usize as Handle)
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, DriverError> {
        let end = |event: Handle| {
            let event = event as usize as cl_event;
            event::wait_for_events(&[event]).map_err(failed_work("waiting for an event"))?;
            launches::profiled(event, CL_PROFILING_COMMAND_END).map_err(failed("asking about an event"))
        };
        let (from, to) = (end(from)?, end(to)?);
        Ok(Duration::from_nanos(to.saturating_sub(from)))
    }

    fn forget(&self, event: Handle) {
        launches::release(event as usize as cl_event);
    }

    fn take_kernel_time(&self) -> Duration {
        std::mem::take(&mut self.work().launches.kernel_time)
    }
}

#[expect(unsafe_code, reason = "the interface is C")]
impl Drop for OpenCl {
    fn drop(&mut self) {
        let _ = command_queue::finish(self.queue);
        let _ = self.settle();
        let Work { kernels, programs, .. } = std::mem::take(&mut *self.work());
        // SAFETY: made by this object, which is not used afterwards.
        unsafe {
            for kernel in kernels {
                let _ = kernel::release_kernel(kernel);
            }
            programs.into_iter().for_each(program::release);
            let _ = command_queue::release_command_queue(self.queue);
            let _ = context::release_context(self.context);
        }
    }
}
