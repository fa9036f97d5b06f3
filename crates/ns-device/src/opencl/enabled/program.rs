//! Programs: kernels compiled by the driver, or taken from the cache.

use super::cache::{self, CacheEntry};
use super::errors::{self, failed};
use super::listing::{ListedDevice, text};
use crate::{Backend, DeviceError, KernelModule, Precision};
use cl3::error_codes::CL_BUILD_PROGRAM_FAILURE;
use cl3::program::{self, CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_LOG};
use cl3::types::{cl_context, cl_int, cl_program};
use std::ffi::CString;
use std::ptr;

/// Returns the program of `module`, and the log of the compiler; empty if the program was in the
/// cache.
pub(super) fn load(
    context: cl_context,
    device: &ListedDevice,
    precision: Precision,
    module: &'static KernelModule,
) -> Result<(cl_program, String), DeviceError> {
    let absent = DeviceError::NoKernels { module: module.name, backend: Backend::OpenCl, precision };
    let source = module.source.ok_or(absent)?;
    let options = options(device, precision);
    let entry = CacheEntry::new(module.name, &[&device.identity, &options, source]);
    if let Some(program) = entry.as_ref().and_then(|entry| from_cache(context, device, &options, entry)) {
        return Ok((program, String::new()));
    }
    let made = program::create_program_with_source(context, &[source]).map_err(failed("making a program"))?;
    let outcome = build(made, device, &options);
    let log = program::get_program_build_data(made, device.id, CL_PROGRAM_BUILD_LOG).map(text).unwrap_or_default();
    if let Err(status) = outcome {
        release(made);
        return Err(compile_error(module.name, status, log));
    }
    if let (Some(entry), Some(binary)) = (entry, binary_of(made)) {
        entry.write(&binary);
    }
    Ok((made, log))
}

/// Returns the compiler's options. No option of fast mathematics: results are those of the text.
fn options(device: &ListedDevice, precision: Precision) -> String {
    let mut options = "-cl-std=CL1.2".to_owned();
    match precision {
        Precision::Double => options += " -DNS_DOUBLE",
        Precision::Single if device.rounds_correctly => options += " -cl-fp32-correctly-rounded-divide-sqrt",
        Precision::Single => {}
    }
    if device.is_unoptimised {
        options += " -cl-opt-disable";
    }
    options
}

fn compile_error(module: &'static str, status: cl_int, log: String) -> DeviceError {
    let detail = match status {
        CL_BUILD_PROGRAM_FAILURE => "the OpenCL driver refused them".to_owned(),
        _ => errors::name(status),
    };
    DeviceError::Compile { module, detail, log }
}

fn build(program: cl_program, device: &ListedDevice, options: &str) -> Result<(), cl_int> {
    let options = CString::new(options).unwrap_or_default();
    program::build_program(program, &[device.id], &options, None, ptr::null_mut())
}

/// Returns the program in the cache, or `None` if there is none or the driver does not take it.
fn from_cache(context: cl_context, device: &ListedDevice, options: &str, entry: &CacheEntry) -> Option<cl_program> {
    let binary = entry.read()?;
    let runtime = cl3::load_library().as_ref().ok()?;
    let (length, bytes, mut of_binary, mut status) = (binary.len(), binary.as_ptr(), 0, 0);
    // One device, with one length and one pointer to as many bytes; the driver copies them.
    let made = runtime.clCreateProgramWithBinary(
        context,
        1,
        &raw const device.id,
        &raw const length,
        &raw const bytes,
        &raw mut of_binary,
        &raw mut status,
    );
    let made = made.filter(|made| status == 0 && !made.is_null());
    let built = made.filter(|&made| {
        let is_built = build(made, device, options).is_ok();
        if !is_built {
            release(made);
        }
        is_built
    });
    if built.is_none() {
        entry.remove();
    }
    built
}

/// Returns the binary of a program of one device, or `None` if the driver does not give it.
fn binary_of(program: cl_program) -> Option<Vec<u8>> {
    let sizes = program::get_program_data(program, CL_PROGRAM_BINARY_SIZES).ok()?;
    let length = usize::from_le_bytes(sizes.get(..size_of::<usize>())?.try_into().ok()?);
    // What is longer is not kept, and a length without sense must not end the process.
    let mut binary = Vec::new();
    binary.try_reserve_exact(Some(length).filter(|&length| length as u64 <= cache::MOST_BYTES)?).ok()?;
    binary.resize(length, 0u8);
    let mut places = [binary.as_mut_ptr()];
    let runtime = cl3::load_library().as_ref().ok()?;
    // The program is of one device: one pointer, to as many bytes as the driver said.
    let length = size_of_val(&places);
    let status =
        runtime.clGetProgramInfo(program, CL_PROGRAM_BINARIES, length, places.as_mut_ptr().cast(), ptr::null_mut());
    (status == Some(0) && !binary.is_empty()).then_some(binary)
}

/// Releases a program, which is not used again.
#[expect(unsafe_code, reason = "the interface is C")]
pub(super) fn release(program: cl_program) {
    // SAFETY: made by this module, and released once.
    let _ = unsafe { program::release_program(program) };
}
