//! What the document that was converted to HS3 says: which settings a measurement had.
//!
//! HS3 has a value, a range and a flag for every parameter. A pyhf workspace has settings for some
//! of them and possibly for others, and its digest depends on which; and it may have observations
//! of channels that it has not. `misc` has room for that, and for the samples whose templates are
//! cut off at zero: the standard does not say it, ROOT does it to all with a histosys.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};

use ns_core::spec::{Channel, Clipping, Measurement, Observation, ParameterConfig, Workspace};

use super::document::{Read, texts};
use super::settings::FullSetting;
use crate::json::JsonCursor;
use crate::pyhf;

/// The key of `misc` for what nextstat writes.
pub(super) const KEY: &str = "nextstat";

/// What a measurement had, in its order.
pub(super) struct WrittenSettings {
    settings: Vec<WrittenSetting>,
    /// A parameter of interest that the model does not have.
    pub(super) poi: Option<String>,
    pub(super) clip: Clipping,
}

impl WrittenSettings {
    /// Returns whether `listed`, the parameters of interest of an analysis, are those that the
    /// measurement had: the first, unless the model does not have it, and others by their settings.
    pub(super) fn has_pois(&self, listed: &[String]) -> bool {
        let used = self.settings.iter().filter(|setting| setting.unused.is_none());
        let by_setting = used.filter(|setting| setting.keys.iter().any(|key| key == "poi"));
        let by_setting: BTreeSet<&String> = by_setting.map(|setting| &setting.name).collect();
        let is_same = |listed: &[String]| by_setting == listed.iter().collect();
        is_same(listed) || is_same(listed.get(1..).unwrap_or_default())
    }
}

struct WrittenSetting {
    name: String,
    keys: Vec<String>,
    groups: Vec<String>,
    /// All of it, if no modifier uses the parameter.
    unused: Option<ParameterConfig>,
}

/// Reads what each measurement had, by its name, if the document at `root` says it.
pub(super) fn read(root: &JsonCursor<'_>) -> Read<HashMap<String, WrittenSettings>> {
    let written = with_ours(root, "measurements", |measurements| {
        let mut written = HashMap::new();
        for measurement in measurements.list()? {
            let object = measurement.open_object()?;
            let name = object.need("name")?.text()?.to_owned();
            let parameters = object.need("parameters")?;
            let settings = parameters.list()?.map(|setting| read_setting(&setting)).collect::<Read<_>>()?;
            let poi = object.get("poi").map(|poi| poi.text().map(str::to_owned)).transpose()?;
            let templates = object.get("lowest_template").map(|lowest| lowest.number()).transpose()?;
            let clip = Clipping { templates, ..Clipping::default() };
            written.entry(name).or_insert(WrittenSettings { settings, poi, clip });
        }
        Ok(Some(written))
    })?;
    Ok(written.unwrap_or_default())
}

/// Reads the value of `key` of what nextstat wrote, if there is any.
fn with_ours<T>(
    root: &JsonCursor<'_>,
    key: &str,
    read: impl FnOnce(&JsonCursor<'_>) -> Read<Option<T>>,
) -> Read<Option<T>> {
    let Some(misc) = root.open_object()?.get("misc") else { return Ok(None) };
    let Some(ours) = misc.open_object()?.get(KEY) else { return Ok(None) };
    let Some(value) = ours.open_object()?.get(key) else { return Ok(None) };
    read(&value)
}

/// Puts observations in the order of the workspace, with those of channels that it did not have.
pub(super) fn restore_observations(root: &JsonCursor<'_>, observations: &mut Vec<Observation>) -> Read<()> {
    let written = with_ours(root, "observations", |list| {
        let one = |cursor: JsonCursor<'_>| -> Read<Observation> {
            let object = cursor.open_object()?;
            let data = object.get("data").map(|data| data.numbers()).transpose()?.unwrap_or_default();
            Ok(Observation { name: object.need("name")?.text()?.to_owned(), data })
        };
        list.list()?.map(one).collect::<Read<Vec<_>>>().map(Some)
    })?;
    let Some(written) = written else { return Ok(()) };
    let mut ordered = Vec::new();
    for unused in written {
        match observations.iter().position(|known| known.name == unused.name) {
            Some(known) => ordered.push(observations.remove(known)),
            None if !unused.data.is_empty() => ordered.push(unused),
            None => {}
        }
    }
    ordered.append(observations);
    *observations = ordered;
    Ok(())
}

/// Cuts off the templates at zero that the workspace had cut off.
pub(super) fn restore_limits(root: &JsonCursor<'_>, channels: &mut [Channel]) -> Read<()> {
    let clipped = with_ours(root, "clipped", |list| {
        let one = |cursor: JsonCursor<'_>| -> Read<[String; 2]> {
            let object = cursor.open_object()?;
            Ok([object.need("channel")?.text()?.to_owned(), object.need("sample")?.text()?.to_owned()])
        };
        list.list()?.map(one).collect::<Read<HashSet<_>>>().map(Some)
    })?;
    let Some(clipped) = clipped else { return Ok(()) };
    for channel in channels {
        for sample in &mut channel.samples {
            if clipped.contains(&[channel.name.clone(), sample.name.clone()]) {
                sample.template.clip = Some(0.0);
            }
        }
    }
    Ok(())
}

