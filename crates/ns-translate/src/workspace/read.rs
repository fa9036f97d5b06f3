//! Reads bytes to a [`WorkspaceDocument`]: the schema is checked first, so that the parts can
//! simply be taken.

use std::collections::BTreeMap;

use ns_core::spec::ModifierKind;

use super::{Channel, Config, Measurement, Modifier, Observation, Sample, Setting, WorkspaceDocument};
use crate::json::{self, JsonCursor, JsonError, JsonObject, WrittenValue};
use crate::pyhf::{self, PyhfError};

type Read<T> = Result<T, PyhfError>;

impl WorkspaceDocument {
    /// Reads a pyhf workspace.
    ///
    /// # Errors
    ///
    /// Those of [`pyhf::read_workspace`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PyhfError> {
        let text = json::decode(bytes)?;
        let root = json::parse(text)?;
        let root = JsonCursor::top(text, &root);
        pyhf::read_tree(&root)?;
        let object = root.open_object()?;
        Ok(Self {
            channels: list(&object, "channels", channel)?,
            measurements: list(&object, "measurements", measurement)?,
            observations: list(&object, "observations", observation)?,
            version: pyhf::VERSION.to_owned(),
        })
    }
}

fn list<T>(object: &JsonObject<'_>, key: &'static str, read: fn(&JsonObject<'_>) -> Read<T>) -> Read<Vec<T>> {
    object.need(key)?.list()?.map(|item| read(&item.open_object()?)).collect()
}

fn name(object: &JsonObject<'_>) -> Result<String, JsonError> {
    object.need("name")?.text().map(str::to_owned)
}

fn data(object: &JsonObject<'_>) -> Result<WrittenValue, JsonError> {
    WrittenValue::read(&object.need("data")?)
}

fn written(object: &JsonObject<'_>, key: &str) -> Result<Option<WrittenValue>, JsonError> {
    object.get(key).map(|cursor| WrittenValue::read(&cursor)).transpose()
}

fn channel(object: &JsonObject<'_>) -> Read<Channel> {
    Ok(Channel { name: name(object)?, samples: list(object, "samples", sample)? })
}

fn sample(object: &JsonObject<'_>) -> Read<Sample> {
    let (clip, normalize) = (written(object, "clip")?, written(object, "normalize")?);
    let modifiers = list(object, "modifiers", modifier)?;
    Ok(Sample { clip, data: data(object)?, modifiers, name: name(object)?, normalize })
}

fn modifier(object: &JsonObject<'_>) -> Read<Modifier> {
    let cursor = object.need("type")?;
    let word = cursor.text()?;
    let kind = ModifierKind::from_word(word)
        .ok_or_else(|| PyhfError::UnknownModifier { kind: word.to_owned(), place: cursor.place() })?;
    let (interpolation, scale) = (written(object, "interpolation")?, written(object, "scale")?);
    let data = data(object)?;
    let parameters = if kind.has_formula() { pyhf::formula::names(&data) } else { Vec::new() };
    Ok(Modifier { data, interpolation, name: name(object)?, scale, kind, parameters })
}

fn observation(object: &JsonObject<'_>) -> Read<Observation> {
    Ok(Observation { data: data(object)?, name: name(object)? })
}

fn measurement(object: &JsonObject<'_>) -> Read<Measurement> {
    let config = object.need("config")?;
    let config = config.open_object()?;
    let poi = config.need("poi")?.text()?.to_owned();
    let (clip, parameters) = (written(&config, "clip")?, list(&config, "parameters", setting)?);
    Ok(Measurement { config: Config { clip, parameters, poi }, name: name(object)? })
}

pub(super) fn setting(object: &JsonObject<'_>) -> Read<Setting> {
    let mut values = BTreeMap::new();
    for key in pyhf::PARAMETER_KEYS.into_iter().filter(|key| *key != "name") {
        values.extend(written(object, key)?.map(|value| (key.to_owned(), value)));
    }
    Ok(Setting { name: name(object)?, values })
}
