//! Fast evaluators of a compiled model: -ln L, its gradient and its second derivatives on the CPU,
//! and whole fits on an accelerator.
//!
//! The formulas are those of `ns_core`, and random models are compared with its reference
//! implementation. This crate has only the order of evaluation. [`cpu::ModelPlan`] lays a model out
//! once: bins padded to whole vectors, and for every modifier the column of its derivative. The
//! derivatives are written by hand: automatic differentiation of an expected count with hundreds of
//! modifiers would store every intermediate result, and could not use that each second derivative
//! is a product of first ones. Loops are plain Rust, compiled once per instruction set
//! ([`cpu::isa`]) and selected at run time, so that one binary is fast on every machine and gives
//! the same bits in every run and for every number of threads.
//!
//! ```
//! use ns_compute::CpuLikelihood;
//! use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
//! use ns_core::{CompileOptions, Likelihood, compile};
//!
//! // One bin: 5 signal events times μ, and 10 background events; 12 events are observed.
//! let mu = Modifier::new("mu", ModifierData::NormFactor);
//! let signal = Sample { name: "signal".into(), data: vec![5.0], modifiers: vec![mu], ..Default::default() };
//! let background = Sample { name: "background".into(), data: vec![10.0], modifiers: vec![], ..Default::default() };
//! let workspace = Workspace {
//!     channels: vec![Channel { name: "SR".into(), samples: vec![signal, background] }],
//!     observations: vec![Observation { name: "SR".into(), data: vec![12.0] }],
//!     measurements: vec![Measurement { name: "m".into(), poi: Some("mu".into()), parameters: vec![], ..Default::default() }],
//! };
//! let model = compile(&workspace, &CompileOptions::default())?;
//! let mut likelihood = CpuLikelihood::new(&model);
//!
//! // At μ = 1, λ = 15, and the derivative of -ln L = λ - 12 ln λ + ln 12! is 5 (1 - 12/15) = 1.
//! let mut gradient = [0.0];
//! let nll = likelihood.nll_and_grad(&[1.0], &mut gradient);
//! assert!((gradient[0] - 1.0).abs() < 1e-15);
//! assert!((nll - (15.0 - 12.0 * 15.0_f64.ln() + 479_001_600.0_f64.ln())).abs() < 1e-13);
//! # Ok::<(), ns_core::CompileError>(())
//! ```
//!
//! # Modules
//!
//! * [`cpu`]: [`CpuLikelihood`] (one data set, all derivatives), [`CpuBatch`] (many points, eight
//!   to a vector, value and gradient), [`DifferentiableSession`] (templates as inputs),
//!   [`cpu::ModelPlan`] (the layout that they share).
//! * [`accel`]: [`accel::DeviceSession`] (a model on a device of `ns_device`: batches of
//!   evaluations and of fits), [`accel::GpuSession`] (the same, shared between procedures).

pub mod accel;
pub mod cpu;

pub use cpu::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood, DifferentiableSession};
