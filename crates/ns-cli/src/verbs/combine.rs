//! `nextstat combine`: several workspaces combined into one, by the names of parameters or as a
//! correlation map says.

use super::Command;
use crate::args::files::Files;
use crate::args::values::source;
use crate::args::{CardArgs, named_or_piped};
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, combination, write_json, write_report};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::combination::{CombinationInput, CombinationMap, CombineRequest, combine};
use nextstat::number::counted;
use ns_translate::workspace::{ChannelJoin, WorkspaceCounts, WorkspaceDocument, WorkspaceJoin};
use ns_translate::{DocumentKind, DocumentSource, LabelledCard, WorkspaceText, join_cards, read_bytes};
use std::path::PathBuf;

/// Arguments of `combine`.
#[derive(Debug, Args)]
pub(crate) struct CombineArgs {
    /// Workspaces, plain or compressed, combined one after the other; `-` reads standard input, and
    /// so does a missing second one; without any those whose files the map names. Data cards of
    /// Combine, also as `LABEL=CARD`, are joined as combineCards.py joins them
    #[arg(value_name = "WORKSPACE", value_parser = source())]
    workspaces: Vec<DocumentSource>,

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
    fn sources(&self) -> Result<Vec<DocumentSource>, CliError> {
        let mut sources = self.workspaces.clone();
        if sources.is_empty() && self.map.is_some() {
            return Ok(sources);
        }
        while sources.len() < 2 {
            sources.push(named_or_piped(None)?);
        }
        let from_stdin = sources.iter().chain(&self.map).filter(|source| **source == DocumentSource::Stdin);
        if from_stdin.count() > 1 { Err(CliError::TwoFromStdin) } else { Ok(sources) }
    }

    /// Returns the data cards; none if no document is one.
    fn cards(&self) -> Result<Vec<LabelledCard>, CliError> {
        let cards: Vec<LabelledCard> = self.workspaces.iter().map(labelled).collect();
        let is_card = |card: &LabelledCard| -> Result<bool, CliError> {
            let DocumentSource::Path(path) = &card.source else { return Ok(false) };
            // A pipe can be read only once, and what cannot be read is explained by the reader that
            // comes next.
            if !path.is_file() {
                return Ok(false);
            }
            Ok(DocumentKind::recognize(&read_bytes(&card.source)?) == Some(DocumentKind::Card))
        };
        let kinds = cards.iter().map(is_card).collect::<Result<Vec<bool>, _>>()?;
        if !kinds.contains(&true) {
            return Ok(Vec::new());
        }
        match kinds.iter().position(|is_card| !is_card) {
            Some(other) => Err(CliError::NotACard { name: cards[other].source.name() }),
            None => Ok(cards),
        }
    }

    fn join_cards(&self, cards: &[LabelledCard]) -> Result<Status, CliError> {
        let WorkspaceText { bytes, warnings } = join_cards(cards, &self.card.options())?;
        let document = WorkspaceDocument::from_bytes(&bytes).map_err(|error| CliError::NotRewritable(error.into()))?;
        write_json(&document, &self.output)?;
        let reporter = Reporter::new(&self.output);
        reporter.warn(&warnings);
        reporter.note(|| counts(&document));
        Ok(Status::Done)
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
        Ok(CombineRequest { map, join, channels })
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
        let sources: Vec<Option<&DocumentSource>> = self.workspaces.iter().chain(&self.map).map(Some).collect();
        Files::of(&sources, &self.output).with_result(&self.output).writing(self.report.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let cards = self.cards()?;
        if !cards.is_empty() {
            return self.join_cards(&cards);
        }
        let request = self.request()?;
        let load = |source: &DocumentSource| CombinationInput::load(source).map_err(CliError::NotRewritable);
        let inputs: Vec<CombinationInput> = self.sources()?.iter().map(load).collect::<Result<_, _>>()?;
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

/// Splits `LABEL=CARD`; a file whose name has an equals sign is one.
fn labelled(source: &DocumentSource) -> LabelledCard {
    if let DocumentSource::Path(path) = source
        && !path.exists()
        && let Some((label, file)) = path.to_str().and_then(|text| text.split_once('='))
    {
        return LabelledCard { label: Some(label.to_owned()), source: DocumentSource::Path(file.into()) };
    }
    LabelledCard { label: None, source: source.clone() }
}

/// Formats the number of channels, samples, modifiers and measurements.
pub(super) fn counts(document: &WorkspaceDocument) -> String {
    let WorkspaceCounts { channels, samples, modifiers, measurements } = document.counts();
    let parts = [(channels, "channel"), (samples, "sample"), (modifiers, "modifier"), (measurements, "measurement")];
    let parts = parts.map(|(n, what)| counted(n, what));
    format!("{}\n", parts.join(", "))
}
