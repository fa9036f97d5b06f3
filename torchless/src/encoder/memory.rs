//! Memory that loading a model has used, given back to the system.

/// Gives back what is free: between the weights that stay there are gaps as large as those that
/// were read, and the allocator keeps gaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a function of the C library")]
pub(super) fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: any thread may call it at any time, and it moves nothing that is in use. Of a program
    // with another allocator, it gives back what the C library's own has.
    unsafe { malloc_trim(0) };
}

/// Does nothing: other allocators decide themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}
