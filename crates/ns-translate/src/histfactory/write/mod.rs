//! Writes workspaces as combinations in HistFactory XML with a ROOT file.
//!
//! `roles` finds what modifiers and measurements make of each parameter, `channel` writes samples
//! and their histograms, `measurement` settings and constraint terms, `element` text. What XML
//! cannot hold is collected, and nothing is written then; `remarks` says what programs that read
//! the XML do otherwise.

mod channel;
pub(crate) mod dtd;
mod element;
mod free_names;
mod histograms;
mod measurement;
mod remarks;
mod roles;
mod settings;

use std::path::{Path, PathBuf};

use ns_core::spec::Workspace;

use self::channel::ChannelWriter;
use self::element::NewElement;
use self::free_names::{FreeNames, numbered};
use self::histograms::Histograms;
use self::measurement::MeasurementWriter;
use self::roles::Roles;
use crate::not_representable::{Lacking, NotRepresentable, TemplateLimits};
use crate::whole_file::NewFile;

/// Which program's reading of the XML the numbers are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XmlDialect {
    /// ROOT's, and that of this crate: samples that are not normalised by theory are scaled by the
    /// nominal luminosity, and the elements of a vector may start at different values.
    Root,
    /// pyhf's: no sample is scaled, and all elements of a vector have one setting.
    Pyhf,
}

/// Names of the files of a combination, as it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlLayout {
    /// What the files begin with that ROOT makes of the combination.
    pub output_prefix: String,
    /// What the names of the files of channels begin with.
    pub channel_prefix: String,
    /// The ROOT file with all histograms.
    pub root_file: String,
    /// The folder of the combination. The definition of the document type is there and in the
    /// folder of the files of channels: documents name one beside themselves.
    pub folder: String,
}

impl XmlLayout {
    /// Returns the names of files beside a combination called `stem`, which they begin with.
    #[must_use]
    pub fn beside(stem: &str) -> Self {
        Self {
            output_prefix: stem.to_owned(),
            channel_prefix: format!("{stem}_"),
            root_file: format!("{stem}.root"),
            folder: String::new(),
        }
    }

    /// Returns the names of files of a combination in the folder `top`, in a folder for those of
    /// channels and one for histograms, as pyhf has them.
    #[must_use]
    pub fn in_folders(top: &str, channels: &str, histograms: &str, prefix: &str) -> Self {
        let channel_prefix = joined(channels, prefix);
        Self {
            output_prefix: channel_prefix.clone(),
            channel_prefix: format!("{channel_prefix}_"),
            root_file: joined(histograms, "data.root"),
            folder: top.to_owned(),
        }
    }

    /// Returns where the definition of the document type goes, each place once.
    fn dtd_files(&self) -> Vec<PathBuf> {
        let beside_channels = Path::new(&self.channel_prefix).with_file_name(dtd::FILE);
        let beside_top = Path::new(&self.folder).join(dtd::FILE);
        if beside_top == beside_channels { vec![beside_top] } else { vec![beside_top, beside_channels] }
    }
}

fn joined(folder: &str, name: &str) -> String {
    PathBuf::from(folder).join(name).to_string_lossy().into_owned()
}

/// A combination that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenCombination {
    /// The text of the combination.
    pub(crate) text: String,
    /// The files that it names, and the definition of the document type.
    pub(crate) files: Vec<NewFile>,
    /// What programs that read the XML do otherwise than the workspace says.
    pub(crate) warnings: Vec<String>,
    /// JSON pointers of what it does not have, other than parts of the model; of ROOT's dialect
    /// none, because it is kept for the reader here.
    pub(crate) lost: Vec<String>,
}

/// Returns the files that describe `workspace`, or what XML cannot hold.
///
/// # Errors
///
/// Everything that XML cannot hold.
pub(crate) fn write(
    workspace: &Workspace,
    layout: &XmlLayout,
    dialect: XmlDialect,
) -> Result<WrittenCombination, Vec<NotRepresentable>> {
    let mut lacking = Lacking::default();
    lacking.add_yield_rules(workspace, TemplateLimits::OfRoot);
    let roles = Roles::collect(workspace, &mut lacking);
    settings::check(workspace, &roles, dialect, &mut lacking);
    let root_name = PathBuf::from(&layout.root_file);
    let root_name = root_name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let histograms = Histograms::new(&root_name);
    let mut writer = ChannelWriter { workspace, roles: &roles, layout, dialect, histograms, lacking: &mut lacking };
    let channels: Vec<NewElement> = (0..workspace.channels.len()).map(|c| writer.channel(c)).collect();
    let histograms = writer.histograms;
    let mut measurements = MeasurementWriter { roles: &roles, dialect, lacking: &mut lacking };
    let measurements: Vec<NewElement> =
        workspace.measurements.iter().enumerate().map(|(m, measurement)| measurements.write(m, measurement)).collect();
    let names = names_of_files(workspace, layout, dialect, &mut lacking);
    let root_bytes = histograms.finish(&mut lacking);
    lacking.into_result()?;
    let dtd = |path: PathBuf| NewFile { path, bytes: dtd::text().into_bytes() };
    let mut files: Vec<NewFile> = layout.dtd_files().into_iter().map(dtd).collect();
    for (element, name) in channels.iter().zip(&names) {
        files.push(NewFile { path: name.into(), bytes: element.document(dtd::FILE).into_bytes() });
    }
    files.push(NewFile { path: layout.root_file.clone().into(), bytes: root_bytes });
    let inputs = names.into_iter().map(|name| NewElement::with_text("Input", name));
    let top = NewElement::with_elements("Combination", inputs.chain(measurements).collect())
        .attribute("OutputFilePrefix", layout.output_prefix.as_str());
    let warnings = remarks::of(workspace, &roles);
    let lost = if dialect == XmlDialect::Pyhf { remarks::lost(workspace, &roles) } else { Vec::new() };
    Ok(WrittenCombination { text: top.document(dtd::FILE), files, warnings, lost })
}

/// Returns the name of each channel's file.
fn names_of_files(
    workspace: &Workspace,
    layout: &XmlLayout,
    dialect: XmlDialect,
    lacking: &mut Lacking,
) -> Vec<String> {
    let mut free = FreeNames::default();
    let mut names = Vec::new();
    for (c, channel) in workspace.channels.iter().enumerate() {
        let stem = format!("{}{}", layout.channel_prefix, histograms::as_file(&channel.name));
        // Some file systems do not tell capital letters from small ones.
        let number = match (free.take(&stem.to_lowercase()), dialect) {
            (number, XmlDialect::Root) | (number @ 1, XmlDialect::Pyhf) => number,
            (_, XmlDialect::Pyhf) => {
                let what = "a second file of the name that is that of channel";
                lacking.add(what, &channel.name, format!("/channels/{c}"));
                1
            }
        };
        names.push(format!("{}.xml", numbered(&stem, number)));
    }
    names
}
