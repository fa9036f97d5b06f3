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

mod ahead;
mod attention;
pub mod backend;
pub mod chat;
mod chat_blocks;
mod chat_limits;
pub mod cli;
pub mod config;
pub mod device;
mod engine;
mod error;
mod file;
pub mod format;
pub mod generate;
mod gguf;
mod hugging_face;
mod integers;
mod json;
pub mod kernels;
mod kv_cache;
mod linear;
pub mod memory;
mod model;
mod safetensors;
pub mod sampling;
pub mod score;
mod simd;
pub mod text;
mod threads;

pub use engine::{Engine, EngineCounters, LogitRows, Observer};
pub use error::{Error, Problem};
pub use integers::{Activations, IntegerSet};
pub use kv_cache::{KvCache, KvShape};
pub use linear::Matrix;
pub use model::{LoadOptions, Model};
pub use simd::InstructionSet;
pub use threads::Threads;
