//! Arguments of `patchset` and its own verbs, which are pyhf's.

use clap::{Args, Subcommand};
use ns_translate::DocumentSource;

use super::values::source;
use super::{OutputArgs, named_or_piped};
use crate::error::CliError;

/// Arguments of `patchset`.
#[derive(Debug, Args)]
pub(crate) struct PatchsetArgs {
    #[command(subcommand)]
    pub(crate) verb: PatchsetVerb,
}

/// What can be done with a patch set.
#[derive(Debug, Subcommand)]
pub(crate) enum PatchsetVerb {
    /// Print the name of every patch, one per line
    List(SetArgs),
    /// Show what the set says of itself, and the name and values of every patch
    Inspect(SetArgs),
    /// Print one patch
    Extract(ExtractArgs),
    /// Print the workspace with one patch applied
    Apply(ApplyArgs),
    /// Check that the set was made for a workspace; exit with 1 if not
    Verify(VerifyArgs),
}

/// A patch set alone.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The patch set, plain or compressed; `-` reads standard input, which is also read if no patch set is named
    #[arg(value_name = "PATCHSET", value_parser = source())]
    patchset: Option<DocumentSource>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl SetArgs {
    /// The patch set, if it was named.
    pub(super) fn named(&self) -> Option<&DocumentSource> {
        self.patchset.as_ref()
    }

    /// The patch set's source.
    pub(crate) fn source(&self) -> Result<DocumentSource, CliError> {
        named_or_piped(self.named())
    }
}

/// Arguments of `patchset extract`.
#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,

    /// The patch
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// Include name, values and what the set says of itself
    #[arg(long, overrides_with = "without_metadata")]
    pub(crate) with_metadata: bool,

    /// The operations alone; this is the default
    #[arg(long)]
    pub(crate) without_metadata: bool,
}

/// Arguments of `patchset apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The workspace that the set was made for; `-` reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    pub(crate) workspace: DocumentSource,

    #[command(flatten)]
    pub(crate) set: SetArgs,

    /// The patch
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
}

/// Arguments of `patchset verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The workspace; `-` reads standard input
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    pub(crate) workspace: DocumentSource,

    #[command(flatten)]
    pub(crate) set: SetArgs,
}