fn read_setting(cursor: &JsonCursor<'_>) -> Read<WrittenSetting> {
    let object = cursor.open_object()?;
    let name = object.need("name")?.text()?.to_owned();
    let Some(unused) = object.get("unused") else {
        let groups = object.get("groups").map(|list| texts(&list)).transpose()?.unwrap_or_default();
        return Ok(WrittenSetting { name, keys: texts(&object.need("keys")?)?, groups, unused: None });
    };
    let config = pyhf::read_setting(&unused).map_err(|_| super::unsupported_at("the setting of", &name, &unused))?;
    Ok(WrittenSetting { name, keys: Vec::new(), groups: Vec::new(), unused: Some(config) })
}

/// Returns the settings without those that pyhf would have anyway, in the order of the workspace.
pub(super) fn restore(
    full: impl Iterator<Item = Read<FullSetting>>,
    written: Option<&WrittenSettings>,
) -> Read<Vec<ParameterConfig>> {
    let written = written.map_or(&[][..], |written| &written.settings);
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, setting) in written.iter().enumerate() {
        places.entry(&setting.name).or_insert(index);
    }
    let mut ordered: Vec<Option<ParameterConfig>> = written.iter().map(|setting| setting.unused.clone()).collect();
    let mut others = Vec::new();
    for setting in full {
        let setting = setting?;
        match places.get(&*setting.config.name) {
            Some(&index) if ordered[index].is_none() => ordered[index] = reduced(setting, Some(&written[index])),
            _ => others.extend(reduced(setting, None)),
        }
    }
    Ok(ordered.into_iter().flatten().chain(others).collect())
}

fn reduced(full: FullSetting, written: Option<&WrittenSetting>) -> Option<ParameterConfig> {
    let FullSetting { mut config, defaults } = full;
    for key in defaults {
        if written.is_some_and(|setting| setting.keys.iter().any(|written| written == key)) {
            continue;
        }
        match key {
            "inits" => config.inits = None,
            "bounds" => config.bounds = None,
            "auxdata" => config.auxdata = None,
            _ => config.fixed = None,
        }
    }
    if let Some(setting) = written {
        // HS3 has no place for these.
        config.is_poi = setting.keys.iter().any(|key| key == "poi");
        config.groups.clone_from(&setting.groups);
    }
    let is_empty = config == ParameterConfig { name: config.name.clone(), ..ParameterConfig::default() };
    (!is_empty || written.is_some()).then_some(config)
}

/// Returns what `misc` has of a workspace; `is_used` says which parameters the model has.
pub(super) fn write(workspace: &Workspace, is_used: impl Fn(&str) -> bool) -> Value {
    let setting = |config: &ParameterConfig| {
        let value = pyhf::write_setting(config);
        if !is_used(&config.name) {
            return json!({"name": config.name, "unused": value});
        }
        let keys = value.as_object().map(Map::keys);
        let keys: Vec<&String> = keys.into_iter().flatten().filter(|key| *key != "name").collect();
        let mut ours = json!({"name": config.name, "keys": keys});
        if !config.groups.is_empty() {
            ours["groups"] = json!(config.groups);
        }
        ours
    };
    let measurement = |measurement: &Measurement| {
        let settings: Vec<Value> = measurement.parameters.iter().map(&setting).collect();
        let mut ours = json!({"name": measurement.name, "parameters": settings});
        if let Some(poi) = measurement.poi.as_deref().filter(|poi| !is_used(poi)) {
            ours["poi"] = poi.into();
        }
        if let Some(lowest) = measurement.clip.templates {
            ours["lowest_template"] = lowest.into();
        }
        ours
    };
    let measurements: Vec<Value> = workspace.measurements.iter().map(measurement).collect();
    let mut ours = json!({"measurements": measurements});
    let channels = workspace.channels.iter().map(|channel| &channel.name);
    if !channels.eq(workspace.observations.iter().map(|observation| &observation.name)) {
        ours["observations"] = observations(workspace).into();
    }
    let clipped = clipped(workspace);
    if !clipped.is_empty() {
        ours["clipped"] = clipped.into();
    }
    ours
}

/// Returns the samples whose templates have the limit of ROOT, the only one that is written.
fn clipped(workspace: &Workspace) -> Vec<Value> {
    let in_channel = |channel: &Channel| -> Vec<Value> {
        let clipped = channel.samples.iter().filter(|sample| sample.template.clip.is_some());
        clipped.map(|sample| json!({"channel": channel.name, "sample": sample.name})).collect()
    };
    workspace.channels.iter().flat_map(in_channel).collect()
}

/// Returns the names of the observations, and the data of those without a channel.
fn observations(workspace: &Workspace) -> Vec<Value> {
    let has_channel = |name: &str| workspace.channels.iter().any(|channel| channel.name == name);
    let one = |observation: &Observation| {
        let Observation { name, data } = observation;
        if has_channel(name) { json!({"name": name}) } else { json!({"name": name, "data": data}) }
    };
    workspace.observations.iter().map(one).collect()
}
