//! `nextstat combine`: several workspaces combined into one, by the names of parameters or as a
//! correlation map says.

use super::Command;
use crate::args::files::Files;
use crate::args::values::{LabelledSource, labelled_source, source};
use crate::args::{CardArgs, named_or_piped};
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, combination, write_json, write_report};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::combination::{CombinationInput, CombinationMap, CombineRequest, combine};
use nextstat::number::counted;
use ns_translate::DocumentSource;
use ns_translate::workspace::{ChannelJoin, WorkspaceCounts, WorkspaceDocument, WorkspaceJoin};
use std::path::PathBuf;

/// Arguments of `combine`.
#[derive(Debug, Args)]
pub(crate) struct CombineArgs {
    /// Workspaces, plain or compressed, combined one after the other; `-` reads standard input, and
    /// so does a missing second one; without any those whose files the map names. `LABEL=WORKSPACE`
    /// labels one in maps and reports. Data cards of Combine are joined as combineCards.py joins
    /// them, with labels in the names of channels
    #[arg(value_name = "WORKSPACE", value_parser = labelled_source())]
    workspaces: Vec<LabelledSource>,

    /// Correlation map, YAML or JSON: which parameters are one and which are split, and the
    /// measurement of the result
    #[arg(long, value_name = "FILE", value_parser = source(), conflicts_with_all = ["join", "merge_channels", "no_merge_channels"])]
    map: Option<DocumentSource>,

    /// How to join channels, observations and measurements with a name that is in two workspaces;
    /// without it no channel may be in both, and measurements of one name are merged
    #[arg(short, long, value_enum)]
    join: Option<JoinArg>,

    /// Give a channel of two workspaces the samples of both; with an outer join only
    #[arg(long, overrides_with = "no_merge_channels")]
    merge_channels: bool,

    /// Take each channel as a whole; this is the default
    #[arg(long)]
    no_merge_channels: bool,

    /// Write what was correlated and why as JSON to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,

    #[command(flatten)]
    card: CardArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl CombineArgs {
    /// Returns the workspaces, at least two, or none if the map names them.
    fn inputs(&self) -> Result<Vec<CombinationInput>, CliError> {
        let mut sources = self.workspaces.clone();
        if sources.is_empty() && self.map.is_some() {
            return Ok(Vec::new());
        }
        while sources.len() < 2 {
            sources.push(LabelledSource::from(named_or_piped(None)?));
        }
        let from_stdin = sources.iter().map(|one| &one.source).chain(&self.map);
        if from_stdin.filter(|source| **source == DocumentSource::Stdin).count() > 1 {
            return Err(CliError::TwoFromStdin);
        }
        sources.into_iter().map(input).collect()
    }

    fn request(&self) -> Result<CombineRequest, CliError> {
        let join = match self.join {
            None => WorkspaceJoin::Distinct,
            Some(JoinArg::None) => WorkspaceJoin::None,
            Some(JoinArg::Outer) => WorkspaceJoin::Outer,
            Some(JoinArg::LeftOuter) => WorkspaceJoin::LeftOuter,
            Some(JoinArg::RightOuter) => WorkspaceJoin::RightOuter,
        };
        let channels = if self.merge_channels { ChannelJoin::Merged } else { ChannelJoin::Whole };
        let map = self.map.as_ref().map(CombinationMap::load).transpose()?;
        Ok(CombineRequest { map, join, channels, card: self.card.options() })
    }
}

/// Kinds of joins by pyhf's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JoinArg {
    /// No name may be in both, of a measurement neither
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
    fn files(&self) -> Files<'_> {
        let workspaces = self.workspaces.iter().map(|one| &one.source);
        let sources: Vec<Option<&DocumentSource>> = workspaces.chain(&self.map).map(Some).collect();
        Files::of(&sources, &self.output).with_result(&self.output).writing(self.report.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let request = self.request()?;
        let inputs = self.inputs()?;
        if let Some(map) = request.map.as_ref().filter(|_| inputs.is_empty()) {
            let (read, output) = (map.files()?, self.output.output_file.as_ref());
            Files::default()
                .reading_paths(&read)
                .writing(output)
                .writing(self.report.as_ref())
                .require_other_output()?;
        }
        let made = combine(inputs, &request)?;
        write_json(&made.workspace, &self.output)?;
        write_report(&made.document(), self.report.as_deref())?;
        let reporter = Reporter::new(&self.output);
        reporter.warn(&made.report.warnings);
        reporter.note(|| counts(&made.workspace) + &combination::table(&made.report));
        Ok(Status::Done)
    }
}

fn input(LabelledSource { label, source }: LabelledSource) -> Result<CombinationInput, CliError> {
    let input = CombinationInput::load(&source).map_err(CliError::NotRewritable)?;
    Ok(match label {
        Some(label) => input.labelled_as(label),
        None => input,
    })
}

/// Formats the number of channels, samples, modifiers and measurements.
pub(super) fn counts(document: &WorkspaceDocument) -> String {
    let WorkspaceCounts { channels, samples, modifiers, measurements } = document.counts();
    let parts = [(channels, "channel"), (samples, "sample"), (modifiers, "modifier"), (measurements, "measurement")];
    let parts = parts.map(|(n, what)| counted(n, what));
    format!("{}\n", parts.join(", "))
}
