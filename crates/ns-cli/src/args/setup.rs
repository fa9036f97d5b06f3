//! Arguments of every verb that fits: the model, the data, and conditions on the parameters.

use clap::Args;

use super::values::{assignment, count, finite, range};
use super::{Assignment, ModelArgs, Range};

/// A model, its data, and conditions on its parameters.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Hold a parameter at a value, also one outside its range; the bare name of a vector holds every element; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) fix: Vec<Assignment>,

    /// The range of a parameter instead of the model's; repeatable
    #[arg(long, value_name = "NAME=LO:HI", value_parser = range)]
    pub(crate) bounds: Vec<Range>,

    /// Instead of the observed data take what the model expects at its starting values, with the parameter of interest at MU (1 if not given)
    #[arg(long, value_name = "MU", num_args = 0..=1, require_equals = true, value_parser = finite, allow_hyphen_values = true)]
    pub(crate) asimov: Option<Option<f64>>,

    /// The same with a parameter at a value of its own; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) asimov_at: Vec<Assignment>,

    /// Start each fit from N further random points too and keep the lowest minimum; 40 of them if N is not given
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, value_parser = count, default_missing_value = "40")]
    pub(crate) multi_start: Option<usize>,

    /// Seed of everything random
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
}
