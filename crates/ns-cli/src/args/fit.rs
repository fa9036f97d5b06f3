//! Arguments of `fit`.

use clap::Args;

use super::values::{assignment, finite, range};
use super::{Assignment, EXIT_CODES, ModelArgs, OutputArgs, Range, ThreadArgs};

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Accepted because pyhf has it; `twice_nll` is always in the result
    #[arg(long)]
    pub(crate) value: bool,

    /// Hold a parameter at a value, also one outside its range; the bare name of a vector holds every element; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) fix: Vec<Assignment>,

    /// The range of a parameter instead of the model's; repeatable
    #[arg(long, value_name = "NAME=LO:HI", value_parser = range)]
    pub(crate) bounds: Vec<Range>,

    /// Asymmetric intervals where -ln L has risen by 1/2: of the named parameter, of `all`, or without a name of the parameter of interest;
    /// repeatable
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) minos: Vec<String>,

    /// Start from N further random points and report every distinct minimum; 40 of them if N is not given
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "40")]
    pub(crate) multi_start: Option<usize>,

    /// Seed of the random starting points
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Fit what the model expects at its starting values, with the parameter of interest at MU (1 if not given), instead of the observed data
    #[arg(long, value_name = "MU", num_args = 0..=1, require_equals = true, value_parser = finite, allow_hyphen_values = true)]
    pub(crate) asimov: Option<Option<f64>>,

    /// Include the covariance matrix
    #[arg(long)]
    pub(crate) covariance: bool,

    /// Include the correlation matrix
    #[arg(long)]
    pub(crate) correlation: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
