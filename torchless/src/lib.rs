//! Exact transformer inference: Llama-family decoders from the files that people publish, computed
//! on the CPU or on a device, and events scored with them.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("torchless-example-{}", std::process::id()));
//! # let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/toy_decoder.py");
//! # let mut python = std::process::Command::new("python3");
//! # assert!(python.arg(script).arg(folder.join("toy")).status()?.success());
//! # std::env::set_current_dir(&folder)?;
//! use std::sync::Arc;
//! use torchless::{Engine, LogitRows, Model, Threads};
//!
//! let model = Arc::new(Model::open("toy")?); // made by examples/toy_decoder.py
//! let mut engine = Engine::new(model, Threads::new(0));
//! let mut cache = engine.cache(16)?;
//! let logits = engine.logits(&mut cache, &[8, 3, 3, 1], LogitRows::Last)?;
//! assert_eq!(torchless::sampling::greedy(&logits), 6);
//! assert!((logits[6] - 1.51278).abs() < 2e-5);
//! # std::env::set_current_dir("/")?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why it is made like this
//!
//! The obvious design is a graph of tensor operations, as in PyTorch: a tensor type, one function
//! per operation, and backends that implement all of them. That serves training and any
//! architecture, and it makes three things hard that matter here. Results depend on how a library
//! divides a sum among threads or batches; every operation reads and writes memory, and decoding is
//! limited by memory; and a model that is slightly wrong still runs.
//!
//! So decoders have no tensor type and no graph. [`Engine`] is one forward pass, written out, for
//! decoders of one shape. Its products read weights as they are stored, mapped from their files,
//! and unpack them in registers. Every output is one sum in one order, so the number of threads,
//! the chunk and the batch change no bit. A file is checked before anything is computed: what is
//! not known is an error with its place. The price is that a new architecture is new code.
//!
//! Encoders are graphs, since that is what ONNX files are; weights with a configuration become one.
//! [`encoder::Encoder`] makes a plan of one for each shape of its inputs: steps of arithmetic on
//! views of memory that is reused.
//!
//! Exact means: single precision throughout, rotary angles in double precision, and quantised
//! weights as their format defines them.
//!
//! # Modules
//!
//! * [`Model`], [`config`], [`memory`]: a model of its files, its sizes, the memory that it needs.
//! * [`Engine`], [`KvCache`], [`Threads`]: the forward pass on the CPU or on a device.
//! * [`encoder`]: encoders of events from ONNX files, or from weights with a configuration.
//! * [`text`]: tokenizers; [`chat`] templates, [`sampling`], [`generate`], [`score`] of events.
//! * [`mod@format`], [`Matrix`]: how weights are stored and unpacked.
//! * [`kernels`], [`backend`], [`device`]: the kernels one by one, and accelerators.
//! * [`cli`]: the `torchless` command.

pub mod backend;
pub mod cli;
pub mod config;
mod cpu;
pub mod device;
pub mod encoder;
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
pub use error::{Error, GradientProblem, HistogramProblem, InputProblem, NodeProblem, Problem};
pub use model::{LoadOptions, Model, Observer, memory};
pub use simd::InstructionSet;
pub use text::{chat, generate, sampling, score};
pub use weights::{Matrix, format};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
