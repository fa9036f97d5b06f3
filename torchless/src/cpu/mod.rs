//! The forward pass on the CPU, and the kernels that it is made of.

mod attention;
pub(crate) mod backend;
mod engine;
pub(crate) mod integers;
pub mod kernels;
mod kv_cache;
mod prefetch;
mod products;
pub(crate) mod threads;

pub(crate) use engine::CpuEngine;
pub(crate) use kv_cache::CpuKvCache;
pub use threads::Threads;
