//! Arguments of the verbs that make workspaces from workspaces: `combine`, `prune`, `rename` and `sort`, with pyhf's options.

use clap::{Args, ValueEnum};
use ns_core::spec::ModifierKind;
use ns_translate::DocumentSource;
use ns_translate::workspace::{ChannelJoin, NewName, PruneRequest, RenameRequest, WorkspaceJoin};

use super::model::named_or_piped;
use super::values::source;
use super::{OutputArgs, SourceArgs};
use crate::error::CliError;

/// Arguments of `combine`.
#[derive(Debug, Args)]
pub(crate) struct CombineArgs {
    /// The first workspace, plain or compressed; `-` reads standard input
    #[arg(value_name = "WORKSPACE_ONE", value_parser = source())]
    one: Option<DocumentSource>,

    /// The second workspace; standard input if it is not named
    #[arg(value_name = "WORKSPACE_TWO", value_parser = source())]
    two: Option<DocumentSource>,

    /// What becomes of channels, observations and measurements whose names are in both
    #[arg(short, long, value_enum, default_value_t)]
    join: JoinArg,

    /// Give a channel that is in both the samples of both; with an outer join only
    #[arg(long, overrides_with = "no_merge_channels")]
    merge_channels: bool,

    /// Take a channel as a whole; this is the default
    #[arg(long)]
    no_merge_channels: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl CombineArgs {
    /// The first workspace and the second.
    pub(crate) fn sources(&self) -> Result<[DocumentSource; 2], CliError> {
        let sources = [named_or_piped(self.one.as_ref())?, named_or_piped(self.two.as_ref())?];
        if sources == [DocumentSource::Stdin, DocumentSource::Stdin] {
            Err(CliError::TwoFromStdin)
        } else {
            Ok(sources)
        }
    }

    pub(crate) fn join(&self) -> WorkspaceJoin {
        match self.join {
            JoinArg::None => WorkspaceJoin::None,
            JoinArg::Outer => WorkspaceJoin::Outer,
            JoinArg::LeftOuter => WorkspaceJoin::LeftOuter,
            JoinArg::RightOuter => WorkspaceJoin::RightOuter,
        }
    }

    pub(crate) fn channels(&self) -> ChannelJoin {
        if self.merge_channels { ChannelJoin::Merged } else { ChannelJoin::Whole }
    }
}

/// Joins by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum JoinArg {
    /// Nothing may be in both
    #[default]
    None,
    /// What is in both must be the same; of a measurement that is in both, the settings are put together
    Outer,
    /// The first workspace's is kept
    #[value(name = "left outer", alias = "left-outer")]
    LeftOuter,
    /// The second workspace's is kept
    #[value(name = "right outer", alias = "right-outer")]
    RightOuter,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) workspace: SourceArgs,

    /// Leave out a channel and what was observed in it; repeatable
    #[arg(short, long, value_name = "NAME")]
    channel: Vec<String>,

    /// Leave out a sample, in every channel; repeatable
    #[arg(short, long, value_name = "NAME")]
    sample: Vec<String>,

    /// Leave out a modifier, in every sample, and its parameter's settings; repeatable
    #[arg(short, long, value_name = "NAME")]
    modifier: Vec<String>,

    /// Leave out all modifiers of a type; repeatable
    #[arg(short = 't', long, value_name = "TYPE", value_parser = kinds())]
    modifier_type: Vec<ModifierKind>,

    /// Leave out a measurement; repeatable
    #[arg(long, value_name = "NAME")]
    measurement: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl PruneArgs {
    pub(crate) fn wanted(&self) -> PruneRequest {
        PruneRequest {
            channels: self.channel.clone(),
            samples: self.sample.clone(),
            modifiers: self.modifier.clone(),
            modifier_types: self.modifier_type.clone(),
            measurements: self.measurement.clone(),
        }
    }
}

/// The words for the types of modifiers, and what they mean.
fn kinds() -> impl clap::builder::TypedValueParser<Value = ModifierKind> {
    use clap::builder::TypedValueParser;
    let words = clap::builder::PossibleValuesParser::new(ModifierKind::ALL.map(ModifierKind::as_str));
    words.try_map(|word| ModifierKind::from_word(&word).ok_or("no such type"))
}

/// Arguments of `rename`.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) workspace: SourceArgs,

    /// Call a channel, and what was observed in it, by another name; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    channel: Vec<String>,

    /// Call a sample by another name, in every channel; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    sample: Vec<String>,

    /// Call a modifier and its parameter by another name, in every sample and measurement; repeatable
    #[arg(short, long, num_args = 2, value_names = ["OLD", "NEW"])]
    modifier: Vec<String>,

    /// Call a measurement by another name; repeatable
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    measurement: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl RenameArgs {
    pub(crate) fn wanted(&self) -> RenameRequest {
        RenameRequest {
            channels: pairs(&self.channel),
            samples: pairs(&self.sample),
            modifiers: pairs(&self.modifier),
            measurements: pairs(&self.measurement),
        }
    }
}

/// An option with two values, given several times, is a list of old and new names in turn.
fn pairs(names: &[String]) -> Vec<NewName> {
    let (pairs, _) = names.as_chunks::<2>();
    pairs.iter().map(|[from, to]| NewName { from: from.clone(), to: to.clone() }).collect()
}

/// Arguments of `sort`.
#[derive(Debug, Args)]
pub(crate) struct SortArgs {
    #[command(flatten)]
    pub(crate) workspace: SourceArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
