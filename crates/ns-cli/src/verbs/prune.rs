//! `nextstat prune`: a workspace without some of its parts.

use super::Command;
use super::combine::counts;
use crate::args::SourceArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, write_json};
use crate::status::Status;
use clap::Args;
use ns_core::spec::ModifierKind;
use ns_translate::workspace::{OrphanedMeasurement, PruneRequest, prune};

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    workspace: SourceArgs,

    /// Remove a channel and its observation, or all whose names match a pattern (`VR_*`);
    /// repeatable
    #[arg(short, long, value_name = "NAME")]
    channel: Vec<String>,

    /// Remove a sample from every channel, by name or pattern; repeatable
    #[arg(short, long, value_name = "NAME")]
    sample: Vec<String>,

    /// Remove a modifier from every sample, and the settings of its parameter, by name or pattern;
    /// repeatable
    #[arg(short, long, value_name = "NAME")]
    modifier: Vec<String>,

    /// Remove all modifiers of a type; repeatable
    #[arg(short = 't', long, value_name = "TYPE", value_parser = kinds())]
    modifier_type: Vec<ModifierKind>,

    /// Remove a measurement, by name or pattern; repeatable
    #[arg(long, value_name = "NAME")]
    measurement: Vec<String>,

    #[command(flatten)]
    output: OutputArgs,
}

impl PruneArgs {
    fn wanted(&self) -> PruneRequest {
        PruneRequest {
            channels: self.channel.clone(),
            samples: self.sample.clone(),
            modifiers: self.modifier.clone(),
            modifier_types: self.modifier_type.clone(),
            measurements: self.measurement.clone(),
        }
    }
}

/// Parses the type of a modifier.
fn kinds() -> impl clap::builder::TypedValueParser<Value = ModifierKind> {
    use clap::builder::TypedValueParser;
    let words = clap::builder::PossibleValuesParser::new(ModifierKind::ALL.map(ModifierKind::as_str));
    words.try_map(|word| ModifierKind::from_word(&word).ok_or("unknown type of modifier"))
}

impl Command for PruneArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[self.workspace.named()], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let (document, name) = self.workspace.rewritable()?;
        let pruned = prune(document, &self.wanted()).map_err(|error| CliError::Workspace { name, error })?;
        write_json(&pruned.document, &self.output)?;
        let reporter = Reporter::new(&self.output);
        reporter.warn(&orphans(&pruned.orphans));
        reporter.note(|| counts(&pruned.document));
        Ok(Status::Done)
    }
}

/// Formats the measurements with a parameter of interest that is gone.
fn orphans(orphans: &[OrphanedMeasurement]) -> Vec<String> {
    let line = |OrphanedMeasurement { measurement, poi }: &OrphanedMeasurement| {
        format!("no modifier uses `{poi}` any more, the parameter of interest of the measurement `{measurement}`")
    };
    orphans.iter().map(line).collect()
}
