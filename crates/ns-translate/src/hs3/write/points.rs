//! Parameter points and domains, one of each for every measurement.

use ns_core::spec::{ModifierKind, Workspace};
use serde_json::{Map, Value, json};

use super::settings::{ParameterRole, Roles};
use super::{elements, terms};

/// Returns the name of the domain of the measurement `m`.
pub(super) fn domain_name(workspace: &Workspace, m: usize) -> String {
    if m == 0 { "default_domain".to_owned() } else { format!("{}_domain", workspace.measurements[m].name) }
}

/// Returns the name of the parameter point of the measurement `m`.
pub(super) fn point_name(workspace: &Workspace, m: usize) -> String {
    if m == 0 { "default_values".to_owned() } else { format!("{}_values", workspace.measurements[m].name) }
}

/// Returns the domains of all measurements.
pub(super) fn domains(workspace: &Workspace, roles: &Roles<'_>) -> Vec<Value> {
    let domain = |m: usize| {
        let mut axes = Vec::new();
        for (name, role) in &roles.roles {
            let bounds = role.configs[m].and_then(|config| config.bounds.as_deref()).unwrap_or_default();
            for (element, name) in elements(name, role).into_iter().enumerate() {
                let [min, max] = bounds.get(element).copied().unwrap_or(role.default_bounds());
                axes.push(json!({"name": name, "min": min, "max": max}));
            }
        }
        json!({"name": domain_name(workspace, m), "type": "product_domain", "axes": axes})
    };
    (0..workspace.measurements.len()).map(domain).collect()
}

/// Returns the parameter points of all measurements.
pub(super) fn points(workspace: &Workspace, roles: &Roles<'_>) -> Vec<Value> {
    let point = |m: usize| {
        let mut parameters = Vec::new();
        for (name, role) in &roles.roles {
            parameters.extend(entries(name, role, m));
            let values = terms::values(name, role, m).into_iter();
            parameters.extend(values.map(|value| json!({"name": value.name, "value": value.value, "const": true})));
        }
        json!({"name": point_name(workspace, m), "parameters": parameters})
    };
    (0..workspace.measurements.len()).map(point).collect()
}

fn entries(name: &str, role: &ParameterRole<'_>, m: usize) -> Vec<Value> {
    let config = role.configs[m];
    let inits = config.and_then(|config| config.inits.as_deref()).unwrap_or_default();
    let is_fixed = config.and_then(|config| config.fixed).unwrap_or(false);
    let threshold = if role.kind == ModifierKind::StatError { role.per_bin().1 } else { 0.0 };
    let entry = |(element, name): (usize, String)| {
        let value = inits.get(element).copied().unwrap_or(role.default_init());
        let mut entry = Map::new();
        entry.insert("name".to_owned(), name.into());
        entry.insert("value".to_owned(), json!(value));
        if is_fixed || role.is_fixed_by_model(element, threshold) {
            entry.insert("const".to_owned(), true.into());
        }
        Value::Object(entry)
    };
    elements(name, role).into_iter().enumerate().map(entry).collect()
}
