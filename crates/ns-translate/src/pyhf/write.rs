//! Writes workspaces as pyhf JSON.

use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use serde_json::{Map, Value, json};

use super::{VERSION, extension, formula};

/// Returns the workspace as a pyhf document; reading it back gives the same workspace.
///
/// Numbers are written as floats (`5.0`), so the digest of a document with integers changes. A
/// number that is not finite, which JSON cannot express, becomes `null`.
#[must_use]
pub fn write_workspace(workspace: &Workspace) -> Value {
    json!({
        "channels": list(&workspace.channels, channel),
        "observations": list(&workspace.observations, observation),
        "measurements": list(&workspace.measurements, measurement),
        "version": VERSION,
    })
}

fn list<T>(items: &[T], write: fn(&T) -> Value) -> Value {
    items.iter().map(write).collect()
}

fn channel(channel: &Channel) -> Value {
    json!({"name": channel.name, "samples": list(&channel.samples, sample)})
}

fn sample(sample: &Sample) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(sample.name));
    object.insert("data".to_owned(), json!(sample.data));
    object.insert("modifiers".to_owned(), list(&sample.modifiers, modifier));
    extension::write_template_rule(sample, &mut object);
    Value::Object(object)
}

fn modifier(modifier: &Modifier) -> Value {
    let data = match &modifier.data {
        ModifierData::NormFactor | ModifierData::ShapeFactor | ModifierData::Lumi => Value::Null,
        ModifierData::NormSys { lo, hi } => json!({"lo": lo, "hi": hi}),
        ModifierData::HistoSys { lo_data, hi_data } => {
            json!({"lo_data": lo_data, "hi_data": hi_data})
        }
        ModifierData::Formula(expression) => formula::write_formula(expression),
        ModifierData::Morphing(terms) => formula::write_morphing(terms),
        ModifierData::ShapeSys(data) | ModifierData::StatError(data) | ModifierData::McStat(data) => json!(data),
    };
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(modifier.name));
    object.insert("type".to_owned(), json!(modifier.kind().as_str()));
    object.insert("data".to_owned(), data);
    extension::write_interpolation(modifier, &mut object);
    Value::Object(object)
}

fn observation(observation: &Observation) -> Value {
    json!({"name": observation.name, "data": observation.data})
}

fn measurement(measurement: &Measurement) -> Value {
    let mut config = Map::new();
    config.insert("poi".to_owned(), json!(measurement.poi.as_deref().unwrap_or("")));
    config.insert("parameters".to_owned(), list(&measurement.parameters, parameter));
    extension::write_clipping(&measurement.clip, &mut config);
    json!({"name": measurement.name, "config": config})
}

/// Returns the settings of a measurement for one parameter.
pub(crate) fn parameter(parameter: &ParameterConfig) -> Value {
    let settings = [
        ("inits", parameter.inits.as_ref().map(|values| json!(values))),
        ("bounds", parameter.bounds.as_ref().map(|values| json!(values))),
        ("auxdata", parameter.auxdata.as_ref().map(|values| json!(values))),
        ("factors", parameter.factors.as_ref().map(|values| json!(values))),
        ("sigmas", parameter.sigmas.as_ref().map(|values| json!(values))),
        ("fixed", parameter.fixed.map(Value::Bool)),
    ];
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(parameter.name));
    let given = settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    object.extend(given);
    extension::write_parameter(parameter, &mut object);
    Value::Object(object)
}
