//! What the build scripts of crates with kernels share: one text of the kernels for compilers that take no includes, with a header of structs that is
//! held against the fields in Rust; and, with the feature `emulated`, the kernels compiled for the host.

#[cfg(feature = "emulated")]
mod emulation;
mod text;

#[cfg(feature = "emulated")]
pub use emulation::{Emulation, compile_runtime};
pub use text::KernelText;
