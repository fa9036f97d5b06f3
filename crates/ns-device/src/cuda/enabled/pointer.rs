//! What the driver knows of an address that another library gave: a wrong one is to be an error,
//! for a kernel that reads it would crash.

use cudarc::driver::DriverError as CudaError;
use cudarc::driver::sys::{self, CUpointer_attribute as Attribute};
use std::ffi::c_void;

/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE_MEMORY: u32 = 2;

/// Returns why the `bytes` at `address` are not memory of the device `index` in the context `own`,
/// or `None`.
///
/// Memory that was mapped (PyTorch's expandable segments) or comes from the driver's own pools
/// belongs to no context, and its allocation may be one piece of several: only its device is
/// checked.
pub(super) fn problem(address: u64, bytes: u64, index: usize, own: u64) -> Result<Option<&'static str>, CudaError> {
    let kind = match attribute::<u32>(address, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        Err(CudaError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) => return Ok(Some("the driver does not know it")),
        found => found?,
    };
    if kind != DEVICE_MEMORY {
        return Ok(Some("it is not a device's"));
    }
    if attribute::<i32>(address, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)? != index as i32 {
        return Ok(Some("it is another device's"));
    }
    let context = match attribute::<u64>(address, Attribute::CU_POINTER_ATTRIBUTE_CONTEXT) {
        Err(CudaError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) => 0,
        found => found?,
    };
    if context == 0 {
        return Ok(None);
    }
    if context != own {
        return Ok(Some("it belongs to another context than the device's primary one"));
    }
    let start = attribute::<u64>(address, Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)?;
    let size = attribute::<u64>(address, Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE)?;
    let is_inside = address >= start && address - start + bytes <= size;
    Ok(if is_inside { None } else { Some("it reaches past the end of its allocation") })
}

/// Returns one attribute; `T` is an integer of its size.
#[expect(unsafe_code, reason = "the driver interface is C")]
fn attribute<T: Default>(address: u64, attribute: Attribute) -> Result<T, CudaError> {
    let mut found = T::default();
    // SAFETY: each attribute that is asked for above has the size of its `T`, says the driver's
    // documentation; any address may be asked about.
    unsafe { sys::cuPointerGetAttribute((&raw mut found).cast::<c_void>(), attribute, address) }.result()?;
    Ok(found)
}
