//! Arguments of `check`.

use clap::Args;

use super::{EXIT_CODES, ModelArgs, OutputArgs};

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Exit with 1 for warnings too, not only for errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
