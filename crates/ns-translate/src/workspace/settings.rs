//! The settings of the measurement of a combination.

use std::collections::HashMap;

use super::map::{CorrelationMap, MapError, MapProblem};
use super::report::Described;
use super::{Setting, WorkspaceDocument};
use crate::json::WrittenValue;

/// Returns the settings of all workspaces, each with one measurement and new names, in order. What
/// the map sets replaces what they set.
///
/// # Errors
/// If two workspaces, or two parameters that are made one, set a value differently and the map does
/// not set it; if the map sets a parameter that there is not.
pub(super) fn merged_settings(
    described: &Described<'_>,
    renamed: &[WorkspaceDocument],
    map: &CorrelationMap,
) -> Result<Vec<Setting>, MapError> {
    let mut merger = Merger { described, map, settings: Vec::new(), owners: HashMap::new() };
    for (label, document) in described.labels.iter().zip(renamed) {
        for setting in document.measurements.iter().flat_map(|measurement| &measurement.config.parameters) {
            merger.add(setting, label)?;
        }
    }
    let mut settings = merger.settings;
    for (wanted, place) in &map.settings {
        if !described.parameters.iter().any(|(name, _)| *name == wanted.name) {
            let known = described.parameters.iter().map(|(name, _)| name.clone()).collect();
            let name = wanted.name.clone();
            let problem = MapProblem::Unknown { what: "parameter", name, analysis: None, known, parts: Vec::new() };
            return Err(MapError { problem, place: Some(place.clone()) });
        }
        match settings.iter_mut().find(|setting| setting.name == wanted.name) {
            Some(setting) => setting.values.extend(wanted.values.clone()),
            None => settings.push(wanted.clone()),
        }
    }
    Ok(settings)
}

struct Merger<'d> {
    described: &'d Described<'d>,
    map: &'d CorrelationMap,
    settings: Vec<Setting>,
    /// The label of the workspace that set a value first, by the name and the key.
    owners: HashMap<(String, String), &'d str>,
}

impl<'d> Merger<'d> {
    fn add(&mut self, setting: &Setting, label: &'d str) -> Result<(), MapError> {
        let at = self.settings.iter().position(|known| known.name == setting.name).unwrap_or_else(|| {
            self.settings.push(Setting { name: setting.name.clone(), values: std::collections::BTreeMap::new() });
            self.settings.len() - 1
        });
        for (key, value) in &setting.values {
            let owner = self.owners.entry((setting.name.clone(), key.clone())).or_insert(label);
            let known = self.settings[at].values.entry(key.clone()).or_insert_with(|| value.clone());
            if known != value && !is_set(self.map, &setting.name, key) {
                let problem = MapProblem::Settings {
                    name: setting.name.clone(),
                    key: key.clone(),
                    analyses: [(*owner).to_owned(), label.to_owned()],
                    values: [text(known), text(value)],
                };
                return Err(self.described.error(&setting.name, problem));
            }
        }
        Ok(())
    }
}

/// Returns whether the map sets a value.
pub(super) fn is_set(map: &CorrelationMap, name: &str, key: &str) -> bool {
    map.settings.iter().any(|(setting, _)| setting.name == name && setting.values.contains_key(key))
}

fn text(value: &WrittenValue) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
