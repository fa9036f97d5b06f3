//! Reads and writes documents of the HEP Statistics Serialization Standard (HS3) 0.2, as far as
//! they are binned models of HistFactory.
//!
//! Where the standard leaves open what a number means, it means what ROOT 6.40 writes: variations
//! of a `histosys` are templates and not differences, and `vals` of a `shapesys` are relative if
//! the modifier has a `constraint_type`. Without one they are absolute, as pyhs3 has them.
//!
//! An analysis becomes a measurement. `document` finds entries by name, `channel` and `terms` read
//! distributions, `parameters` and `names` are the parameters that the modifiers use, `settings`
//! what an analysis sets for them, `measurements` all analyses, and `kept` what a workspace has no
//! room for. `write` is the way back.

mod analysis;
mod channel;
mod document;
mod error;
mod interpolation;
mod kept;
mod limits;
mod measurements;
mod modifier;
mod names;
mod origin;
mod parameters;
mod points;
mod settings;
mod terms;
mod write;

use std::collections::HashSet;

use ns_core::spec::{Channel, Measurement, ModifierData, Observation, Sample, Workspace};

use self::analysis::{ChosenAnalyses, SetupReader, WrittenAnalysis};
use self::channel::{ChannelReader, ReadChannel, ReadModifier, check_axes, is_plain};
use self::document::{Document, Read, Sections, require_length};
pub use self::error::Hs3Error;
use self::kept::Address;
pub use self::kept::KeptKeys;
use self::measurements::MeasurementReader;
use self::names::NameTable;
use self::parameters::{Parameters, VectorKind};
use self::terms::TermReader;
pub(crate) use self::write::{WrittenHs3, write};
use crate::clip::cut_off;
use crate::json::{self, JsonCursor};

/// A document that was read.
pub(crate) struct ReadHs3 {
    pub(crate) workspace: Workspace,
    /// What the document has and the workspace has not.
    pub(crate) kept: KeptKeys,
    pub(crate) warnings: Vec<String>,
}

/// Reads the analysis called `measurement`, or the first one with observed data, and those with the
/// same likelihood.
pub(crate) fn read(bytes: &[u8], measurement: Option<&str>) -> Read<ReadHs3> {
    let text = json::decode(bytes)?;
    let tree = json::parse(text)?;
    let root = JsonCursor::top(text, &tree);
    let mut kept = KeptKeys::default();
    let sections = Sections::read(&root, &mut kept)?;
    let document = Document::new(&sections)?;
    let chosen = analysis::choose(analysis::read_all(&document)?, measurement)?;
    let mut reading = Reading {
        document: &document,
        parameters: Parameters::default(),
        kept,
        warnings: other_analyses(&chosen, measurement),
    };
    let likelihood = reading.likelihood(&chosen.analyses[0])?;
    let names = reading.parameters.names();
    let Reading { parameters, mut kept, mut warnings, .. } = reading;
    let measurements = MeasurementReader {
        setups: SetupReader::new(&document)?,
        parameters: &parameters,
        names: &names,
        kept: &mut kept,
        warnings: &mut warnings,
    }
    .all(&root, &chosen.analyses)?;
    let mut workspace = likelihood.into_workspace(&parameters, &names, measurements);
    origin::restore_observations(&root, &mut workspace.observations)?;
    if document.packages.iter().any(|package| package == "ROOT") {
        let Workspace { channels, measurements, .. } = &mut workspace;
        channels.iter_mut().for_each(|channel| cut_off(channel, measurements));
    }
    origin::restore_limits(&root, &mut workspace.channels)?;
    warnings.extend(kept.warnings());
    Ok(ReadHs3 { workspace, kept, warnings })
}

fn other_analyses(chosen: &ChosenAnalyses, measurement: Option<&str>) -> Vec<String> {
    if chosen.others.is_empty() || measurement.is_some() {
        return Vec::new();
    }
    let others = crate::hint::in_backticks(&chosen.others);
    let first = &chosen.analyses[0].name;
    vec![format!("`{first}` is read; analyses with other data are {others}: the name of a measurement selects one")]
}

/// What is being read.
struct Reading<'a, 'd> {
    document: &'a Document<'d>,
    parameters: Parameters,
    kept: KeptKeys,
    warnings: Vec<String>,
}

