//! `nextstat decorrelate`: parameters of a workspace split by channel or by sample.

use super::Command;
use super::combine::counts;
use crate::args::SourceArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, combination, write_json, write_report};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::combination::{CombinationInput, decorrelate};
use ns_translate::workspace::{DecorrelateRequest, SplitBy};
use std::path::PathBuf;

/// Arguments of `decorrelate`.
#[derive(Debug, Args)]
pub(crate) struct DecorrelateArgs {
    #[command(flatten)]
    workspace: SourceArgs,

    /// Name or pattern (`JES_*`) of the modifiers and parameters to split; repeatable
    #[arg(short, long, value_name = "PATTERN", required = true)]
    modifier: Vec<String>,

    /// What the parts differ in; the modifier `X` in the part `P` becomes `X_P`
    #[arg(long, value_enum, default_value_t)]
    by: ByArg,

    /// A part: its suffix, and a name or a pattern of its channels or samples; repeatable, also for
    /// one suffix. Modifiers in no part keep their name. Without parts each channel or sample is a
    /// part
    #[arg(long, num_args = 2, value_names = ["SUFFIX", "PATTERN"])]
    part: Vec<String>,

    /// Split modifiers in these channels only, names or patterns; repeatable
    #[arg(short, long, value_name = "PATTERN")]
    channel: Vec<String>,

    /// Split modifiers in these samples only, names or patterns; repeatable
    #[arg(short, long, value_name = "PATTERN")]
    sample: Vec<String>,

    /// Parameter of interest of the result; needed if it is split
    #[arg(long, value_name = "NAME")]
    poi: Option<String>,

    /// Write what was split as JSON to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

/// What the parts of a parameter differ in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ByArg {
    /// The channel
    #[default]
    #[value(alias = "region")]
    Channel,
    /// The sample
    Sample,
}

impl DecorrelateArgs {
    fn request(&self) -> DecorrelateRequest {
        let mut parts: Vec<(String, Vec<String>)> = Vec::new();
        let (pairs, _) = self.part.as_chunks::<2>();
        for [suffix, pattern] in pairs {
            match parts.iter_mut().find(|(known, _)| known == suffix) {
                Some((_, patterns)) => patterns.push(pattern.clone()),
                None => parts.push((suffix.clone(), vec![pattern.clone()])),
            }
        }
        DecorrelateRequest {
            parameters: self.modifier.clone(),
            by: if self.by == ByArg::Sample { SplitBy::Sample } else { SplitBy::Channel },
            channels: self.channel.clone(),
            samples: self.sample.clone(),
            parts,
            poi: self.poi.clone(),
        }
    }
}

impl Command for DecorrelateArgs {
    fn files(&self) -> Files<'_> {
        let sources = [self.workspace.named()];
        Files::of(&sources, &self.output).with_result(&self.output).writing(self.report.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let input = CombinationInput::load(&self.workspace.source()?).map_err(CliError::NotRewritable)?;
        let made = decorrelate(input, &self.request(), &self.workspace.card_options())?;
        write_json(&made.workspace, &self.output)?;
        write_report(&made.document(), self.report.as_deref())?;
        let reporter = Reporter::new(&self.output);
        reporter.warn(&made.report.warnings);
        reporter.note(|| counts(&made.workspace) + &combination::table(&made.report));
        Ok(Status::Done)
    }
}
