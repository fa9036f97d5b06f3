//! `nextstat convert`: a workspace in another format.

use super::Command;
use crate::args::InputArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, reporter, write_text_to};
use crate::status::Status;
use clap::Args;
use nextstat::number::counted;
use ns_translate::{TargetFormat, convert};
use std::path::PathBuf;

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: InputArgs,

    /// File to write, as `--output-file`
    #[arg(value_name = "OUTPUT", conflicts_with = "output_file")]
    target: Option<PathBuf>,

    /// Format to write: `pyhf` is what pyhf reads, `extended` may have further keys, `hs3` is HS3
    /// 0.2. A model that the format cannot hold is an error which names what it lacks
    #[arg(long, value_name = "FORMAT", value_parser = TargetFormat::ALL.map(|(_, name)| name))]
    to: String,

    /// Analysis of an HS3 document: its data are read; the first one if not given
    #[arg(long, visible_alias = "analysis", value_name = "NAME", help_heading = "Model")]
    measurement: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for ConvertArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.input, &self.output).writing(self.target.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let (loaded, name) = self.input.load_for(self.measurement.clone())?;
        // The names of the argument are those of the formats.
        let format = TargetFormat::from_word(&self.to).unwrap_or(TargetFormat::Extended);
        let converted =
            convert(&loaded.workspace, &loaded.kept, format).map_err(|error| CliError::Conversion { name, error })?;
        converted.warnings.iter().for_each(|text| reporter::warning(text));
        write_text_to(&converted.text, self.target.as_deref().or(self.output.output_file.as_deref()))?;
        let (channels, measurements) = (loaded.workspace.channels.len(), loaded.workspace.measurements.len());
        let note = || format!("{}, {}\n", counted(channels, "channel"), counted(measurements, "measurement"));
        Reporter::new(&self.output).note(note);
        Ok(Status::Done)
    }
}
