//! Helps the build scripts of crates with kernels: concatenates the kernels for compilers without
//! includes, generates the header of structs from fields in Rust, and, with the feature `emulated`,
//! compiles the kernels for the host.
//!
//! | item | contents |
//! |---|---|
//! | [`KernelText`] | the kernels of a crate as one text, and the header of their structs |
//! | [`constants!`], [`numbers!`] | text in C++ of fields and numbers that Rust defines |
//! | `Emulation`, `compile_runtime` | kernels compiled for the host, with the feature `emulated` |
//!
//! ```
//! mod limits {
//!     use ns_device_build::numbers;
//!     numbers! {
//!         /// toys of a block
//!         TOYS = 32,
//!     }
//! }
//! assert_eq!(limits::numbers(), "#define TOYS 32u // toys of a block\n");
//! ```

#[cfg(feature = "emulated")]
mod emulation;
mod text;

#[cfg(feature = "emulated")]
pub use emulation::{Emulation, compile_runtime};
pub use text::KernelText;
