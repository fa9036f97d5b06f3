//! Combinations in HistFactory XML with histograms in ROOT files, read as ROOT reads them, and
//! written.
//!
//! Where the XML says nothing, ROOT's defaults hold: statistical uncertainties have Poisson terms
//! and a threshold of 5%, a `ShapeSys` has Gaussian terms, a sample is normalised by theory. (The
//! reader of `nextstat.pyhf` has pyhf's defaults instead.) They were taken from the parser of ROOT
//! (`roofit/histfactory/src/ConfigParser.cxx`) and from the behaviour of ROOT 6.40; tests compare
//! with models that ROOT made.
//!
//! `combination` and `channel` describe the files as written, `templates` and `measurement` turn
//! them into a workspace, and `parameters` is what the former tell the latter. `write` is the way
//! back.

mod channel;
mod combination;
mod element;
mod error;
mod files;
mod measurement;
mod parameters;
mod templates;
mod write;

use std::collections::HashMap;
use std::path::PathBuf;

use ns_core::expected::expected_main;
use ns_core::spec::{Channel, ModifierData, Observation, Workspace};
use ns_core::{CompileError, CompileOptions, PoiChoice, compile};

use self::channel::WrittenChannel;
use self::combination::{Combination, Input, WrittenMeasurement};
use self::element::Node;
pub use self::error::{HistFactoryError, HistFactoryProblem};
use self::files::InputFiles;
use self::measurement::MeasurementReader;
use self::parameters::Parameters;
use self::templates::{ChannelReader, ReadChannel, Remark};
pub use self::write::XmlLayout;
pub(crate) use self::write::{WrittenCombination, XmlDialect, write};
use crate::clip::cut_off;
use crate::source::{DocumentSource, name_of};
use crate::text;
use crate::whole_file::NewFile;
use crate::xml;

/// A combination that was read.
pub(crate) struct ReadCombination {
    pub(crate) workspace: Workspace,
    /// The files that were read, but for that of the combination.
    pub(crate) files: Vec<PathBuf>,
    /// Files that were found elsewhere than their names say.
    pub(crate) moved: Vec<String>,
    /// What is left out, or is not as a reader of the XML would expect.
    pub(crate) warnings: Vec<String>,
    /// What the combination says to this program only.
    pub(crate) instruction: Option<String>,
}

/// The target of the processing instruction for what XML has no place for.
pub(crate) const INSTRUCTION: &str = "nextstat";

/// Reads the combination in `bytes`, with the files that it names.
pub(crate) fn read(bytes: &[u8], origin: &DocumentSource) -> Result<ReadCombination, HistFactoryError> {
    read_with(bytes, InputFiles::new(origin), &origin.name())
}

/// Reads a combination that is about to be written.
pub(crate) fn read_written(text: &str, files: &[NewFile]) -> Result<ReadCombination, HistFactoryError> {
    read_with(text.as_bytes(), InputFiles::in_memory(files), "what is written")
}

fn read_with(bytes: &[u8], files: InputFiles, name: &str) -> Result<ReadCombination, HistFactoryError> {
    let text = text::decode(bytes)?;
    let root = xml::parse(text)?;
    let combination = Combination::read(Node::root(text, &root, "Combination")?)?;
    let mut reading = Reading {
        files,
        parameters: Parameters::default(),
        warnings: Vec::new(),
        lumi: combination.measurements[0].lumi,
    };
    let channels = combination.inputs.iter().map(|input| reading.channel(input)).collect::<Result<Vec<_>, _>>()?;
    let workspace = reading.workspace(&combination, channels, name)?;
    let (files, moved) = reading.files.into_parts();
    let instruction = xml::instruction(text, INSTRUCTION);
    Ok(ReadCombination { workspace, files, moved, warnings: reading.warnings, instruction })
}

struct Reading {
    files: InputFiles,
    parameters: Parameters,
    warnings: Vec<String>,
    /// The luminosity of the first measurement.
    lumi: f64,
}

/// Says why the data called `name` of a channel are not the observed ones: ROOT takes those without
/// a name.
fn why_left_out(name: &str, has_observed: bool) -> String {
    match (name, has_observed) {
        ("", _) => "further data without a `Name` are left out: the first ones are the observed ones".to_owned(),
        (_, true) => format!("the data `{name}` are left out: those without a `Name` are the observed ones"),
        (_, false) => {
            format!("the data `{name}` are left out, and the channel has no observed ones, which have no `Name`")
        }
    }
}

impl Reading {
    fn channel(&mut self, input: &Input) -> Result<ReadChannel, HistFactoryError> {
        let path = self.files.find(&input.file, &input.place)?;
        let name = name_of(&path);
        let bytes = self.files.bytes(path)?;
        self.channel_of(&bytes, &name).map_err(|error| error.in_file(&name))
    }

    fn channel_of(&mut self, bytes: &[u8], name: &str) -> Result<ReadChannel, HistFactoryError> {
        let text = text::decode(bytes)?;
        let root = xml::parse(text)?;
        let written = WrittenChannel::read(Node::root(text, &root, "Channel")?)?;
        let left_out = written.other_data.iter().map(|data| why_left_out(data, written.data.is_some()));
        self.warnings.extend(left_out.map(|why| format!("in {name}: {why}")));
        let mut reader = ChannelReader::new(&mut self.files, &mut self.parameters, self.lumi);
        let read = reader.read(&written)?;
        let remarks = std::mem::take(&mut reader.remarks);
        self.warn(remarks, name);
        Ok(read)
    }

