//! Statistical inference for binned particle-physics analyses (HistFactory likelihoods).
//!
//! A [`CompiledModel`] is a workspace with one of its measurements. [`Settings`] choose, by the
//! names of parameters, the data, the fixed parameters and the device. Both together make an
//! [`Analysis`], which has one method per procedure. Each returns an [`Answer`]: the result with
//! its diagnosis, its JSON document and its provenance.
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
//! # Procedures
//!
//! | method of [`Analysis`] | request | result |
//! |---|---|---|
//! | [`fit`](Analysis::fit) | [`FitRequest`] | best fit, uncertainties, MINOS intervals |
//! | [`hypotest`](Analysis::hypotest) | [`HypotestRequest`](hypothesis::HypotestRequest) | CLs by asymptotic formulas |
//! | [`significance`](Analysis::significance) | [`SignificanceRequest`](hypothesis::SignificanceRequest) | significance of a discovery |
//! | [`limit`](Analysis::limit) | [`LimitRequest`](hypothesis::LimitRequest) | upper limits |
//! | [`limit_scan`](Analysis::limit_scan) | [`LimitScanRequest`](limit_scan::LimitScanRequest) | upper limits at fixed values of another parameter |
//! | [`scan`](Analysis::scan) | [`ScanRequest`](curves::ScanRequest) | profile likelihood of one or two parameters |
//! | [`contours`](Analysis::contours) | [`ContourRequest`](curves::ContourRequest) | contours of two parameters |
//! | [`ranking`](Analysis::ranking) | [`RankingRequest`](ranking::RankingRequest) | impacts of nuisance parameters |
//! | [`goodness`](Analysis::goodness) | [`GoodnessRequest`](goodness::GoodnessRequest) | distance to the saturated model, by toys too |
//! | [`toys`](Analysis::toys) | [`ToysRequest`](toys::ToysRequest) | fits of toys, passed to a sink |
//! | [`fits`](Analysis::fits) | [`FitsRequest`](fits::FitsRequest) | fits of many data sets, passed to a sink |
//! | [`hypotest_toys`](Analysis::hypotest_toys) | [`ToyTestRequest`](toy_tests::ToyTestRequest) | CLs by toys |
//! | [`interval`](Analysis::interval) | [`IntervalRequest`](intervals::IntervalRequest) | confidence intervals by toys |
//! | [`region`](Analysis::region) | [`RegionRequest`](intervals::RegionRequest) | confidence regions of two parameters by toys |
//! | [`coverage`](Analysis::coverage) | [`CoverageRequest`](coverage::CoverageRequest) | coverage of intervals by toys |
//! | [`toy_limit`](Analysis::toy_limit) | [`ToyLimitRequest`](toy_limits::ToyLimitRequest) | upper limits by toys |
//! | [`toy_significance`](Analysis::toy_significance) | [`ToySignificanceRequest`](toy_limits::ToySignificanceRequest) | significance of a discovery by toys |
//! | [`simplify`](Analysis::simplify) | [`SimplifyRequest`](simplify::SimplifyRequest) | the background of a few channels as a small workspace |
//! | [`yields`](Analysis::yields), [`report`](Analysis::report) | | yields before and after a fit; a summary of one fit |
//! | [`project`](Analysis::project), [`report_from`](Analysis::report_from), [`compare`](Analysis::compare) | [`StoredFit`](stored::StoredFit) | yields, a summary and a test of the prediction of a stored fit |
//!
//! [`CompiledModel::check`] looks for problems of a model before any fit;
//! [`CompiledModel::evaluate`] returns -ln L, its gradient and expected data at given points.
//! [`Analysis::every_poi`] asks the same question of each of several parameters of interest.
//! [`SignalGrid`](patchsets::SignalGrid) asks the same question of every patch of a patch set, and
//! [`Exclusion`](exclusion::Exclusion) finds the exclusion contours of its answers.
//! [`SignalGrid::search`](patchsets::SignalGrid::search) finds local and global significances.
//! [`Scanner`](scanner::Scanner) tests many signals, given as numbers of events, with one
//! background.
//! [`bootstrap`](bootstrap::bootstrap) makes replicas of histograms, and
//! [`replica_covariance`](replicas::replica_covariance) reads the covariance of two analyses from
//! their fits.
//! [`combination`] makes one workspace of several.
//!
//! The types of the engine that these requests and results are made of are re-exported here, so
//! that a program needs no other crate.
//!
//! # Errors
//!
//! [`Error`] has every reason why a procedure has no result; [`Hint`] has advice. A fit that does
//! not converge is a result, with the reason in its outcome and its warnings.
//!
//! # Why a crate between the engine and the interfaces
//!
//! The engine's crates take indices and likelihoods; the command and the Python package take names
//! and files. If each translated for itself, they would differ in what they accept, warn about and
//! print. So this crate translates once: it contains no physics, and an interface only parses
//! arguments and lays out text.

pub mod alarm;
pub mod analysis;
pub mod answer;
pub mod blinding;
pub mod bootstrap;
pub mod cancel;
pub mod check;
pub mod combination;
pub mod comparison;
pub mod coverage;
pub mod curves;
pub mod data_sets;
pub mod device;
pub mod document;
pub mod error;
pub mod evaluate;
pub mod exclusion;
pub mod fit;
mod fit_counts;
pub mod fits;
mod freed_memory;
pub mod full_report;
pub mod goodness;
pub mod hypothesis;
pub mod intervals;
pub mod jobs;
pub mod limit_scan;
pub mod model;
pub mod number;
pub mod patchsets;
pub mod pois;
pub mod projection;
pub mod provenance;
pub mod ranking;
pub mod regions;
pub mod replicas;
pub mod sample_groups;
pub mod scanner;
pub mod schema;
pub mod settings;
pub mod signal_search;
pub mod simplify;
pub mod stored;
mod stored_point;
pub mod tables;
pub mod toy_limits;
pub mod toy_tests;
pub mod toys;
pub mod yields;

pub use analysis::Analysis;
pub use answer::{Answer, Document};
pub use blinding::Blinding;
pub use error::{Error, Face, Hint};
pub use fit::FitRequest;
pub use model::CompiledModel;
pub use provenance::Provenance;
pub use settings::{DataSource, Settings};

// The engine's types that settings, requests and results are made of.
pub use ns_core::{CompileOptions, Data, Model, PoiChoice};
pub use ns_device::{Backend, DeviceName};
pub use ns_inference::FitResult;
pub use ns_inference::monitor::{Monitor, NoMonitor};
pub use ns_inference::scan::ScanValues;
pub use ns_inference::test_statistic::TestStatistic;
pub use ns_inference::yields::YieldPropagation;
pub use ns_translate::{CardOptions, DocumentSource, LoadRequest, NumberTable};

/// The examples of `docs/rust.md`, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct RustGuide;
