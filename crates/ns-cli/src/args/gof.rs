//! Arguments of `gof`.

use clap::Args;

use super::{EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `gof`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct GofArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
