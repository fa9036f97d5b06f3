//! Kernels as a client describes them: modules of compiled text, names, launch dimensions and
//! arguments.

use crate::driver::RawArgument;
use crate::{Buffer, BufferItem, ExternalBuffer, Precision, item};
use std::ffi::c_void;
use std::marker::PhantomData;

/// Lanes that run in lockstep, the unit that blocks come in: the dialect's `WARP`.
pub const WARP: u32 = 32;

/// One text of kernels, in the form of each backend. A `static` of the client.
#[derive(Debug)]
pub struct KernelModule {
    /// The name, for messages.
    pub name: &'static str,
    /// CUDA, double precision: the text of a `.ptx` that `make ptx` writes.
    pub ptx_f64: Option<&'static str>,
    /// CUDA, single precision.
    pub ptx_f32: Option<&'static str>,
    /// For backends that compile at run time (Metal, OpenCL): the dialect and the headers,
    /// concatenated.
    pub source: Option<&'static str>,
    /// The host: from [`emulated_kernels!`](crate::emulated_kernels).
    pub emulated: &'static [EmulatedKernel],
}

/// A kernel's name and module, implemented by an enum of the client, so that names cannot be
/// misspelt.
pub trait Kernel: Copy {
    /// Returns the module of the kernel.
    fn module(&self) -> &'static KernelModule;
    /// Returns its name in the kernel text.
    fn name(&self) -> &'static str;
}

/// A kernel compiled for the host.
#[derive(Debug, Clone, Copy)]
pub struct EmulatedKernel {
    pub(crate) name: &'static str,
    pub(crate) double: EmulatedFunction,
    pub(crate) single: EmulatedFunction,
}

impl EmulatedKernel {
    /// Describes an exported kernel; [`emulated_kernels!`](crate::emulated_kernels) calls this.
    ///
    /// # Safety
    ///
    /// The functions must come from `EXPORT` of `emulation/runtime.h`, in double and in single
    /// precision, and the kernel must stay within the buffers of every launch that its client
    /// makes.
    #[expect(unsafe_code, reason = "the caller guarantees the functions")]
    pub const unsafe fn new(name: &'static str, double: EmulatedFunction, single: EmulatedFunction) -> EmulatedKernel {
        EmulatedKernel { name, double, single }
    }

    /// Returns the kernel's name in the kernel text.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the kernel in one precision.
    pub fn function(&self, precision: Precision) -> EmulatedFunction {
        match precision {
            Precision::Double => self.double,
            Precision::Single => self.single,
        }
    }
}

/// The function that `EXPORT` defines for a kernel.
pub type EmulatedFunction = unsafe extern "C" fn(launch: *const EmulatedLaunch, arguments: *const *mut c_void);

/// `emulation::Launch` of `emulation/launch.h`; opaque to clients.
#[repr(C)]
#[derive(Debug)]
pub struct EmulatedLaunch {
    pub(crate) blocks: u32,
    pub(crate) lanes: u32,
    pub(crate) shared_reals: u32,
    pub(crate) schedule: u32,
    pub(crate) seed: u64,
    pub(crate) host_threads: u32,
    pub(crate) n_arguments: u32,
    pub(crate) failure: *mut c_void,
    pub(crate) argument_bytes: *const u64,
}

/// The client's kernels for the host, by their names in the kernel text: a `&'static
/// [EmulatedKernel]` for [`KernelModule`].
///
/// Empty where the client's own feature `emulated` is off. The names must be `EXPORT`ed by the C++
/// file that the client's build script compiles (`ns-device-build`); one that is not exported fails
/// to link.
///
/// ```text
/// static MODULE: KernelModule = KernelModule { emulated: ns_device::emulated_kernels![fit, scan], ..NOTHING };
/// ```
#[macro_export]
macro_rules! emulated_kernels {
    ($($kernel:ident),* $(,)?) => {{
        #[cfg(feature = "emulated")]
        #[expect(unsafe_code, reason = "kernels are C++")]
        const KERNELS: &[$crate::EmulatedKernel] = {
            $(mod $kernel {
                // SAFETY: `EXPORT` defines both with this signature.
                unsafe extern "C" {
                    #[link_name = concat!(stringify!($kernel), "_f64")]
                    pub(super) fn double(launch: *const $crate::EmulatedLaunch, arguments: *const *mut ::core::ffi::c_void);
                    #[link_name = concat!(stringify!($kernel), "_f32")]
                    pub(super) fn single(launch: *const $crate::EmulatedLaunch, arguments: *const *mut ::core::ffi::c_void);
                }
            })*
            // SAFETY: exported by the client's own C++ file, which the user of this macro
            // guarantees.
            unsafe { &[$($crate::EmulatedKernel::new(stringify!($kernel), $kernel::double, $kernel::single)),*] }
        };
        #[cfg(not(feature = "emulated"))]
        const KERNELS: &[$crate::EmulatedKernel] = &[];
        KERNELS
    }};
}

