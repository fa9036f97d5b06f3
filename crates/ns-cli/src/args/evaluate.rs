//! Arguments of `evaluate`.

use clap::Args;
use ns_translate::DocumentSource;

use super::values::source;
use super::{EXIT_CODES, ModelArgs, OutputArgs, ThreadArgs};

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Points to evaluate at: a JSON list of parameter vectors, each in the order of `par_names`; `-` reads standard input; the model's
    /// starting values if not given
    #[arg(long, value_name = "FILE", value_parser = source())]
    pub(crate) points: Option<DocumentSource>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