/// The channels of a likelihood with the names of the document, and their data.
#[derive(Default)]
struct ReadLikelihood {
    channels: Vec<ReadChannel>,
    data: Vec<Vec<f64>>,
    /// Names of distributions that are constraint terms, with the datum that the likelihood has.
    terms: Vec<(String, Option<f64>)>,
    /// Names of the channels.
    names: HashSet<String>,
}

impl Reading<'_, '_> {
    fn likelihood(&mut self, analysis: &WrittenAnalysis) -> Read<ReadLikelihood> {
        let Some(cursor) = self.document.likelihoods.get(&analysis.likelihood) else {
            return Err(Hs3Error::NoLikelihood);
        };
        let list = Address::TOP.key("likelihoods");
        let known = ["name", "distributions", "data", "aux_distributions"];
        let object = self.kept.object(cursor, &known, list.entry(&analysis.likelihood))?;
        let (distributions, data) = (object.need("distributions")?, object.need("data")?);
        require_length(&data, "the data of a likelihood", distributions.list()?.len())?;
        let mut read = ReadLikelihood::default();
        for (reference, data) in distributions.list()?.zip(data.list()?) {
            self.add_distribution(&reference, &data, &mut read)?;
        }
        if let Some(list) = object.get("aux_distributions").filter(|list| !list.is_null()) {
            read.terms.extend(self.named_terms(&list)?);
        }
        if let Some(cursor) = self.document.analyses.get(&analysis.name)
            && let Some(list) = cursor.open_object()?.get("aux_likelihood_terms")
        {
            read.terms.extend(self.named_terms(&list)?);
        }
        self.add_terms(&read.terms)?;
        self.check_vectors(cursor)?;
        Ok(read)
    }

    /// Reads the distribution at `reference`: a channel with its counts, or a constraint term with
    /// its datum.
    fn add_distribution(
        &mut self,
        reference: &JsonCursor<'_>,
        data: &JsonCursor<'_>,
        read: &mut ReadLikelihood,
    ) -> Read<()> {
        let document = self.document;
        let distribution = document.distributions.named_at(reference)?;
        let kind = distribution.open_object()?.need("type")?;
        match kind.text()? {
            "histfactory_dist" => {
                let channel = self.channel(distribution)?;
                if !read.names.insert(channel.name.clone()) {
                    return Err(Hs3Error::DuplicateName { name: channel.name, place: reference.place() });
                }
                read.data.push(self.observed(data, channel.n_bins)?);
                read.channels.push(channel);
            }
            kind if terms::TYPES.contains(&kind) => {
                read.terms.push((reference.text()?.to_owned(), Some(self.single_datum(data)?)));
            }
            _ => return Err(unsupported("a distribution of type", &kind)),
        }
        Ok(())
    }

