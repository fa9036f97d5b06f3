//! Bytes to a [`WorkspaceDocument`]: the schema is checked first, so that what follows has only to take things where they are.

use std::collections::BTreeMap;

use ns_core::spec::ModifierKind;

use super::{Channel, Config, Measurement, Modifier, Observation, Sample, Setting, WorkspaceDocument};
use crate::json::{self, Cursor, Object, Written};
use crate::{DocumentError, pyhf, text};

type Read<T> = Result<T, DocumentError>;

impl WorkspaceDocument {
    /// Reads a pyhf workspace.
    ///
    /// # Errors
    ///
    /// Those of [`pyhf::read_workspace`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        let text = text::decode(bytes)?;
        let root = json::parse(text)?;
        let root = Cursor::top(text, &root);
        let workspace = pyhf::read_tree(&root)?;
        let object = root.open_object()?;
        Ok(Self {
            channels: list(&object, "channels", channel)?,
            measurements: list(&object, "measurements", measurement)?,
            observations: list(&object, "observations", observation)?,
            version: workspace.version,
        })
    }
}

fn list<T>(object: &Object<'_>, key: &'static str, read: fn(&Object<'_>) -> Read<T>) -> Read<Vec<T>> {
    object.need(key)?.list()?.map(|item| read(&item.open_object()?)).collect()
}

fn name(object: &Object<'_>) -> Read<String> {
    object.need("name")?.text().map(str::to_owned)
}

fn data(object: &Object<'_>) -> Read<Written> {
    Written::read(&object.need("data")?)
}

fn channel(object: &Object<'_>) -> Read<Channel> {
    Ok(Channel { name: name(object)?, samples: list(object, "samples", sample)? })
}

fn sample(object: &Object<'_>) -> Read<Sample> {
    Ok(Sample { data: data(object)?, modifiers: list(object, "modifiers", modifier)?, name: name(object)? })
}

fn modifier(object: &Object<'_>) -> Read<Modifier> {
    let cursor = object.need("type")?;
    let word = cursor.text()?;
    let kind = ModifierKind::from_word(word)
        .ok_or_else(|| DocumentError::UnknownModifier { kind: word.to_owned(), place: cursor.place() })?;
    Ok(Modifier { data: data(object)?, name: name(object)?, kind })
}

fn observation(object: &Object<'_>) -> Read<Observation> {
    Ok(Observation { data: data(object)?, name: name(object)? })
}

fn measurement(object: &Object<'_>) -> Read<Measurement> {
    let config = object.need("config")?;
    let config = config.open_object()?;
    let poi = config.need("poi")?.text()?.to_owned();
    Ok(Measurement { config: Config { parameters: list(&config, "parameters", setting)?, poi }, name: name(object)? })
}

fn setting(object: &Object<'_>) -> Read<Setting> {
    let mut values = BTreeMap::new();
    for key in ["inits", "bounds", "auxdata", "factors", "sigmas", "fixed"] {
        if let Some(value) = object.get(key) {
            values.insert(key.to_owned(), Written::read(&value)?);
        }
    }
    Ok(Setting { name: name(object)?, values })
}
