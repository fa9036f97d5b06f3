//! The engine for a browser: files in memory, models of them, and questions as JSON.
//!
//! [`Files`] holds what a user chose, archives unpacked. [`Session`] is one model of them, and
//! answers a [`Question`] with the JSON document that the command writes. [`reproduce`] words a
//! question as a command and as Python.
//!
//! ```
//! use nextstat_wasm::{Files, Session};
//!
//! # let bytes = std::fs::read("../../examples/simple.json").unwrap();
//! let mut files = Files::default();
//! files.add("simple.json", bytes)?;
//! let session = Session::open(&files, r#"{"workspace": "simple.json"}"#)?;
//! let fit = session.run(r#"{"verb": "fit"}"#, &nextstat::NoMonitor)?;
//! assert!(fit.contains("\"converged\":true"));
//! # Ok::<(), nextstat_wasm::EngineError>(())
//! ```
//!
//! # Why JSON between the page and the engine
//!
//! The documents are what the page shows, and they have schemas already. Typed bindings for every
//! result would repeat them, and a new procedure would need both.
//!
//! # Modules
//!
//! | module | what it is for |
//! |---|---|
//! | `files` | files in memory, and the kind of each |
//! | `archive` | unpacks ZIP and tar |
//! | `question` | what can be asked, as JSON, and the settings |
//! | `session` | one model, and the answers |
//! | `contents` | channels, samples and parameters of a model, for a page to browse |
//! | `reproduce` | the command and the Python program that give the same numbers |
//! | `bindings` | the same for JavaScript, on WebAssembly alone |

mod archive;
#[cfg(target_family = "wasm")]
pub mod bindings;
mod contents;
mod error;
mod files;
mod question;
mod reproduce;
mod session;

pub use archive::ArchiveError;
pub use error::EngineError;
pub use files::{FileEntry, Files};
pub use question::{OpenRequest, Question};
pub use reproduce::{Reproduction, reproduce};
pub use session::{Session, exclusion};
