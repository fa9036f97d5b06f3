//! The interface of backends; everything above it is the same for all.

use crate::{DeviceError, DeviceMemory, KernelModule, LaunchDims};
use std::sync::Arc;
use std::time::Duration;

/// The handle that a backend has for a block of memory, a module, a kernel or an event.
pub(crate) type Handle = u64;

/// The failure of a driver call.
#[derive(Debug, Clone)]
pub(crate) struct DriverError {
    pub(crate) operation: &'static str,
    pub(crate) detail: String,
    /// Whether the device is unusable afterwards.
    pub(crate) fatal: bool,
}

impl From<DriverError> for DeviceError {
    fn from(driver_error: DriverError) -> DeviceError {
        DeviceError::Driver { operation: driver_error.operation, detail: driver_error.detail }
    }
}

/// One argument of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RawArgument<'a> {
    KernelConstants(&'a [u8]),
    /// A buffer, its bytes in use, and whether the kernel writes it.
    #[cfg_attr(not(feature = "emulated"), expect(dead_code, reason = "only launches that are recorded need the size"))]
    Buffer {
        handle: Handle,
        bytes: usize,
        written: bool,
    },
}

impl RawArgument<'_> {
    pub(crate) fn constants_bytes(&self) -> usize {
        match self {
            RawArgument::KernelConstants(bytes) => bytes.len(),
            RawArgument::Buffer { .. } => 0,
        }
    }
}

/// A device that a backend has opened.
pub(crate) struct OpenedDevice {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) properties: crate::DeviceProperties,
    /// The precision of the kernels.
    pub(crate) precision: crate::Precision,
}

/// A kernel that is ready to be launched.
#[derive(Debug, Clone)]
pub(crate) struct LoadedKernel {
    #[cfg_attr(
        not(any(
            feature = "cuda",
            feature = "emulated",
            feature = "opencl",
            all(feature = "metal", target_os = "macos")
        )),
        expect(dead_code, reason = "no backend is built in that would read it")
    )]
    pub(crate) handle: Handle,
    pub(crate) name: &'static str,
    /// Lanes of a block, for this kernel.
    pub(crate) max_lanes: u32,
    /// The bytes of each parameter's constants, 0 for a buffer; `None` if the backend does not know
    /// them.
    pub(crate) parameters: Option<Arc<[usize]>>,
}

/// One open device. It works in the order of the calls; only `download`, `synchronize` and
/// `elapsed` wait.
pub(crate) trait Driver: Send + Sync {
    fn memory(&self) -> Result<DeviceMemory, DriverError>;
    /// Returns uninitialised memory, or `None` if there is too little.
    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, DriverError>;
    /// Notes that a block passes from one buffer to another. The emulation overwrites its contents.
    fn reused(&self, _block: Handle, _bytes: usize) {}
    fn free(&self, block: Handle, bytes: usize);
    fn zero(&self, block: Handle, bytes: usize) -> Result<(), DriverError>;
    /// Returns why the `bytes` at `address`, which another library allocated, cannot be used, or
    /// `None`.
    fn check_external(&self, _address: Handle, _bytes: usize) -> Result<Option<&'static str>, DriverError> {
        Ok(Some("memory of this kind of device is not reached by address"))
    }
    /// Makes later work wait for the work that another stream has been given so far.
    fn wait_for_stream(&self, _stream: Handle) -> Result<(), DriverError> {
        Ok(())
    }
    /// Copies `from` to a block. `from` may change after the return.
    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), DriverError>;
    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), DriverError>;
    /// Loads a module. Returns its handle and the log of the compiler.
    fn load(&self, module: &'static KernelModule) -> Result<(Handle, String), DeviceError>;
    fn kernel(
        &self,
        module: &'static KernelModule,
        loaded: Handle,
        name: &'static str,
    ) -> Result<LoadedKernel, DeviceError>;
    fn launch(
        &self,
        kernel: &LoadedKernel,
        grid: LaunchDims,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), DriverError>;
    fn synchronize(&self) -> Result<(), DriverError>;
    /// Returns an event that happens when all work asked for so far is done.
    fn record(&self) -> Result<Handle, DriverError>;
    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, DriverError>;
    fn forget(&self, event: Handle);
    /// Returns the time that the device spent in kernels since this was last called, as far as the
    /// host has waited for them; zero where it is not measured.
    fn take_kernel_time(&self) -> Duration {
        Duration::ZERO
    }
}
