//! Arguments of `report`.

use clap::Args;

use super::values::threshold;
use super::{EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// The summary shows the correlations of parameters that have one of at least this size with another; the result has all
    #[arg(long, value_name = "SIZE", value_parser = threshold, default_value_t = 0.3)]
    pub(crate) correlation_threshold: f64,

    /// The summary shows the yields of every bin, not only their sums over each channel; the result has both
    #[arg(long)]
    pub(crate) bins: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
