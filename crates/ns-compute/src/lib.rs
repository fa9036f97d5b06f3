//! Fast evaluators of a compiled model: value, gradient and second-order information at a point.
//!
//! `cpu` has SIMD bodies chosen at run time. Every number here is held against the plain reference in `ns_core::likelihood`.

pub mod accel;
pub mod cpu;

pub use cpu::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood, DifferentiableSession};
