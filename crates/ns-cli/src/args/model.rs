//! Arguments that verbs share: where the workspace is, which model of it is meant, where the result goes.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ns_translate::DocumentSource;

use super::values::{InterpolationRule, interpolation_rule, source};
use crate::error::CliError;

/// Where a workspace is.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The workspace: pyhf JSON, plain or compressed as .gz or .zst; `-` reads standard input, which is also read if no workspace is named
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspace: Option<DocumentSource>,

    /// The same as WORKSPACE
    #[arg(long, value_name = "FILE", value_parser = source(), conflicts_with = "workspace")]
    input: Option<DocumentSource>,
}

impl SourceArgs {
    /// The workspace, if it was named.
    pub(super) fn named(&self) -> Option<&DocumentSource> {
        self.workspace.as_ref().or(self.input.as_ref())
    }

    /// The workspace's source.
    pub(crate) fn source(&self) -> Result<DocumentSource, CliError> {
        named_or_piped(self.named())
    }
}

/// The document that was named, or else what is piped in. A terminal is not waited for.
pub(crate) fn named_or_piped(named: Option<&DocumentSource>) -> Result<DocumentSource, CliError> {
    match named {
        Some(source) => Ok(source.clone()),
        None if io::stdin().is_terminal() => Err(CliError::NoDocument),
        None => Ok(DocumentSource::Stdin),
    }
}

/// A workspace, and what is to be done to it before it is used.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) workspace: SourceArgs,

    /// A JSON patch to apply to the workspace, `-` for standard input; repeatable, applied in order
    #[arg(short, long, value_name = "FILE", value_parser = source())]
    pub(crate) patch: Vec<DocumentSource>,

    /// A patch set made for the workspace; one patch of it is applied first
    #[arg(long, value_name = "FILE")]
    pub(crate) patchset: Option<PathBuf>,

    /// The patch of the patch set
    #[arg(long, value_name = "NAME", requires = "patchset")]
    pub(crate) patch_name: Option<String>,
}

/// Which model of which workspace.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The measurement; the first one if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) measurement: Option<String>,

    /// The parameter of interest instead of the measurement's; repeatable; `none` for no parameter of interest
    #[arg(long, value_name = "NAME|none")]
    pub(crate) poi: Vec<String>,

    /// The interpolation rules: `smooth` is what pyhf does today, `pyhf` what it did before its release 0.6
    #[arg(long, value_name = "RULES", value_enum, default_value_t)]
    pub(crate) interp_defaults: InterpolationDefaults,

    /// The interpolation rule of one kind of modifier, such as `normsys=code1`: normsys has code1 and code4, histosys code0, code2 and code4p;
    /// repeatable
    #[arg(long, value_name = "KIND=CODE", value_parser = interpolation_rule)]
    pub(crate) interpolation: Vec<InterpolationRule>,
}

/// The pairs of interpolation rules that have a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterpolationDefaults {
    /// as pyhf today: normsys code4 and histosys code4p
    #[default]
    Smooth,
    /// as pyhf before 0.6: normsys code1 and histosys code0, kinked at zero
    Pyhf,
}

/// Where the result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write the result to a file instead of standard output, whole or not at all
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,

    /// Print the summary for people also where standard error is no terminal, as in the log of a batch job
    #[arg(long)]
    pub(crate) summary: bool,

    /// No summary on standard error; errors are still printed
    #[arg(short, long, conflicts_with = "summary")]
    pub(crate) quiet: bool,
}

/// How much of the machine to use.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Threads to use at most, all if not given; a single fit uses one, and results are the same for any number
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
}

impl ThreadArgs {
    /// How many threads to use.
    pub(crate) fn count(&self) -> std::num::NonZeroUsize {
        self.threads.unwrap_or_else(ns_inference::parallel::all_threads)
    }
}
