//! What a workspace has beyond pyhf's schema.

use ns_core::spec::{ParameterConfig, Workspace};

use crate::not_representable::{Lacking, NotRepresentable, TemplateLimits};

/// Checks that a workspace has nothing beyond pyhf's schema that its likelihood depends on;
/// [`without_labels`] removes the rest.
///
/// # Errors
///
/// Everything that pyhf cannot read.
pub(crate) fn require_schema(workspace: &Workspace) -> Result<(), Vec<NotRepresentable>> {
    let mut lacking = Lacking::default();
    lacking.add_yield_rules(workspace, TemplateLimits::None);
    for (c, channel) in workspace.channels.iter().enumerate() {
        for (s, sample) in channel.samples.iter().enumerate() {
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                let at = |key: &str| format!("/channels/{c}/samples/{s}/modifiers/{m}{key}");
                if modifier.kind().has_formula() {
                    lacking.add("a formula or morphing", &modifier.name, at("/type"));
                }
                if modifier.interpolation.rule.is_some() {
                    lacking.add("the interpolation rule of", &modifier.name, at("/interpolation"));
                }
                if modifier.interpolation.scale.is_some() {
                    lacking.add("the scale of", &modifier.name, at("/scale"));
                }
            }
        }
    }
    for (m, measurement) in workspace.measurements.iter().enumerate() {
        let pointer = format!("/measurements/{m}/config");
        for (p, config) in measurement.parameters.iter().enumerate() {
            setting(config, &format!("{pointer}/parameters/{p}"), &mut lacking);
        }
    }
    lacking.into_result()
}

/// Returns the workspace without the settings that pyhf does not have and no likelihood depends
/// on, groups and further parameters of interest, and the JSON pointers of these.
pub(crate) fn without_labels(workspace: &Workspace) -> (Workspace, Vec<String>) {
    let (mut plain, mut dropped) = (workspace.clone(), Vec::new());
    for (m, measurement) in plain.measurements.iter_mut().enumerate() {
        for (p, config) in measurement.parameters.iter_mut().enumerate() {
            let at = |key: &str| format!("/measurements/{m}/config/parameters/{p}/{key}");
            if std::mem::take(&mut config.is_poi) {
                dropped.push(at("poi"));
            }
            if !std::mem::take(&mut config.groups).is_empty() {
                dropped.push(at("groups"));
            }
        }
    }
    (plain, dropped)
}

fn setting(config: &ParameterConfig, pointer: &str, lacking: &mut Lacking) {
    let keys = [
        ("constraint terms of", "constraints", config.constraints.is_some()),
        ("the kind of terms of", "per_bin", config.per_bin.is_some()),
        ("the constrained quantity of", "beta", config.beta.is_some()),
    ];
    for (what, key, _) in keys.into_iter().filter(|(.., is_given)| *is_given) {
        lacking.add(what, &config.name, format!("{pointer}/{key}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::pyhf::PARAMETER_KEYS;
    use crate::{DocumentSource, TargetFormat, convert, read_document};

    /// The keys that pyhf's schema has for a parameter.
    const OF_PYHF: [&str; 7] = ["name", "inits", "bounds", "auxdata", "factors", "sigmas", "fixed"];

    /// Returns a value that the key of a parameter may have.
    fn example(key: &str) -> Value {
        match key {
            "name" => json!("k"),
            "inits" | "auxdata" | "factors" | "sigmas" => json!([1.0]),
            "bounds" => json!([[0.0, 2.0]]),
            "fixed" | "poi" => json!(true),
            "constraints" => json!([{"type": "flat"}]),
            "per_bin" => json!({"constraint": "gaussian"}),
            "beta" => json!({"offset": 0.0, "factor": 1.0}),
            "elements" | "groups" => json!(["one"]),
            other => panic!("no value for `{other}`"),
        }
    }

    #[test]
    fn every_key_of_a_parameter_is_of_pyhf_or_named() {
        for key in PARAMETER_KEYS {
            let mut setting = json!({"name": "k"});
            setting[key] = example(key);
            let document = json!({
                "channels": [{"name": "c", "samples": [{"name": "s", "data": [5.0], "modifiers": [
                    {"name": "mu", "type": "normfactor", "data": null},
                    {"name": "k", "type": "normfactor", "data": null}]}]}],
                "observations": [{"name": "c", "data": [6.0]}],
                "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [setting]}}],
                "version": "1.0.0"});
            let read = read_document(document.to_string().as_bytes(), &DocumentSource::Stdin).expect("a workspace");
            let place = format!("/measurements/0/config/parameters/0/{key}");
            match convert(&read.workspace, &read.kept, TargetFormat::Pyhf) {
                Err(error) => {
                    assert!(!OF_PYHF.contains(&key) && error.to_string().contains(&place), "{key}: {error}");
                }
                Ok(converted) => {
                    let written: Value = serde_json::from_str(&converted.text).expect("JSON");
                    let setting = written["measurements"][0]["config"]["parameters"][0].as_object().expect("settings");
                    assert!(setting.keys().all(|key| OF_PYHF.contains(&key.as_str())), "{key}: {setting:?}");
                    let is_named = converted.warnings.iter().any(|warning| warning.contains(&place));
                    assert_eq!(is_named, !OF_PYHF.contains(&key), "{key}: {:?}", converted.warnings);
                }
            }
        }
    }

    #[test]
    fn a_group_twice_is_refused_with_its_place() {
        let document = |groups: Value| {
            json!({
                "channels": [{"name": "c", "samples": [{"name": "s", "data": [5.0], "modifiers": [
                    {"name": "mu", "type": "normfactor", "data": null}]}]}],
                "observations": [{"name": "c", "data": [6.0]}],
                "measurements": [{"name": "m", "config": {
                    "poi": "mu", "parameters": [{"name": "mu", "groups": groups}]}}],
                "version": "1.0.0"})
            .to_string()
        };
        let read = |groups: Value| read_document(document(groups).as_bytes(), &DocumentSource::Stdin);
        read(json!(["g", "h"])).expect("two groups");
        let error = read(json!(["g", "h", "g"])).expect_err("twice").to_string();
        let place = "`/measurements/0/config/parameters/0/groups/2`";
        assert!(error.contains("`g` is in the list twice") && error.contains(place), "{error}");
    }
}
