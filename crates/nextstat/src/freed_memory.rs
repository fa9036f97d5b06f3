//! Returns freed memory to the system.

/// Asks the C library to return what it keeps of freed memory.
///
/// A workspace has thousands of arrays with names between them. Once they are freed, glibc keeps
/// their pages for arrays of that size, and a fit needs larger ones.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a function of the C library")]
pub(crate) fn return_freed_memory() {
    // SAFETY: the function takes a number of bytes to keep, and may be called at any time by any
    // thread.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other C libraries return pages on their own.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_freed_memory() {}
