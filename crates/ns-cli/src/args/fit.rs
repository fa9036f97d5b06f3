//! Arguments of `fit`.

use std::convert::Infallible;

use clap::Args;
use nextstat::fit::IntervalTarget;

use super::{DeviceArgs, EXIT_CODES, IgnoredArgs, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// Accepted because pyhf has it; `twice_nll` is always in the result
    #[arg(long)]
    pub(crate) value: bool,

    /// Asymmetric intervals where -ln L has risen by 1/2: of the named parameter, of `all`, or without a name of the parameters of interest;
    /// repeatable
    #[arg(
        long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = interval_target
    )]
    pub(crate) minos: Vec<IntervalTarget>,

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

    #[command(flatten)]
    pub(crate) device: DeviceArgs,

    #[command(flatten)]
    pub(crate) ignored: IgnoredArgs,
}

/// Reads the value of `--minos`, which is empty where the option is given without one.
fn interval_target(name: &str) -> Result<IntervalTarget, Infallible> {
    Ok(if name.is_empty() { IntervalTarget::OfInterest } else { IntervalTarget::Named(name.to_owned()) })
}
