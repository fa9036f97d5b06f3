//! Arguments of `digest`.

use clap::Args;
use ns_translate::DocumentSource;

use super::values::source;
use super::{OutputArgs, named_or_piped};
use crate::error::CliError;

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    /// The workspace, or any other JSON document; `-` reads standard input, which is also read if none is named
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: Option<DocumentSource>,

    /// The same as WORKSPACE
    #[arg(long, value_name = "FILE", value_parser = source(), conflicts_with = "workspace")]
    input: Option<DocumentSource>,

    /// The algorithm: sha256 or md5; repeatable
    #[arg(short, long, value_name = "NAME", default_value = "sha256")]
    pub(crate) algorithm: Vec<String>,

    /// Print a JSON object
    #[arg(short, long, overrides_with = "plaintext")]
    pub(crate) json: bool,

    /// Print one line `algorithm:digest` per algorithm; this is the default
    #[arg(short, long)]
    pub(crate) plaintext: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl DigestArgs {
    /// The document, if it was named.
    pub(super) fn named(&self) -> Option<&DocumentSource> {
        self.workspace.as_ref().or(self.input.as_ref())
    }

    /// The document's source.
    pub(crate) fn source(&self) -> Result<DocumentSource, CliError> {
        named_or_piped(self.named())
    }
}
