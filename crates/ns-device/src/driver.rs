//! What a backend does for a device; everything above it is the same for all.

use crate::{DeviceError, Grid, Memory, Module};
use std::sync::Arc;
use std::time::Duration;

/// A block of device memory, a module, a kernel or an event, as its backend knows it.
pub(crate) type Handle = u64;

/// Something that a driver could not do.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) operation: &'static str,
    pub(crate) detail: String,
    /// Nothing will work after this.
    pub(crate) fatal: bool,
}

impl From<Fault> for DeviceError {
    fn from(fault: Fault) -> DeviceError {
        DeviceError::Driver { operation: fault.operation, detail: fault.detail }
    }
}

/// One argument as launches need it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RawArgument<'a> {
    Constants(&'a [u8]),
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
            RawArgument::Constants(bytes) => bytes.len(),
            RawArgument::Buffer { .. } => 0,
        }
    }
}

/// What a backend's `open` gives: the driver, what is known about the device, and the kernels' precision.
pub(crate) type Opened = (Box<dyn Driver>, crate::Facts, crate::Precision);

/// A kernel that is ready to be launched.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    #[cfg_attr(
        not(any(feature = "cuda", feature = "emulated", all(feature = "metal", target_os = "macos"))),
        expect(dead_code, reason = "no backend is built in that would read it")
    )]
    pub(crate) handle: Handle,
    pub(crate) name: &'static str,
    /// Lanes of a block, for this kernel.
    pub(crate) max_lanes: u32,
    /// The bytes of each parameter's constants, 0 for a buffer; none where the backend can't tell.
    pub(crate) parameters: Option<Arc<[usize]>>,
}

/// One open device. Work is done in the order in which it is asked for; only `download`, `synchronize` and `elapsed` wait.
pub(crate) trait Driver: Send + Sync {
    fn memory(&self) -> Result<Memory, Fault>;
    /// Uninitialised memory, or none if there isn't enough.
    fn allocate(&self, bytes: usize) -> Result<Option<Handle>, Fault>;
    /// Told that a block goes from one buffer to another. The emulation spoils what it held.
    fn reused(&self, _block: Handle, _bytes: usize) {}
    fn free(&self, block: Handle, bytes: usize);
    fn zero(&self, block: Handle, bytes: usize) -> Result<(), Fault>;
    /// What is wrong with the `bytes` at `address`, which somebody else allocated, if anything is.
    fn check_foreign(&self, _address: Handle, _bytes: usize) -> Result<Option<&'static str>, Fault> {
        Ok(Some("memory of this kind of device is not reached by address"))
    }
    /// Lets the work that is asked for from now on wait for what another stream has been given so far.
    fn follow_stream(&self, _stream: Handle) -> Result<(), Fault> {
        Ok(())
    }
    /// When it returns, `from` may change.
    fn upload(&self, from: &[u8], block: Handle, offset: usize) -> Result<(), Fault>;
    fn download(&self, block: Handle, offset: usize, to: &mut [u8]) -> Result<(), Fault>;
    /// The module and the compiler's log, or the error and the log.
    fn load(&self, module: &'static Module) -> Result<(Handle, String), DeviceError>;
    fn kernel(&self, module: &'static Module, loaded: Handle, name: &'static str) -> Result<Loaded, DeviceError>;
    fn launch(
        &self,
        kernel: &Loaded,
        grid: Grid,
        shared_bytes: usize,
        arguments: &[RawArgument<'_>],
    ) -> Result<(), Fault>;
    fn synchronize(&self) -> Result<(), Fault>;
    /// An event that happens when all work asked for so far is done.
    fn record(&self) -> Result<Handle, Fault>;
    fn elapsed(&self, from: Handle, to: Handle) -> Result<Duration, Fault>;
    fn forget(&self, event: Handle);
}
