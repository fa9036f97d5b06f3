//! Toys: pseudo-experiments thrown from a model, fitted again, and what their ensembles say.
//!
//! A [`Thrower`] draws main and auxiliary data at given parameters; [`FitToys`] fits an ensemble; [`Hypotest`] makes CLs of two of them; [`goodness_toys`]
//! asks how often toys fit worse than the data. Every number depends on the seed, the ensemble and the toy's number only, whatever the threads,
//! batches or shards in which they are made.

mod ahead;
mod distribution;
mod fit;
mod goodness;
mod hypotest;
mod number;
mod p_value;
mod pilot;
mod run;
mod throw;

pub use distribution::{Words, normal, poisson};
pub use fit::{FitToys, ToyFit, fit_toys};
pub use goodness::{GoodnessToys, goodness_toys};
pub use hypotest::{Hypotest, HypotestSettings, ToyTest, ToysError, Unit, hypotest_toys};
pub use number::{MOST_TOYS, NotANumberOfToys, number_of_toys};
pub use p_value::{HypotestToys, Observed, PValue, Samples};
pub use run::{Ended, Run};
pub use throw::{Aux, Ensemble, Source, Thrower};
