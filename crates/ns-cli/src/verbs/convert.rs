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
    /// 0.2. A model that the format cannot hold is an error which names what it lacks. Data cards
    /// and HistFactory XML are only read; `json2xml` writes the latter
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: TargetFormat,

    /// Analysis of an HS3 document: its data are read; the first one if not given
    #[arg(long, visible_alias = "analysis", value_name = "NAME", help_heading = "Model")]
    measurement: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Parses the name of a format.
fn formats() -> impl clap::builder::TypedValueParser<Value = TargetFormat> {
    use clap::builder::TypedValueParser;
    let words = clap::builder::PossibleValuesParser::new(TargetFormat::ALL.map(|(_, name)| name));
    words.try_map(|word| TargetFormat::from_word(&word))
}

impl Command for ConvertArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.input, &self.output).writing(self.target.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let (loaded, name) = self.input.load_for(self.measurement.clone())?;
        let converted =
            convert(&loaded.workspace, &loaded.kept, self.to).map_err(|error| CliError::Conversion { name, error })?;
        converted.warnings.iter().for_each(|text| reporter::warning(text));
        write_text_to(&converted.text, self.target.as_deref().or(self.output.output_file.as_deref()))?;
        let (channels, measurements) = (loaded.workspace.channels.len(), loaded.workspace.measurements.len());
        let note = || format!("{}, {}\n", counted(channels, "channel"), counted(measurements, "measurement"));
        Reporter::new(&self.output).note(note);
        Ok(Status::Done)
    }
}
