//! Helps the build scripts of crates with kernels: concatenates the kernels for compilers without
//! includes, generates the header of structs from fields in Rust, and, with the feature `emulated`,
//! compiles the kernels for the host.

#[cfg(feature = "emulated")]
mod emulation;
mod text;

#[cfg(feature = "emulated")]
pub use emulation::{Emulation, compile_runtime};
pub use text::KernelText;
