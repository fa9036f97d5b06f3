//! Arguments of `digest`.

use clap::Args;
use ns_translate::Source;

use super::OutputArgs;
use super::values::source;

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    /// The workspace, or any other JSON document; `-` reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source, required_unless_present = "input")]
    workspace: Option<Source>,

    /// The same as WORKSPACE
    #[arg(long, value_name = "FILE", value_parser = source, conflicts_with = "workspace")]
    input: Option<Source>,

    /// The algorithm: sha256 or md5; repeatable
    #[arg(short, long, value_name = "NAME", default_value = "sha256")]
    pub(crate) algorithm: Vec<String>,

    /// Print a JSON object
    #[arg(short, long, conflicts_with = "plaintext")]
    pub(crate) json: bool,

    /// Print one line `algorithm:digest` per algorithm; this is the default
    #[arg(short, long)]
    pub(crate) plaintext: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl DigestArgs {
    /// The document's source; clap has seen to it that there is exactly one.
    pub(crate) fn source(&self) -> Source {
        self.workspace.as_ref().or(self.input.as_ref()).cloned().unwrap_or(Source::Stdin)
    }
}
