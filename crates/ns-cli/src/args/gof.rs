//! Arguments of `gof`.

use clap::Args;

use super::toys::AuxChoice;
use super::values::n_toys;
use super::{DeviceArgs, EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `gof`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct GofArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// Also throw N toys at the best fit, fit each, and count those that fit no better: p-values that need no large counts
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    pub(crate) toys: Option<u64>,

    /// What happens to the auxiliary data of toys
    #[arg(long, value_name = "AUX", value_enum, default_value_t, requires = "toys")]
    pub(crate) aux: AuxChoice,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}
