//! `nextstat convert`: a workspace in another format.

use super::Command;
use crate::args::InputArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, Reporter, reporter, write_files, write_text_to};
use crate::status::Status;
use clap::Args;
use nextstat::number::counted;
use ns_translate::{LoadedWorkspace, TargetFormat, XmlFilesError, convert, convert_to_xml_at};
use std::path::{Path, PathBuf};

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: InputArgs,

    /// File to write, as `--output-file`; of HistFactory XML the combination, beside which its
    /// further files go
    #[arg(value_name = "OUTPUT", conflicts_with = "output_file")]
    target: Option<PathBuf>,

    /// Format to write: `pyhf` is what pyhf reads, `extended` may have further keys, `hs3` is HS3
    /// 0.2, and `xml` is HistFactory XML with a ROOT file. A model that the format cannot hold is
    /// an error which names what it lacks. Data cards are only read
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

/// Writes a workspace as a combination at `target`, with the files that it names beside it.
fn write_xml(loaded: &LoadedWorkspace, name: String, target: Option<&Path>, input: &InputArgs) -> Result<(), CliError> {
    let path = target.filter(|path| path.as_os_str() != "-").ok_or(CliError::SeveralFiles)?;
    let made = convert_to_xml_at(&loaded.workspace, &loaded.kept, path).map_err(|error| match error {
        XmlFilesError::Conversion(error) => CliError::Conversion { name, error },
        error => CliError::XmlFiles(error),
    })?;
    made.warnings.iter().for_each(|text| reporter::warning(text));
    write_files(&made.files, &input.read_files(loaded))
}

impl Command for ConvertArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.input, &self.output).writing(self.target.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let (loaded, name) = self.input.load_for(self.measurement.clone())?;
        let target = self.target.as_deref().or(self.output.output_file.as_deref());
        if self.to == TargetFormat::Xml {
            write_xml(&loaded, name, target, &self.input)?;
        } else {
            let converted = convert(&loaded.workspace, &loaded.kept, self.to)
                .map_err(|error| CliError::Conversion { name, error })?;
            converted.warnings.iter().for_each(|text| reporter::warning(text));
            write_text_to(&converted.text, target)?;
        }
        let (channels, measurements) = (loaded.workspace.channels.len(), loaded.workspace.measurements.len());
        let note = || format!("{}, {}\n", counted(channels, "channel"), counted(measurements, "measurement"));
        Reporter::new(&self.output).note(note);
        Ok(Status::Done)
    }
}
