//! JSON Schemas (draft 2020-12) of the documents, one for each kind.
//!
//! A document names its schema in `$schema`: `urn:nextstat:schema:NAME:VERSION`. The version rises
//! when a key is removed or changes its meaning; new keys do not raise it. A schema lists every
//! key, and refuses others.
//!
//! The sources are in `schemas/`. What several of them share is in `definitions.json`;
//! [`bundled`] copies the definitions that a schema needs into it.

use ns_core::similarity::similar_name;
use serde_json::{Map, Value, json};

/// The schema `definitions.json`, which the others refer to.
const DEFINITIONS: &str = include_str!("../schemas/definitions.json");

/// How a schema refers to a definition.
const REFERENCE: &str = "urn:nextstat:schema:definitions:1#/$defs/";

/// How a bundled schema refers to a definition.
const BUNDLED: &str = "#/$defs/";

/// Defines the table of schemas: names and versions.
macro_rules! schemas {
    ($($name:literal: $version:literal,)+) => {
        /// Name, version and text of each schema.
        const SCHEMAS: &[(&str, u32, &str)] =
            &[$(($name, $version, include_str!(concat!("../schemas/", $name, ".json"))),)+];
    };
}

schemas! {
    "fit": 1,
    "gof": 1,
    "comparison": 1,
    "report": 1,
    "yields": 1,
    "scan": 1,
    "contours": 1,
    "ranking": 1,
    "hypotest": 1,
    "limit": 1,
    "limit-scan": 1,
    "significance": 1,
    "toys": 1,
    "hypotest-toys": 1,
    "interval": 1,
    "region": 1,
    "coverage": 1,
    "limit-toys": 1,
    "significance-toys": 1,
    "search": 1,
    "signal-scan": 1,
    "simplify": 1,
    "fits": 1,
    "every-patch": 1,
    "every-poi": 1,
    "exclusion": 1,
    "evaluate": 1,
    "check": 1,
    "inspect": 1,
    "combination": 1,
    "devices": 1,
    "patchset-inspect": 1,
    "patchset-verify": 1,
}

/// A name that no schema has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no schema `{name}`")]
pub struct UnknownSchema {
    /// The name.
    pub name: String,
}

impl UnknownSchema {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> String {
        match similar_name(&self.name, names()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Returns the names of the schemas.
///
/// ```
/// assert_eq!(nextstat::schema::names().next(), Some("fit"));
/// ```
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, ..)| *name)
}

/// Returns the value of `$schema` in documents called `name`.
pub fn urn(name: &str) -> String {
    let version = SCHEMAS.iter().find(|(known, ..)| *known == name).map_or(1, |(_, version, _)| *version);
    format!("urn:nextstat:schema:{name}:{version}")
}

/// Returns the schema `name` with the definitions that it needs under `$defs`.
///
/// ```
/// let schema = nextstat::schema::bundled("fit")?;
/// assert_eq!(schema["$id"], "urn:nextstat:schema:fit:1");
/// assert!(schema["$defs"]["poi_of_fit"]["properties"]["uncertainty"].is_object());
/// # Ok::<(), nextstat::schema::UnknownSchema>(())
/// ```
///
/// # Errors
/// A name that no schema has.
pub fn bundled(name: &str) -> Result<Value, UnknownSchema> {
    let unknown = || UnknownSchema { name: name.to_owned() };
    let (.., text) = SCHEMAS.iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?;
    let (mut schema, mut known) = (parsed(text), parsed(DEFINITIONS)["$defs"].take());
    let mut wanted = Vec::new();
    shorten_references(&mut schema, &mut wanted);
    let mut definitions = Map::new();
    while let Some(name) = wanted.pop() {
        // A definition that is there already is null.
        let mut definition = known[&name].take();
        if !definition.is_null() {
            shorten_references(&mut definition, &mut wanted);
            definitions.insert(name, definition);
        }
    }
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    Ok(schema)
}

/// Returns the text of [`bundled`].
///
/// # Errors
/// A name that no schema has.
pub fn text(name: &str) -> Result<String, UnknownSchema> {
    Ok(format!("{:#}\n", bundled(name)?))
}

/// Parses a schema of ours, which a test does too.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Replaces references to definitions by those of a bundled schema, and adds their names to
/// `wanted`.
fn shorten_references(schema: &mut Value, wanted: &mut Vec<String>) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_references(item, wanted)),
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str().filter(|_| key == "$ref").and_then(|target| target.strip_prefix(REFERENCE)) {
                    Some(name) => {
                        wanted.push(name.to_owned());
                        *member = json!(format!("{BUNDLED}{}", wanted[wanted.len() - 1]));
                    }
                    None => shorten_references(member, wanted),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn folder() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
    }

    #[test]
    fn every_file_is_in_the_table() {
        let files = std::fs::read_dir(folder()).expect("the schemas").map(|entry| entry.expect("a file").file_name());
        let files: BTreeSet<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
        let table: BTreeSet<String> = names().chain(["definitions"]).map(|name| format!("{name}.json")).collect();
        assert_eq!(files, table);
    }

    #[test]
    fn a_schema_has_the_identity_that_documents_name() {
        for (name, _, text) in SCHEMAS {
            let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
            assert_eq!(schema["$id"], urn(name));
            assert_eq!(schema["properties"]["$schema"]["const"], urn(name));
        }
    }

    #[test]
    fn a_bundled_schema_refers_to_nothing_outside() {
        for name in names() {
            let text = text(name).expect("a known name");
            assert!(!text.contains(REFERENCE), "{name}");
            let schema: Value = serde_json::from_str(&text).expect("JSON");
            for reference in text.split("\"$ref\": \"").skip(1) {
                let target = reference.split('"').next().unwrap_or_default();
                assert!(schema.pointer(&target[1..]).is_some(), "{name}: {target}");
            }
        }
    }

    #[test]
    fn a_definition_that_no_schema_needs_is_none() {
        let all = parsed(DEFINITIONS)["$defs"].take();
        let all: BTreeSet<&String> = all.as_object().expect("definitions").keys().collect();
        let bundled: Vec<Value> = names().map(|name| bundled(name).expect("a known name")).collect();
        let used: BTreeSet<&String> =
            bundled.iter().flat_map(|schema| schema["$defs"].as_object()).flatten().map(|(name, _)| name).collect();
        assert_eq!(all, used);
    }

    #[test]
    fn every_key_is_described() {
        fn check(place: &str, schema: &Value) {
            for (key, member) in schema.as_object().into_iter().flatten() {
                let place = format!("{place}/{key}");
                for (name, property) in member.as_object().filter(|_| key == "properties").into_iter().flatten() {
                    let is_described = ["description", "$ref", "const"].iter().any(|key| property.get(key).is_some());
                    assert!(is_described, "{place}/{name}");
                }
                check(&place, member);
            }
            for (i, item) in schema.as_array().into_iter().flatten().enumerate() {
                check(&format!("{place}/{i}"), item);
            }
        }
        SCHEMAS.iter().for_each(|(name, _, text)| check(name, &parsed(text)));
        check("definitions", &parsed(DEFINITIONS));
    }

    #[test]
    fn an_unknown_name_has_a_suggestion() {
        let hint = |name: &str| bundled(name).expect_err("no schema").hint();
        assert_eq!(hint("hypotset"), "did you mean `hypotest`?");
        assert!(hint("xyz").starts_with("there are fit, gof, "));
    }
}
