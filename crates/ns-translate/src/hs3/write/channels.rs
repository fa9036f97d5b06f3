//! Channels as distributions of type `histfactory_dist`, and their data.

use ns_core::spec::{Channel, Modifier, ModifierData, ModifierKind, PerBinKind, Sample, Workspace};
use serde_json::{Map, Value, json};

use super::super::interpolation::Interpolated;
use super::names::DocumentNames;
use super::settings::{ParameterRole, Roles, relative};
use super::terms::{Reference, per_bin_terms, reference};
use super::{data_of, distribution_of};
use crate::not_representable::Lacking;

/// Writes the channels of a workspace.
pub(super) struct ChannelWriter<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) roles: &'a Roles<'a>,
    pub(super) names: &'a DocumentNames,
}

/// Returns axes with bins of width 1: a workspace has no binning.
fn axes(channel: &Channel, observable: &str) -> Value {
    let n_bins = channel.samples.first().map_or(0, |sample| sample.data.len());
    json!([{"name": observable, "min": 0.0, "max": n_bins as f64, "nbins": n_bins}])
}

impl ChannelWriter<'_> {
    /// Returns the data of all channels.
    pub(super) fn data(&self) -> Vec<Value> {
        let one = |(channel, observable): (&Channel, &String)| {
            let observation = self.workspace.observations.iter().find(|observation| observation.name == channel.name);
            let contents = observation.map_or(&[][..], |observation| &observation.data);
            let axes = axes(channel, observable);
            json!({"name": data_of(&channel.name), "type": "binned", "axes": axes, "contents": contents})
        };
        self.workspace.channels.iter().zip(&self.names.observables).map(one).collect()
    }

    /// Returns the distributions of all channels.
    pub(super) fn distributions(&self, lacking: &mut Lacking) -> Vec<Value> {
        (0..self.workspace.channels.len()).map(|c| self.channel(c, lacking)).collect()
    }

    fn channel(&self, c: usize, lacking: &mut Lacking) -> Value {
        let (channel, pointer) = (&self.workspace.channels[c], format!("/channels/{c}"));
        let samples = channel.samples.iter().enumerate();
        let samples: Vec<Value> =
            samples.map(|(s, sample)| self.sample(sample, &format!("{pointer}/samples/{s}"), lacking)).collect();
        let mut object = Map::new();
        object.insert("name".to_owned(), distribution_of(&channel.name).into());
        object.insert("type".to_owned(), "histfactory_dist".into());
        object.insert("axes".to_owned(), axes(channel, &self.names.observables[c]));
        object.insert("samples".to_owned(), samples.into());
        let mut modifiers = channel.samples.iter().flat_map(|sample| &sample.modifiers);
        let stat = modifiers.find(|modifier| modifier.kind() == ModifierKind::StatError);
        if let Some(role) = stat.and_then(|modifier| self.roles.get(&modifier.name)) {
            let (kind, threshold) = role.per_bin();
            // ROOT takes the kind of terms from here, and not from the modifiers.
            let config = json!({"constraint": word(kind), "constraint_type": word(kind), "relThreshold": threshold});
            object.insert("staterror".to_owned(), config);
        }
        Value::Object(object)
    }

    fn sample(&self, sample: &Sample, pointer: &str, lacking: &mut Lacking) -> Value {
        let mut data = json!({"contents": sample.data});
        let mut modifiers = Vec::new();
        for (m, modifier) in sample.modifiers.iter().enumerate() {
            if let ModifierData::StatError(errors) = &modifier.data {
                data["errors"] = json!(errors);
            }
            let Some(role) = self.roles.get(&modifier.name) else { continue };
            let pointer = format!("{pointer}/modifiers/{m}");
            let written = Written { modifier, role, sample };
            let mut object = written.identity();
            written.add_data(&mut object);
            written.add_interpolation(&pointer, &mut object, lacking);
            modifiers.push(Value::Object(object));
        }
        json!({"name": sample.name, "data": data, "modifiers": modifiers})
    }
}

