//! The fast reader of workspaces: one pass over the text (or a `Value`), directly to the types of
//! `ns_core::spec`.
//!
//! Its errors are discarded: [`super::diagnose`] reads again what it refuses, and explains.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{
    Channel, Clipping, ConstrainedQuantity, ConstraintTerm, Expression, Measurement, Modifier, ModifierData,
    ModifierInterpolation, ModifierKind, MorphingTerm, Observation, ParameterConfig, PerBinConstraint, Sample,
    TemplateRule, Workspace,
};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::VERSION;
use super::fast_extension::{
    clipping, constrained_quantity, constraint_terms, interpolation_rule, per_bin, some_number,
};

pub(super) fn read<'de, R>(source: &mut serde_json::Deserializer<R>) -> serde_json::Result<Workspace>
where
    R: serde_json::de::Read<'de>,
{
    let workspace = Object::<WorkspaceForm<'_>>::deserialize(&mut *source)?.0.into_spec()?;
    source.end()?;
    Ok(workspace)
}

pub(super) fn read_value(document: &Value) -> serde_json::Result<Workspace> {
    Object::<WorkspaceForm<'_>>::deserialize(document)?.0.into_spec()
}

/// A JSON object as written, which is converted to a type of the spec.
pub(super) trait Form {
    type Spec;
    fn into_spec<E: Error>(self) -> Result<Self::Spec, E>;
}

/// Accepts only an object; derived readers would also accept a list of the fields.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Reads a list of objects, each converted to its spec as it is read.
fn objects<'de, D, F>(deserializer: D) -> Result<Vec<F::Spec>, D::Error>
where
    D: Deserializer<'de>,
    F: Form + Deserialize<'de>,
{
    deserializer.deserialize_seq(ListVisitor::<F>(PhantomData))
}

/// Reads a list of at least one object.
pub(super) fn filled_objects<'de, D, F>(deserializer: D) -> Result<Vec<F::Spec>, D::Error>
where
    D: Deserializer<'de>,
    F: Form + Deserialize<'de>,
{
    filled(objects::<D, F>(deserializer)?)
}

struct ListVisitor<F>(PhantomData<F>);

impl<'de, F: Form + Deserialize<'de>> Visitor<'de> for ListVisitor<F> {
    type Value = Vec<F::Spec>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut specs = Vec::new();
        while let Some(Object(form)) = list.next_element::<Object<F>>()? {
            specs.push(form.into_spec()?);
        }
        Ok(specs)
    }
}

/// Lists of at least this many numbers give back what was allocated beyond their end.
const MANY: usize = 512;

/// Reads a list of at least one number.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let mut numbers = Vec::deserialize(deserializer)?;
    if numbers.len() >= MANY {
        numbers.shrink_to_fit();
    }
    filled(numbers)
}

fn some_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    numbers(deserializer).map(Some)
}

fn some_ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<[f64; 2]>>, D::Error> {
    filled(Vec::deserialize(deserializer)?).map(Some)
}

fn some_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    bool::deserialize(deserializer).map(Some)
}

fn filled<T, E: Error>(list: Vec<T>) -> Result<Vec<T>, E> {
    if list.is_empty() {
        return Err(E::custom("empty list"));
    }
    Ok(list)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkspaceForm<'a> {
    #[serde(deserialize_with = "filled_objects::<_, ChannelForm>")]
    channels: Vec<Channel>,
    #[serde(deserialize_with = "filled_objects::<_, ObservationForm>")]
    observations: Vec<Observation>,
    #[serde(deserialize_with = "filled_objects::<_, MeasurementForm<'_>>")]
    measurements: Vec<Measurement>,
    #[serde(borrow)]
    version: Cow<'a, str>,
}