/// The dimensions of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchDims {
    /// `N_BLOCKS`.
    pub blocks: u32,
    /// `N_LANES`, a multiple of [`WARP`].
    pub lanes: u32,
    /// Reals of shared memory that each block has.
    pub shared_reals: u32,
}

/// One argument of a launch, in the order of the kernel's parameters.
#[derive(Debug)]
pub struct KernelArgument<'a> {
    pub(crate) raw: RawArgument<'a>,
    /// The device that a buffer belongs to.
    pub(crate) device: Option<usize>,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> KernelArgument<'a> {
    /// Returns an argument for `CONSTANTS`: the bytes of a struct, as [`KernelConstants`] writes
    /// them.
    pub fn constants(bytes: &'a [u8]) -> KernelArgument<'a> {
        KernelArgument { raw: RawArgument::KernelConstants(bytes), device: None, lifetime: PhantomData }
    }

    /// Returns an argument for `CONSTANTS` whose struct has `uint`s only.
    pub fn uints(words: &'a [u32]) -> KernelArgument<'a> {
        KernelArgument::constants(item::bytes_of(words))
    }

    /// Returns an argument for `IN`: the kernel reads the buffer.
    pub fn read<T: BufferItem>(buffer: &'a Buffer<T>) -> KernelArgument<'a> {
        KernelArgument { raw: buffer.raw(false), device: Some(buffer.device_id()), lifetime: PhantomData }
    }

    /// Returns an argument for `OUT`: the kernel writes the buffer, and may read it.
    pub fn write<T: BufferItem>(buffer: &'a mut Buffer<T>) -> KernelArgument<'a> {
        KernelArgument { raw: buffer.raw(true), device: Some(buffer.device_id()), lifetime: PhantomData }
    }

    /// Returns an argument for `IN`: the kernel reads memory of another library.
    pub fn read_external<T: BufferItem>(memory: &'a ExternalBuffer<T>) -> KernelArgument<'a> {
        KernelArgument { raw: memory.raw(false), device: Some(memory.device_id()), lifetime: PhantomData }
    }

    /// Returns an argument for `OUT`: the kernel writes memory of another library, and may read it.
    pub fn write_external<T: BufferItem>(memory: &'a mut ExternalBuffer<T>) -> KernelArgument<'a> {
        KernelArgument { raw: memory.raw(true), device: Some(memory.device_id()), lifetime: PhantomData }
    }
}

/// Builds a `CONSTANTS` struct field by field, with the alignment of C++ and the reals of a device.
///
/// ```
/// use ns_device::{KernelConstants, Precision};
/// // struct { uint n; real factor; }
/// let constants = KernelConstants::new(Precision::Double).uint(3).real(0.5);
/// assert_eq!(constants.bytes().len(), 16);
/// ```
#[derive(Debug, Clone)]
pub struct KernelConstants {
    bytes: Vec<u8>,
    /// Where the last field ends; padding follows.
    end: usize,
    precision: Precision,
    alignment: usize,
}

impl KernelConstants {
    /// Returns an empty struct for a device of this precision.
    pub fn new(precision: Precision) -> KernelConstants {
        KernelConstants { bytes: Vec::new(), end: 0, precision, alignment: 4 }
    }

    /// Appends a `uint`.
    #[must_use]
    pub fn uint(self, value: u32) -> KernelConstants {
        self.field(&value.to_ne_bytes())
    }

    /// Appends an array of `uint`s.
    #[must_use]
    pub fn uints(self, values: &[u32]) -> KernelConstants {
        values.iter().fold(self, |constants, &value| constants.uint(value))
    }

    /// Appends a `real`, rounded in single precision.
    #[must_use]
    pub fn real(self, value: f64) -> KernelConstants {
        match self.precision {
            Precision::Double => self.field(&value.to_ne_bytes()),
            Precision::Single => self.field(&(value as f32).to_ne_bytes()),
        }
    }

    /// Returns the bytes of the struct, including padding.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn field(mut self, bytes: &[u8]) -> KernelConstants {
        self.alignment = self.alignment.max(bytes.len());
        self.bytes.truncate(self.end);
        self.bytes.resize(self.end.next_multiple_of(bytes.len()), 0);
        self.bytes.extend_from_slice(bytes);
        self.end = self.bytes.len();
        self.bytes.resize(self.end.next_multiple_of(self.alignment), 0);
        self
    }
}