/// A modifier to be written.
struct Written<'a> {
    modifier: &'a Modifier,
    role: &'a ParameterRole<'a>,
    sample: &'a Sample,
}

impl Written<'_> {
    /// Returns the name, the type and the parameters. ROOT calls the parameter of a factor by the
    /// name of the modifier, so both are the same.
    fn identity(&self) -> Map<String, Value> {
        let name = &self.modifier.name;
        let is_constrained = self.role.kind == ModifierKind::ShapeFactor && per_bin_terms(self.role).is_some();
        let kind = match self.modifier.kind() {
            ModifierKind::Lumi => "normfactor",
            ModifierKind::ShapeFactor if is_constrained => "shapesys",
            kind => kind.as_str(),
        };
        let mut object = Map::new();
        object.insert("name".to_owned(), name.as_str().into());
        object.insert("type".to_owned(), kind.into());
        if self.role.is_vector() {
            object.insert("parameters".to_owned(), self.role.elements.clone().into());
            return object;
        }
        object.insert("parameter".to_owned(), name.as_str().into());
        match reference(self.role) {
            Reference::None => {}
            Reference::Implied => self.add_kind("Gauss", &mut object),
            Reference::Named => {
                object.insert("constraint_name".to_owned(), self.role.names.term.as_str().into());
            }
        }
        object
    }

    /// Adds the kind of term: ROOT reads the one key, the standard and pyhs3 have the other.
    fn add_kind(&self, kind: &str, object: &mut Map<String, Value>) {
        object.insert("constraint_type".to_owned(), kind.into());
        object.insert("constraint".to_owned(), kind.into());
    }

    fn add_data(&self, object: &mut Map<String, Value>) {
        let data = match &self.modifier.data {
            ModifierData::NormSys { lo, hi } => json!({"lo": lo, "hi": hi}),
            ModifierData::HistoSys { lo_data, hi_data } => {
                json!({"lo": {"contents": lo_data}, "hi": {"contents": hi_data}})
            }
            ModifierData::ShapeSys(uncertainties) => {
                let vals = relative(&self.sample.data, uncertainties);
                self.add_kind(word(self.role.per_bin().0), object);
                // Relative uncertainties, and those of which they are the quotients.
                json!({"vals": vals, "uncertainties": uncertainties})
            }
            ModifierData::StatError(_) => {
                self.add_kind(word(self.role.per_bin().0), object);
                return;
            }
            ModifierData::ShapeFactor => {
                let Some(terms) = per_bin_terms(self.role) else { return };
                self.add_kind(word(terms.kind), object);
                json!({"vals": terms.relative})
            }
            _ => return,
        };
        object.insert("data".to_owned(), data);
    }

    fn add_interpolation(&self, pointer: &str, object: &mut Map<String, Value>, lacking: &mut Lacking) {
        let what = match self.modifier.kind() {
            ModifierKind::NormSys => Interpolated::NormSys,
            ModifierKind::HistoSys => Interpolated::HistoSys,
            _ => return,
        };
        if self.modifier.interpolation.scale.is_some() {
            lacking.add("the scale of", &self.modifier.name, format!("{pointer}/scale"));
        }
        let Some(rule) = self.modifier.interpolation.rule else { return };
        let Some(code) = what.code(rule) else {
            lacking.add("the interpolation rule of", &self.modifier.name, format!("{pointer}/interpolation"));
            return;
        };
        object.insert("interpolation".to_owned(), code.into());
        if let (Some(word), Some(data)) = (what.word(rule), object.get_mut("data")) {
            // pyhs3 has it here.
            data["interpolation"] = word.into();
        }
    }
}

fn word(kind: PerBinKind) -> &'static str {
    match kind {
        PerBinKind::Gaussian => "Gauss",
        PerBinKind::Poisson => "Poisson",
    }
}