impl Form for WorkspaceForm<'_> {
    type Spec = Workspace;

    fn into_spec<E: Error>(self) -> Result<Workspace, E> {
        if self.version != VERSION {
            return Err(E::custom("unsupported version"));
        }
        Ok(Workspace { channels: self.channels, observations: self.observations, measurements: self.measurements })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelForm {
    name: String,
    #[serde(deserialize_with = "filled_objects::<_, SampleForm>")]
    samples: Vec<Sample>,
}

impl Form for ChannelForm {
    type Spec = Channel;

    fn into_spec<E: Error>(self) -> Result<Channel, E> {
        let Self { name, samples } = self;
        Ok(Channel { name, samples })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleForm {
    name: String,
    #[serde(deserialize_with = "numbers")]
    data: Vec<f64>,
    #[serde(deserialize_with = "objects::<_, ModifierForm<'_>>")]
    modifiers: Vec<Modifier>,
    #[serde(default, deserialize_with = "some_number")]
    clip: Option<f64>,
    #[serde(default)]
    normalize: bool,
}

impl Form for SampleForm {
    type Spec = Sample;

    fn into_spec<E: Error>(self) -> Result<Sample, E> {
        let Self { name, data, modifiers, clip, normalize } = self;
        Ok(Sample { name, data, modifiers, template: TemplateRule { clip, normalize } })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObservationForm {
    name: String,
    #[serde(deserialize_with = "numbers")]
    data: Vec<f64>,
}

impl Form for ObservationForm {
    type Spec = Observation;

    fn into_spec<E: Error>(self) -> Result<Observation, E> {
        let Self { name, data } = self;
        Ok(Observation { name, data })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasurementForm<'a> {
    name: String,
    #[serde(borrow)]
    config: Object<ConfigForm<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigForm<'a> {
    #[serde(borrow)]
    poi: Cow<'a, str>,
    #[serde(deserialize_with = "objects::<_, ParameterForm>")]
    parameters: Vec<ParameterConfig>,
    #[serde(default, deserialize_with = "clipping")]
    clip: Clipping,
}

impl Form for MeasurementForm<'_> {
    type Spec = Measurement;

    fn into_spec<E: Error>(self) -> Result<Measurement, E> {
        let ConfigForm { poi, parameters, clip } = self.config.0;
        Ok(Measurement { name: self.name, poi: (!poi.is_empty()).then(|| poi.into_owned()), parameters, clip })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterForm {
    name: String,
    #[serde(default, deserialize_with = "some_numbers")]
    inits: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_ranges")]
    bounds: Option<Vec<[f64; 2]>>,
    #[serde(default, deserialize_with = "some_numbers")]
    auxdata: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_numbers")]
    factors: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_numbers")]
    sigmas: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "some_bool")]
    fixed: Option<bool>,
    #[serde(default, deserialize_with = "constraint_terms")]
    constraints: Option<Vec<ConstraintTerm>>,
    #[serde(default, deserialize_with = "per_bin")]
    per_bin: Option<PerBinConstraint>,
    #[serde(default, deserialize_with = "constrained_quantity")]
    beta: Option<ConstrainedQuantity>,
    #[serde(default, deserialize_with = "some_names")]
    elements: Option<Vec<String>>,
    #[serde(default)]
    poi: bool,
    #[serde(default, deserialize_with = "distinct_names")]
    groups: Option<Vec<String>>,
}

impl Form for ParameterForm {
    type Spec = ParameterConfig;

    fn into_spec<E: Error>(self) -> Result<ParameterConfig, E> {
        Ok(ParameterConfig {
            name: self.name,
            inits: self.inits,
            bounds: self.bounds,
            auxdata: self.auxdata,
            factors: self.factors,
            sigmas: self.sigmas,
            fixed: self.fixed,
            constraints: self.constraints,
            per_bin: self.per_bin,
            beta: self.beta,
            elements: self.elements,
            is_poi: self.poi,
            groups: self.groups.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModifierForm<'a> {
    name: String,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    data: DataForm,
    #[serde(default, deserialize_with = "interpolation_rule")]
    interpolation: Option<InterpolationRule>,
    #[serde(default, deserialize_with = "some_number")]
    scale: Option<f64>,
}

impl Form for ModifierForm<'_> {
    type Spec = Modifier;

    fn into_spec<E: Error>(self) -> Result<Modifier, E> {
        let Self { name, kind, data, interpolation: rule, scale } = self;
        let data = match (ModifierKind::from_word(&kind), data) {
            (Some(ModifierKind::NormFactor), DataForm::Null) => ModifierData::NormFactor,
            (Some(ModifierKind::ShapeFactor), DataForm::Null) => ModifierData::ShapeFactor,
            (Some(ModifierKind::Lumi), DataForm::Null) if name == "lumi" => ModifierData::Lumi,
            (Some(ModifierKind::ShapeSys), DataForm::List(data)) => ModifierData::ShapeSys(data),
            (Some(ModifierKind::StatError), DataForm::List(data)) => ModifierData::StatError(data),
            (Some(ModifierKind::McStat), DataForm::List(data)) => ModifierData::McStat(data),
            (Some(ModifierKind::NormSys), DataForm::Factors { lo, hi }) => ModifierData::NormSys { lo, hi },
            (Some(ModifierKind::HistoSys), DataForm::Templates { lo_data, hi_data }) => {
                ModifierData::HistoSys { lo_data, hi_data }
            }
            (Some(ModifierKind::Formula), DataForm::Formula(expression)) => ModifierData::Formula(expression),
            (Some(ModifierKind::Morphing), DataForm::Morphing(terms)) => ModifierData::Morphing(terms),
            _ => return Err(E::custom("modifier type and data do not go together")),
        };
        let interpolation = ModifierInterpolation { rule, scale };
        if interpolation != ModifierInterpolation::default()
            && !matches!(data, ModifierData::NormSys { .. } | ModifierData::HistoSys { .. })
        {
            return Err(E::custom("only normsys and histosys are interpolated"));
        }
        Ok(Modifier { name, data, interpolation })
    }
}

/// The data of a modifier by their shape: `data` may precede the `type` that gives them a meaning.
enum DataForm {
    Null,
    List(Vec<f64>),
    Factors { lo: f64, hi: f64 },
    Templates { lo_data: Vec<f64>, hi_data: Vec<f64> },
    Formula(Expression),
    Morphing(Vec<MorphingTerm>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermForm {
    expression: String,
    #[serde(default, deserialize_with = "some_names")]
    parameters: Option<Vec<String>>,
    #[serde(deserialize_with = "numbers")]
    data: Vec<f64>,
}

impl Form for TermForm {
    type Spec = MorphingTerm;

    fn into_spec<E: Error>(self) -> Result<MorphingTerm, E> {
        let Self { expression: text, parameters, data } = self;
        Ok(MorphingTerm { coefficient: Expression { text, parameters }, data })
    }
}

/// A list of at least one term.
struct Terms(Vec<MorphingTerm>);

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        filled_objects::<D, TermForm>(deserializer).map(Self)
    }
}

fn some_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    filled(Vec::deserialize(deserializer)?).map(Some)
}

fn distinct_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = some_names(deserializer)?;
    let is_repeated = |names: &Vec<String>| names.iter().enumerate().any(|(i, name)| names[..i].contains(name));
    if names.as_ref().is_some_and(is_repeated) { Err(D::Error::custom("a name twice")) } else { Ok(names) }
}

impl<'de> Deserialize<'de> for DataForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DataKey {
    Lo,
    Hi,
    LoData,
    HiData,
    Expression,
    Parameters,
    Terms,
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = DataForm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a list of numbers, or an object with lo and hi, lo_data and hi_data, expression, or terms")
    }

    fn visit_unit<E: Error>(self) -> Result<DataForm, E> {
        Ok(DataForm::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<DataForm, A::Error> {
        let mut data = Vec::new();
        while let Some(number) = list.next_element()? {
            data.push(number);
        }
        filled(data).map(DataForm::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DataForm, A::Error> {
        let (mut lo, mut hi, mut lo_data, mut hi_data) = (None, None, None, None);
        let (mut text, mut parameters, mut terms) = (None, None, None);
        while let Some(key) = map.next_key()? {
            let fresh = match key {
                DataKey::Lo => lo.replace(map.next_value()?).is_none(),
                DataKey::Hi => hi.replace(map.next_value()?).is_none(),
                DataKey::LoData => lo_data.replace(filled(map.next_value()?)?).is_none(),
                DataKey::HiData => hi_data.replace(filled(map.next_value()?)?).is_none(),
                DataKey::Expression => text.replace(map.next_value()?).is_none(),
                DataKey::Parameters => parameters.replace(filled(map.next_value()?)?).is_none(),
                DataKey::Terms => terms.replace(map.next_value::<Terms>()?).is_none(),
            };
            if !fresh {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        match (lo, hi, lo_data, hi_data) {
            (None, None, None, None) => match (text, parameters, terms) {
                (Some(text), parameters, None) => Ok(DataForm::Formula(Expression { text, parameters })),
                (None, None, Some(Terms(terms))) => Ok(DataForm::Morphing(terms)),
                _ => Err(A::Error::custom("missing key")),
            },
            _ if text.is_some() || parameters.is_some() || terms.is_some() => Err(A::Error::custom("unknown key")),
            (Some(lo), Some(hi), None, None) => Ok(DataForm::Factors { lo, hi }),
            (None, None, Some(lo_data), Some(hi_data)) => Ok(DataForm::Templates { lo_data, hi_data }),
            _ => Err(A::Error::custom("missing key")),
        }
    }
}