    fn warn(&mut self, remarks: Vec<Remark>, name: &str) {
        self.warnings.extend(remarks.into_iter().map(|remark| format!("in {name} {}: {}", remark.place, remark.text)));
    }

    fn workspace(
        &mut self,
        combination: &Combination,
        read: Vec<ReadChannel>,
        name: &str,
    ) -> Result<Workspace, HistFactoryError> {
        self.require_one_luminosity(&combination.measurements)?;
        let mut measurements = Vec::new();
        for written in &combination.measurements {
            let mut reader = MeasurementReader::new(written, &self.parameters);
            measurements.push(reader.read()?);
            let mut remarks = std::mem::take(&mut reader.remarks);
            remarks.extend(bins_remark(written, &read));
            self.warn(remarks, name);
        }
        let observed = observed(&read, combination)?;
        let mut channels: Vec<Channel> = read.into_iter().map(|read| self.shared(read.channel)).collect();
        channels.iter_mut().for_each(|channel| cut_off(channel, &measurements));
        let mut workspace = Workspace { channels, observations: Vec::new(), measurements };
        match observed {
            Some(observations) => workspace.observations = observations,
            None => {
                // The model needs some counts before it can say which it expects.
                let zeros = |channel: &Channel| {
                    let n_bins = channel.samples.first().map_or(0, |sample| sample.data.len());
                    Observation { name: channel.name.clone(), data: vec![0.0; n_bins] }
                };
                workspace.observations = workspace.channels.iter().map(zeros).collect();
                workspace.observations = expected_counts(&workspace)?;
                let text = "no channel has data: the expected counts are taken for the observed ones";
                self.warnings.push(format!("in {name}: {text}"));
            }
        }
        Ok(workspace)
    }

    /// Makes shapefactors of the shapesys that several samples share.
    fn shared(&self, mut channel: Channel) -> Channel {
        for modifier in channel.samples.iter_mut().flat_map(|sample| &mut sample.modifiers) {
            if matches!(modifier.data, ModifierData::ShapeSys(_)) && self.parameters.is_shared(&modifier.name) {
                modifier.data = ModifierData::ShapeFactor;
            }
        }
        channel
    }

    fn require_one_luminosity(&self, measurements: &[WrittenMeasurement]) -> Result<(), HistFactoryError> {
        let other = measurements.iter().find(|measurement| measurement.lumi != self.lumi);
        match (&self.parameters.scaled_sample, other) {
            (Some(sample), Some(other)) => {
                Err(HistFactoryProblem::Luminosities { sample: sample.clone() }.at(&other.place))
            }
            _ => Ok(()),
        }
    }
}

/// Says that a range of bins has no effect, where it would have one.
fn bins_remark(written: &WrittenMeasurement, read: &[ReadChannel]) -> Option<Remark> {
    let n_bins = |read: &ReadChannel| read.channel.samples.first().map_or(0, |sample| sample.data.len());
    let most = read.iter().map(n_bins).max().unwrap_or_default();
    let [low, high] = written.bins;
    let cuts = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < most as f64);
    let text = "`BinLow` and `BinHigh` have no effect, as in ROOT: all bins are taken".to_owned();
    cuts.then(|| Remark { text, place: written.place.clone() })
}

/// Returns the observed counts; `None` if no channel has any.
fn observed(read: &[ReadChannel], combination: &Combination) -> Result<Option<Vec<Observation>>, HistFactoryError> {
    let name = |read: Option<&ReadChannel>| read.map(|read| read.channel.name.clone());
    let with = name(read.iter().find(|read| read.observed.is_some()));
    let without = name(read.iter().find(|read| read.observed.is_none()));
    match (with, without) {
        (Some(with), Some(without)) => {
            Err(HistFactoryProblem::PartialData { without, with }.at(&combination.inputs[0].place))
        }
        (None, _) => Ok(None),
        _ => Ok(Some(
            read.iter()
                .filter_map(|read| Some(Observation { name: read.channel.name.clone(), data: read.observed.clone()? }))
                .collect(),
        )),
    }
}

/// Gives every channel the counts that the model of the first measurement expects, as ROOT's
/// `asimovData` has them.
fn expected_counts(workspace: &Workspace) -> Result<Vec<Observation>, CompileError> {
    let options = CompileOptions { poi: PoiChoice::None, ..CompileOptions::default() };
    let model = compile(workspace, &options)?;
    let counts = expected_main(&model, &model.parameters.init);
    let channels = model.channels.iter().enumerate();
    let by_name: HashMap<&str, &[f64]> =
        channels.map(|(index, name)| (name.as_str(), &counts[model.channel_bins(index)])).collect();
    let of_channel = |channel: &Channel| {
        let data = by_name.get(channel.name.as_str()).map(|counts| counts.to_vec()).unwrap_or_default();
        Observation { name: channel.name.clone(), data }
    };
    Ok(workspace.channels.iter().map(of_channel).collect())
}
