//! Throws toys (pseudo-experiments) from a model, fits them, and evaluates ensembles of them.
//!
//! A [`ToySampler`] draws main and auxiliary data at given parameters. [`ToyFitter`] fits an
//! ensemble, [`ToyHypotest`] computes CLs from two of them, and [`goodness_toys`] counts how often
//! toys fit worse than the data. Every number depends only on the seed, the ensemble and the index
//! of the toy, not on the threads, batches or shards in which toys are run.

mod binomial;
mod coverage;
mod crossing;
mod distribution;
mod fit;
mod goodness;
mod hypotest;
mod importance;
mod interval;
mod jobs;
mod limit;
mod number;
mod p_value;
mod pilot;
mod point;
mod prefit;
mod region;
mod run;
mod search;
mod significance;
mod tested_points;
mod throw;

pub use coverage::{
    Coverage, CoverageMethod, CoveragePoint, CoverageSettings, CoverageVerdict, MethodCoverage, coverage,
};
pub use distribution::{RandomStream, normal, poisson};
pub use fit::{ToyFit, ToyFitter, fit_toys};
pub use goodness::{GoodnessToys, goodness_toys};
pub use hypotest::{HypotestSettings, HypothesisToy, ToyHypotest, ToyTest, ToysError, hypotest_toys};
pub use importance::ImportanceSampling;
pub use interval::{AcceptedRegion, Construction, IntervalEnd, IntervalPoint, IntervalSettings, ToyInterval, interval};
pub use limit::{AsymptoticLimits, LimitCriterion, ToyLimit, ToyLimitPoint, ToyLimitSettings, toy_limit};
pub use number::{InvalidToyCount, MOST_TOYS, number_of_toys};
pub use p_value::{HypotestToys, ObservedStatistic, StatisticSamples, ToyPValue, ToySignificance};
pub use region::{RegionPoint, RegionSettings, ToyRegion, region};
pub use run::{RunStatus, ToyRun};
pub use search::SearchSignal;
pub use significance::{ToySignificanceResult, ToySignificanceSettings, toy_significance};
pub use throw::{AuxTreatment, Ensemble, ToySampler, ToySource};

pub(crate) use fit::refit_from;
pub(crate) use pilot::ToySearch;
pub(crate) use prefit::{DataSetRequest, DataSetSource, DevicePrefit, PrefitRequest};
pub(crate) use run::{BatchWork, in_batches};
pub(crate) use throw::at_aux;
