//! The vocabulary and the mathematics of HistFactory models: no I/O, no threads, no unsafe code.
//!
//! A model exists twice. A [`spec::Workspace`] is the document as written: strings, options, lists
//! of lists, nothing checked but the shape. A [`Model`] is what the document means: two flat
//! buffers of numbers and indices. [`compile()`] goes from the one to the other, makes every check,
//! and turns every name into an index. The obvious alternative, one structure that evaluators read
//! as it was parsed, would put a lookup or a check into every loop over bins; here nothing after
//! `compile` can fail, and the same buffers can be uploaded to a device.
//!
//! The formulas are written once more, slowly: [`likelihood::nll`] is the reference implementation
//! that tests compare every evaluator with, and over [`scalar::HyperDual`] numbers the same lines
//! give exact derivatives. Fast evaluators are in `ns-compute`. Fits need only the trait
//! [`Likelihood`] and, to search for the lowest of several minima, [`SearchLikelihood`].
//!
//! ```
//! use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
//! use ns_core::{CompileOptions, compile, expected, likelihood};
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
//! assert_eq!(expected::expected_main(&model, &[2.0]), [20.0]); // 2 · 5 + 10
//!
//! // -ln L is smallest where the expected count is the observed one: μ = 0.4.
//! let nll = |mu: f64| likelihood::nll(&model, &model.observed, &[mu]);
//! assert!(nll(0.4) < nll(0.3) && nll(0.4) < nll(0.5));
//! # Ok::<(), ns_core::CompileError>(())
//! ```
//!
//! # Modules
//!
//! * Documents and models: [`spec`] (as written), [`mod@compile`] (checks, names to indices),
//!   [`model`] and [`parameters`] (as meant), [`check`] (suspicious properties), [`summary`]
//!   (contents), [`similarity`] ("did you mean"), [`advice`] (hints of errors).
//! * Formulas of a document: [`formula`] (text to derivatives), [`derived`] (what they compute).
//! * Mathematics: [`interpolate`] and [`response`] (systematics), [`poisson`], [`constraint`]
//!   (terms of auxiliary data), [`expected`] (λ), [`likelihood`], [`sensitivity`] (derivatives of
//!   yields), [`nonlinearity`] (where second minima can be).
//! * Numbers: [`scalar`] (dual numbers), [`taylor`] (derivatives along a line), [`double_double`].
//! * Interfaces: [`curvature`] (shapes of second derivatives), [`kinks`] (where first ones jump),
//!   [`templates`] (histograms as inputs), [`batch`] (accelerators).

pub mod advice;
pub mod batch;
pub mod check;
pub mod compile;
pub mod constraint;
pub mod curvature;
pub mod derived;
pub mod double_double;
pub mod expected;
pub mod formula;
pub mod interpolate;
pub mod kinks;
pub mod likelihood;
pub mod model;
pub mod nonlinearity;
pub mod parameters;
pub mod pattern;
pub mod poisson;
pub mod response;
pub mod sample_slot;
pub mod scalar;
pub mod sensitivity;
pub mod shape;
pub mod similarity;
pub mod spec;
pub mod summary;
pub mod taylor;
pub mod templates;
pub mod yield_rules;

pub use compile::{CompileError, CompileOptions, PoiChoice, WorkspaceOutline, compile};
pub use constraint::Constraint;
pub use curvature::{Arrowhead, Curvature, CurvatureStructure, GaussNewton, Partition};
pub use kinks::{LimitKink, LimitKinks};
pub use likelihood::{DataLikelihood, Likelihood, SearchLikelihood};
pub use model::{BinPlace, Data, Model};
pub use parameters::Parameters;
pub use sample_slot::SampleSlot;
pub use similarity::{did_you_mean, name_similarity, similar_name};
pub use templates::{Inputs, TemplateLikelihood};
