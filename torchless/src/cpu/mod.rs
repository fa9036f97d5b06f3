//! The forward pass on the CPU, and the kernels that it is made of.

pub(crate) mod attention;
pub(crate) mod backend;
pub(crate) mod integers;
pub mod kernels;
mod prefetch;
pub(crate) mod products;
pub(crate) mod threads;

pub use threads::Threads;
