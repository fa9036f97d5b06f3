//! `nextstat json2xml`: a workspace as HistFactory XML in the folders that pyhf has for it.

use super::Command;
use crate::args::InputArgs;
use crate::error::CliError;
use crate::output::{reporter, write_files};
use crate::status::Status;
use clap::Args;
use ns_translate::whole_file::NewFile;
use ns_translate::{XmlLayout, convert_to_pyhf_xml};
use std::path::{Component, Path, PathBuf};

/// Arguments of `json2xml`.
#[derive(Debug, Args)]
pub(crate) struct Json2XmlArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Analysis of an HS3 document: its data are read; the first one if not given
    #[arg(long, visible_alias = "analysis", value_name = "NAME", help_heading = "Model")]
    measurement: Option<String>,

    /// Folder for everything, made if there is none
    #[arg(long, value_name = "PATH", default_value = ".", help_heading = "Output")]
    output_dir: String,

    /// Folder in it for the files of channels
    #[arg(long, value_name = "NAME", default_value = "config", help_heading = "Output")]
    specroot: String,

    /// Folder in it for the ROOT file with the histograms
    #[arg(long, value_name = "NAME", default_value = "data", help_heading = "Output")]
    dataroot: String,

    /// What the names of XML files begin with
    #[arg(long, value_name = "NAME", default_value = "FitConfig", help_heading = "Output")]
    resultprefix: String,
}

impl Json2XmlArgs {
    /// Returns a path in the folder for everything, without the parts `.`.
    fn within(&self, name: &str) -> PathBuf {
        let path = Path::new(&self.output_dir).join(name);
        path.components().filter(|part| *part != Component::CurDir).collect()
    }
}

impl Command for Json2XmlArgs {
    fn run(self) -> Result<Status, CliError> {
        let (loaded, name) = self.input.load_for(self.measurement.clone())?;
        let folder = |name: &str| self.within(name).to_string_lossy().into_owned();
        let top = self.within(&format!("{}.xml", self.resultprefix));
        let folder_of_top = top.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
        let (channels, histograms) = (folder(&self.specroot), folder(&self.dataroot));
        let layout = XmlLayout::in_folders(&folder_of_top, &channels, &histograms, &self.resultprefix);
        let converted = convert_to_pyhf_xml(&loaded.workspace, &loaded.kept, &layout)
            .map_err(|error| CliError::Conversion { name, error })?;
        converted.warnings.iter().for_each(|text| reporter::warning(text));
        let top = NewFile { path: top, bytes: converted.text.into() };
        let files: Vec<NewFile> = converted.files.into_iter().chain([top]).collect();
        write_files(&files, &self.input.read_files(&loaded))?;
        Ok(Status::Done)
    }
}
