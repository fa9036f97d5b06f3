//! Statistical inference for binned particle-physics analyses (HistFactory likelihoods).
//!
//! A [`CompiledModel`] is a workspace with one measurement of it chosen. [`Settings`] say, by the
//! names of parameters, what to do with it: which data, what is fixed, which device. Both together
//! make an [`Analysis`], which has one method per procedure. Each returns an [`Answer`]: the result
//! with what a reader must know of it, and the JSON document of it.
//!
//! ```
//! use nextstat::{Analysis, CompiledModel, FitRequest, Settings};
//!
//! let workspace = r#"{
//!     "version": "1.0.0",
//!     "channels": [{"name": "SR", "samples": [
//!         {"name": "signal", "data": [10.0],
//!          "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
//!         {"name": "background", "data": [50.0],
//!          "modifiers": [{"name": "xs", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]}
//!     ]}],
//!     "observations": [{"name": "SR", "data": [57.0]}],
//!     "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
//! }"#;
//! let model = CompiledModel::from_json(workspace.as_bytes(), &Default::default())?;
//! let analysis = Analysis::new(&model, &Settings::default())?;
//! let fit = analysis.fit(&FitRequest::default())?;
//! assert!((fit.result.bestfit[0] - 0.7).abs() < 1e-6);
//!
//! let background_only = Settings { fixed: vec![("mu".to_owned(), 0.0)], ..Settings::default() };
//! let conditional = Analysis::new(&model, &background_only)?.fit(&FitRequest::default())?;
//! assert!(conditional.result.twice_nll > fit.result.twice_nll);
//! # Ok::<(), nextstat::Error>(())
//! ```
//!
//! # Why a crate between the engine and its faces
//!
//! The engine's crates take indices and likelihoods. The command and the Python package take names
//! and files. If each translated for itself, the two would drift apart in what they accept, in what
//! they warn of and in what they print. So this crate translates once: physics and numbers are
//! below it, and a face only parses arguments and lays out text.
//!
//! # Modules
//!
//! - [`settings`]: what is asked of every procedure, by name.
//! - [`analysis`]: settings resolved against a model.
//! - [`fit`], [`hypothesis`], [`curves`], [`ranking`], [`goodness`], [`yields`], [`check`]: the
//!   procedures, each with its request and its document.
//! - [`patchsets`]: documents of patch sets.
//! - [`device`]: models on accelerators.
//! - [`cancel`]: how a caller stops a procedure.
//! - [`error`]: what can be wrong with a question, with advice.

pub mod analysis;
pub mod cancel;
pub mod check;
pub mod curves;
pub mod device;
pub mod document;
pub mod error;
pub mod fit;
pub mod goodness;
pub mod hypothesis;
pub mod model;
pub mod patchsets;
pub mod ranking;
pub mod settings;

pub mod yields;

pub use analysis::{Analysis, Answer};
pub use error::{Error, Face, Hint};
pub use fit::FitRequest;
pub use model::CompiledModel;
pub use settings::{DataSource, Settings};
