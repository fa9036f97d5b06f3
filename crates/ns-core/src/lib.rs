//! The vocabulary and the mathematics of HistFactory models, for every other crate to stand on.
//!
//! A [`spec::Workspace`] is a model as written; [`compile()`] turns it into a [`Model`] of flat arrays, where every check is made and
//! every name becomes an index. No I/O, no threads, no unsafe code.

pub mod batch;
pub mod check;
pub mod compile;
pub mod curvature;
pub mod double_double;
pub mod expected;
pub mod interpolate;
pub mod likelihood;
pub mod model;
pub mod nonlinearity;
pub mod parameters;
pub mod poisson;
pub mod scalar;
pub mod sensitivity;
pub mod similarity;
pub mod spec;
pub mod summary;
pub mod taylor;
pub mod templates;

pub use compile::{CompileError, CompileOptions, PoiChoice, compile};
pub use curvature::{Arrowhead, Curvature, CurvatureStructure, GaussNewton, Partition};
pub use likelihood::{DataLikelihood, Likelihood, SearchLikelihood};
pub use model::{BinPlace, Data, Model};
pub use parameters::{Constraint, Parameters};
pub use similarity::{did_you_mean, name_similarity, similar_name};
pub use templates::{Inputs, TemplateLikelihood};
