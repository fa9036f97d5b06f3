//! Statistical inference on any [`Likelihood`](ns_core::Likelihood): fits, intervals, tests,
//! limits, toys.
//!
//! Every procedure is made of minima of -ln L, so this crate is a minimiser with the procedures
//! that use it. It knows neither documents nor devices: a likelihood is a trait with a value, a
//! gradient and a curvature, and an [`Accelerator`] is a trait that takes starting points and
//! returns minima. So a procedure can be tested on a parabola, and an evaluator without a
//! procedure.
//!
//! # Why a minimiser of its own
//!
//! Binned likelihoods have a structure that general minimisers do not use. Parameters of one bin,
//! the gammas, couple only to the few global ones, so the Hessian is an arrowhead matrix and a step
//! costs a fraction of a dense solve ([`linear`]). Exact second derivatives are cheap, so
//! convergence is quadratic and uncertainties come with the last step ([`minimize`]). These
//! likelihoods often have several minima; [`search`] is the one module that decides which of them
//! is the right one, and every procedure asks it through a [`profile::Profiler`].
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`mod@fit`], [`options`], [`result`], [`problem`] | a fit, its options, and what it returns |
//! | [`minimize`], [`linear`], [`hessian`] | bounded Newton steps, their linear algebra, the exact Hessian |
//! | [`search`], [`profile`] | the lowest of several minima, free and with parameters fixed |
//! | [`minos`], [`mod@scan`], [`contour`], [`mod@ranking`] | intervals, profiles, confidence regions, impacts |
//! | [`test_statistic`], [`asymptotic`], [`mod@hypotest`], [`mod@limit`] | profile-likelihood-ratio tests, upper limits |
//! | [`global_significance`] | the largest of many local significances, and how it is distributed |
//! | [`toys`], [`random`] | pseudo-experiments, their fits and p-values |
//! | [`data_sets`], [`bootstrap`], [`replicas`] | fits of many data sets, bootstrap replicas, moments over replicas |
//! | [`gof`], [`mod@pulls`], [`yields`], [`propagate`] | goodness of fit, pulls, yields with uncertainties |
//! | [`poisson_interval`] | error bars of observed counts |
//! | [`simplified`] | moments of yields, and simplified likelihoods that have them |
//! | [`prediction_test`] | data compared with the prediction of a fit that did not use them |
//! | [`differentiable`] | gradients of all these with respect to templates |
//! | [`accelerator`], [`parallel`], [`monitor`], [`memory`] | devices, threads, progress and cancellation, memory |
//!
//! # Example
//!
//! A signal of 5 and a background of 50 events known to 10 %, where 60 were observed:
//!
//! ```
//! use ns_compute::CpuLikelihood;
//! use ns_core::{CompileOptions, compile};
//! use ns_inference::{FitOptions, Problem, fit};
//!
//! let workspace = br#"{
//!     "version": "1.0.0",
//!     "channels": [{"name": "SR", "samples": [
//!         {"name": "signal", "data": [5.0],
//!          "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
//!         {"name": "background", "data": [50.0],
//!          "modifiers": [{"name": "norm", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]}
//!     ]}],
//!     "observations": [{"name": "SR", "data": [60.0]}],
//!     "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
//! }"#;
//! let workspace = ns_translate::pyhf::read_workspace(workspace)?;
//! let model = compile(&workspace, &CompileOptions::default())?;
//!
//! let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
//! let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
//! let mu = result.index_of("mu").unwrap();
//! assert!(result.converged && (result.bestfit[mu] - 2.0).abs() < 1e-6);
//! // √(60 + 5²)/5, up to the curvature of the interpolation.
//! assert!((result.uncertainties[mu].unwrap() - 1.844).abs() < 1e-2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accelerator;
pub mod asymptotic;
pub mod bootstrap;
pub mod chi_squared;
pub mod contour;
mod crossing;
pub mod data_sets;
pub mod degeneracy;
pub mod differentiable;
pub mod fit;
pub mod global_significance;
pub mod gof;
pub mod hessian;
pub mod hypotest;
pub mod limit;
pub mod linear;
pub mod memory;
pub mod minimize;
pub mod minos;
pub mod monitor;
pub mod normal;
pub mod options;
mod parabolic;
pub mod parallel;
pub mod poisson_interval;
mod polish;
pub mod prediction_test;
pub mod problem;
pub mod profile;
pub mod propagate;
pub mod pulls;
pub mod random;
pub mod ranking;
pub mod replicas;
mod response;
pub mod result;
mod root;
pub mod scan;
pub mod search;
pub mod signal_scan;
pub mod simplified;
pub mod test_statistic;
pub mod toys;
pub mod yields;

pub use accelerator::Accelerator;
pub use degeneracy::degeneracy;
pub use differentiable::{DifferentiableError, DifferentiableOptions, ProfiledDifferentiableSession};
pub use fit::fit;
pub use options::{FitOptions, MultiStart, Uncertainties};
pub use problem::Problem;
pub use result::FitResult;
