//! Exact transformer inference: Llama-family decoders from the files that people have, on the device layer that nextstat uses.
//!
//! ```no_run
//! use std::sync::Arc;
//! use torchless::{Engine, LogitRows, Model, Threads};
//! # fn main() -> Result<(), torchless::Error> {
//! let model = Arc::new(Model::open("models/tiny-llama")?);
//! let mut engine = Engine::new(model, Threads::new(0));
//! let mut cache = engine.cache(16)?;
//! let logits = engine.logits(&mut cache, &[0, 52, 29], LogitRows::Last)?;
//! # Ok(())
//! # }
//! ```
//!
//! Exact means: single precision throughout, rotary angles in double precision, quantised weights as their format defines them, and the same bits
//! for any number of threads and any division of the tokens.

pub mod backend;
pub mod cli;
pub mod config;
mod cpu;
pub mod device;
mod engine;
mod error;
mod files;
mod model;
mod preference;
mod simd;
pub mod text;
mod weights;

pub use config::KvShape;
pub use cpu::integers::{Activations, IntegerSet};
pub use cpu::{Threads, kernels};
pub use engine::{Engine, EngineCounters, KvCache, LogitRows};
pub use error::{Error, Problem};
pub use model::{LoadOptions, Model, Observer, memory};
pub use simd::InstructionSet;
pub use text::{chat, generate, sampling, score};
pub use weights::{Matrix, format};