    /// Returns the names of a list of constraint terms whose data are those that they name.
    fn named_terms(&self, list: &JsonCursor<'_>) -> Read<Vec<(String, Option<f64>)>> {
        let one = |reference: JsonCursor<'_>| {
            self.document.distributions.named_at(&reference)?;
            Ok((reference.text()?.to_owned(), None))
        };
        list.list()?.map(one).collect()
    }

    fn channel(&mut self, distribution: &JsonCursor<'_>) -> Read<ReadChannel> {
        let Self { document, parameters, kept, warnings } = self;
        ChannelReader { document, parameters, kept, warnings }.read(distribution)
    }

    /// Reads the counts of a channel.
    fn observed(&mut self, reference: &JsonCursor<'_>, n_bins: usize) -> Read<Vec<f64>> {
        let data = self.document.data.named_at(reference)?;
        let kind = data.open_object()?.need("type")?;
        if kind.text()? != "binned" {
            return Err(unsupported("data of type", &kind));
        }
        let list = Address::TOP.key("data");
        let address = list.entry(reference.text()?);
        let object = self.kept.object(data, &["name", "type", "contents", "axes", "uncertainty"], address)?;
        if !object.get("axes").is_none_or(|axes| is_plain(&axes)) {
            self.kept.keep(&object, "axes", address)?;
        }
        if let Some(uncertainty) = object.get("uncertainty") {
            return Err(unsupported_at("the uncertainty of the data", reference.text()?, &uncertainty));
        }
        let contents = object.need("contents")?;
        require_length(&contents, "the contents of the data of a channel", n_bins)?;
        check_axes(object.get("axes"), n_bins)?;
        Ok(contents.numbers()?)
    }

    /// Reads the datum of a distribution of one variable: a number, or data of one point.
    fn single_datum(&mut self, cursor: &JsonCursor<'_>) -> Read<f64> {
        if cursor.text_if_any().is_none() {
            return Ok(cursor.number()?);
        }
        let data = self.document.data.named_at(cursor)?;
        let kind = data.open_object()?.need("type")?;
        if kind.text()? != "point" {
            return Err(unsupported("data of type", &kind));
        }
        let list = Address::TOP.key("data");
        let object = self.kept.object(data, &["name", "type", "value", "axes"], list.entry(cursor.text()?))?;
        Ok(object.need("value")?.number()?)
    }

    /// Adds the constraint terms that no modifier names.
    fn add_terms(&mut self, terms: &[(String, Option<f64>)]) -> Read<()> {
        for (name, datum) in terms {
            let Some(cursor) = self.document.distributions.get(name) else { continue };
            let parameters = &self.parameters;
            let is_parameter = |name: &str| parameters.has(name);
            let reader = TermReader { document: self.document, is_parameter: &is_parameter, wanted: None };
            let term = reader.read(cursor, *datum, &mut self.kept)?;
            self.parameters.add_term(term);
        }
        Ok(())
    }

    fn check_vectors(&self, likelihood: &JsonCursor<'_>) -> Read<()> {
        if let Some(vector) = self.parameters.doubly_used() {
            let what = "a modifier that shares some of its parameters with another one:";
            return Err(unsupported_at(what, &vector.modifier, likelihood));
        }
        let has_term = |name: &String| self.parameters.has_term(name);
        let is_bound =
            |vector: &&parameters::Vector| vector.kind != VectorKind::Free && vector.parameters.iter().any(has_term);
        match self.parameters.vectors.iter().find(is_bound) {
            Some(vector) => {
                let what = "a second constraint term of the parameters of";
                Err(unsupported_at(what, &vector.modifier, likelihood))
            }
            None => Ok(()),
        }
    }
}

impl ReadLikelihood {
    /// Gives everything the names that it has here. `model_` of ROOT is left out.
    fn into_workspace(self, parameters: &Parameters, names: &NameTable, measurements: Vec<Measurement>) -> Workspace {
        let has_prefix =
            self.channels.iter().all(|channel| channel.name.len() > 6 && channel.name.starts_with("model_"));
        let mut workspace = Workspace { measurements, ..Workspace::default() };
        for (read, data) in self.channels.into_iter().zip(self.data) {
            let name = if has_prefix { read.name["model_".len()..].to_owned() } else { read.name };
            let samples = read.samples.into_iter().map(|sample| Sample {
                name: sample.name,
                data: sample.data,
                modifiers: sample.modifiers.into_iter().map(|read| named(read, parameters, names)).collect(),
                ..Sample::default()
            });
            workspace.channels.push(Channel { name: name.clone(), samples: samples.collect() });
            workspace.observations.push(Observation { name, data });
        }
        workspace
    }
}

/// Gives a modifier the name that its parameter has here.
fn named(read: ReadModifier, parameters: &Parameters, names: &NameTable) -> ns_core::spec::Modifier {
    let ReadModifier { parameters: own, mut modifier } = read;
    if let Some(vector) = parameters.vector(&own) {
        modifier.name = names.vector(&own).to_owned();
        if matches!(vector.kind, VectorKind::Shape { is_shared: true, .. }) {
            modifier.data = ModifierData::ShapeFactor;
        }
        return modifier;
    }
    let parameter = own.first().map_or("", String::as_str);
    modifier.name = names.scalar(parameter).to_owned();
    if parameters.luminosity() == Some(parameter) {
        modifier.data = ModifierData::Lumi;
    }
    modifier
}

/// Refuses the content that the text at `cursor` names.
fn unsupported(what: &'static str, cursor: &JsonCursor<'_>) -> Hs3Error {
    match (cursor.text_if_any(), cursor.number()) {
        (Some(name), _) => unsupported_at(what, name, cursor),
        (None, Ok(number)) => unsupported_at(what, &number.to_string(), cursor),
        (None, Err(error)) => error.into(),
    }
}

fn unsupported_at(what: &'static str, name: &str, cursor: &JsonCursor<'_>) -> Hs3Error {
    Hs3Error::Unsupported { what, name: name.to_owned(), place: cursor.place() }
}
