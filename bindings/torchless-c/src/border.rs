//! What crosses the border: pointers of C are checked here, and panics end here.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use torchless::encoder::{InputValues, Offsets};

use crate::error::{CError, Failure};
use crate::types::{Status, TYPE_BOOL, TYPE_FLOAT32, TYPE_FLOAT64, TYPE_INT32, TYPE_INT64, TYPE_UINT32};

/// Calls `work`, and writes its error, or NULL, to `error` if that is not NULL. Returns the status.
#[expect(unsafe_code, reason = "the border to C: the caller's pointer to an error")]
pub(crate) fn call(error: *mut *mut CError, work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(work));
    let failure = match done {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(Failure::Panic { message: message(panic.as_ref()) }),
    };
    let status = failure.as_ref().map_or(Status::Ok, Failure::status);
    if !error.is_null() && error.is_aligned() {
        let made = failure.map_or(std::ptr::null_mut(), |failure| Box::into_raw(Box::new(CError::new(&failure))));
        // SAFETY: not NULL and aligned; the header asks for a pointer that can be written to.
        unsafe { error.write(made) };
    }
    status as i32
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Returns the object behind a handle.
///
/// # Safety
///
/// `pointer` is NULL, or leads to a `T` that lives and is not written to during `'a`.
#[expect(unsafe_code, reason = "the border to C: handles and structures")]
pub(crate) unsafe fn object<'a, T>(what: &'static str, pointer: *const T) -> Result<&'a T, Failure> {
    if pointer.is_null() {
        return Err(Failure::Null { what });
    }
    if !pointer.is_aligned() {
        return Err(Failure::Misaligned { what: what.to_owned() });
    }
    // SAFETY: not NULL and aligned; the rest is promised by the caller.
    Ok(unsafe { &*pointer })
}

/// Returns an array; NULL is one without elements.
///
/// # Safety
///
/// `pointer` leads to `length` initialised elements that live and are not written to during `'a`.
#[expect(unsafe_code, reason = "the border to C: arrays")]
pub(crate) unsafe fn array<'a, T>(what: &str, pointer: *const T, length: usize) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::NullArray { what: what.to_owned(), length });
    }
    if !pointer.is_aligned() {
        return Err(Failure::Misaligned { what: what.to_owned() });
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::TooLong { what: what.to_owned(), length });
    }
    // SAFETY: not NULL, aligned, and no longer than memory; the rest is promised by the caller.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// Returns an array that can be written to.
///
/// # Safety
///
/// As of `array`, and nothing else reads or writes the elements during `'a`.
#[expect(unsafe_code, reason = "the border to C: arrays that are written")]
pub(crate) unsafe fn array_mut<'a, T>(what: &str, pointer: *mut T, length: usize) -> Result<&'a mut [T], Failure> {
    // SAFETY: promised by the caller.
    unsafe { array(what, pointer.cast_const(), length)? };
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `array` has checked it, and nothing else uses the elements.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
}

/// Returns a text.
///
/// # Safety
///
/// `pointer` is NULL, or leads to bytes that end with 0 and live and do not change during `'a`.
#[expect(unsafe_code, reason = "the border to C: text")]
pub(crate) unsafe fn text<'a>(what: &'static str, pointer: *const c_char) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::Null { what });
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::NotUtf8 { what })
}

/// Returns numbers of the type `type_`.
///
/// # Safety
///
/// As of `array`, for elements of that type.
#[expect(unsafe_code, reason = "the border to C: numbers")]
pub(crate) unsafe fn numbers<'a>(
    name: &str,
    type_: i32,
    pointer: *const c_void,
    length: usize,
) -> Result<InputValues<'a>, Failure> {
    // SAFETY: promised by the caller for the type, in every case.
    unsafe {
        Ok(match type_ {
            TYPE_FLOAT32 => InputValues::F32(array(name, pointer.cast(), length)?),
            TYPE_FLOAT64 => InputValues::F64(array(name, pointer.cast(), length)?),
            TYPE_INT64 => InputValues::I64(array(name, pointer.cast(), length)?),
            TYPE_BOOL => InputValues::Bool(truth_values(name, array(name, pointer.cast(), length)?)?),
            _ => return Err(Failure::Type { name: name.to_owned(), found: type_ }),
        })
    }
}

/// Returns bytes as truth values, if all are 0 or 1.
#[expect(unsafe_code, reason = "the border to C: `bool` may have no other bytes than 0 and 1")]
fn truth_values<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a [bool], Failure> {
    if let Some(place) = bytes.iter().position(|&byte| byte > 1) {
        return Err(Failure::NotABool { name: name.to_owned(), place, found: bytes[place] });
    }
    // SAFETY: a `bool` has the size and the alignment of a byte, and every byte is 0 or 1.
    Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
}

/// Returns offsets of the type `type_`.
///
/// # Safety
///
/// As of `array`, for elements of that type.
#[expect(unsafe_code, reason = "the border to C: offsets")]
pub(crate) unsafe fn offsets<'a>(
    name: &str,
    type_: i32,
    pointer: *const c_void,
    length: usize,
) -> Result<Offsets<'a>, Failure> {
    // SAFETY: promised by the caller for the type, in every case.
    unsafe {
        Ok(match type_ {
            TYPE_INT32 => Offsets::I32(array(name, pointer.cast(), length)?),
            TYPE_UINT32 => Offsets::U32(array(name, pointer.cast(), length)?),
            TYPE_INT64 => Offsets::I64(array(name, pointer.cast(), length)?),
            _ => return Err(Failure::OffsetsType { name: name.to_owned(), found: type_ }),
        })
    }
}
