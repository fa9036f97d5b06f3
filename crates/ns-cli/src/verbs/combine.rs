//! `nextstat combine`: several workspaces combined into one.

use super::Command;
use crate::args::values::source;
use crate::args::{named_or_piped, rewritable};
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, write_json};
use crate::status::Status;
use clap::{Args, ValueEnum};
use ns_translate::DocumentSource;
use ns_translate::workspace::{
    ChannelJoin, JoinDecision, WorkspaceCounts, WorkspaceDocument, WorkspaceJoin, WorkspaceSide, combine,
};

/// Arguments of `combine`.
#[derive(Debug, Args)]
pub(crate) struct CombineArgs {
    /// Workspaces, plain or compressed, combined one after the other; `-` reads standard input, and
    /// so does a missing second one
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspaces: Vec<DocumentSource>,

    /// How to join channels, observations and measurements with a name that is in two workspaces
    #[arg(short, long, value_enum, default_value_t)]
    join: JoinArg,

    /// Give a channel of two workspaces the samples of both; with an outer join only
    #[arg(long, overrides_with = "no_merge_channels")]
    merge_channels: bool,

    /// Take each channel as a whole; this is the default
    #[arg(long)]
    no_merge_channels: bool,

    #[command(flatten)]
    output: OutputArgs,
}

impl CombineArgs {
    /// Returns the workspaces, at least two.
    fn sources(&self) -> Result<Vec<DocumentSource>, CliError> {
        let mut sources = self.workspaces.clone();
        while sources.len() < 2 {
            sources.push(named_or_piped(None)?);
        }
        let from_stdin = sources.iter().filter(|source| **source == DocumentSource::Stdin);
        if from_stdin.count() > 1 { Err(CliError::TwoFromStdin) } else { Ok(sources) }
    }

    fn join(&self) -> WorkspaceJoin {
        match self.join {
            JoinArg::None => WorkspaceJoin::None,
            JoinArg::Outer => WorkspaceJoin::Outer,
            JoinArg::LeftOuter => WorkspaceJoin::LeftOuter,
            JoinArg::RightOuter => WorkspaceJoin::RightOuter,
        }
    }

    fn channels(&self) -> ChannelJoin {
        if self.merge_channels { ChannelJoin::Merged } else { ChannelJoin::Whole }
    }
}

/// Kinds of joins by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum JoinArg {
    /// No name may be in both
    #[default]
    None,
    /// Parts of the same name must be equal; the settings of a measurement in both are merged
    Outer,
    /// Keep the part of the first workspace
    #[value(name = "left outer", alias = "left-outer")]
    LeftOuter,
    /// Keep the part of the second workspace
    #[value(name = "right outer", alias = "right-outer")]
    RightOuter,
}

impl Command for CombineArgs {
    fn run(self) -> Result<Status, CliError> {
        let sources = self.sources()?;
        let documents = sources.iter().map(rewritable).collect::<Result<Vec<_>, _>>()?;
        let mut documents = documents.into_iter().zip(sources.iter().map(DocumentSource::name));
        let Some((mut document, mut name)) = documents.next() else { return Err(CliError::NoDocument) };
        let mut warnings = Vec::new();
        for (other, other_name) in documents {
            let names = [name, other_name];
            let combined = combine(document, other, self.join(), self.channels())
                .map_err(|error| CliError::Combine { names: names.clone(), error })?;
            warnings.extend(decisions(&combined.kept, &names));
            document = combined.document;
            name = names.join(" and ");
        }
        write_json(&document, &self.output)?;
        let reporter = Reporter::new(&self.output);
        reporter.warn(&warnings);
        reporter.note(|| counts(&document));
        Ok(Status::Done)
    }
}

/// Formats the number of channels, samples, modifiers and measurements.
pub(super) fn counts(document: &WorkspaceDocument) -> String {
    let WorkspaceCounts { channels, samples, modifiers, measurements } = document.counts();
    let parts = [(channels, "channel"), (samples, "sample"), (modifiers, "modifier"), (measurements, "measurement")];
    let parts = parts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    format!("{}\n", parts.join(", "))
}

/// Formats which of two different parts was kept, of the workspaces called `names`.
fn decisions(kept: &[JoinDecision], names: &[String; 2]) -> Vec<String> {
    let line = |JoinDecision { part, name, side, difference }: &JoinDecision| {
        let from = match side {
            WorkspaceSide::Left => &names[0],
            WorkspaceSide::Right => &names[1],
        };
        format!("keeping the {part} `{name}` of {from}; that of the other workspace differs: {difference}")
    };
    kept.iter().map(line).collect()
}
